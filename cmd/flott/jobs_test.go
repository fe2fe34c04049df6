//go:build unix

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// TestMain lets the test binary be other programs: flott as a process, and in the scripts flott and the jobs that it runs.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"flott": main, "tally-job": tallyJob, "short-job": shortJob})
}

// tallyJob is a program with a job that counts for ever, by key.
func tallyJob() {
	limit := flag.Int64("limit", math.MaxInt64/4, "the last number")
	name := flag.String("uid", "tally", "the UID of what counts")
	dir := flag.String("savepoints", "", "where savepoints lie by default")
	more := flag.Bool("more", false, "count what was counted")
	flag.Parse()
	opts := []stream.Option{}
	if *dir != "" {
		opts = append(opts, stream.WithConfiguration(map[string]string{"execution.checkpointing.savepoint-dir": *dir}))
	}
	env := stream.NewEnv(opts...)
	tallies := env.FromSequence(0, *limit).Parallelism(1).UID("numbers").
		Map(func(x int64) int64 {
			if x%1000 == 0 {
				time.Sleep(time.Millisecond)
			}
			return x
		}).Parallelism(1).UID("slowly").
		KeyBy(func(x int64) int64 { return x % 100 }).
		Process(newCounter).Name("Tally").UID(*name)
	if *more {
		tallies = tallies.KeyBy(func(x int64) int64 { return x % 7 }).Process(newCounter).Name("More").UID("more")
	}
	tallies.ForEach(func(int64) {}).UID("nowhere")
	if _, err := env.Execute(context.Background(), "tallying"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	fmt.Println("the program is over")
}

// counter counts by key.
type counter struct {
	count *state.Value[int64]
	seen  *process.LongCounter
}

func newCounter(rt *process.Runtime) *counter {
	return &counter{count: state.NewValue[int64](rt, "count"), seen: process.NewLongCounter(rt, "seen")}
}

func (f *counter) ProcessElement(_ *process.KeyedContext[int64], _ int64, out *process.Collector[int64]) error {
	f.seen.Add(1)
	f.count.Update(func(n *int64) { *n++ })
	n := f.count.Get()
	out.Collect(n)
	return nil
}

// shortJob is a program that prints its arguments and, with -job, runs a job that ends.
func shortJob() {
	with := flag.Bool("job", false, "run a job")
	broken := flag.Bool("broken", false, "let it fail")
	panics := flag.Bool("panics", false, "let it panic")
	flag.Parse()
	fmt.Println("arguments:", flag.Args())
	if !*with {
		return
	}
	env := stream.NewEnv()
	env.FromElements(1, 2, 3).TryMap(func(_ context.Context, x int) (int, error) {
		if *broken {
			return 0, fmt.Errorf("no %d", x)
		}
		if *panics {
			panic(fmt.Sprint("no ", x))
		}
		return x, nil
	}).Print()
	if _, err := env.Execute(context.Background(), "short"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func (f *counter) OnTimer(*process.KeyedContext[int64], process.Timer, *process.Collector[int64]) error {
	return nil
}

// TestJobsAreControlledFromTheCommandLine runs the scripts of testdata/jobs. Beside testscript's commands they have: job, which
// takes the id and the endpoint of the job that was just submitted into ID, AT and, its port alone, PORT, waits until the job runs and sees to its end;
// saved, which takes the path that was just printed into SP; gone, which waits until nothing is served at AT; logged, which
// waits until a file holds a text; and damaged, which changes a byte of the files that a pattern names.
func TestJobsAreControlledFromTheCommandLine(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/jobs",
		Setup: func(e *testscript.Env) error {
			for name, variable := range map[string]string{"tally-job": "TALLY", "short-job": "SHORT"} {
				path, err := exec.LookPath(name)
				if err != nil {
					return err
				}
				e.Setenv(variable, path)
			}
			tmp := filepath.Join(e.WorkDir, "tmp")
			if err := os.Mkdir(tmp, 0o777); err != nil {
				return err
			}
			e.Setenv("TMPDIR", tmp)
			for _, name := range []string{"GOCACHE", "GOPATH", "GOTOOLCHAIN", "GOPROXY"} { // to build programs with
				value, err := exec.Command("go", "env", name).Output()
				if err != nil {
					return err
				}
				e.Setenv(name, strings.TrimSpace(string(value)))
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"job": takeJob, "saved": takeSavepoint, "gone": waitUntilGone, "logged": waitUntilLogged, "damaged": damage},
	})
}

func printed(ts *testscript.TestScript, pattern string) string {
	m := regexp.MustCompile(pattern).FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("%s was not printed", pattern)
	}
	return m[1]
}

func takeJob(ts *testscript.TestScript, _ bool, _ []string) {
	id, at := printed(ts, `submitted with JobID ([0-9a-f]{32})\n`), printed(ts, `served at (127\.0\.0\.1:\d+):`)
	ts.Setenv("ID", id)
	ts.Setenv("AT", at)
	ts.Setenv("PORT", at[strings.LastIndexByte(at, ':')+1:])
	if err := answered("http://"+at+"/jobs/"+id, `"state":"RUNNING"`); err != nil {
		ts.Fatalf("wait for job %s: %v", id, err)
	}
	ts.Defer(func() {
		req, err := http.NewRequest(http.MethodPatch, "http://"+at+"/jobs/"+id, nil)
		if err != nil {
			return
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	})
}

// answered asks until the answer is as wanted.
func answered(url, pattern string) error {
	for wanted := regexp.MustCompile(pattern); ; time.Sleep(time.Millisecond) {
		resp, err := http.Get(url)
		if err != nil {
			return err
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || wanted.Match(b) {
			return err
		}
	}
}

func takeSavepoint(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Setenv("SP", printed(ts, `(?:Path: |stored in )(\S+?)\.?\n`))
}

func waitUntilGone(ts *testscript.TestScript, _ bool, _ []string) {
	for {
		resp, err := http.Get("http://" + ts.Getenv("AT") + "/overview")
		if err != nil {
			return
		}
		_ = resp.Body.Close()
		time.Sleep(5 * time.Millisecond)
	}
}

// damage changes a byte in the middle of files.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	if err != nil || len(files) == 0 {
		ts.Fatalf("files %q, %v", files, err)
	}
	for _, file := range files {
		b := []byte(ts.ReadFile(file))
		b[len(b)/2] ^= 1
		ts.Check(os.WriteFile(file, b, 0o666))
	}
}

func waitUntilLogged(ts *testscript.TestScript, _ bool, args []string) {
	for !strings.Contains(ts.ReadFile(args[0]), args[1]) {
		time.Sleep(5 * time.Millisecond)
	}
}
