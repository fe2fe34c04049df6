package task

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/statebackend"
)

// Checkpoints is what a task needs to take part in snapshots. Its functions are called on the subtask's goroutine and must
// not wait.
type Checkpoints struct {
	Mode control.CheckpointMode
	// Unaligned lets checkpoints overtake the data in flight once AlignedTimeout has passed since their barrier was seen.
	Unaligned      bool
	AlignedTimeout time.Duration
	// Final says that after the end of the input one more checkpoint comes: a task with operators that commit with
	// checkpoints waits for it.
	Final bool
	// Freezing says how stores are frozen for a snapshot; nil: whole.
	Freezing func(control.Barrier) statebackend.Freezing
	// Took hands over the task's part of a snapshot, to be written and acknowledged by somebody else.
	Took func(*Part)
	// Dropped tells that a part which Freezing was asked for is not handed over after all: its checkpoint was given up. nil:
	// nobody wants to know.
	Dropped func(id int64)
	// Declined tells that the task takes no part in a checkpoint.
	Declined func(id int64, reason control.FailureReason, err error)
	// Lingers tells that the task has sent all that it has to send and waits for a checkpoint to commit.
	Lingers func()
	// Triggered is when a snapshot was triggered, in ns by the task's clock; false if it is over. nil: nobody knows.
	Triggered func(id int64) (at int64, ok bool)
	// Times gets the times of barriers; nil: nobody wants to know.
	Times *BarrierTimes
}

// Part is what a task adds to a snapshot. Whoever gets it releases each State once.
type Part struct {
	Barrier control.Barrier
	States  []*operator.Snapshot // by node of the chain
	Metrics control.TaskMetrics  // without what is known only when it is written

	inFlight []inFlight   // of an unaligned checkpoint; Seal makes a list of it
	memory   *host.Memory // from which that is taken
}

// Release gives back what the states hold.
func (p *Part) Release() {
	for _, s := range p.States {
		s.Release()
	}
	for _, x := range p.inFlight {
		p.memory.Release(x.bytes)
	}
	p.inFlight = nil
}

// barriers is a task's side of checkpoints.
type barriers struct {
	Checkpoints
	align control.Alignment // nil for sources
	sight overtaking
	held  []*heldPart
	took  int64 // the last snapshot that was taken
	ended bool  // End has been sent: no mark may follow
	final int64 // the first snapshot after the end of the input; 0: none yet
	halt  int64 // the savepoint that stops the job, until it is complete or given up; 0: none
	over  bool  // the task ends, since the savepoint that stops the job, or the final checkpoint, is complete

	aligning aligning
}

// Trigger is the coordinator's word to take a snapshot: a letter for the mailbox of a source, or of a task whose upstream
// tasks have finished.
func (t *Task) Trigger(b control.Barrier) func() error {
	return func() error {
		c := t.checkpoints
		if c == nil || b.ID <= c.took {
			return nil
		}
		if t.selecting != nil && !c.ended {
			c.Declined(b.ID, control.ReasonDeclined, SelectingError{})
			return nil
		}
		if c.align != nil && !c.ended {
			return t.aligned(c.align.Trigger(b, t.d.Clock.Nanos()))
		}
		if c.halt != 0 || !c.ended && !t.hasUrgentRoom() { // a savepoint that stops the job is under way
			c.Declined(b.ID, control.ReasonDeclinedNotReady, nil)
			return nil
		}
		return t.snapshot(control.BarrierAction{Barrier: b})
	}
}

// Completed is the word that a checkpoint is complete: a letter for the mailbox.
func (t *Task) Completed(id int64, kind control.SnapshotKind) func() error {
	return func() error {
		c := t.checkpoints
		if c == nil {
			return nil
		}
		err := t.tellListeners(func(l operator.CheckpointListener) error { return l.CheckpointCompleted(id) })
		if err != nil {
			return fmt.Errorf("complete checkpoint %d: %w", id, err)
		}
		if c.final != 0 && id >= c.final || kind.Stops() && c.halt == id {
			c.over = true
		}
		return nil
	}
}

// Aborted is the word that a checkpoint will not be completed: a letter for the mailbox.
func (t *Task) Aborted(id int64, reason control.FailureReason) func() error {
	return func() error {
		c := t.checkpoints
		if c == nil {
			return nil
		}
		if c.halt == id {
			c.halt = 0
		}
		t.dropHeld(id)
		if c.align != nil {
			for _, a := range c.align.Abort(id, reason, t.d.Clock.Nanos()) {
				if err := t.abandon(a.Barrier.ID); err != nil {
					return err
				}
			}
		}
		err := t.tellListeners(func(l operator.CheckpointListener) error { return l.CheckpointAborted(id) })
		if err != nil {
			return fmt.Errorf("abort checkpoint %d: %w", id, err)
		}
		return nil
	}
}

func (t *Task) tellListeners(tell func(operator.CheckpointListener) error) error {
	for i, op := range t.ops {
		l, ok := op.(operator.CheckpointListener)
		if !ok {
			continue
		}
		t.scope.At = t.rts[i]
		if err := tell(l); err != nil {
			return err
		}
	}
	return nil
}

// barrier takes a mark of checkpoints that came on a channel.
func (t *Task) barrier(channel int, m frame.Mark) error {
	if t.selecting != nil && m.Kind == frame.Barrier {
		return t.declineSelecting(channel, m)
	}
	c := t.checkpoints
	actions, err := control.StepAlignment(c.align, channel, m, t.d.Clock.Nanos())
	if err != nil {
		return err
	}
	if c.align.Blocked(channel) {
		t.gate.Block(channel)
	}
	return t.aligned(actions)
}

// endBarrier takes the end of a channel, before it reaches the operators: where the end stands for the last barrier, the
// snapshot lies before the end. over says that the job has been stopped with a savepoint, so that the end is not to be
// handed on.
func (t *Task) endBarrier(channel int, m frame.Mark) (over bool, err error) {
	if t.checkpoints == nil {
		return false, nil
	}
	if err := t.barrier(channel, m); err != nil {
		return false, err
	}
	return t.halted()
}

// aligned does what the alignment answers.
func (t *Task) aligned(actions []control.BarrierAction) error {
	for _, a := range actions {
		switch a.Do {
		case control.BeginAlignment:
			t.checkpoints.sight.deadline = a.Deadline
			t.checkpoints.beginAlignment(a.Barrier.ID, t.d.Clock.Nanos())
		case control.TakeSnapshot:
			t.gate.Unblock()
			t.checkpoints.sight.deadline = control.NoDeadline
			if !t.hasUrgentRoom() {
				return t.giveUp(a.Barrier.ID, control.ReasonDeclinedNotReady, nil)
			}
			if a.Unaligned {
				t.beginRecording()
			}
			if err := t.snapshot(a); err != nil {
				return err
			}
			if s := &t.checkpoints.sight; s.recording != nil && s.recording.err != nil {
				return t.checkRecording() // what else there is to do is of the same checkpoint
			}
		case control.FinishRecording:
			if err := t.finishRecording(a); err != nil {
				return err
			}
		case control.AbortCheckpoint:
			if a.Reason != control.ReasonNone {
				t.checkpoints.Declined(a.Barrier.ID, a.Reason, nil)
			}
			if err := t.abandon(a.Barrier.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// abandon gives a checkpoint up: those downstream wait in vain for its barrier.
func (t *Task) abandon(id int64) error {
	t.gate.Unblock()
	t.checkpoints.sight.deadline = control.NoDeadline
	t.checkpoints.aligning.end()
	t.checkpoints.Times.giveUp(t.d.Clock.Nanos())
	t.dropRecording()
	t.dropHeld(id)
	if t.checkpoints.ended || !t.hasUrgentRoom() { // the coordinator tells those downstream, too
		return nil
	}
	t.scope.At = t.rts[0]
	return t.inputs[0].to.Mark(frame.Mark{Kind: frame.CancelBarrier, Value: id})
}

// snapshot passes the barrier on and takes the state of all operators.
func (t *Task) snapshot(a control.BarrierAction) error {
	c, start := t.checkpoints, t.d.Clock.Nanos()
	id := a.Barrier.ID
	c.took = id
	a.Barrier.Unaligned = a.Barrier.Unaligned || a.Unaligned // those downstream need not wait for their timeouts
	if !c.ended {
		if err := t.passBarrier(a.Barrier); err != nil {
			return fmt.Errorf("pass the barrier of checkpoint %d on: %w", id, err)
		}
	} else if c.final == 0 {
		c.final = id
	}
	p, taking := &Part{Barrier: a.Barrier}, t.d.Clock.Nanos() // the barrier may have waited for room, which is no work
	var freezing statebackend.Freezing
	if c.Freezing != nil {
		freezing = c.Freezing(a.Barrier)
	}
	for i := range t.ops {
		s := &operator.Snapshot{ID: id, Savepoint: a.Barrier.Kind != control.Checkpoint, Stops: a.Barrier.Kind.Stops(), Groups: t.d.Vertex.Nodes[i].MaxParallelism, Freezing: freezing}
		p.States = append(p.States, s)
		if err := t.snapshotOne(i, s); err != nil {
			p.Release()
			err = fmt.Errorf("take snapshot %d of the operator: %w", id, err)
			c.Declined(id, control.ReasonDeclined, err)
			return err
		}
	}
	if a.Barrier.Kind.Stops() {
		c.halt = id
	}
	p.Metrics.FirstBarrier, p.Metrics.Alignment = start-a.Took, time.Duration(a.Took)
	p.Metrics.Sync = time.Duration(t.d.Clock.Nanos() - taking)
	t.tookAligned(p, a)
	if a.Unaligned {
		c.sight.recording.part = p
		return nil
	}
	if !t.hold(p) {
		c.Took(p)
	}
	return nil
}

func (t *Task) snapshotOne(i int, s *operator.Snapshot) error {
	t.scope.At = t.rts[i]
	if op, ok := t.ops[i].(operator.Snapshotter); ok {
		if err := op.Snapshot(s); err != nil {
			return err
		}
	}
	if i == 0 && len(t.inputs) > 0 {
		s.Lists = append(s.Lists, t.channelStates())
	}
	if i == 0 && t.checkpoints.ended {
		s.Lists = append(s.Lists, t.endedState())
	}
	return nil
}

// passBarrier sends the barrier through the chain and, by the writers at its ends, to those downstream.
func (t *Task) passBarrier(b control.Barrier) error {
	t.scope.At = t.rts[0]
	m := b.Mark()
	if t.source == nil {
		return t.inputs[0].to.Mark(m)
	}
	if b.Kind == control.DrainSavepoint {
		if err := t.toOutputs(frame.Mark{Kind: frame.Watermark, Value: frame.MaxWatermark}); err != nil {
			return err
		}
	}
	return t.toOutputs(m)
}

// toOutputs sends a mark to all outputs of a source.
func (t *Task) toOutputs(m frame.Mark) error {
	for tag := range t.d.Vertex.Nodes[0].Node.Side {
		if out := t.ops[0].Output(tag); out != nil {
			if err := out.Mark(m); err != nil {
				return err
			}
		}
	}
	return t.ops[0].Output("").Mark(m)
}
