package flotttest

import (
	"context"
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/statebackend"
)

// Control is what the harnesses have in common: the clock, the state and the life of the operator.
type Control struct {
	t      testing.TB
	config *config
	scope  *operator.Scope
	clock  *clock.Manual
	cancel context.CancelFunc
	spawn  host.Spawner

	seed    uint64
	nodes   map[*graph.Node]*node
	order   []*node // without the nodes that stand for inputs and output
	entries []*source
	sides   map[string]any // *Recorder of the side output's type
	opened  int
	closed  bool
	dead    error

	restored    *restored
	checkpoints int64 // the number of the last one

	coordinators []*coordinator
}

// node is an operator at work.
type node struct {
	op    operator.Operator
	rt    *operator.Runtime
	host  *runtimeHost
	fanIn map[int]*union // inputs that several outputs feed

	groups keygroup.Range
}

// source stands for an input of the harness.
type source struct {
	out operator.Output
	rt  *operator.Runtime
}

func newControl(t testing.TB, c *config, jg *plan.JobGraph, inputs int) *Control {
	t.Helper()
	h := &Control{
		t: t, config: c, clock: clock.NewManual(c.start), seed: jg.Graph.HashSeed,
		nodes: map[*graph.Node]*node{}, sides: map[string]any{},
	}
	waiter := host.NewParker(h.clock)
	h.scope = &operator.Scope{
		Now: c.start, Clock: h.clock, Mailbox: host.NewMailbox(waiter), Waiter: waiter, Spawn: &h.spawn,
		Timers: &operator.Callbacks{}, RunLen: frame.DefaultLen, Subtask: c.subtask, Parallelism: c.parallelism,
		JobName: "harness", AutoWatermarkInterval: c.settings.AutoWatermark.Milliseconds(),
	}
	var err error
	if h.restored, err = c.assemble(); err != nil {
		t.Fatalf("restore the operator: %v", err)
	}
	if h.restored != nil {
		h.seed, h.checkpoints = h.restored.manifest.HashSeed, h.restored.manifest.ID
	}
	h.scope.Ctx, h.cancel = context.WithCancel(context.Background())
	stands := map[*graph.Node]*operator.Output{}
	for _, n := range jg.Graph.Nodes[:inputs] {
		s := &source{out: operator.NewOutput(n.Out), rt: &operator.Runtime{Scope: h.scope, Name: n.Name}}
		h.entries = append(h.entries, s)
		stands[n] = &s.out
	}
	if err := h.build(jg, stands); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !h.closed {
			h.check(h.TryClose())
		}
	})
	return h
}

// build makes the operators, in stream order, and links them.
func (c *Control) build(jg *plan.JobGraph, stands map[*graph.Node]*operator.Output) error {
	for _, v := range jg.Vertices {
		for _, n := range v.Nodes {
			if stands[n.Node] != nil || !c.config.shape.sink && n.Node == jg.Graph.Nodes[len(jg.Graph.Nodes)-1] {
				continue
			}
			if len(n.Node.Inputs) == 0 && !c.config.shape.source {
				return fmt.Errorf("build the operator: %v has no input", n.Node)
			}
			if err := c.add(n); err != nil {
				return err
			}
		}
	}
	for _, n := range jg.Graph.Nodes {
		at := c.nodes[n]
		if at == nil {
			continue
		}
		for i := range n.Inputs {
			if n.Inputs[i].Feedback {
				return fmt.Errorf("build the operator: %v begins a loop, which needs a whole job: use Run", n)
			}
			if err := c.link(&n.Inputs[i], stands, at.input(n, n.Inputs[i].Input), at.rt); err != nil {
				return err
			}
		}
		for tag, side := range c.config.sides {
			if out := at.op.Output(tag); out != nil {
				if err := out.Connect(c.side(tag, side, out.Type), nil); err != nil {
					return fmt.Errorf("read side output %q: %w", tag, err)
				}
			}
		}
	}
	return nil
}

func (c *Control) add(n *plan.ChainNode) error {
	rt := &operator.Runtime{
		Scope: c.scope, Name: n.Node.Name, UID: n.ID.String(), MaxParallelism: n.MaxParallelism, Seed: c.seed,
	}
	h := newRuntimeHost(c, rt)
	rt.Host = h
	if c.restored != nil {
		var err error
		if rt.Restored, err = c.restored.operator(rt); err != nil {
			return err
		}
	}
	groups := n.KeyGroups(c.scope.Parallelism, c.scope.Subtask)
	rt.OpenState = func(o statebackend.Options) (statebackend.Store, error) {
		o.MaxParallelism, o.FirstGroup, o.LastGroup = n.MaxParallelism, groups.First, groups.Last
		if rt.Restored != nil {
			o.Restored = rt.Restored.Store
		}
		backend, err := c.config.settings.StateBackend()
		if err != nil {
			return nil, err
		}
		return h.openState(backend, o)
	}
	at := &node{op: n.Node.New(), rt: rt, host: h, fanIn: map[int]*union{}, groups: groups}
	c.nodes[n.Node] = at
	c.order = append(c.order, at)
	if n.Node.NewCoordinator != nil {
		return c.coordinate(at, n.Node.NewCoordinator())
	}
	return nil
}

// input is the operator's input of that number; a node that several outputs feed has a valve before it.
func (n *node) input(of *graph.Node, number int) operator.Input {
	in := n.op.Inputs()[number]
	edges := 0
	for _, e := range of.Inputs {
		if e.Input == number {
			edges++
		}
	}
	if edges == 1 {
		return in
	}
	if n.fanIn[number] == nil {
		n.fanIn[number] = newUnion(in, edges)
	}
	return n.fanIn[number].next()
}

// link connects what an edge comes from to an input.
func (c *Control) link(e *graph.Edge, stands map[*graph.Node]*operator.Output, in operator.Input, at *operator.Runtime) error {
	out := stands[e.From]
	if out == nil {
		out = c.nodes[e.From].op.Output(e.Tag)
	}
	if out == nil {
		return fmt.Errorf("build the operator: %v has no output %q", e.From, e.Tag)
	}
	return out.Connect(in, at)
}

// connect links a consumer of what feeds the node that stands for the output.
func (c *Control) connect(last *graph.Node, in operator.Input) error {
	if len(last.Inputs) > 1 {
		u := newUnion(in, len(last.Inputs))
		for i := range last.Inputs {
			if err := c.linkOutput(&last.Inputs[i], u.next()); err != nil {
				return err
			}
		}
		return nil
	}
	return c.linkOutput(&last.Inputs[0], in)
}

func (c *Control) linkOutput(e *graph.Edge, in operator.Input) error {
	from := c.nodes[e.From]
	if from == nil {
		return fmt.Errorf("build the operator: the function returned its own input")
	}
	out := from.op.Output(e.Tag)
	if out == nil {
		return fmt.Errorf("build the operator: %v has no output %q", e.From, e.Tag)
	}
	return out.Connect(in, nil)
}

// open opens the operators from the last to the first, as a task does.
func (c *Control) open() error {
	for _, s := range c.entries {
		s.rt.Host = newRuntimeHost(c, s.rt)
		s.out.Bind(s.rt)
	}
	return c.guard(func() error {
		for i := len(c.order) - 1; i >= 0; i-- {
			c.scope.At = c.order[i].rt
			c.opened++
			if err := c.order[i].op.Open(c.order[i].rt); err != nil {
				return fmt.Errorf("open the operator: %w", err)
			}
		}
		return c.startCoordinators()
	})
}

// guard calls into the operators: letters before and after, panics become errors, and an error names its operator.
func (c *Control) guard(f func() error) (err error) {
	if c.dead != nil {
		return fmt.Errorf("the operator has failed before: %w", c.dead)
	}
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
		if err != nil {
			err = fmt.Errorf("operator %q: %w", c.scope.At.Name, err)
			c.dead = err
		}
	}()
	if err := f(); err != nil {
		return err
	}
	return c.letters()
}

func panicError(p any) error {
	if err, ok := p.(error); ok {
		return fmt.Errorf("panic: %w\n%s", err, debug.Stack())
	}
	return fmt.Errorf("panic: %v\n%s", p, debug.Stack())
}

// letters does what other goroutines have left for the operators.
func (c *Control) letters() error {
	for {
		mail := c.scope.Mailbox.Take()
		if mail == nil {
			return nil
		}
		for _, letter := range mail {
			if err := letter(); err != nil {
				return err
			}
		}
	}
}

func (c *Control) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// SetProcessingTime moves the clock to ms since 1970 and fires the processing-time timers of a time <= ms, which see ms as
// the present. (In a job a timer fires when its millisecond is over.)
func (c *Control) SetProcessingTime(ms int64) {
	c.t.Helper()
	c.check(c.TrySetProcessingTime(ms))
}

// TrySetProcessingTime is SetProcessingTime with the operator's error.
func (c *Control) TrySetProcessingTime(ms int64) error {
	return c.guard(func() error {
		c.clock.Set(ms)
		c.scope.Now = ms
		c.repeat(ms)
		return c.scope.Timers.Run(ms)
	})
}

// ProcessingTime is the present processing time in ms since 1970.
func (c *Control) ProcessingTime() int64 { return c.scope.Now }

// Advance moves the clock on.
func (c *Control) Advance(d time.Duration) {
	c.t.Helper()
	c.SetProcessingTime(c.scope.Now + d.Milliseconds())
}

// Await waits until done is true, letting in what other goroutines have for the operator: results of asynchronous calls.
func (c *Control) Await(done func() bool) {
	c.t.Helper()
	for {
		c.check(c.guard(func() error { return nil }))
		if done() {
			return
		}
		c.scope.Waiter.Wait(host.Idle, host.Forever)
	}
}

// Cancel ends the context of the operator, as the cancellation of a job does.
func (c *Control) Cancel() { c.cancel() }

// Close closes the operator: Close hooks run.
func (c *Control) Close() {
	c.t.Helper()
	c.check(c.TryClose())
}

// TryClose is Close with the operator's error.
func (c *Control) TryClose() (err error) {
	if c.closed {
		return nil
	}
	c.closed = true
	for i := len(c.order) - c.opened; i < len(c.order); i++ {
		if e := c.closeOne(c.order[i]); err == nil {
			err = e
		}
	}
	c.cancel()
	c.spawn.Wait()
	for _, co := range c.coordinators {
		if e := co.Close(); err == nil && e != nil {
			err = fmt.Errorf("close the enumerator: %w", e)
		}
	}
	return err
}

func (c *Control) closeOne(n *node) (err error) {
	c.scope.At = n.rt
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
	}()
	if err := n.op.Close(); err != nil {
		return fmt.Errorf("close operator %q: %w", n.rt.Name, err)
	}
	return nil
}

// StateEntries is the number of entries of the operator's keyed state of that name: keys with a value, keys with a list, or
// entries of all maps. It is 0 if there is no such state.
func (c *Control) StateEntries(name string) int {
	n := 0
	for _, at := range c.order {
		n += at.host.entries(name)
	}
	return n
}

// Accumulators are the present values of the operator's accumulators.
func (c *Control) Accumulators() map[string]any {
	out := map[string]any{}
	for _, at := range c.order {
		for name, a := range at.host.accumulators {
			out[name] = a.Snapshot().Value()
		}
	}
	return out
}

// Metric is the present value of a metric of the operator's group; nil if there is none.
func (c *Control) Metric(name string) any {
	for _, at := range c.order {
		if m := at.host.metrics[name]; m != nil {
			return m.Read()
		}
	}
	return nil
}

// SideOutput is what was emitted to a side output so far; the harness must have been made WithSideOutput(tag).
func (c *Control) SideOutput[X any](tag process.OutputTag[X]) []Element[X] {
	c.t.Helper()
	if _, ok := c.config.sides[tag.Name()]; !ok {
		c.t.Fatalf("read side output %q: the harness was not made with it", tag.Name())
	}
	have := c.sides[tag.Name()]
	if have == nil {
		return nil // no operator has side outputs
	}
	r, ok := have.(*Recorder[X])
	if !ok {
		c.t.Fatalf("read side output %q: the harness was made with another type", tag.Name())
	}
	return r.Elements()
}

// side is the recorder of a side output as a consumer.
func (c *Control) side(tag string, s side, typ *frame.Type) operator.Input {
	r, in := s.record(c, c.sides[tag], typ)
	c.sides[tag] = r
	return in
}
