//go:build servers && unix

package servers_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/storage/azure"
	"github.com/flott-dev/flott/storage/gs"
	"github.com/flott-dev/flott/storage/hdfs"
	"github.com/flott-dev/flott/storage/s3"
	"github.com/flott-dev/flott/storage/storagetest"
	"github.com/flott-dev/flott/stream"
)

// The variables that make the test binary the program of the job, and tell it what to do.
const (
	jobURL  = "FLOTT_JOB_URL"  // where its snapshots lie
	jobFrom = "FLOTT_JOB_FROM" // the snapshot that it begins with
	jobPace = "FLOTT_JOB_PACE" // how long each number takes
)

// slowly is the pace of a job that is to be at work for minutes, however slow the store is.
const slowly = 20 * time.Millisecond

// The job sums up the numbers from 1 to jobNumbers by their last digit.
const (
	jobNumbers = 12_000
	jobKeys    = 10
)

// total is what the numbers that end with a digit sum up to.
type total struct{ Digit, Sum int64 }

func openers() []checkpoint.Opener {
	return []checkpoint.Opener{s3.Opener{}, gs.Opener{}, azure.Opener{}, hdfs.Opener{}}
}

// TestStorageProgram is the program of the job; alone it does nothing. It prints its running totals, and stops with a savepoint
// when its standard input ends.
func TestStorageProgram(t *testing.T) {
	where := os.Getenv(jobURL)
	if where == "" {
		return
	}
	pace, err := time.ParseDuration(os.Getenv(jobPace))
	if err != nil {
		t.Fatal(err)
	}
	options := []stream.Option{stream.WithStorage(openers()...)}
	parallelism := 2
	if from := os.Getenv(jobFrom); from != "" {
		options = append(options, stream.WithSavepoint(from))
		parallelism = 3
	}
	env := stream.NewEnv(options...).SetParallelism(parallelism)
	env.EnableCheckpointing(200*time.Millisecond, stream.ExternalizedCheckpoints(stream.RetainOnCancellation))
	env.SetCheckpointStorage(below(t, where, "checkpoints"))
	env.FromSequence(1, jobNumbers).UID("numbers").
		Map(func(x int64) total {
			time.Sleep(pace)
			return total{x % jobKeys, x}
		}).UID("slowly").
		KeyBy(func(t total) int64 { return t.Digit }).
		Reduce(func(a, b total) total { return total{a.Digit, a.Sum + b.Sum} }).UID("totals").
		Map(func(t total) total {
			fmt.Println("total", t.Digit, t.Sum)
			return t
		}).UID("print").Discard()
	job, err := env.ExecuteAsync(context.Background(), "totals")
	if err != nil {
		t.Fatal(err)
	}
	asked, answered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(asked)
		if path, err := job.StopWithSavepoint(context.Background(), below(t, where, "savepoints"), false); err == nil {
			fmt.Println("savepoint", path)
		} else {
			fmt.Println("failed", err)
		}
	}()
	if _, err := job.Wait(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
		<-answered
	default: // it came to its end
	}
}

// below is the URL of something in the folder of a URL.
func below(t *testing.T, where string, names ...string) string {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	return u.JoinPath(names...).String()
}

// storageAt tries a storage: the suite, each test of it in a folder of its own, and the job.
func storageAt(t *testing.T, o checkpoint.Opener, where string) {
	t.Helper()
	t.Run("suite", func(t *testing.T) {
		storagetest.Run(t, func(t *testing.T) (checkpoint.FS, string) {
			f, dir := opened(t, o, below(t, where, t.Name()))
			if err := f.MkdirAll(dir); err != nil {
				t.Fatal(err)
			}
			return f, dir
		}, func(t *testing.T) checkpoint.FS {
			f, _ := opened(t, o, where)
			return f
		})
	})
	t.Run("job", func(t *testing.T) { jobGoesOn(t, o, below(t, where, "job 1")) })
	t.Run("files", func(t *testing.T) { filesAreWrittenOnce(t, o, below(t, where, "files 1")) })
}

func opened(t *testing.T, o checkpoint.Opener, where string) (checkpoint.FS, string) {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	f, dir, err := o.Open(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	return f, dir
}

// jobGoesOn kills the job after some checkpoints, starts it from the last one, stops it with a savepoint and starts it from
// that: no number is lost, none counts twice.
func jobGoesOn(t *testing.T, o checkpoint.Opener, where string) {
	f, dir := opened(t, o, where)
	totals := map[int64]int64{}

	first := startJob(t, where, "", slowly)
	var last *checkpoint.Manifest
	for last == nil || last.ID < 3 {
		for range 20 {
			if !first.line(t, totals) {
				first.kill(t)
			}
		}
		last = latest(t, f, path.Join(dir, "checkpoints"))
	}
	first.kill(t)
	last = latest(t, f, path.Join(dir, "checkpoints"))
	if err := last.Verify(f); err != nil {
		t.Fatal(err)
	}

	second := startJob(t, where, below(t, where, strings.TrimPrefix(last.Folder, dir)), slowly)
	for range 200 {
		if !second.line(t, totals) {
			second.end(t)
		}
	}
	_ = second.in.Close() // it stops with a savepoint
	for second.line(t, totals) {
	}
	second.end(t)
	if second.savepoint == "" {
		t.Fatalf("there is no savepoint\n%s", strings.Join(second.text, "\n"))
	}

	third := startJob(t, where, second.savepoint, 0)
	for third.line(t, totals) {
	}
	_ = third.in.Close()
	third.end(t)
	for digit := range int64(jobKeys) {
		want := int64(0)
		for x := int64(1); x <= jobNumbers; x++ {
			if x%jobKeys == digit {
				want += x
			}
		}
		if totals[digit] != want {
			t.Errorf("the numbers that end with %d sum up to %d, want %d", digit, totals[digit], want)
		}
	}
	t.Logf("killed after checkpoint %d, stopped with %s", last.ID, second.savepoint)
}

// latest is the last checkpoint of the only job, or nil.
func latest(t *testing.T, f checkpoint.FS, dir string) *checkpoint.Manifest {
	t.Helper()
	entries, err := f.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var m *checkpoint.Manifest
	for _, e := range entries {
		s, err := checkpoint.OpenStorage(f, path.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if m, err = s.Latest(); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// program is a process that runs the job.
type program struct {
	cmd       *exec.Cmd
	in        io.Closer
	lines     *bufio.Scanner
	text      []string // what it said beside totals
	said      *output  // on its standard error
	savepoint string
}

func startJob(t *testing.T, where, from string, pace time.Duration) *program {
	t.Helper()
	return startTest(t, "TestStorageProgram", jobURL+"="+where, jobFrom+"="+from, jobPace+"="+pace.String())
}

// startTest starts a test of this binary that is a program.
func startTest(t *testing.T, name string, environment ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(os.Args[0], "-test.run=^"+name+"$", "-test.count=1"), said: &output{}}
	p.cmd.Env = append(os.Environ(), environment...)
	p.cmd.Stderr = p.said
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.lines = bufio.NewScanner(out)
	return p
}

// line reads what the program says next, and keeps the larger totals. It is false at the end.
func (p *program) line(t *testing.T, totals map[int64]int64) bool {
	t.Helper()
	if !p.lines.Scan() {
		return false
	}
	line := p.lines.Text()
	var x total
	if n, _ := fmt.Sscanf(line, "total %d %d", &x.Digit, &x.Sum); n == 2 {
		totals[x.Digit] = max(totals[x.Digit], x.Sum)
		return true
	}
	if path, ok := strings.CutPrefix(line, "savepoint "); ok {
		p.savepoint = path
	}
	p.text = append(p.text, line)
	return true
}

// kill ends the process as a lost machine does.
func (p *program) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err == nil || p.cmd.ProcessState.Exited() {
		t.Fatalf("the job ended by itself, before it was killed\n%s\n%s", strings.Join(p.text, "\n"), p.said)
	}
}

func (p *program) end(t *testing.T) {
	t.Helper()
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, strings.Join(p.text, "\n"), p.said)
	}
}
