package element

import (
	"context"
	"iter"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

// flatMapper calls f with an emit function that is made once.
type flatMapper[T, R any] struct {
	operator.Unary
	f       func(T, func(R))
	emitter operator.Emitter
	out     *process.Collector[R]
	emit    func(R)
}

// FlatMap returns the driver of flat map.
func FlatMap[T, R any](in, out *frame.Type, f func(T, func(R))) operator.Operator {
	return &flatMapper[T, R]{Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, f: f}
}

func (o *flatMapper[T, R]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *flatMapper[T, R]) Open(rt *operator.Runtime) error {
	err := o.Unary.Open(rt)
	o.emitter.Open(&o.Out)
	o.out = process.NewCollector[R](o.emitter.Column, o.emitter.Flush)
	o.emit = o.out.Collect
	return err
}

func (o *flatMapper[T, R]) Push(r *frame.Run) error {
	for i, x := range frame.Values[T](r) {
		if r.Times != nil {
			o.out.SetTime(r.Times[i])
		} else {
			o.out.SetTime(frame.NoTime)
		}
		o.f(x, o.emit)
	}
	return o.out.Flush()
}

// seqMapper emits the elements of an iterator.
type seqMapper[T, R any] struct {
	operator.Unary
	f       func(T) iter.Seq[R]
	emitter operator.Emitter
	out     *process.Collector[R]
	yield   func(R) bool
}

// FlatMapSeq returns the driver of flat map by iterator.
func FlatMapSeq[T, R any](in, out *frame.Type, f func(T) iter.Seq[R]) operator.Operator {
	return &seqMapper[T, R]{Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, f: f}
}

func (o *seqMapper[T, R]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *seqMapper[T, R]) Open(rt *operator.Runtime) error {
	err := o.Unary.Open(rt)
	o.emitter.Open(&o.Out)
	o.out = process.NewCollector[R](o.emitter.Column, o.emitter.Flush)
	o.yield = func(v R) bool {
		o.out.Collect(v)
		return true
	}
	return err
}

func (o *seqMapper[T, R]) Push(r *frame.Run) error {
	for i, x := range frame.Values[T](r) {
		o.out.SetTime(r.Time(i))
		o.f(x)(o.yield)
	}
	return o.out.Flush()
}

// tryFlatMapper calls an f that can fail or wait.
type tryFlatMapper[T, R any] struct {
	operator.Unary
	f       func(context.Context, T, func(R)) error
	emitter operator.Emitter
	out     *process.Collector[R]
	emit    func(R)
}

// TryFlatMap returns the driver of a flat map that can fail.
func TryFlatMap[T, R any](in, out *frame.Type, f func(context.Context, T, func(R)) error) operator.Operator {
	return &tryFlatMapper[T, R]{Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, f: f}
}

func (o *tryFlatMapper[T, R]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *tryFlatMapper[T, R]) Open(rt *operator.Runtime) error {
	err := o.Unary.Open(rt)
	o.emitter.Open(&o.Out)
	o.out = process.NewCollector[R](o.emitter.Column, o.emitter.Flush)
	o.emit = o.out.Collect
	return err
}

func (o *tryFlatMapper[T, R]) Push(r *frame.Run) error {
	for i, x := range frame.Values[T](r) {
		o.out.SetTime(r.Time(i))
		if err := o.f(o.RT.Ctx, x, o.emit); err != nil {
			return err
		}
	}
	return o.out.Flush()
}
