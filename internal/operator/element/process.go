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
	operator.Calls[R]
	construct func(*process.Runtime) process.Function[T, R]
	fn        process.Function[T, R]
	services  *operator.Services
	ctx       *process.Context
	run       state.CurrentRun
}

// Process returns the driver of a process function on a stream that is not keyed. sides are the types of the side
// outputs that somebody reads.
func Process[T, R any](in, out *frame.Type, sides map[string]*frame.Type, construct func(*process.Runtime) process.Function[T, R]) operator.Operator {
	o := &processor[T, R]{
		Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, construct: construct, run: state.CurrentRun{Index: state.None},
	}
	o.Init(&o.Out, operator.NewSides(sides))
	return o
}

func (o *processor[T, R]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *processor[T, R]) Output(tag string) *operator.Output { return o.Calls.Output(tag) }

func (o *processor[T, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Unary.Open(rt); err != nil {
		return err
	}
	o.Calls.Open(rt)
	o.services = operator.NewServices(rt, o.Sides)
	o.ctx = process.NewContext(o.services)
	o.fn, err = operator.Construct(rt, nil, &o.run, o.construct)
	return err
}

func (o *processor[T, R]) Close() error { return operator.CloseFunction(o.fn) }

func (o *processor[T, R]) Push(r *frame.Run) error {
	at := r.Hand()
	for i, x := range frame.Values[T](r) {
		*at = i
		t := r.Time(i)
		o.ctx.SetTime(t)
		o.To.SetTime(t)
		if err := o.fn.ProcessElement(o.ctx, x, o.To); err != nil {
			return err
		}
	}
	*at = frame.Passed
	return o.flush()
}

// flush ends a stretch of user calls: failed accesses first, then what was emitted.
func (o *processor[T, R]) flush() error {
	if err := o.run.Take(); err != nil {
		return err
	}
	return o.Send()
}

func (o *processor[T, R]) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark:
		o.services.Current = m.Value
	case frame.End:
		if err := o.Calls.Finish(o.fn); err != nil {
			return err
		}
		if err := o.flush(); err != nil {
			return err
		}
	}
	return o.Forward(m)
}
