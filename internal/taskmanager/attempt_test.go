package taskmanager

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/task"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/statebackend"
)

var errBoom = errors.New("boom")

// node is an operator of int64s whose parts are functions of the test; each may be nil.
type node struct {
	operator.Unary
	source bool
	hooks
}

type hooks struct {
	open  func(rt *operator.Runtime) error
	poll  func(rt *operator.Runtime, out *operator.Output) (operator.Status, error)
	push  func(rt *operator.Runtime, xs []int64) error
	event func(rt *operator.Runtime, event []byte) error
}

func (n *node) Inputs() []operator.Input {
	if n.source {
		return nil
	}
	return []operator.Input{n}
}

func (n *node) Open(rt *operator.Runtime) error {
	if err := n.Unary.Open(rt); err != nil || n.open == nil {
		return err
	}
	return n.open(rt)
}

func (n *node) Poll() (operator.Status, error) {
	if n.poll == nil {
		return operator.Done, nil
	}
	return n.poll(n.RT, &n.Out)
}

func (n *node) Push(r *frame.Run) error {
	if n.push != nil {
		return n.push(n.RT, frame.Values[int64](r))
	}
	return n.Out.Push(r)
}

func (n *node) HandleEvent(event []byte) error { return n.event(n.RT, event) }

// emit pushes numbers.
func emit(out *operator.Output, xs ...int64) error {
	c := frame.NewColumn(out.Type, len(xs))
	for _, x := range xs {
		frame.Add(c, x, frame.NoTime)
	}
	r := c.Run()
	return out.Push(&r)
}

// cluster is a graph in the making and what came of it.
type cluster struct {
	t    *testing.T
	g    *graph.Graph
	typ  *frame.Type
	job  *Job
	opt  Options
	sent func(vertex, subtask, node int, event []byte)

	reports chan Ended
	ended   []Ended // once finish has returned
}

func newCluster(t *testing.T) *cluster {
	typ, err := frame.TypeOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	c := clock.NewSystem()
	return &cluster{
		t: t, typ: typ, reports: make(chan Ended, 100), opt: Options{Threads: host.Goroutines{Clock: c}, Clock: c, Memory: host.NewMemory(0), Backend: &notebook{}},
		g: &graph.Graph{JobName: "job", Parallelism: 1, MaxParallelism: graph.Unset, ChainingEnabled: true, HashSeed: 77},
	}
}

// add appends a node; part says how its one input is spread, nil for a source.
func (c *cluster) add(name string, parallelism int, h hooks, from *graph.Node, part *graph.Partitioner) *graph.Node {
	n := &graph.Node{
		Kind: graph.Operator, Name: name, Parallelism: parallelism, MaxParallelism: graph.Unset, Out: c.typ,
		New: func() operator.Operator {
			return &node{Unary: operator.Unary{In: c.typ, Out: operator.NewOutput(c.typ)}, source: from == nil, hooks: h}
		},
	}
	if from == nil {
		n.Kind = graph.Source
	} else {
		n.Inputs = []graph.Edge{{From: from, Partitioner: part}}
	}
	c.g.Nodes = append(c.g.Nodes, n)
	return n
}

func (c *cluster) deploy(ctx context.Context) (*Attempt, error) {
	c.t.Helper()
	jg, err := plan.Build(c.g)
	if err != nil {
		c.t.Fatal(err)
	}
	c.job = &Job{
		Graph: plan.Unfold(jg), Name: "job", Seed: 77, AutoWatermark: 50,
		Parameters: map[string]string{"key": "value"}, Files: map[string]string{"dict": "/tmp/words"},
	}
	return Deploy(ctx, c.job, 4, c.opt, func(vertex, subtask, node int, event []byte) {
		if c.sent != nil {
			c.sent(vertex, subtask, node, event)
		}
	}, func(e Ended) { c.reports <- e })
}

// finish waits for all tasks; the first failure ends the others, as with a job manager.
func (c *cluster) finish(a *Attempt) {
	for range a.Tasks {
		e := <-c.reports
		c.ended = append(c.ended, e)
		if e.Err != nil {
			a.Cancel()
		}
	}
	a.Wait()
}

// run deploys and waits.
func (c *cluster) run() *Attempt {
	c.t.Helper()
	a, err := c.deploy(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	c.finish(a)
	return a
}

// notebook is a backend that writes down what it is asked for.
type notebook struct {
	mu     sync.Mutex
	opened []statebackend.Options
}

func (n *notebook) Name() string { return "notebook" }

func (n *notebook) Open(o statebackend.Options) (statebackend.Store, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opened = append(n.opened, o)
	return nil, nil
}

// Every subtask of the producer reaches every subtask of the consumer on a channel of its own, and pointwise edges only
// where the plan says so.
func TestSubtasksAreConnectedAsPlanned(t *testing.T) {
	all := func(r *frame.Run, channels int, out []uint16) error {
		for i, x := range frame.Values[int64](r) {
			out[i] = uint16(x % 100)
		}
		return nil
	}
	for _, c := range []struct {
		part     *graph.Partitioner
		up, down int
		want     string // consumer: producers
	}{
		{&graph.Partitioner{Strategy: graph.Custom, Select: func() func(*frame.Run, int, []uint16) error { return all }}, 2, 3, "0:[0 1] 1:[0 1] 2:[0 1]"},
		{&graph.Partitioner{Strategy: graph.Rescale}, 2, 4, "0:[0] 1:[0] 2:[1] 3:[1]"},
		{&graph.Partitioner{Strategy: graph.Rescale}, 4, 2, "0:[0 1] 1:[2 3]"},
		{&graph.Partitioner{Strategy: graph.Forward}, 3, 3, "0:[0] 1:[1] 2:[2]"},
		{&graph.Partitioner{Strategy: graph.Global}, 3, 2, "0:[0 1 2] 1:[]"},
		{&graph.Partitioner{Strategy: graph.Broadcast}, 2, 2, "0:[0 1] 1:[0 1]"},
	} {
		cl := newCluster(t)
		cl.g.ChainingEnabled = false
		got := make([][]int64, c.down)
		once := make([]bool, c.up)
		src := cl.add("source", c.up, hooks{poll: func(rt *operator.Runtime, out *operator.Output) (operator.Status, error) {
			if once[rt.Subtask] {
				return operator.Done, nil
			}
			once[rt.Subtask] = true
			xs := make([]int64, c.down) // its number times 100, plus the channel that custom partitioning takes
			for i := range xs {
				xs[i] = int64(100*rt.Subtask + i)
			}
			return operator.More, emit(out, xs...)
		}}, nil, nil)
		cl.add("sink", c.down, hooks{push: func(rt *operator.Runtime, xs []int64) error {
			for _, x := range xs {
				if from := x / 100; !slices.Contains(got[rt.Subtask], from) {
					got[rt.Subtask] = append(got[rt.Subtask], from)
				}
			}
			return nil
		}}, src, c.part)
		cl.run()
		var shown []string
		for i, from := range got {
			slices.Sort(from)
			shown = append(shown, fmt.Sprintf("%d:%v", i, from))
		}
		if s := strings.Join(shown, " "); s != c.want {
			t.Errorf("%v from %d to %d: got %s, want %s", c.part.Strategy, c.up, c.down, s, c.want)
		}
		if len(cl.ended) != c.up+c.down {
			t.Errorf("%d tasks have reported, want %d", len(cl.ended), c.up+c.down)
		}
		for _, e := range cl.ended {
			if e.Err != nil {
				t.Errorf("%+v", e)
			}
		}
	}
}

func TestOperatorsKnowWhereTheyStand(t *testing.T) {
	cl := newCluster(t)
	cl.g.ChainingEnabled = true
	var mu sync.Mutex
	var infos []process.Info
	open := func(rt *operator.Runtime) error {
		mu.Lock()
		defer mu.Unlock()
		infos = append(infos, rt.Host.Info())
		if rt.Seed != 77 || rt.AutoWatermarkInterval != 50 || rt.JobName != "job" || rt.Host.Context() != rt.Ctx {
			t.Errorf("runtime %+v", rt)
		}
		_, err := rt.OpenState(statebackend.Options{Operator: rt.Name})
		return err
	}
	src := cl.add("source", 3, hooks{open: open}, nil, nil)
	second := cl.add("second", 3, hooks{open: open}, src, nil)
	second.MaxParallelism = 10
	cl.run()
	if len(infos) != 6 {
		t.Fatalf("%d operators", len(infos))
	}
	for _, i := range infos {
		most := 128
		if i.TaskName == "second" {
			most = 10
		}
		if i.JobName != "job" || len(i.UID) != 32 || i.Parallelism != 3 || i.MaxParallelism != most || i.Attempt != 4 || i.Subtask < 0 || i.Subtask > 2 {
			t.Errorf("info %+v", i)
		}
	}
	book := cl.opt.Backend.(*notebook)
	groups := map[string]bool{}
	for _, o := range book.opened {
		groups[fmt.Sprintf("%s %d: %d-%d", o.Operator, o.MaxParallelism, o.FirstGroup, o.LastGroup)] = o.Memory == cl.opt.Memory
	}
	for _, want := range []string{
		"source 128: 0-42", "source 128: 43-85", "source 128: 86-127", "second 10: 0-3", "second 10: 4-6", "second 10: 7-9",
	} {
		if !groups[want] {
			t.Errorf("no store %q with the process's memory among %v", want, groups)
		}
	}
}

// The task's report is the last thing that it does, and the attempt waits for goroutines as well.
func TestAttemptWaitsForItsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := newCluster(t)
		release := make(chan struct{})
		cl.add("source", 1, hooks{open: func(rt *operator.Runtime) error {
			rt.Host.Go(func() {
				<-rt.Ctx.Done() // it ends with the attempt
				<-release
			})
			return nil
		}}, nil, nil)
		a, err := cl.deploy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		over := false
		go func() { a.Wait(); over = true }()
		synctest.Wait()
		if len(cl.reports) != 1 || over {
			t.Errorf("%d tasks have ended; over: %v", len(cl.reports), over)
		}
		close(release)
		synctest.Wait()
		if !over {
			t.Error("the attempt is not over")
		}
	})
}

func TestCancelledTasksReportSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := newCluster(t)
		nothing := func(*operator.Runtime, *operator.Output) (operator.Status, error) { return operator.Nothing, nil }
		src := cl.add("source", 2, hooks{poll: nothing}, nil, nil)
		cl.add("sink", 3, hooks{}, src, &graph.Partitioner{Strategy: graph.Rebalance})
		a, err := cl.deploy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		a.Cancel()
		cl.finish(a)
		if len(cl.ended) != 5 {
			t.Errorf("%d tasks have reported", len(cl.ended))
		}
		for _, e := range cl.ended {
			if e.Err != exchange.ErrCancelled {
				t.Errorf("%+v", e)
			}
		}
		for _, s := range a.Tasks {
			if s.Runtimes()[0].Ctx.Err() == nil {
				t.Error("the tasks' context has not ended")
			}
		}
	})
}

func TestNothingStartsIfOneSubtaskCannotBeBuilt(t *testing.T) {
	cl := newCluster(t)
	cl.add("fine", 2, hooks{open: func(*operator.Runtime) error { t.Error("started"); return nil }}, nil, nil)
	broken := cl.add("broken", 2, hooks{}, nil, nil)
	broken.New = func() operator.Operator { return struct{ operator.Operator }{&node{source: true}} }
	a, err := cl.deploy(t.Context())
	if err == nil || a != nil || !strings.Contains(err.Error(), "build subtask 1 of Source: broken") || len(cl.reports) != 0 {
		t.Errorf("%v, %v, %d reports", a, err, len(cl.reports))
	}
}

func TestEventsFindTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := newCluster(t)
		var mu sync.Mutex
		var log []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, fmt.Sprintf(format, args...))
		}
		cl.sent = func(vertex, subtask, node int, event []byte) {
			note("from vertex %d subtask %d node %d: %s", vertex, subtask, node, event)
		}
		h := hooks{
			event: func(rt *operator.Runtime, event []byte) error {
				note("%s %d hears %s", rt.Name, rt.Subtask, event)
				rt.ToCoordinator([]byte("re"))
				return nil
			},
			poll: func(*operator.Runtime, *operator.Output) (operator.Status, error) { return operator.Nothing, nil },
		}
		cl.add("first", 1, h, nil, nil)
		src := cl.add("second", 2, h, nil, nil)
		cl.add("third", 2, h, src, nil)
		a, err := cl.deploy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a.Tasks[2].Event(1, []byte("hello"))
		synctest.Wait()
		if want := []string{"third 1 hears hello", "from vertex 1 subtask 1 node 1: re"}; !slices.Equal(log, want) {
			t.Errorf("got %q, want %q", log, want)
		}
		a.Cancel()
		a.Wait()
	})
}

// The hosts of a subtask are those of its operators, in order; readers are any goroutine.
func TestHostsOfASubtask(t *testing.T) {
	cl := newCluster(t)
	count := func(rt *operator.Runtime) error {
		operator.Count(rt, "opened", 1)
		process.NewLongCounter(process.NewRuntime(rt.Host), "n").Add(5)
		return nil
	}
	src := cl.add("source", 2, hooks{open: count}, nil, nil)
	cl.add("chained", 2, hooks{open: count}, src, nil)
	a := cl.run()
	for _, s := range a.Tasks {
		if len(s.Hosts) != 2 || len(s.Operators()) != 2 || len(s.Runtimes()) != 2 {
			t.Fatalf("%d hosts", len(s.Hosts))
		}
		for i, h := range s.Hosts {
			if h.Info().TaskName != s.Runtimes()[i].Name || h.Metrics()["opened"].Read() != int64(1) || h.Accumulators()["n"].Value() != int64(5) {
				t.Errorf("host %d of %s: %v, %v", i, h.Info().TaskName, h.Metrics(), h.Accumulators())
			}
		}
	}
}

// What user code posts is opened in its operator's name: a failure there is that operator's.
func TestLetterFailsInTheNameOfItsOperator(t *testing.T) {
	cl := newCluster(t)
	src := cl.add("source", 1, hooks{poll: func(*operator.Runtime, *operator.Output) (operator.Status, error) { return operator.Nothing, nil }}, nil, nil)
	cl.add("poster", 1, hooks{open: func(rt *operator.Runtime) error {
		rt.Host.Post(func() error { return errBoom })
		return nil
	}}, src, nil)
	cl.run()
	var e *task.Error
	if !errors.As(cl.ended[0].Err, &e) || e.Operator != "poster" || !errors.Is(e, errBoom) {
		t.Errorf("ended with %v", cl.ended[0].Err)
	}
}

func TestIsolatedEdgesEncodeElements(t *testing.T) {
	for _, part := range []*graph.Partitioner{nil, {Strategy: graph.Rebalance}} { // chained, and over an exchange
		for _, isolated := range []bool{false, true} {
			cl := newCluster(t)
			cl.opt.Isolated = isolated
			typ, err := frame.TypeOf[hidden]()
			if err != nil {
				t.Fatal(err)
			}
			cl.typ = typ
			sent := false
			src := cl.add("source", 1, hooks{poll: func(_ *operator.Runtime, out *operator.Output) (operator.Status, error) {
				if sent {
					return operator.Done, nil
				}
				sent = true
				c := frame.NewColumn(out.Type, 1)
				frame.Add(c, hidden{}, frame.NoTime)
				r := c.Run()
				return operator.More, out.Push(&r)
			}}, nil, nil)
			cl.add("sink", 1, hooks{}, src, part)
			cl.run()
			failed := slices.ContainsFunc(cl.ended, func(e Ended) bool { return errors.Is(e.Err, errBoom) })
			if failed != isolated {
				t.Errorf("isolated %v, partitioned %v: %+v", isolated, part != nil, cl.ended)
			}
		}
	}
}

// hidden can't be encoded.
type hidden struct{}

func (hidden) MarshalBinary() ([]byte, error) { return nil, errBoom }
func (*hidden) UnmarshalBinary([]byte) error  { return nil }

// The frames of one writer share a budget: with many channels they get smaller.
func TestFramesOfAWriterShareABudget(t *testing.T) {
	const sinks = 100
	for budget, capacity := range map[int]int64{0: (4 << 20) / (sinks * 9) / 16, sinks * 9 * 32: 2} {
		cl := newCluster(t)
		cl.opt.FrameBudget = budget
		polls := 0
		src := cl.add("source", 1, hooks{poll: func(_ *operator.Runtime, out *operator.Output) (operator.Status, error) {
			polls++
			switch polls {
			case 1:
				return operator.More, emit(out, make([]int64, sinks)...) // one for each: no frame is full
			case 2:
				if got := cl.opt.Memory.Used(); got != sinks*capacity*16 {
					t.Errorf("budget %d: frames take %d bytes, want %d", budget, got, sinks*capacity*16)
				}
			}
			return operator.Done, nil
		}}, nil, nil)
		cl.add("sink", sinks, hooks{push: func(*operator.Runtime, []int64) error { return nil }}, src, &graph.Partitioner{Strategy: graph.Rebalance})
		cl.run()
		if cl.opt.Memory.Used() != 0 {
			t.Errorf("%d bytes are left", cl.opt.Memory.Used())
		}
	}
}

// A function that ends its goroutine, as t.Fatal does, must not leave the job waiting for ever.
func TestTaskThatLosesItsGoroutineHasFailed(t *testing.T) {
	cl := newCluster(t)
	sent := false
	src := cl.add("source", 1, hooks{poll: func(_ *operator.Runtime, out *operator.Output) (operator.Status, error) {
		if sent {
			return operator.Nothing, nil
		}
		sent = true
		return operator.More, emit(out, 1)
	}}, nil, nil)
	cl.add("checking", 1, hooks{push: func(*operator.Runtime, []int64) error {
		runtime.Goexit()
		return nil
	}}, src, nil)
	cl.run()
	var e *task.Error
	if !errors.As(cl.ended[0].Err, &e) || e.Operator != "checking" || !errors.Is(e, task.ErrGoexit) {
		t.Errorf("ended with %v", cl.ended[0].Err)
	}
}
