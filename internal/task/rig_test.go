package task

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
)

// errDry ends a test whose script is over: a task that would wait for ever is not what the test is about.
var errDry = errors.New("the task waits and the script is over")

// bench is one task with hand-made channels, a clock that stands and a script for its waits. Everything happens on the
// test's goroutine.
type bench struct {
	t       *testing.T
	clock   *clock.Manual
	task    *Task
	vertex  *plan.Vertex
	dep     Deployment
	in      []*exchange.Channel
	out     [][]*exchange.Channel
	log     []string
	mailbox *host.Mailbox
	script  []func() // one for each wait
	reasons []host.Reason
	until   []int64 // deadlines of the waits
	wakes   int
}

func typeOf[T any](t testing.TB) *frame.Type {
	t.Helper()
	typ, err := frame.TypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// newBench makes a task of a chain of operators, each linked to the next, with so many channels into each input of the
// head.
func newBench(t *testing.T, channels []int, ops ...operator.Operator) *bench {
	b := &bench{t: t, clock: clock.NewManual(1000), vertex: &plan.Vertex{Name: "chain", Parallelism: 1}}
	for i, op := range ops {
		n := &plan.ChainNode{Node: &graph.Node{Name: fmt.Sprint("op", i), New: func() operator.Operator { return op }}, Index: i, MaxParallelism: 128}
		if i > 0 {
			b.vertex.Nodes[i-1].Links = append(b.vertex.Nodes[i-1].Links, plan.Link{To: i})
		}
		b.vertex.Nodes = append(b.vertex.Nodes, n)
	}
	b.mailbox = host.NewMailbox(b)
	b.dep = Deployment{
		Vertex: b.vertex, JobName: "job", Ctx: t.Context(), Clock: b.clock, Waiter: b, Mailbox: b.mailbox, Spawn: &host.Spawner{},
		AutoWatermark: 200, Subtask: 2, Attempt: 3, Memory: host.NewMemory(0),
		Runtime: func(n *plan.ChainNode, scope *operator.Scope) *operator.Runtime {
			return &operator.Runtime{Scope: scope, Name: n.Node.Name, UID: "uid of " + n.Node.Name, MaxParallelism: n.MaxParallelism}
		},
	}
	for input, n := range channels {
		for range n {
			c := &exchange.Channel{Producer: &silent{}, Consumer: b}
			b.in = append(b.in, c)
			b.dep.Inputs = append(b.dep.Inputs, Input{Channel: c, Input: input})
		}
	}
	return b
}

// silent is the waiter of the other side.
type silent struct{}

func (*silent) Wait(host.Reason, int64) {}
func (*silent) Yield(int64)             {}
func (*silent) Wake()                   {}

// edge adds an output of an operator of the chain over so many channels.
func (b *bench) edge(producer int, tag string, strategy graph.Strategy, timeout time.Duration, channels int) []*exchange.Channel {
	b.vertex.Outputs = append(b.vertex.Outputs, &plan.JobEdge{
		Producer: producer, Tag: tag, Strategy: strategy, Partitioner: &graph.Partitioner{Strategy: strategy}, BufferTimeout: timeout,
		MaxParallelism: 128,
	})
	var cs []*exchange.Channel
	for range channels {
		cs = append(cs, &exchange.Channel{Producer: b, Consumer: &silent{}})
	}
	b.out = append(b.out, cs)
	return cs
}

// build makes the task.
func (b *bench) build() *Task {
	b.t.Helper()
	b.dep.Outputs = b.out
	task, err := New(b.dep)
	if err != nil {
		b.t.Fatal(err)
	}
	task.scope.RunLen = frame.DefaultLen // that of a task which has come to work
	b.task = task
	return task
}

// run runs the task to its end; each wait calls the next step of the script.
func (b *bench) run(script ...func()) (err error) {
	b.t.Helper()
	if b.task == nil {
		b.build()
	}
	b.script = script
	defer func() {
		if p := recover(); p != nil {
			if p != any(errDry) {
				panic(p)
			}
			err = errDry
		}
	}()
	err = b.task.Run()
	if errors.Is(err, errDry) {
		return errDry
	}
	if len(b.script) != 0 {
		b.t.Errorf("the task ended before %d of the script's steps: %v", len(b.script), err)
	}
	return err
}

func (b *bench) Wait(reason host.Reason, deadline int64) {
	b.reasons, b.until = append(b.reasons, reason), append(b.until, deadline)
	if len(b.script) == 0 {
		panic(errDry)
	}
	step := b.script[0]
	b.script = b.script[1:]
	step()
}

func (b *bench) Yield(int64) {}
func (b *bench) Wake()       { b.wakes++ }

// send offers a frame of numbers on a channel; marks stand in as frame.Mark values.
func (b *bench) send(channel int, items ...any) {
	b.t.Helper()
	if !b.in[channel].Offer(b.frame(items...)) {
		b.t.Fatalf("channel %d is full", channel)
	}
}

func (b *bench) frame(items ...any) *frame.Frame {
	f := frame.New(typeOf[int64](b.t), max(1, len(items)))
	for _, x := range items {
		switch x := x.(type) {
		case int:
			frame.Add(&f.Column, int64(x), int64(x)*10)
		case frame.Mark:
			f.AddMark(x)
		}
	}
	return f
}

func watermark(at int64) frame.Mark { return frame.Mark{Kind: frame.Watermark, Value: at} }

func mark(k frame.MarkKind) frame.Mark { return frame.Mark{Kind: k} }

func (b *bench) note(format string, args ...any) { b.log = append(b.log, fmt.Sprintf(format, args...)) }

func (b *bench) wants(want ...string) {
	b.t.Helper()
	if !slices.Equal(b.log, want) {
		b.t.Errorf("got  %q\nwant %q", b.log, want)
	}
}

// received empties an output channel: elements and marks as in the log.
func received(c *exchange.Channel) (items []string) {
	for f := c.Poll(); f != nil; f = c.Poll() {
		r := f.Run()
		pos := 0
		add := func(to int) {
			for _, x := range frame.Values[int64](&r)[pos:to] {
				items = append(items, fmt.Sprint(x))
			}
			pos = to
		}
		for _, m := range f.Marks {
			add(int(m.Pos))
			items = append(items, showMark(m))
		}
		add(r.N)
		c.Return(f)
	}
	return items
}

func showMark(m frame.Mark) string {
	switch {
	case m.Kind == frame.Watermark && m.Value == frame.MaxWatermark:
		return "last watermark"
	case m.Kind == frame.Watermark || m.Kind == frame.Probe || m.Kind == frame.Barrier:
		return fmt.Sprint(m.Kind, " ", m.Value)
	}
	return m.Kind.String()
}

// echo is an operator of any number of inputs that writes down what happens to it and passes everything on. Each of its
// hooks, if set, is called first.
type echo struct {
	b     *bench
	name  string // prefix in the log; "" = what comes is not logged
	index int    // in the chain
	out   operator.Output
	side  operator.Output
	ins   []operator.Input
	rt    *operator.Runtime

	open, close func() error
	push        func(r *frame.Run) error
	mark        func(m frame.Mark) error
	finish      func() error
	event       func(event []byte) error
}

// echoInput is one input of an echo.
type echoInput struct {
	e *echo
	n int
}

func newEcho(t *testing.T, name string, inputs int) *echo {
	e := &echo{name: name}
	e.out.Type, e.side.Type = typeOf[int64](t), typeOf[int64](t)
	for i := range inputs {
		e.ins = append(e.ins, &echoInput{e, i})
	}
	return e
}

// chain is a bench of echoes named a, b, c ... with one channel into the head.
func chain(t *testing.T, n int) (*bench, []*echo) {
	var ops []operator.Operator
	var es []*echo
	for i := range n {
		e := newEcho(t, string(rune('a'+i)), 1)
		es, ops = append(es, e), append(ops, e)
	}
	b := newBench(t, []int{1}, ops...)
	for i, e := range es {
		e.b, e.index = b, i
	}
	return b, es
}

func (e *echo) note(format string, args ...any) {
	if e.name != "" {
		e.b.note(e.name+" "+format, args...)
	}
}

func (e *echo) Inputs() []operator.Input { return e.ins }

func (e *echo) Output(tag string) *operator.Output {
	switch tag {
	case "":
		return &e.out
	case "side":
		return &e.side
	}
	return nil
}

func (e *echo) Open(rt *operator.Runtime) error {
	e.rt = rt
	e.out.Bind(rt)
	e.side.Bind(rt)
	if e.open != nil {
		return e.open()
	}
	return nil
}

func (e *echo) Close() error {
	if e.close != nil {
		return e.close()
	}
	return nil
}

func (e *echo) HandleEvent(event []byte) error {
	e.note("event %s", event)
	if e.event != nil {
		return e.event(event)
	}
	return nil
}

func (i *echoInput) Type() *frame.Type { return i.e.out.Type }

func (i *echoInput) prefix() string {
	if len(i.e.ins) > 1 {
		return fmt.Sprint(i.n, ": ")
	}
	return ""
}

func (i *echoInput) Push(r *frame.Run) error {
	i.e.note("%s%v", i.prefix(), frame.Values[int64](r))
	if i.e.push != nil {
		if err := i.e.push(r); err != nil {
			return err
		}
	}
	return i.e.out.Push(r)
}

func (i *echoInput) Mark(m frame.Mark) error {
	i.e.note("%s%s", i.prefix(), showMark(m))
	if i.e.mark != nil {
		if err := i.e.mark(m); err != nil {
			return err
		}
	}
	if m.Kind == frame.End && i.e.finish != nil {
		if err := i.e.finish(); err != nil {
			return err
		}
	}
	return i.e.out.Mark(m)
}

// well is a source whose polls are the steps of a script.
type well struct {
	*echo
	polls  []func() (operator.Status, error)
	finish func() error
}

func newWell(t *testing.T, polls ...func() (operator.Status, error)) *well {
	return &well{echo: newEcho(t, "", 0), polls: polls}
}

func (w *well) Inputs() []operator.Input { return nil }

func (w *well) Poll() (operator.Status, error) {
	if len(w.polls) == 0 {
		return operator.Done, nil
	}
	next := w.polls[0]
	w.polls = w.polls[1:]
	return next()
}

func (w *well) Finish() error {
	if w.finish != nil {
		return w.finish()
	}
	return nil
}

// emits is a poll that emits numbers.
func (w *well) emits(status operator.Status, xs ...int64) func() (operator.Status, error) {
	return func() (operator.Status, error) {
		c := frame.NewColumn(w.out.Type, max(1, len(xs)))
		for _, x := range xs {
			frame.Add(c, x, frame.NoTime)
		}
		r := c.Run()
		return status, w.out.Push(&r)
	}
}

// plain is an operator without more than the contract asks for.
type plain struct{ operator.Operator }

// emit emits one number.
func (w *well) emit(x int64) error {
	_, err := w.emits(operator.More, x)()
	return err
}
