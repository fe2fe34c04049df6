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
	operator.Calls[R]
	construct func(*process.Runtime) process.Operator[T, R]
	op        process.Operator[T, R]
	marks     process.WatermarkHandler[R] // nil: none
	services  services
	ctx       *process.OperatorContext
	run       state.CurrentRun
}

// Operator returns the driver of an operator that construct makes; sides are the types of the side outputs that somebody
// reads.
func Operator[T, R any](in, out *frame.Type, sides map[string]*frame.Type, construct func(*process.Runtime) process.Operator[T, R]) operator.Operator {
	o := &driver[T, R]{
		Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, construct: construct, run: state.CurrentRun{Index: state.None},
	}
	o.Init(&o.Out, operator.NewSides(sides))
	return o
}

func (o *driver[T, R]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *driver[T, R]) Output(tag string) *operator.Output { return o.Calls.Output(tag) }

func (o *driver[T, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Unary.Open(rt); err != nil {
		return err
	}
	o.Calls.Open(rt)
	o.services = services{Services: *operator.NewServices(rt, o.Sides), fire: o.fire, timers: map[int64]*operator.Callback{}}
	o.ctx = process.NewOperatorContext(&o.services)
	if o.op, err = operator.Construct(rt, nil, &o.run, o.construct); err != nil {
		return err
	}
	o.marks, _ = o.op.(process.WatermarkHandler[R])
	return nil
}

func (o *driver[T, R]) Close() error {
	o.services.stop()
	return operator.CloseFunction(o.op)
}

func (o *driver[T, R]) Push(r *frame.Run) error {
	o.To.SetTime(frame.NoTime)
	if err := o.op.ProcessRun(o.ctx, frame.Values[T](r), r.Times, o.To); err != nil {
		return err
	}
	return o.flush()
}

// flush ends a stretch of user calls: failed accesses first, then what was emitted.
func (o *driver[T, R]) flush() error {
	if err := o.run.Take(); err != nil {
		return err
	}
	return o.Send()
}

// fire calls the operator for a timer.
func (o *driver[T, R]) fire(at int64) error {
	o.RT.At, o.RT.Run = o.RT, nil
	delete(o.services.timers, at)
	h, ok := o.op.(process.ProcessingTimeHandler[R])
	if !ok {
		return nil
	}
	o.To.SetTime(frame.NoTime)
	if err := h.OnProcessingTime(o.ctx, at, o.To); err != nil {
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
		o.To.SetTime(frame.NoTime)
		if err := o.marks.ProcessWatermark(o.ctx, m.Value, o.To); err != nil {
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
	return o.Forward(m)
}

func (o *driver[T, R]) finish() error {
	o.services.stop()
	if err := o.Calls.Finish(o.op); err != nil {
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
