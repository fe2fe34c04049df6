package stream_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// keepsLast keeps a value of type V of each key.
type keepsLast[V any] struct {
	process.NoTimers[int64, int64]
	last   *state.Value[V]
	closed *atomic.Int64
}

func (r *keepsLast[V]) ProcessElement(_ *process.KeyedContext[int64], x int64, out *process.Collector[int64]) error {
	var v V
	r.last.Set(v)
	out.Collect(x)
	return nil
}

func (r *keepsLast[V]) Close() error {
	r.closed.Add(1)
	return nil
}

// remembering builds a program with such a state behind a source that counts what it reads.
func remembering[V any](env *stream.Env, read, constructed, closed *atomic.Int64) {
	env.FromGenerator(300, func(i int64) int64 {
		read.Add(1)
		return i
	}, 1000).UID("numbers").
		KeyBy(func(x int64) int64 { return x % 10 }).
		Process(func(rt *process.Runtime) *keepsLast[V] {
			constructed.Add(1)
			return &keepsLast[V]{last: state.NewValue[V](rt, "last"), closed: closed}
		}).UID("remember").Name("remembering").
		PrintTo(discard{})
}

type (
	personOld struct {
		Name string
		Age  int32
	}
	personNew struct {
		Age  int64
		Name string
		City string
	}
	personBad struct{ Name []float64 }
)

// savedPeople is a savepoint with a personOld of each key.
func savedPeople(t *testing.T, dir string) string {
	t.Helper()
	var n atomic.Int64
	env := stream.NewEnv().SetParallelism(2)
	remembering[personOld](env, &n, &n, &n)
	job, err := env.ExecuteAsync(t.Context(), "people")
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	at, err := job.StopWithSavepoint(t.Context(), dir, false)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestIncompatibleStateIsAnErrorBeforeAnythingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := savedPeople(t, t.TempDir())
		var read, constructed, closed atomic.Int64
		env := stream.NewEnv(stream.WithSavepoint(at), stream.WithRestartStrategy(stream.FixedDelayRestart(5, time.Millisecond))).SetParallelism(3)
		remembering[personBad](env, &read, &constructed, &closed)
		_, err := env.ExecuteAsync(t.Context(), "people")
		for _, want := range []string{at, `operator "remembering"`, `"last"`, "Name"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
		if read.Load() != 0 || constructed.Load() != 1 || closed.Load() != 1 {
			t.Errorf("%d elements were read, %d functions made, %d closed", read.Load(), constructed.Load(), closed.Load())
		}
		env = stream.NewEnv(stream.WithSavepoint(at)).SetParallelism(3)
		remembering[personNew](env, &read, &constructed, &closed)
		if _, err := env.Execute(t.Context(), "people"); err != nil {
			t.Error(err)
		}
		if read.Load() == 0 || read.Load() >= 300 || constructed.Load() != 1+1+3 || closed.Load() != 1+1+3 {
			t.Errorf("%d elements were read, %d functions made, %d closed", read.Load(), constructed.Load(), closed.Load())
		}
	})
}

// What keeps nothing may come and go: other sinks, other steps on the way to them.
func TestOperatorsWithoutStateMayGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := func(uid string, opts ...stream.Option) (*stream.Job, error) {
			env := stream.NewEnv(opts...).SetParallelism(2)
			counts := env.FromGenerator(300, func(i int64) int64 { return i }, 1000).UID("numbers").
				KeyBy(func(x int64) int64 { return x % 10 }).Sum(func(int64) int64 { return 1 }).UID("counts")
			counts.Rebalance().Map(func(kv stream.KeyValue[int64, int64]) int64 { return kv.Value }).UID("step " + uid).
				PrintTo(discard{}).UID("sink " + uid).Parallelism(1)
			return env.ExecuteAsync(t.Context(), "counting")
		}
		job, err := start("old")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		at, err := job.StopWithSavepoint(t.Context(), t.TempDir(), false)
		if err != nil {
			t.Fatal(err)
		}
		if job, err = start("new", stream.WithSavepoint(at)); err != nil {
			t.Fatal(err)
		}
		if _, err := job.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// checkedProgram tells the test binary that it is the program of a dry run, and which.
const checkedProgram = "FLOTT_STREAM_CHECKED"

func TestDryRunTellsWhetherTheJobCouldStart(t *testing.T) {
	var n atomic.Int64
	if program := os.Getenv(checkedProgram); program != "" {
		env := stream.NewEnv(stream.WithSavepoint("/in/code"))
		switch program {
		case "new":
			remembering[personNew](env, &n, &n, &n)
		case "bad":
			remembering[personBad](env, &n, &n, &n)
		case "other":
			countTo(env, "nothing is written", 1, never) // the process ends where it stands, and would leave a folder behind
		case "mistake":
			env.FromElements(1).UID("a").Map(func(x int) int { return x }).UID("a").PrintTo(discard{})
		}
		_, err := env.Execute(t.Context(), "people")
		t.Fatalf("Execute returned %v, with %d elements read", err, n.Load())
	}
	dir, at := t.TempDir(), ""
	synctest.Test(t, func(t *testing.T) { at = savedPeople(t, dir) }) // the job must not end before it is saved
	for _, c := range []struct {
		program string
		keys    map[string]string
		code    int
		states  []string
		want    string
	}{
		{program: "new", states: []string{"untried", "fits"}},
		{program: "bad", code: 1, states: []string{"untried", "refused"}, want: `"last"`},
		{program: "other", code: 1, states: []string{"untried", "new", "unclaimed"}, want: "the savepoint has state that the program has no operator for"},
		{program: "other", keys: map[string]string{"execution.state-recovery.ignore-unclaimed-state": "true"}, states: []string{"untried", "new", "unclaimed"}},
		{program: "mistake", code: 1, want: "a"},
		{program: "new", keys: map[string]string{"execution.state-recovery.path": "/nowhere"}, code: 1, want: "/nowhere"},
		{program: "new", keys: map[string]string{"execution.checkpointing.interval": "1 ms"}, code: 1, states: []string{"untried", "fits"}, want: "execution.checkpointing.interval"},
	} {
		keys := map[string]string{"execution.check": "true", "execution.state-recovery.path": at}
		for k, v := range c.keys {
			keys[k] = v
		}
		b, err := json.Marshal(keys)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestDryRunTellsWhetherTheJobCouldStart$")
		cmd.Env = append(os.Environ(), checkedProgram+"="+c.program, "FLOTT_CONFIGURATION="+string(b))
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != c.code {
			t.Errorf("%s %v: exit code %d, want %d: %v\n%s", c.program, c.keys, cmd.ProcessState.ExitCode(), c.code, err, out)
		}
		var r struct {
			Job       string
			Savepoint string
			Startable bool
			Operators []struct{ Name, State string }
		}
		if err := json.Unmarshal(out, &r); err != nil {
			t.Errorf("%s: %v\n%s", c.program, err, out)
			continue
		}
		var states []string
		for _, o := range r.Operators {
			if o.State != "none" {
				states = append(states, o.State)
			}
		}
		if r.Job != "people" || r.Savepoint != keys["execution.state-recovery.path"] || r.Startable != (c.code == 0) || !slices.Equal(states, c.states) || !strings.Contains(string(out), strings.ReplaceAll(c.want, `"`, `\"`)) {
			t.Errorf("%s %v: report\n%s", c.program, c.keys, out)
		}
	}
}
