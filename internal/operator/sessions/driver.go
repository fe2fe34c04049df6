// Package sessions is the driver of session windows that need no more than an accumulator each: built-in assigner, default
// trigger, an incremental function that can merge. It gives what the general driver of windows gives, many times faster:
// the open sessions of a key are a chain of nodes, the latest of them first, which a keyed table finds; a wheel orders
// their ends.
//
// The package owns the nodes with their accumulators and keys, the table and the wheel. It never sees a user's type other
// than through the kernels of package windows, and it keeps no elements. Package stream builds it where the plan says
// "sessions"; the task calls it on the subtask's goroutine.
//
// # Sessions that grow
//
// A session has one entry in the wheel that counts: that of the time due. It is not moved when an element makes the session
// longer: when the entry comes due, the session enters again with the end that it has by then. Entries of another time than
// due are left over from sessions that were merged, and are dropped when they come up.
//
// # Keys without sessions
//
// Most keys come back, so that the node of a key's last session stays when that is gone, empty, for the next one. Nodes of
// keys that don't are swept, some with each run, once there are many more of them than sessions.
package sessions

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// driver is the operator.
type driver struct {
	operator.Unary
	assigner
	chains
	keyer   keyer
	folding stretch
	broom   broom
	spec    windows.Spec
	emitter operator.Emitter
	window  window.Time // the one that is emitted: the kernel gets its address
	sides   *operator.Sides
	late    windows.Late
	alarm   alarm
	opened  [block]uint32 // by the block at hand, the first opens
	opens   int
	touched int64
	part    frame.Run
	piece   func(*frame.Run) error // push, bound once: a method value would be allocated at each use
}

// New returns the driver of windows that elements open at their time, in domain, for as long as their gap, and that merge
// where they overlap or touch. k must be able to merge; its windows are those of window.Time. Lateness is of event time only.
// Mistakes in the gap are errors of Open and Push.
func New(spec windows.Spec, gap Gap, domain process.Domain, k *windows.Incremental) operator.Operator {
	if domain == process.ProcessingTime {
		spec.Lateness = 0
	}
	return &driver{
		Unary:    operator.Unary{In: spec.In, Out: operator.NewOutput(spec.Out)},
		assigner: assigner{gap: gap, domain: domain, place: spec.Place},
		chains:   chains{k: k.Own()},
		keyer:    keyer{key: spec.Key},
		broom:    broom{slack: sweepSlack},
		spec:     spec, sides: operator.NewSides(spec.Sides),
	}
}

// Inputs implements operator.Operator.
func (o *driver) Inputs() []operator.Input { return []operator.Input{o} }

// Output implements operator.Operator.
func (o *driver) Output(tag string) *operator.Output {
	if tag == "" {
		return &o.Out
	}
	return o.sides.Output(tag)
}

// Open implements operator.Operator.
func (o *driver) Open(rt *operator.Runtime) error {
	if err := o.Unary.Open(rt); err != nil {
		return err
	}
	rt.AtHand = o.atHand
	o.sides.Open(rt)
	o.emitter.Open(&o.Out)
	if err := o.late.Open(rt, o.sides, o.spec.Late, o.In); err != nil {
		return err
	}
	if o.k.Merge == nil {
		return fmt.Errorf("%s: make session windows: %w", o.place, errors.New("the window function can't merge windows"))
	}
	if err := o.assigner.open(); err != nil {
		return err
	}
	o.folding.open()
	o.piece = o.push
	o.alarm = alarm{callbacks: rt.Timers, ring: o.ring}
	o.ledger = ledger{memory: rt.Memory, operator: rt.Name}
	if err := o.chains.open(o.spec.Lateness, o.spec.Key.Pointers); err != nil {
		return err
	}
	if err := o.keyer.open(rt); err != nil {
		return err
	}
	if err := o.restore(); err != nil {
		return fmt.Errorf("%s: restore session windows: %w", o.place, err)
	}
	return nil
}

// Close implements operator.Operator.
func (o *driver) Close() error {
	o.alarm.cancel()
	o.chains.close()
	return o.keyer.close()
}

// Push implements operator.Input.
func (o *driver) Push(r *frame.Run) error {
	if r.N <= frame.MaxLen {
		return o.push(r)
	}
	for from := 0; from < r.N; from += frame.MaxLen {
		o.part = r.Slice(from, min(r.N, from+frame.MaxLen))
		o.RT.Run = &o.part
		if err := o.push(&o.part); err != nil {
			return err
		}
	}
	return nil
}

func (o *driver) push(r *frame.Run) error {
	o.keyer.canon.N = 0 // those of the run before
	if err := o.assign(r, o.RT.Now); err != nil {
		return err
	}
	if o.domain == process.ProcessingTime {
		o.wheel.rest(o.RT.Now)
	}
	if err := o.keyer.begin(r); err != nil {
		return err
	}
	if err := o.put(r); err != nil {
		return err
	}
	o.late.Count()
	if o.domain == process.ProcessingTime {
		o.alarm.set(o.wheel.bound())
	}
	if err := o.sweep(r.N); err != nil {
		return err
	}
	return o.flush()
}

// atHand is operator.Runtime's: the result that is being made, or the element that is being added with its key.
func (o *driver) atHand(r *frame.Run) string {
	if text := o.k.AtHand(); text != "" || r == nil {
		return text
	}
	i, ok := r.Culprit()
	if !ok || i >= o.keyer.canon.N {
		return ""
	}
	return operator.AtHand(operator.NamedKey(o.keyer.key.Key, o.keyer.canon.Bytes(i)), operator.NamedElement(r, i))
}

// ring is called when the clock may be past the end of a session of processing time.
func (o *driver) ring(at int64) error {
	o.RT.At, o.RT.Run = o.RT, nil
	o.alarm.next = nil
	if err := o.advance(max(at, o.RT.Now-1)); err != nil {
		return err
	}
	o.alarm.set(o.wheel.bound())
	return o.flush()
}

// flush pushes what was emitted. Memory that could not be had in the meantime is an error.
func (o *driver) flush() error {
	if o.wheel.shortage != nil {
		return o.wheel.shortage
	}
	if err := o.emitter.Flush(); err != nil {
		return err
	}
	return o.sides.Flush()
}

// Mark implements operator.Input. A watermark fires what has ended by then before it goes on.
func (o *driver) Mark(m frame.Mark) error {
	if m.Kind == frame.Watermark && o.domain == process.EventTime && m.Value > o.watermark {
		if err := o.advance(m.Value); err != nil {
			return err
		}
		if err := o.flush(); err != nil {
			return err
		}
	}
	if err := o.sides.Mark(m); err != nil {
		return err
	}
	return o.Out.Mark(m)
}
