//go:build unix

package stream_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// killedDir tells the test binary that it is the program that is killed, and where its files are.
const killedDir = "FLOTT_STREAM_KILLED_DIR"

// killedNumbers is how many numbers the program reads.
const killedNumbers = 3000

// sums builds the program: running sums by key and sums of windows of 100 ms of event time, each into files.
func sums(env *stream.Env, dir string, seen func(int64)) {
	numbers := env.FromGenerator(killedNumbers, func(i int64) int64 { return i }, 2500).UID("numbers").
		Map(func(x int64) int64 {
			seen(x)
			return x
		}).
		AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(50*time.Millisecond, func(x int64) time.Time {
			return time.UnixMilli(x)
		})).UID("watermarks")
	keyed := numbers.KeyBy(func(x int64) int64 { return x % 10 })
	keyed.Sum(func(x int64) int64 { return x }).UID("sums").
		Map(func(kv stream.KeyValue[int64, int64]) string { return fmt.Sprint(kv.Key, " ", kv.Value) }).
		CommitTo(filesink.New(filepath.Join(dir, "sums"), file.TextEncoding[string]("\n"))).UID("sums to files")
	keyed.Window(window.Tumbling(100 * time.Millisecond)).
		Sum(func(x int64) int64 { return x }).UID("windows").
		Map(func(r window.Result[int64, window.Time, int64]) string {
			return fmt.Sprint(r.Key, " ", r.Window.Start, " ", r.Value)
		}).
		CommitTo(filesink.New(filepath.Join(dir, "windows"), file.TextEncoding[string]("\n"))).UID("windows to files")
}

// oracle is what the program leaves, sorted.
func oracle() (running, windows []string) {
	totals, inWindow := map[int64]int64{}, map[[2]int64]int64{}
	for x := range int64(killedNumbers) {
		totals[x%10] += x
		running = append(running, fmt.Sprint(x%10, " ", totals[x%10]))
		inWindow[[2]int64{x % 10, x / 100 * 100}] += x
	}
	for k, sum := range inWindow {
		windows = append(windows, fmt.Sprint(k[0], " ", k[1], " ", sum))
	}
	slices.Sort(running)
	slices.Sort(windows)
	return running, windows
}

// TestProgramThatIsKilled is the program of the test below; alone it does nothing.
func TestProgramThatIsKilled(t *testing.T) {
	dir := os.Getenv(killedDir)
	if dir == "" {
		return
	}
	env := stream.NewEnv(stream.WithRecovery(filepath.Join(dir, "recovery"))).SetParallelism(2).
		EnableCheckpointing(25 * time.Millisecond)
	sums(env, dir, func(x int64) { fmt.Println("element", x) })
	if _, err := env.Execute(context.Background(), "killed"); err != nil {
		t.Fatal(err)
	}
	fmt.Println("finished")
}

// A program that is killed at any moment goes on when it is started again: its files hold every result once.
func TestKilledProgramGoesOn(t *testing.T) {
	seed := uint64(1)
	if s := os.Getenv("FLOTT_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	rng, dir := rand.New(rand.NewPCG(seed, 9)), t.TempDir()
	var instants []int
	for finished := false; !finished; {
		kill := 1 << 30 // never
		if len(instants) < 5 {
			kill = 1 + rng.IntN(killedNumbers/3)
			instants = append(instants, kill)
		}
		var n int
		n, finished = killed(t, dir, kill)
		if n < kill && !finished {
			t.Fatalf("FLOTT_SEED=%d, killed after %v elements: the program ended by itself after %d", seed, instants, n)
		}
		if finished && n >= killedNumbers {
			t.Errorf("FLOTT_SEED=%d: the last run read %d elements: it began anew", seed, n)
		}
	}
	running, windows := oracle()
	for name, want := range map[string][]string{"sums": running, "windows": windows} {
		if got := visible(t, filepath.Join(dir, name)); !slices.Equal(got, want) {
			t.Errorf("FLOTT_SEED=%d, killed after %v elements: %s has %d lines, want %d, or others", seed, instants, name, len(got), len(want))
		}
	}
}

// killed runs the program until it has read so many elements.
func killed(t *testing.T, dir string, kill int) (read int, finished bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestProgramThatIsKilled$", "-test.count=1")
	cmd.Env = append(os.Environ(), killedDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); {
		case line == "finished":
			finished = true
		case strings.HasPrefix(line, "element "):
			if read++; read == kill {
				if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		default:
			text = append(text, line)
		}
	}
	if err := cmd.Wait(); err != nil && read < kill {
		t.Fatalf("%v\n%s", err, strings.Join(text, "\n"))
	}
	return read, finished
}

// visible are the lines of all files that are not hidden.
func visible(t *testing.T, dir string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			return err
		}
		b, err := os.ReadFile(path)
		for line := range strings.Lines(string(b)) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}
