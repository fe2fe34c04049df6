package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/element"
	"github.com/flott-dev/flott/internal/operator/sink"
	"github.com/flott-dev/flott/internal/operator/source"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
)

var errBoom = errors.New("boom")

func typeOf[T any](t testing.TB) *frame.Type {
	t.Helper()
	typ, err := frame.TypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// add puts a node into an environment.
func add(e *Env, kind graph.Kind, name string, out *frame.Type, open func() operator.Operator, from ...graph.Edge) *graph.Node {
	n := &graph.Node{
		Kind: kind, Name: name, Out: out, New: open, Inputs: from, Parallelism: graph.Unset, MaxParallelism: graph.Unset,
		Caller: "program.go:" + fmt.Sprint(10*(len(e.graph.Nodes)+1)),
	}
	e.Add(n)
	return n
}

// numbers is a program: a source of xs, a map with f and a sink.
func numbers(t testing.TB, e *Env, xs []int64, f func(int64) int64, take func(int64)) (src, mapped, end *graph.Node) {
	typ := typeOf[int64](t)
	src = add(e, graph.Source, "numbers", typ, func() operator.Operator { return source.Slice(typ, xs) })
	mapped = add(e, graph.Operator, "map", typ, func() operator.Operator { return element.Map(typ, typ, f) }, graph.Edge{From: src})
	end = add(e, graph.Sink, "sink", nil, func() operator.Operator { return sink.Each[int64](typ, take) }, graph.Edge{From: mapped})
	return src, mapped, end
}

func same(x int64) int64 { return x }

func TestMistakesComeTogetherEachWithItsPlace(t *testing.T) {
	e := New()
	_, _, end := numbers(t, e, []int64{1}, same, func(int64) {})
	end.Inputs[0].Partitioner = &graph.Partitioner{Strategy: graph.Hash} // the graph's own mistakes come only without these
	e.Report("a.go:3", errBoom)
	e.Report("b.go:5", errors.New("second"))
	_, err := e.Plan("job")
	checkMistakes(t, "plan", err)
	_, err = e.PlanJSON()
	checkMistakes(t, "plan json", err)
	_, err = e.Start(t.Context(), "job")
	checkMistakes(t, "start", err)
	if !strings.Contains(err.Error(), `build job "job"`) {
		t.Errorf("start: %v", err)
	}
	if len(e.mistakes) != 0 || len(e.graph.Nodes) != 0 {
		t.Error("what was wrong with one job is kept for the next")
	}
}

func checkMistakes(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "a.go:3: boom\nb.go:5: second") {
		t.Errorf("%s: got %v, want both mistakes in order", what, err)
	}
}

// A graph that was reported to be sound may still be none: planning finds it, whoever asks.
func TestMistakesOfTheGraphAreFoundByEveryone(t *testing.T) {
	for name, f := range map[string]func(e *Env) error{
		"plan":      func(e *Env) error { _, err := e.Plan("job"); return err },
		"plan json": func(e *Env) error { _, err := e.PlanJSON(); return err },
		"start":     func(e *Env) error { _, err := e.Start(t.Context(), "job"); return err },
		"simulate":  func(e *Env) error { _, err := e.Simulate(t.Context(), "job", 1); return err },
	} {
		e := New()
		_, mapped, end := numbers(t, e, []int64{1}, same, func(int64) {})
		mapped.UID, end.UID = "twin", "twin"
		end.Parallelism = 0
		err := f(e)
		for _, want := range []string{"twin", "program.go:30", "parallelism 0"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", name, err, want)
			}
		}
	}
}

func TestJobWithoutOperatorsIsRefused(t *testing.T) {
	e := New()
	_, planned := e.Plan("empty")
	_, shown := e.PlanJSON()
	_, started := e.Start(t.Context(), "empty")
	_, simulated := e.Simulate(t.Context(), "empty", 1)
	for name, err := range map[string]error{"plan": planned, "plan json": shown, "start": started, "simulate": simulated} {
		if err == nil || !strings.Contains(err.Error(), "no operators") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlanIsValidJSON(t *testing.T) {
	e := New()
	e.Settings.Parallelism = 3
	src, _, end := numbers(t, e, []int64{1}, same, func(int64) {})
	src.Name, src.Parallelism = `read "a" <b>`, 1
	end.Inputs[0].Partitioner = &graph.Partitioner{Strategy: graph.Rebalance}
	text, err := e.PlanJSON()
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Nodes []plan.StreamNode `json:"nodes"`
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	want := []plan.StreamNode{
		{ID: 1, Type: `Source: read "a" <b>`, Pact: "Data Source", Contents: `Source: read "a" <b>`, Parallelism: 1},
		{ID: 2, Type: "map", Pact: "Operator", Contents: "map", Parallelism: 3, Predecessors: []plan.Predecessor{{ID: 1, ShipStrategy: "REBALANCE", Side: "second"}}},
		{ID: 3, Type: "Sink: sink", Pact: "Data Sink", Contents: "Sink: sink", Parallelism: 3, Predecessors: []plan.Predecessor{{ID: 2, ShipStrategy: "REBALANCE", Side: "second"}}},
	}
	if !slices.EqualFunc(p.Nodes, want, func(a, b plan.StreamNode) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }) {
		t.Errorf("got  %+v\nwant %+v", p.Nodes, want)
	}
	if again, err := e.PlanJSON(); err != nil || again != text {
		t.Errorf("asked again: %v, or another plan", err)
	}
}

func TestSettingsReachThePlan(t *testing.T) {
	e := New()
	s := &e.Settings
	if s.Parallelism != runtime.GOMAXPROCS(0) || s.MaxParallelism != graph.Unset || s.BufferTimeout != DefaultBufferTimeout || s.AutoWatermark != 200*time.Millisecond || !s.Chaining {
		t.Errorf("defaults %+v", s)
	}
	numbers(t, e, nil, same, func(int64) {})
	g, err := e.Graph("name")
	if err != nil || g.JobName != "name" || g.HashSeed != DefaultSeed || g.RequireUIDs {
		t.Errorf("%+v, %v", g, err)
	}
	s.Parallelism, s.MaxParallelism, s.BufferTimeout, s.Chaining, s.Seed = 5, 77, -1, false, 99
	s.Parameters["k"] = "v"
	g, err = e.Graph("name")
	if err != nil || g.Parallelism != 5 || g.MaxParallelism != 77 || g.BufferTimeout != -1 || g.ChainingEnabled || g.HashSeed != 99 || g.GlobalParameters["k"] != "v" {
		t.Errorf("%+v, %v", g, err)
	}
	jg, err := e.Plan("name")
	if err != nil || len(jg.Vertices) != 3 {
		t.Errorf("%d vertices without chaining, %v", len(jg.Vertices), err)
	}
	job := e.job(jg, "name")
	if job.Name != "name" || job.Seed != 99 || job.AutoWatermark != 200 || job.Parameters["k"] != "v" {
		t.Errorf("job %+v", job)
	}
	s.RequireUIDs = true
	if _, err := e.Plan("name"); err == nil || !strings.Contains(err.Error(), "neither UID nor UIDHash") {
		t.Errorf("without UIDs: %v", err)
	}
}

func TestMemoryAndBackendHaveDefaults(t *testing.T) {
	e := New()
	if got, want := e.memory().Limit(), host.CgroupLimit()/10*6; got != want || got <= 0 {
		t.Errorf("by default %d bytes, want %d: 60 %% of what the process may use", got, want)
	}
	if b, err := e.backend(); err != nil || b != (heap.Backend{}) {
		t.Errorf("by default state is kept by %T, %v", b, err)
	}
	e.Settings.Memory = 1 << 20
	mine := &heap.Backend{}
	e.Settings.Backends = []statebackend.Backend{mine}
	if b, err := e.backend(); e.memory().Limit() != 1<<20 || b != mine || err != nil {
		t.Error("memory or backend are not those that were set")
	}
}

func TestCallerIsTheUsersLine(t *testing.T) {
	_, file, line, _ := runtime.Caller(0)
	got := Caller("github.com/flott-dev/flott/nothing") // frames of this package are passed over: the test runner called
	if strings.Contains(got, "env_test.go") || !strings.Contains(got, "testing.go:") {
		t.Errorf("called from %s:%d, got %s", file, line, got)
	}
	var deep func(n int) string
	deep = func(n int) string {
		if n == 0 {
			return Caller("github.com/flott-dev/flott/nothing")
		}
		return deep(n - 1)
	}
	if got := deep(100); got != "unknown place" {
		t.Errorf("too deep: %s", got)
	}
}

func TestRecordedValuesAreEvaluatedOnce(t *testing.T) {
	e := New()
	n := 0
	next := func() (any, error) { n++; return n, nil }
	for _, c := range []struct {
		name string
		want int
	}{{"a", 1}, {"a", 1}, {"b", 2}, {"a", 1}, {"b", 2}} {
		if v, err := e.Record(c.name, next); v != c.want || err != nil {
			t.Errorf("%s is %v, %v, want %d", c.name, v, err, c.want)
		}
	}
	if _, err := e.Record("failing", func() (any, error) { return 5, errBoom }); !errors.Is(err, errBoom) || !strings.Contains(err.Error(), `"failing"`) {
		t.Errorf("got %v", err)
	}
	if v, err := e.Record("failing", next); v != 3 || err != nil {
		t.Errorf("a failure was recorded: %v, %v", v, err)
	}
	nothing := func() (any, error) { n++; return nil, nil }
	for range 2 {
		if v, err := e.Record("nothing", nothing); v != nil || err != nil || n != 4 {
			t.Errorf("nothing is a value, too: %v, %v after %d calls", v, err, n)
		}
	}
}

func TestJobRunsInTheEmbeddedManagers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New()
		e.Settings.Parallelism, e.Settings.Memory = 1, 64<<20
		var got []int64
		numbers(t, e, []int64{1, 2, 3}, func(x int64) int64 { return x * x }, func(x int64) { got = append(got, x) })
		x, err := e.Start(t.Context(), "squares")
		if err != nil {
			t.Fatal(err)
		}
		<-x.Done()
		if x.Err() != nil || !slices.Equal(got, []int64{1, 4, 9}) || x.Name != "squares" || len(x.ID) != 32 || len(x.Graph.Vertices) != 1 {
			t.Errorf("%v, got %v; %q %q", x.Err(), got, x.Name, x.ID)
		}
		if len(e.graph.Nodes) != 0 {
			t.Error("the next job begins with the nodes of this one")
		}
	})
}

func TestLaunchTakesThePlan(t *testing.T) {
	e := New()
	numbers(t, e, nil, same, func(int64) {})
	e.Settings.Launch = func(jg *plan.JobGraph) error {
		if jg.Graph.JobName != "job" || len(jg.Vertices) != 1 {
			t.Errorf("launched %+v", jg)
		}
		return errBoom
	}
	if x, err := e.Start(t.Context(), "job"); x != nil || !errors.Is(err, errBoom) {
		t.Errorf("%v, %v", x, err)
	}
}

// With a kit's threads the job runs there, and nowhere else.
func TestThreadsRunTheSubtasks(t *testing.T) {
	e := New()
	e.Settings.Parallelism = 2
	threads := &counting{}
	e.Settings.Threads = threads
	numbers(t, e, nil, same, func(int64) {})
	x, err := e.Start(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	<-x.Done()
	if x.Err() != nil || threads.waiters != 2 || threads.started != 2 {
		t.Errorf("%v; %+v", x.Err(), threads)
	}
}

type counting struct{ waiters, started int }

func (c *counting) NewWaiter() host.Waiter {
	c.waiters++
	return host.NewParker(nil)
}

func (c *counting) Start(_ host.Waiter, body func()) {
	c.started++
	body()
}

func TestRestartStrategiesAreMadeForEachJob(t *testing.T) {
	for name, c := range map[string]struct {
		restart Restart
		want    []bool // answers to failures a second apart
		delay   time.Duration
	}{
		"none":        {NoRestart(), []bool{false, false}, 0},
		"fixed":       {FixedDelay(2, time.Second), []bool{true, true, false}, time.Second},
		"rate":        {FailureRate(2, 3*time.Second, time.Minute), []bool{true, true, false}, time.Minute},
		"exponential": {ExponentialDelay(time.Second, time.Second, time.Hour, 2), []bool{true, true, true, true}, time.Second},
	} {
		for range 2 {
			var r control.Restart = c.restart()
			for i, want := range c.want {
				again, delay := r.Failed(int64(i) * 1000)
				if again != want || again && delay != c.delay {
					t.Errorf("%s: failure %d: %v after %v, want %v after %v", name, i+1, again, delay, want, c.delay)
				}
			}
		}
	}
}

func TestJobRestartsByItsSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, restart := range map[string]Restart{"none": nil, "fixed": FixedDelay(2, time.Second)} {
			e := New()
			e.Settings.Parallelism, e.Settings.Restart = 1, restart
			failures := 0
			numbers(t, e, []int64{1}, func(x int64) int64 {
				if failures++; failures <= 2 {
					panic(errBoom)
				}
				return x
			}, func(int64) {})
			x, err := e.Start(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			<-x.Done()
			if failed := x.Err() != nil; failed != (restart == nil) {
				t.Errorf("%s: %v", name, x.Err())
			}
		}
	})
}

func TestCancelledContextCancelsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		e := New()
		e.Settings.Parallelism = 1
		numbers(t, e, []int64{1}, func(x int64) int64 { cancel(); return x }, func(int64) {})
		add(e, graph.Source, "endless", typeOf[int64](t), func() operator.Operator { return source.Sequence(typeOf[int64](t), 0, 1<<62) })
		x, err := e.Start(ctx, "job")
		if err != nil {
			t.Fatal(err)
		}
		<-x.Done()
		if !errors.Is(x.Err(), ErrCanceled) {
			t.Errorf("got %v", x.Err())
		}
	})
}

// A job that takes checkpoints is restarted if its program says nothing, first after a second; another job is not.
func TestJobsWithCheckpointsAreRestartedByDefault(t *testing.T) {
	for _, c := range []struct {
		checkpoints bool
		restart     Restart
		want        control.Restart
	}{
		{false, nil, control.NoRestart{}},
		{true, nil, nil},
		{true, NoRestart(), control.NoRestart{}},
	} {
		e := New()
		e.Settings.Checkpoints.Enabled, e.Settings.Restart = c.checkpoints, c.restart
		r := e.restart()
		if c.want != nil {
			if r.Strategy != c.want || r.Full {
				t.Errorf("%+v: %#v", c, r)
			}
			continue
		}
		d, ok := r.Strategy.(*control.ExponentialDelay)
		if !ok || d.Random == nil || d.Jitter == 0 {
			t.Fatalf("%+v: %#v", c, r)
		}
		if again, delay := d.Failed(0); !again || delay < time.Second || delay > 1100*time.Millisecond {
			t.Errorf("the first failure: %v, %v", again, delay)
		}
		a, b := e.rehearsedRestart(3).Strategy.(*control.ExponentialDelay), e.rehearsedRestart(3).Strategy.(*control.ExponentialDelay)
		for range 5 {
			if x, y := a.Random(), b.Random(); x != y {
				t.Errorf("a simulation draws %v and then %v from one seed", x, y)
			}
		}
	}
}
