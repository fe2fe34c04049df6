// Package task runs one subtask: it builds the chain from a vertex of the plan, then loops: letters, due timers, one
// frame of input cut into runs at its marks (or one poll of the source), and, when there is nothing to do, flush and
// wait at the one injected point. A task owns its operators, writers and gate; it starts no goroutine and reads no clock
// but the injected one, so the same code runs in production and in the simulation.
package task

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/valve"
	"github.com/flott-dev/flott/internal/plan"
)

// Input is one channel into the task: which input of the head operator it feeds.
type Input struct {
	Channel *exchange.Channel
	Input   int
	// Gate is the number of the vertex's input edge, Peer the subtask at the other end, of Peers.
	Gate, Peer, Peers int
	// Aligned says that what is in flight on the channel can't be part of a snapshot.
	Aligned bool
}

// Deployment is all that a task needs to run; whoever deploys fills it.
type Deployment struct {
	Vertex        *plan.Vertex
	Subtask       int
	Attempt       int
	JobName       string
	Ctx           context.Context // ends when the task is cancelled
	Clock         clock.Clock
	Waiter        host.Waiter
	Mailbox       *host.Mailbox
	Spawn         *host.Spawner
	Seed          uint64
	Inputs        []Input               // in the order of the vertex's gates, then channels
	Outputs       [][]*exchange.Channel // per output edge of the vertex
	FrameBudget   int                   // bytes of all frames in flight of one writer; 0: no bound beyond the frame's
	Memory        *host.Memory          // frames are reserved here
	AutoWatermark int64                 // ms between two questions for a watermark; 0: never
	Runtime       func(node *plan.ChainNode, scope *operator.Scope) *operator.Runtime
	Times         *Times       // busy, idle, backpressured; may be nil
	Isolated      bool         // elements are encoded and decoded on every edge, as between processes
	Latency       int64        // ms between two latency markers of a source; 0: none
	LatencyFrom   uint16       // the number of the source's subtask in the job
	Checkpoints   *Checkpoints // nil: the task takes none
	Finished      bool         // before the snapshot that the job goes on from
}

// Task is one subtask.
type Task struct {
	d       Deployment
	scope   *operator.Scope
	ops     []operator.Operator
	rts     []*operator.Runtime
	opened  int
	writers []*exchange.Writer
	timeout []int64 // per writer, ms: flush this long after the first unsent element; < 0: only when full
	gate    *exchange.Gate
	inputs  []*input
	local   []int // per channel: its number within its input
	source  operator.Source
	looper  operator.Looper
	// selecting is how the task reads if its head chooses its inputs; nil: it does not.
	selecting *selecting
	probes    []probe
	stopped   atomic.Bool
	run       frame.Run
	work      work
	held      int // frames that its channels may hold; 0: exchange.Depth
	waiter    *countedWaiter
	times     []*EventTime // by input
	abandoned error        // what ended the goroutine of Run

	checkpoints *barriers // nil: the task takes none
}

// input is one input of the head operator with the channels that feed it.
type input struct {
	to    operator.Input
	at    *operator.Runtime
	valve *valve.Valve
	open  int        // channels that have not ended
	time  *EventTime // what others see of the valve
}

// firstRun is the length of a task's first run. Runs become longer at once where elements are cheap; where one takes a second, a
// long first run would let barriers and results wait for all of it, after each restart anew.
const firstRun = 1

// New builds the chain. Errors name the operators that don't fit.
func New(d Deployment) (*Task, error) {
	t := &Task{d: d}
	t.waiter = &countedWaiter{Waiter: d.Waiter, clock: d.Clock, times: d.Times}
	t.scope = &operator.Scope{
		Ctx: d.Ctx, Now: d.Clock.Millis(), Clock: d.Clock, Mailbox: d.Mailbox, Waiter: t.waiter, Spawn: d.Spawn,
		Memory: d.Memory, RunLen: firstRun, Subtask: d.Subtask, Parallelism: d.Vertex.Parallelism,
		Attempt: d.Attempt, JobName: d.JobName, AutoWatermarkInterval: d.AutoWatermark,
	}
	if d.Checkpoints != nil {
		t.checkpoints = &barriers{Checkpoints: *d.Checkpoints}
		if t.checkpoints.Times == nil {
			t.checkpoints.Times = &BarrierTimes{}
		}
		t.scope.FinalCheckpoint = d.Checkpoints.Final
	}
	t.scope.Timers = &operator.Callbacks{Scope: t.scope}
	t.scope.FlushFrames = t.flushDry
	for _, n := range d.Vertex.Nodes {
		op := n.Node.New()
		if out := op.Output(""); out != nil { // metrics read it before the operator is opened
			out.EventTime.Store(frame.MinWatermark)
		}
		t.ops = append(t.ops, op)
		t.rts = append(t.rts, d.Runtime(n, t.scope))
	}
	t.scope.At = t.rts[0]
	if err := t.link(); err != nil {
		return nil, err
	}
	if err := t.connectInputs(); err != nil {
		return nil, err
	}
	return t, nil
}

// link connects the operators of the chain with each other and with the writers.
func (t *Task) link() error {
	for i, n := range t.d.Vertex.Nodes {
		for _, l := range n.Links {
			out := t.ops[i].Output(l.Tag)
			if out == nil {
				return fmt.Errorf("build the chain %s: operator %s has no output %q", t.d.Vertex.Name, n.Node.Name, l.Tag)
			}
			in := t.ops[l.To].Inputs()[l.Input]
			if t.d.Isolated {
				in = isolate(in, out.Type, t.scope)
			}
			if err := out.Connect(in, t.rts[l.To]); err != nil {
				return fmt.Errorf("build the chain %s: %s to %s: %w", t.d.Vertex.Name, n.Node.Name, t.d.Vertex.Nodes[l.To].Node.Name, err)
			}
		}
	}
	for i, e := range t.d.Vertex.Outputs {
		if e.Feedback {
			continue // goes from tail to head in their own way
		}
		out := t.ops[e.Producer].Output(e.Tag)
		if out == nil {
			return fmt.Errorf("build the chain %s: operator %s has no output %q", t.d.Vertex.Name, t.d.Vertex.Nodes[e.Producer].Node.Name, e.Tag)
		}
		w := exchange.NewWriter(e.Partitioner, t.d.Outputs[i], exchange.Options{
			Type: out.Type, Waiter: t.waiter, Stopped: t.stopped.Load, Subtask: t.d.Subtask, Budget: t.d.FrameBudget,
			EachRun: e.BufferTimeout == 0, MaxGroup: e.MaxParallelism, Seed: t.d.Seed, Strategy: e.Strategy, Isolated: t.d.Isolated, Memory: t.d.Memory,
			Overtaking: t.overtaking(),
		})
		t.writers = append(t.writers, w)
		t.timeout = append(t.timeout, e.BufferTimeout.Milliseconds())
		if err := out.Connect(w, nil); err != nil {
			return err
		}
	}
	return nil
}

func (t *Task) connectInputs() error {
	ins := t.ops[0].Inputs()
	if len(ins) == 0 {
		s, ok := t.ops[0].(operator.Source)
		if !ok {
			return fmt.Errorf("build the chain %s: its head is no source and has no input", t.d.Vertex.Name)
		}
		t.source = s
		return nil
	}
	channels := make([]*exchange.Channel, len(t.d.Inputs))
	counts := make([]int, len(ins))
	for i, in := range t.d.Inputs {
		channels[i] = in.Channel
		t.local = append(t.local, counts[in.Input])
		counts[in.Input]++
	}
	for i, in := range ins {
		t.times = append(t.times, newEventTime(counts[i]))
		t.inputs = append(t.inputs, &input{to: in, at: t.rts[0], valve: valve.New(counts[i]), time: t.times[i]})
	}
	for _, in := range t.d.Inputs {
		t.inputs[in.Input].open++
	}
	t.gate = exchange.NewGate(channels)
	if t.checkpoints != nil {
		t.connectBarriers()
	}
	t.looper, _ = t.ops[0].(operator.Looper)
	return nil
}

// Waiter is the task's waiting point.
func (t *Task) Waiter() host.Waiter { return t.d.Waiter }

// Cancel makes Run end soon; any goroutine may call it.
func (t *Task) Cancel() {
	t.stopped.Store(true)
	t.d.Waiter.Wake()
}

// Operators are the chain's operators, for metrics and events; their counters may be read from any goroutine.
func (t *Task) Operators() []operator.Operator { return t.ops }

// Runtimes are what the chain's operators got, in the same order; only their counters may be read elsewhere.
func (t *Task) Runtimes() []*operator.Runtime { return t.rts }

// EventTime is the event time of the head's inputs, in their order; none for a source. It may be read from any goroutine.
func (t *Task) EventTime() []*EventTime { return t.times }

// Event hands an event of a coordinator to the operator at index node of the chain: a letter for the mailbox.
func (t *Task) Event(node int, event []byte) func() error {
	return func() error {
		t.scope.At = t.rts[node]
		r, ok := t.ops[node].(operator.EventReceiver)
		if !ok {
			return fmt.Errorf("hand over an event: the operator takes none")
		}
		return r.HandleEvent(event)
	}
}

// Run runs the task to its end: nil when its input has ended and everything is flushed, exchange.ErrCancelled after
// Cancel, else what failed, as a *Error naming the operator.
func (t *Task) Run() (err error) {
	defer func() { err = t.close(err) }()
	returned := false
	defer func() { // before anything is closed: what failed is still at hand
		switch p := recover(); {
		case p != nil:
			err = t.failure(operator.Recovered(p))
		case !returned:
			t.abandoned = t.failure(ErrGoexit)
		}
	}()
	err = t.live()
	returned = true
	return err
}

// live opens the operators and runs the task to its end.
func (t *Task) live() error {
	if t.d.Finished {
		return t.runFinished()
	}
	if err := t.open(); err != nil {
		return t.failure(err)
	}
	work := t.loop
	if ended, err := t.hadEnded(); err != nil {
		return t.failure(err)
	} else if ended {
		work = t.runEnded
	}
	if err := work(); err != nil {
		return t.failure(err)
	}
	return nil
}

// open opens the operators from the last to the first, so that a source's first element finds the chain ready.
func (t *Task) open() error {
	for i := len(t.ops) - 1; i >= 0; i-- {
		t.scope.At = t.rts[i]
		t.opened++
		if err := t.ops[i].Open(t.rts[i]); err != nil {
			return fmt.Errorf("open the operator: %w", err)
		}
	}
	if err := t.connectSelector(); err != nil {
		return err
	}
	if err := t.restoreInChain(); err != nil {
		return err
	}
	if err := t.restoreChannels(); err != nil {
		return err
	}
	if err := t.restoreInFlight(); err != nil {
		return err
	}
	if t.source != nil && t.d.Latency > 0 {
		return t.markLatency(0)
	}
	return nil
}

// markLatency sends a latency marker and comes again.
func (t *Task) markLatency(int64) error {
	t.scope.At = t.rts[0]
	t.scope.Timers.Schedule(t.d.Clock.Millis()+t.d.Latency-1, t.markLatency)
	return t.ops[0].Output("").Mark(frame.Mark{Kind: frame.LatencyMarker, Value: t.d.Clock.Millis(), From: t.d.LatencyFrom})
}

// close closes what was opened, in the order of the stream.
func (t *Task) close(err error) error {
	t.dropRecording()
	t.dropHeld(allHeld)
	for _, w := range t.writers {
		w.Close()
	}
	var errs []error
	if err != nil {
		errs = append(errs, err)
	}
	for i := len(t.ops) - t.opened; i < len(t.ops); i++ {
		if e := t.closeOne(i); e != nil {
			errs = append(errs, e)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func (t *Task) closeOne(i int) (err error) {
	t.scope.At, t.scope.Run = t.rts[i], nil
	defer func() {
		if p := recover(); p != nil {
			err = t.failure(operator.Recovered(p))
		}
	}()
	if err := t.ops[i].Close(); err != nil {
		return t.failure(fmt.Errorf("close the operator: %w", err))
	}
	return nil
}
