package element

import (
	"context"
	"iter"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

// flatMapper emits any number of elements for each element of the input. Its kernel is made in Open: it holds the one
// emit function that the user's calls share.
type flatMapper struct {
	operator.Unary
	make    func(o *flatMapper) func(r *frame.Run) error
	kernel  func(r *frame.Run) error
	emitter operator.Emitter
}

func newFlatMapper(in, out *frame.Type, make func(o *flatMapper) func(r *frame.Run) error) operator.Operator {
	return &flatMapper{Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, make: make}
}

// Inputs implements operator.Operator.
func (o *flatMapper) Inputs() []operator.Input { return []operator.Input{o} }

// Open implements operator.Operator.
func (o *flatMapper) Open(rt *operator.Runtime) error {
	err := o.Unary.Open(rt)
	o.emitter.Open(&o.Out)
	o.kernel = o.make(o)
	return err
}

// Push implements operator.Input.
func (o *flatMapper) Push(r *frame.Run) error { return o.kernel(r) }

// FlatMap returns the driver of flat map.
func FlatMap[T, R any](in, out *frame.Type, f func(T, func(R))) operator.Operator {
	return newFlatMapper(in, out, func(o *flatMapper) func(r *frame.Run) error {
		to := process.NewCollector[R](o.emitter.Column, o.emitter.Flush)
		emit := to.Collect
		return func(r *frame.Run) error {
			at := r.Hand()
			for i, x := range frame.Values[T](r) {
				*at = i
				to.SetTime(r.Time(i))
				f(x, emit)
			}
			*at = frame.Passed
			return to.Flush()
		}
	})
}

// FlatMapSeq returns the driver of flat map by iterator.
func FlatMapSeq[T, R any](in, out *frame.Type, f func(T) iter.Seq[R]) operator.Operator {
	return newFlatMapper(in, out, func(o *flatMapper) func(r *frame.Run) error {
		to := process.NewCollector[R](o.emitter.Column, o.emitter.Flush)
		yield := func(v R) bool {
			to.Collect(v)
			return true
		}
		return func(r *frame.Run) error {
			at := r.Hand()
			for i, x := range frame.Values[T](r) {
				*at = i
				to.SetTime(r.Time(i))
				f(x)(yield)
			}
			*at = frame.Passed
			return to.Flush()
		}
	})
}

// TryFlatMap returns the driver of a flat map that can fail.
func TryFlatMap[T, R any](in, out *frame.Type, f func(context.Context, T, func(R)) error) operator.Operator {
	return newFlatMapper(in, out, func(o *flatMapper) func(r *frame.Run) error {
		to := process.NewCollector[R](o.emitter.Column, o.emitter.Flush)
		emit := to.Collect
		return func(r *frame.Run) error {
			at := r.Hand()
			for i, x := range frame.Values[T](r) {
				*at = i
				to.SetTime(r.Time(i))
				if err := f(o.RT.Ctx, x, emit); err != nil {
					return err
				}
			}
			*at = frame.Passed
			return to.Flush()
		}
	})
}
