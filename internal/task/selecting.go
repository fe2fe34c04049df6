package task

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

// selecting is how a task reads whose head chooses its inputs: element by element, the head being asked before each. Each
// input has a frame at work of its own, which waits where it stands while others are read.
type selecting struct {
	head   operator.Selector
	inputs []reading
	last   int // the input that was read last: others go before it
}

// reading is one input.
type reading struct {
	channels []int
	next     int // of channels: where the next frame is looked for first
	frame    *frame.Frame
	work     work
}

// SelectingError is why a job with a function that chooses its inputs takes no snapshots.
type SelectingError struct{}

// Error says why, and what to do.
func (SelectingError) Error() string {
	return "the function chooses which input is read next (process.InputSelector), so that barriers might never come: its job " +
		"can take no checkpoints or savepoints; leave checkpointing off, or take the operator out"
}

// Permanent says that no restart helps.
func (SelectingError) Permanent() bool { return true }

// connectSelector looks whether the head, which has been opened, chooses its inputs.
func (t *Task) connectSelector() error {
	head, ok := t.ops[0].(operator.Selector)
	if !ok || !head.Selects() {
		return nil
	}
	if t.scope.FinalCheckpoint {
		t.scope.At = t.rts[0]
		return SelectingError{}
	}
	t.selecting = &selecting{head: head, inputs: make([]reading, len(t.inputs)), last: len(t.inputs) - 1}
	for c, in := range t.d.Inputs {
		r := &t.selecting.inputs[in.Input]
		r.channels = append(r.channels, c)
	}
	return nil
}

// stepSelecting reads as many elements and marks as a run has elements at most, each of an input that the head selects then.
func (t *Task) stepSelecting() (worked, done bool, err error) {
	for range t.scope.RunLen {
		if worked && !t.hasRoom() {
			break
		}
		input, err := t.selectInput()
		if err != nil || input < 0 {
			return worked, false, err
		}
		worked = true
		if err := t.readOne(input); err != nil {
			return true, false, err
		}
		if t.allEnded() {
			return true, true, nil
		}
	}
	return worked, false, nil
}

// selectInput is the input to read next; -1: those that are selected have nothing.
func (t *Task) selectInput() (int, error) {
	s := t.selecting
	t.scope.At, t.scope.Run = t.rts[0], nil
	selection := s.head.Selection()
	open := false
	for k := range s.inputs {
		i := (s.last + 1 + k) % len(s.inputs)
		if selection>>i&1 == 0 || t.inputs[i].open == 0 {
			continue
		}
		open = true
		if s.inputs[i].fetch(t.gate) {
			return i, nil
		}
	}
	if !open {
		return -1, noProgress(selection, len(s.inputs))
	}
	return -1, nil
}

// noProgress is the error of a selection of none of the inputs that go on.
func noProgress(selection process.InputSelection, inputs int) error {
	selection &= 1<<inputs - 1
	if selection == 0 {
		return errors.New("the function selects no input: NextSelection must name at least one")
	}
	return fmt.Errorf("the function selects input %d only, which has ended: NextSelection must name another one then, which "+
		"goes on", bits.TrailingZeros64(uint64(selection))+1)
}

// fetch reports whether the input has a frame at work, and takes one if it can.
func (r *reading) fetch(g *exchange.Gate) bool {
	if r.frame != nil {
		return true
	}
	for range r.channels {
		c := r.channels[r.next]
		if r.next++; r.next == len(r.channels) {
			r.next = 0
		}
		if f := g.PollChannel(c); f != nil {
			r.frame, r.work = f, work{all: f.Run(), marks: f.Marks, channel: c}
			r.work.all.Shared = f.Shared()
			return true
		}
	}
	return false
}

// readOne hands the next element or mark of an input to the head.
func (t *Task) readOne(input int) error {
	t.selecting.last = input
	in, r := t.inputs[input], &t.selecting.inputs[input]
	w := &r.work
	var err error
	switch {
	case w.mark < len(w.marks) && int(w.marks[w.mark].Pos) <= w.pos:
		w.mark++
		err = t.mark(in, w.channel, w.marks[w.mark-1])
	case w.pos < w.all.N:
		t.run = w.all.Slice(w.pos, w.pos+1)
		w.pos++
		in.at.In.Add(1)
		t.scope.Run = &t.run
		err = in.to.Push(&t.run)
	}
	if err == nil && w.pos == w.all.N && w.mark == len(w.marks) {
		f, channel := r.frame, w.channel
		r.frame, *w = nil, work{}
		t.gate.Return(f, channel)
	}
	return err
}

// declineSelecting answers the barrier of a savepoint, which nobody knew to be in vain: that the function chooses was not to
// be seen from its type.
func (t *Task) declineSelecting(channel int, m frame.Mark) error {
	b, err := control.BarrierOf(m.Value)
	if err != nil {
		return err
	}
	c, now := t.checkpoints, t.d.Clock.Nanos()
	c.align.Abort(b.ID, control.ReasonDeclined, now)
	for _, a := range c.align.Barrier(channel, b, now) {
		c.Declined(a.Barrier.ID, control.ReasonDeclined, SelectingError{})
		if err := t.abandon(a.Barrier.ID); err != nil {
			return err
		}
	}
	return nil
}
