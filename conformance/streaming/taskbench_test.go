package streaming_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/task"
)

// taskBench runs a real task on the goroutine of the test: whenever the task waits, the bench plays the next step.
type taskBench struct {
	t        *testing.T
	task     *task.Task
	types    []*frame.Type
	channels [][]*exchange.Channel // by gate
	inputs   int                   // of the head
	out      *recording
	spawn    host.Spawner
	cancel   context.CancelFunc
	play     func() bool // false: nothing is left, the task is cancelled
	parker   *host.Parker
	declined []string // checkpoints, with the reason
}

// park makes the task wait for its source, which has a goroutine of its own, instead of playing steps.
func (b *taskBench) park() { b.parker = host.NewParker(clock.NewManual(0)) }

// Wait implements host.Waiter.
func (b *taskBench) Wait(reason host.Reason, _ int64) {
	if b.parker != nil {
		b.parker.Wait(reason, host.Forever)
		return
	}
	if b.t.Failed() || !b.play() {
		b.cancel()
		b.task.Cancel()
	}
}

// Yield implements host.Waiter.
func (*taskBench) Yield(int64) {}

// Wake implements host.Waiter: the task runs whenever its bench does not play.
func (b *taskBench) Wake() {
	if b.parker != nil {
		b.parker.Wake()
	}
}

// chained is an operator of the chain under test.
type chained struct {
	name string
	out  *frame.Type
	open func() operator.Operator
}

// newTaskBench makes a task of the chain. gates are the types of the head's gates, each with so many channels; they feed
// its inputs in order, or all its one input. Without gates the head is a source.
func newTaskBench(t *testing.T, gates []*frame.Type, channelsPerGate int, chain ...chained) *taskBench {
	t.Helper()
	b := &taskBench{t: t, types: gates, out: &recording{}}
	g := &graph.Graph{Parallelism: 1, MaxParallelism: graph.Unset, ChainingEnabled: true}
	node := func(kind graph.Kind, name string, out *frame.Type) *graph.Node {
		n := &graph.Node{Kind: kind, Name: name, Out: out, Parallelism: 1, MaxParallelism: graph.Unset}
		g.Nodes = append(g.Nodes, n)
		return n
	}
	var edges []graph.Edge
	b.inputs = len(chain[0].open().Inputs())
	for i, typ := range gates {
		n := node(graph.Source, fmt.Sprint("gate ", i), typ)
		n.Parallelism = channelsPerGate
		edges = append(edges, graph.Edge{From: n, Input: i % max(1, b.inputs), Partitioner: &graph.Partitioner{Strategy: graph.Rebalance}})
	}
	kind := graph.Source
	for i, c := range chain {
		if i > 0 || len(gates) > 0 {
			kind = graph.Operator
		}
		n := node(kind, c.name, c.out)
		n.Inputs, n.New = edges, c.open
		edges = []graph.Edge{{From: n}}
	}
	end := node(graph.Sink, "recording", nil)
	end.Inputs, end.New = edges, func() operator.Operator { return b.out }
	b.deploy(g)
	return b
}

func (b *taskBench) deploy(g *graph.Graph) {
	b.t.Helper()
	job, err := plan.Build(g)
	if err != nil {
		b.t.Fatal(err)
	}
	d := task.Deployment{
		Vertex: job.Vertices[len(job.Vertices)-1], Clock: clock.NewManual(0), Waiter: b, Mailbox: host.NewMailbox(b), Spawn: &b.spawn,
		Checkpoints: &task.Checkpoints{
			Took: (*task.Part).Release,
			Declined: func(id int64, reason control.FailureReason, _ error) {
				b.declined = append(b.declined, fmt.Sprintf("%d: %v", id-1, reason))
			},
		},
	}
	d.Ctx, b.cancel = context.WithCancel(b.t.Context())
	for gate, e := range d.Vertex.Inputs {
		var channels []*exchange.Channel
		for peer := range e.From.Parallelism {
			c := &exchange.Channel{Producer: b, Consumer: b}
			channels = append(channels, c)
			d.Inputs = append(d.Inputs, task.Input{Channel: c, Input: e.Input, Gate: gate, Peer: peer, Peers: e.From.Parallelism})
		}
		b.channels = append(b.channels, channels)
	}
	d.Runtime = func(n *plan.ChainNode, scope *operator.Scope) *operator.Runtime {
		return &operator.Runtime{Scope: scope, Name: n.Node.Name, UID: n.ID.String(), MaxParallelism: n.MaxParallelism}
	}
	if b.task, err = task.New(d); err != nil {
		b.t.Fatal(err)
	}
}

// run runs the task with the steps that play makes.
func (b *taskBench) run(play func() bool) error {
	b.play = play
	err := b.task.Run()
	b.cancel()
	b.spawn.Wait()
	return err
}

// send puts a frame into a channel.
func (b *taskBench) send(gate, channel int, fill func(f *frame.Frame)) {
	b.t.Helper()
	f := frame.New(b.types[gate], frame.DefaultLen)
	fill(f)
	if !b.channels[gate][channel].Offer(f) {
		b.t.Fatal("the channel is full")
	}
}

// recording is the end of the chain: it notes everything as text.
type recording struct{ got []string }

// Inputs implements operator.Operator.
func (r *recording) Inputs() []operator.Input { return []operator.Input{r} }

// Output implements operator.Operator.
func (*recording) Output(string) *operator.Output { return nil }

// Open implements operator.Operator.
func (*recording) Open(*operator.Runtime) error { return nil }

// Close implements operator.Operator.
func (*recording) Close() error { return nil }

// Type implements operator.Input.
func (*recording) Type() *frame.Type { return nil }

// Push implements operator.Input.
func (r *recording) Push(run *frame.Run) error {
	for i := range run.N {
		text := conformance.Text(run.Type.Box(run.At(i)))
		if ts := run.Time(i); ts != frame.NoTime {
			text = fmt.Sprintf("%s@%d", text, ts)
		}
		r.got = append(r.got, text)
	}
	return nil
}

// Mark implements operator.Input.
func (r *recording) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark:
		r.got = append(r.got, fmt.Sprintf("%v %d", m.Kind, m.Value))
	case frame.Barrier: // ids are one less in the vectors
		b, err := control.BarrierOf(m.Value)
		if err != nil {
			return err
		}
		r.got = append(r.got, fmt.Sprintf("barrier %d", b.ID-1))
	case frame.CancelBarrier:
		r.got = append(r.got, fmt.Sprintf("cancel %d", m.Value-1))
	default:
		r.got = append(r.got, m.Kind.String())
	}
	return nil
}

// take returns what came since the last take.
func (r *recording) take() []string {
	got := r.got
	r.got = nil
	if got == nil {
		got = []string{}
	}
	return got
}

func typeOf[T any](t *testing.T) *frame.Type {
	t.Helper()
	typ, err := frame.TypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return typ
}
