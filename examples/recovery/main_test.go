package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTotalsAreRight(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), t.TempDir(), 5000, 0, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "\n50 totals, each there once and right\n") {
		t.Errorf("output %q", out.String())
	}
}

// Who is killed when the job has finished, before the program has ended, is started once more.
func TestWhatIsDoneIsNotDoneAgain(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		var out bytes.Buffer
		if err := run(context.Background(), dir, 5000, 0, &out); err != nil || !strings.HasSuffix(out.String(), "50 totals, each there once and right\n") {
			t.Errorf("output %q, %v", out.String(), err)
		}
	}
}

func TestWrongTotalsAreFound(t *testing.T) {
	dir := t.TempDir()
	if err := run(context.Background(), dir, 5000, 0, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if err := check(filepath.Join(dir, "totals"), 5001, &bytes.Buffer{}); err == nil {
		t.Error("the totals of another number of payments are taken for right")
	}
	if err := check(filepath.Join(dir, "totals"), 6000, &bytes.Buffer{}); err == nil {
		t.Error("missing totals are not missed")
	}
}

// dirOfKilled tells the test binary that it is the program that is killed.
const dirOfKilled = "FLOTT_EXAMPLE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirOfKilled); dir != "" {
		if err := run(context.Background(), dir, 20_000, 20_000, os.Stdout); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// What the README shows: kill it, start it again.
func TestItSurvivesKills(t *testing.T) {
	dir := t.TempDir()
	for n := 1; ; n++ {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), dirOfKilled+"="+dir)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if n <= 4 {
			time.Sleep(time.Duration(150*n) * time.Millisecond)
			_ = cmd.Process.Kill() // it may have ended
		}
		if err := cmd.Wait(); err == nil {
			// The last one that was killed may have finished the job: then there is nothing before this line.
			if last := out.String(); !strings.HasSuffix("\n"+last, "\n200 totals, each there once and right\n") {
				t.Errorf("output of run %d: %q", n, last)
			}
			return
		} else if n > 4 {
			t.Fatalf("run %d, which nobody killed: %v\n%s", n, err, out.String())
		}
	}
}
