package watermarks

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// Ingesting stamps elements with the clock and makes watermarks from it: ingestion time. It stands behind a source; the
// source's own timestamps and watermarks are replaced.
type Ingesting struct {
	operator.Unary
	clock *SourceContext
	run   frame.Run
	times []int64
	ticks *operator.Callback
}

// NewIngesting returns the operator for elements of type t.
func NewIngesting(t *frame.Type) *Ingesting {
	return &Ingesting{Unary: operator.Unary{In: t, Out: operator.NewOutput(t)}}
}

// Inputs implements operator.Operator.
func (o *Ingesting) Inputs() []operator.Input { return []operator.Input{o} }

// Open implements operator.Operator. Without an auto watermark interval there are timestamps only.
func (o *Ingesting) Open(rt *operator.Runtime) error {
	o.clock = NewIngestion(rt.Now, max(rt.AutoWatermarkInterval, 1), -1)
	if rt.AutoWatermarkInterval <= 0 {
		o.clock.Stop()
	}
	err := o.Unary.Open(rt)
	o.schedule()
	return err
}

// Close implements operator.Operator.
func (o *Ingesting) Close() error {
	if o.ticks != nil {
		o.RT.Timers.Cancel(o.ticks)
	}
	return nil
}

func (o *Ingesting) schedule() {
	if at, ok := o.clock.Next(); ok {
		o.ticks = o.RT.Timers.Schedule(at, o.tick)
	}
}

func (o *Ingesting) tick(int64) error {
	o.ticks = nil
	if err := o.send(o.clock.Advance(o.RT.Now)); err != nil {
		return err
	}
	o.schedule()
	return nil
}

// Push implements operator.Input: a run is read at one time.
func (o *Ingesting) Push(r *frame.Run) error {
	stamp, before, after := o.clock.Element(o.RT.Now, frame.NoTime)
	if err := o.send(before); err != nil {
		return err
	}
	if cap(o.times) < r.N {
		o.times = make([]int64, max(r.N, frame.DefaultLen))
	}
	o.run = *r
	o.run.Times = o.times[:r.N]
	for i := range o.run.Times {
		o.run.Times[i] = stamp
	}
	if err := o.Out.Push(&o.run); err != nil {
		return err
	}
	if o.RT.AutoWatermarkInterval <= 0 {
		return nil
	}
	return o.send(after)
}

// Mark implements operator.Input.
func (o *Ingesting) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark:
		return o.send(o.clock.Emit(o.RT.Now, m.Value))
	case frame.Idle:
		return o.send(o.clock.Idle())
	case frame.Active:
		return nil // the next element says so
	case frame.End:
		o.clock.Stop()
	}
	return o.Out.Mark(m)
}

func (o *Ingesting) send(e Emission) error {
	for _, m := range e.Marks() {
		if err := o.Out.Mark(m); err != nil {
			return err
		}
	}
	return nil
}
