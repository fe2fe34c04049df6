//go:build unix

package filesink_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/stream"
)

const (
	// killedDir tells the test binary that it is the program that is killed, and where its files are.
	killedDir = "FLOTT_KILLED_DIR"
	// killedLimit is how many numbers the program writes; it tells every tenth, and at its end how many it has read.
	killedLimit = 20_000
)

// killedSinks are the ways in which the program writes.
func killedSinks(dir string) map[string]*filesink.Sink[int64] {
	s := filesink.New(filepath.Join(dir, "out"), file.TextEncoding[int64]("\n"))
	return map[string]*filesink.Sink[int64]{
		"plain":  s.BucketBy(func(x int64) string { return strconv.FormatInt(x%2, 10) }).MaxPartSize(2000),
		"gzip":   s.Compress(filesink.Gzip).CompactSize(20_000),
		"merged": s.NoBuckets().MaxPartSize(500).CompactAfter(4),
		"always": s.NoBuckets().RolloverInterval(20 * time.Millisecond),
	}
}

// clearing is the name of a way in which no checkpoint comes, and clearingSink how it writes.
const clearing = "clearing"

func clearingSink(dir string) *filesink.Sink[int64] {
	return filesink.New(filepath.Join(dir, "out"), file.TextEncoding[int64]("\n")).
		BucketBy(func(x int64) string { return strconv.FormatInt(x%2, 10) }).MaxPartSize(200).ClearLeftovers()
}

// TestProgramThatIsKilled is the program of the test below; alone it does nothing.
func TestProgramThatIsKilled(t *testing.T) {
	dir, name, ok := strings.Cut(os.Getenv(killedDir), "|")
	if !ok {
		return
	}
	every, sink := 10*time.Millisecond, killedSinks(dir)[name]
	if name == clearing {
		every, sink = time.Hour, clearingSink(dir)
	}
	env := stream.NewEnv(stream.WithRecovery(filepath.Join(dir, "recovery"))).SetParallelism(2).EnableCheckpointing(every)
	var read atomic.Int64
	env.FromSequence(1, killedLimit).Map(func(x int64) int64 {
		read.Add(1)
		sum := sha256.Sum256(bytes.Repeat([]byte{byte(x)}, 16<<10)) // so that there is time for checkpoints
		if x%10 == 0 || sum == [32]byte{} {
			fmt.Println("element", x)
		}
		return x
	}).UID("slowly").CommitTo(sink).UID("out")
	if _, err := env.Execute(context.Background(), "killed"); err != nil {
		t.Fatal(err)
	}
	fmt.Println("finished after", read.Load())
}

// A process that is killed at any moment goes on when it is started again, and its files hold each element once.
func TestKilledProcessesWriteEachElementOnce(t *testing.T) {
	for name := range killedSinks("") {
		first := number(t, "FLOTT_SEED", 1)
		for seed := first; seed < first+number(t, "FLOTT_SOAK", 1); seed++ {
			t.Run(fmt.Sprintf("%s/FLOTT_SEED=%d", name, seed), func(t *testing.T) { killed(t, name, seed) })
		}
	}
}

// killed kills a program four times: at first wherever it is, later when it has made something visible.
func killed(t *testing.T, name string, seed uint64) {
	rng, dir := rand.New(rand.NewPCG(seed, uint64(len(name)))), t.TempDir()
	var instants []int
	committed := false
	for finished := false; !finished; {
		kill := 1 << 30 // never
		if len(instants) < 4 {
			kill = 1 + rng.IntN(killedLimit/40)
			instants = append(instants, kill)
		}
		var read int
		read, finished = runKilled(t, dir, name, kill, len(instants) > 1)
		if finished && committed && read >= killedLimit {
			t.Errorf("killed after %v elements: the last run read them all: it began anew", instants)
		}
		committed = committed || something(t, dir)
	}
	seen := map[string]int{}
	lines, _, hidden := contents(t, vfs.OS{}, filepath.ToSlash(filepath.Join(dir, "out")))
	for _, l := range lines {
		seen[l]++
	}
	for x := 1; x <= killedLimit; x++ {
		if n := seen[strconv.Itoa(x)]; n != 1 {
			t.Fatalf("killed after %v elements: %d is there %d times", instants, x, n)
		}
	}
	if len(lines) != killedLimit {
		t.Errorf("killed after %v elements: %d lines, hidden: %q", instants, len(lines), hidden)
	}
}

// Processes that are killed before their first checkpoint leave hidden files, which the last one removes; it writes each
// element once.
func TestWhatKilledProcessesLeaveIsCleared(t *testing.T) {
	dir := t.TempDir()
	out := filepath.ToSlash(filepath.Join(dir, "out"))
	for _, kill := range []int{40, 200} {
		if _, finished := runKilled(t, dir, clearing, kill, false); finished {
			t.Fatal("the program was not killed")
		}
		if _, files, hidden := contents(t, vfs.OS{}, out); len(files) > 0 || len(hidden) == 0 {
			t.Fatalf("files %q, hidden %q", files, hidden)
		}
	}
	if read, finished := runKilled(t, dir, clearing, 1<<30, false); !finished || read != killedLimit {
		t.Fatalf("finished: %v, after %d elements", finished, read)
	}
	lines, _, hidden := contents(t, vfs.OS{}, out)
	n := len(lines)
	slices.Sort(lines)
	if lines = slices.Compact(lines); n != killedLimit || len(lines) != n || len(hidden) > 0 {
		t.Errorf("%d lines, %d different ones, hidden: %q", n, len(lines), hidden)
	}
}

// something tells whether a file is visible.
func something(t *testing.T, dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "out", "*", "part-*"))
	more, err2 := filepath.Glob(filepath.Join(dir, "out", "part-*"))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return len(files)+len(more) > 0
}

// runKilled runs the program until it has told of so many elements and, if asked, something is visible. It says how many elements
// a program has read that has finished.
func runKilled(t *testing.T, dir, name string, kill int, visible bool) (read int, finished bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestProgramThatIsKilled$", "-test.count=1")
	cmd.Env = append(os.Environ(), killedDir+"="+dir+"|"+name)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text []string
	told, dead := 0, false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n, over := strings.CutPrefix(lines.Text(), "finished after ")
		switch line := lines.Text(); {
		case over:
			read, err = strconv.Atoi(n)
			finished = err == nil
		case strings.HasPrefix(line, "element "):
			if told++; told >= kill && !dead && (!visible || something(t, dir)) {
				dead = true
				if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		default:
			text = append(text, line)
		}
	}
	if err := cmd.Wait(); err != nil && !dead {
		t.Fatalf("%v\n%s\n%s", err, strings.Join(text, "\n"), problems.String())
	}
	return read, finished
}
