// Package custom drives operators of the user's own: it hands them runs, watermarks and timers and sends what they emit.
package custom

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// driver drives a process.Operator.
type driver[T, R any] struct {
	operator.Unary
	construct func(*process.Runtime) process.Operator[T, R]
	sides     *operator.Sides
	op        process.Operator[T, R]
	marks     process.WatermarkHandler[R] // nil: none
	services  services
	emitter   operator.Emitter
	out       *process.Collector[R]
	ctx       *process.OperatorContext
	run       state.CurrentRun
}

// Operator returns the driver of an operator that construct makes; sides are the types of the side outputs that somebody
// reads.
func Operator[T, R any](in, out *frame.Type, sides map[string]*frame.Type, construct func(*process.Runtime) process.Operator[T, R]) operator.Operator {
	return &driver[T, R]{
		Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, construct: construct, sides: operator.NewSides(sides),
		run: state.CurrentRun{Index: state.None},
	}
}

func (o *driver[T, R]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *driver[T, R]) Output(tag string) *operator.Output {
	if tag == "" {
		return &o.Out
	}
	return o.sides.Output(tag)
}

func (o *driver[T, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Unary.Open(rt); err != nil {
		return err
	}
	o.sides.Open(rt)
	o.emitter.Open(&o.Out)
	o.out = process.NewCollector[R](o.emitter.Column, o.emitter.Flush)
	o.services = services{Services: *operator.NewServices(rt, o.sides), fire: o.fire, timers: map[int64]*operator.Callback{}}
	o.ctx = process.NewOperatorContext(&o.services)
	if o.op, err = operator.Construct(rt, nil, &o.run, o.construct); err != nil {
		return err
	}
	o.marks, _ = o.op.(process.WatermarkHandler[R])
	return nil
}

func (o *driver[T, R]) Close() error {
	o.services.stop()
	if c, ok := o.op.(process.Closer); ok {
		return c.Close()
	}
	return nil
}

func (o *driver[T, R]) Push(r *frame.Run) error {
	o.out.SetTime(frame.NoTime)
	if err := o.op.ProcessRun(o.ctx, frame.Values[T](r), r.Times, o.out); err != nil {
		return err
	}
	return o.flush()
}

func (o *driver[T, R]) flush() error {
	if err := o.run.Take(); err != nil {
		return err
	}
	if err := o.out.Flush(); err != nil {
		return err
	}
	return o.sides.Flush()
}

// fire calls the operator for a timer.
func (o *driver[T, R]) fire(at int64) error {
	o.RT.At = o.RT
	delete(o.services.timers, at)
	h, ok := o.op.(process.ProcessingTimeHandler[R])
	if !ok {
		return nil
	}
	o.out.SetTime(frame.NoTime)
	if err := h.OnProcessingTime(o.ctx, at, o.out); err != nil {
		return err
	}
	return o.flush()
}

func (o *driver[T, R]) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark:
		o.services.Current = m.Value
		if o.marks == nil {
			break
		}
		o.out.SetTime(frame.NoTime)
		if err := o.marks.ProcessWatermark(o.ctx, m.Value, o.out); err != nil {
			return err
		}
		if err := o.flush(); err != nil {
			return err
		}
	case frame.End:
		if err := o.finish(); err != nil {
			return err
		}
	}
	if err := o.sides.Mark(m); err != nil {
		return err
	}
	return o.Out.Mark(m)
}

func (o *driver[T, R]) finish() error {
	o.services.stop()
	f, ok := o.op.(process.Finisher[R])
	if !ok {
		return nil
	}
	o.out.SetTime(frame.NoTime)
	if err := f.Finish(o.out); err != nil {
		return err
	}
	return o.flush()
}

// services adds processing-time timers without keys.
type services struct {
	operator.Services
	fire   func(at int64) error // bound once
	timers map[int64]*operator.Callback
	ended  bool
}

// Register implements process.Services.
func (s *services) Register(d process.Domain, at int64) {
	if d != process.ProcessingTime {
		s.Services.Register(d, at)
		return
	}
	if s.timers[at] == nil && !s.ended {
		s.timers[at] = s.RT.Timers.Schedule(at, s.fire)
	}
}

// Delete implements process.Services.
func (s *services) Delete(d process.Domain, at int64) {
	if d != process.ProcessingTime {
		s.Services.Delete(d, at)
		return
	}
	if cb := s.timers[at]; cb != nil {
		s.RT.Timers.Cancel(cb)
		delete(s.timers, at)
	}
}

// stop drops all timers.
func (s *services) stop() {
	s.ended = true
	for at, cb := range s.timers {
		s.RT.Timers.Cancel(cb)
		delete(s.timers, at)
	}
}
