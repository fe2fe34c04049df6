package element

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// processor drives a process.Function.
type processor[T, R any] struct {
	operator.Unary
	construct func(*process.Runtime) process.Function[T, R]
	sides     *operator.Sides
	fn        process.Function[T, R]
	services  *operator.Services
	emitter   operator.Emitter
	out       *process.Collector[R]
	ctx       *process.Context
	run       state.CurrentRun
}

// Process returns the driver of a process function on a stream that is not keyed. sides are the types of the side
// outputs that somebody reads.
func Process[T, R any](in, out *frame.Type, sides map[string]*frame.Type, construct func(*process.Runtime) process.Function[T, R]) operator.Operator {
	return &processor[T, R]{
		Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, construct: construct, sides: operator.NewSides(sides),
		run: state.CurrentRun{Index: state.None},
	}
}

func (o *processor[T, R]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *processor[T, R]) Output(tag string) *operator.Output {
	if tag == "" {
		return &o.Out
	}
	return o.sides.Output(tag)
}

func (o *processor[T, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Unary.Open(rt); err != nil {
		return err
	}
	o.sides.Open(rt)
	o.emitter.Open(&o.Out)
	o.out = process.NewCollector[R](o.emitter.Column, o.emitter.Flush)
	o.services = operator.NewServices(rt, o.sides)
	o.ctx = process.NewContext(o.services)
	o.fn, err = operator.Construct(rt, nil, &o.run, o.construct)
	return err
}

func (o *processor[T, R]) Close() error {
	if c, ok := o.fn.(process.Closer); ok {
		return c.Close()
	}
	return nil
}

func (o *processor[T, R]) Push(r *frame.Run) error {
	for i, x := range frame.Values[T](r) {
		t := r.Time(i)
		o.ctx.SetTime(t)
		o.out.SetTime(t)
		if err := o.fn.ProcessElement(o.ctx, x, o.out); err != nil {
			return err
		}
	}
	return o.flush()
}

func (o *processor[T, R]) flush() error {
	if err := o.run.Take(); err != nil {
		return err
	}
	if err := o.out.Flush(); err != nil {
		return err
	}
	return o.sides.Flush()
}

func (o *processor[T, R]) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark:
		o.services.Current = m.Value
	case frame.End:
		if f, ok := o.fn.(process.Finisher[R]); ok {
			o.out.SetTime(frame.NoTime)
			if err := f.Finish(o.out); err != nil {
				return err
			}
			if err := o.flush(); err != nil {
				return err
			}
		}
	}
	if err := o.sides.Mark(m); err != nil {
		return err
	}
	return o.Out.Mark(m)
}
