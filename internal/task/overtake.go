package task

import (
	"time"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
)

// overtaking is what a task knows of barriers that stand behind data which it has not processed. A producer announces a
// barrier beside the queue in which it sends it. If the barrier may overtake, or has waited for the timeout, the task tells
// it to the alignment at once and keeps a copy of the frames before it; the mark in the queue means nothing any more when it
// comes.
//
// A task can take a snapshot between runs only. So where barriers overtake, it begins a run, fires timers or asks its source
// only when there is room for what comes of it, and writers take somewhat more than there is room for: a task that is held up
// waits where it can see barriers, and not in the middle of a run.
type overtaking struct {
	deadline  int64      // of the alignment, ns; NoDeadline: none
	wake      int64      // when the first barrier in sight has waited for the timeout, ns; NoDeadline: none waits
	look      bool       // a snapshot was taken since the last look
	since     []sighting // by channel
	recording *recording // nil: none
	behind    int        // the channel whose barrier is being told, with frames before it; -1: none
}

// sighting is a barrier that was seen first at a moment.
type sighting struct{ value, at int64 }

// overtaking reports whether barriers may overtake.
func (t *Task) overtaking() bool { return t.checkpoints != nil && t.checkpoints.Unaligned }

// connectBarriers makes the alignment of the task's channels.
func (t *Task) connectBarriers() {
	c, n := t.checkpoints, len(t.d.Inputs)
	o := control.AlignmentOptions{Channels: n, Mode: c.Mode, Unaligned: c.Unaligned, AlignedTimeout: c.AlignedTimeout}
	if c.Unaligned {
		o.AlignedOnly = make([]bool, n)
		for i := range o.AlignedOnly {
			o.AlignedOnly[i] = t.d.Inputs[i].Aligned
		}
	}
	c.align = control.NewAlignment(o)
	c.sight = overtaking{deadline: control.NoDeadline, wake: control.NoDeadline, since: make([]sighting, n), behind: -1}
}

// hasRoom reports whether the task may begin to work on what makes it emit.
func (t *Task) hasRoom() bool {
	if !t.overtaking() {
		return true // a writer without room waits
	}
	for _, w := range t.writers {
		if !w.Room() {
			return false
		}
	}
	return true
}

// hasUrgentRoom reports whether the task may send a mark of checkpoints, which does not wait where barriers overtake. Without
// room the checkpoint is declined: its task would stand still in the middle of it, and hear nothing.
func (t *Task) hasUrgentRoom() bool {
	if !t.overtaking() {
		return true
	}
	for _, w := range t.writers {
		if !w.Urgent() {
			return false
		}
	}
	return true
}

// waitForRoom waits once for room, for letters and for barriers.
func (t *Task) waitForRoom() {
	room := true
	for _, w := range t.writers {
		if !w.AwaitRoom() {
			room = false
		}
	}
	if !room {
		t.waiter.Wait(host.Backpressured, t.barrierDeadline())
	}
}

// room waits until there is room for what comes of a mark, or of a run. Barriers don't wait.
func (t *Task) room(kind frame.MarkKind) error {
	if kind == frame.Barrier || kind == frame.CancelBarrier {
		return nil
	}
	for !t.hasRoom() {
		t.waitForRoom()
		if t.stopped.Load() {
			return exchange.ErrCancelled
		}
		if err := t.serve(); err != nil {
			return err
		}
	}
	return nil
}

// barrierDeadline is when the task must look at barriers again, in ms.
func (t *Task) barrierDeadline() int64 {
	if !t.overtaking() {
		return host.Forever
	}
	at := min(t.checkpoints.sight.deadline, t.checkpoints.sight.wake)
	if t.checkpoints.align == nil || at == control.NoDeadline {
		return host.Forever
	}
	left := max(0, at-t.d.Clock.Nanos())
	return t.d.Clock.Millis() + (left+int64(time.Millisecond)-1)/int64(time.Millisecond)
}

// lookAhead makes a checkpoint unaligned whose timeout has passed, and has barriers overtake that may.
func (t *Task) lookAhead() error {
	c := t.checkpoints
	if !t.overtaking() || c.align == nil || c.ended {
		return nil
	}
	s := &c.sight
	noticed := t.gate.Noticed()
	if s.deadline == control.NoDeadline && s.wake == control.NoDeadline {
		if !noticed && !s.look {
			return nil
		}
	}
	now := t.d.Clock.Nanos()
	if now >= s.deadline {
		s.deadline = control.NoDeadline
		if err := t.aligned(c.align.Timeout(now)); err != nil {
			return err
		}
	}
	if noticed || s.look || now >= s.wake {
		return t.overtakeAll(now)
	}
	return nil
}

// overtakeAll has all barriers overtake that may. One that does may let others.
func (t *Task) overtakeAll(now int64) error {
	s := &t.checkpoints.sight
	s.look, s.wake = true, control.NoDeadline
	for s.look {
		s.look, s.wake = false, control.NoDeadline
		for channel := range t.d.Inputs {
			if err := t.overtake(channel, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// overtake tells the barrier that is in sight on a channel, if it may overtake.
func (t *Task) overtake(channel int, now int64) error {
	value, ok := t.gate.Notice(channel)
	if !ok {
		return nil
	}
	b, err := control.BarrierOf(value)
	if err != nil {
		return err
	}
	c := t.checkpoints
	if !c.align.Overtakes(channel, b) {
		return nil
	}
	s := &c.sight
	if !b.Unaligned && !c.align.Recording(channel) {
		if s.since[channel].value != value {
			s.since[channel] = sighting{value: value, at: now}
		}
		if at := s.since[channel].at + c.AlignedTimeout.Nanoseconds(); now < at {
			s.wake = min(s.wake, at)
			return nil
		}
	}
	b.Unaligned = true
	s.behind = channel
	if err := t.aligned(c.align.Barrier(channel, b, now)); err != nil {
		return err
	}
	t.recordBehind()
	return t.checkRecording()
}
