// Package element holds the drivers of operators that look at one element at a time without state: map, filter, flat
// map, update. A driver is written once; what must be compiled for the user's types is its kernel, a function value made
// by the constructor: that keeps an element type's share of a program small.
package element

import (
	"context"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// mapper writes one element of its own column for each element of the input.
type mapper struct {
	operator.Unary
	mapping operator.Mapping
	kernel  operator.MapKernel
}

func newMapper(in, out *frame.Type, kernel operator.MapKernel) *mapper {
	return &mapper{Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, kernel: kernel}
}

// Inputs implements operator.Operator.
func (m *mapper) Inputs() []operator.Input { return []operator.Input{m} }

// Open implements operator.Operator.
func (m *mapper) Open(rt *operator.Runtime) error {
	m.mapping.Open(&m.Out)
	return m.Unary.Open(rt)
}

// Push implements operator.Input.
func (m *mapper) Push(r *frame.Run) error { return m.mapping.Push(r, m.kernel) }

// Map returns the driver of map. in and out are the handles of T and R.
func Map[T, R any](in, out *frame.Type, f func(T) R) operator.Operator {
	return newMapper(in, out, operator.MapEach(f))
}

// MapPtr returns the driver of map by pointer. Its loop is unrolled as that of operator.MapEach.
func MapPtr[T, R any](in, out *frame.Type, f func(*T) R) operator.Operator {
	return newMapper(in, out, func(r *frame.Run, from, n int, col *frame.Column) error {
		xs, ys := frame.Values[T](r)[from:from+n], frame.Fill[R](col, n)
		at := r.Hand()
		i := 0
		for ; i+4 <= n; i += 4 {
			x, y := xs[i:i+4:i+4], ys[i:i+4:i+4]
			*at = from + i
			y[0] = f(&x[0])
			*at = from + i + 1
			y[1] = f(&x[1])
			*at = from + i + 2
			y[2] = f(&x[2])
			*at = from + i + 3
			y[3] = f(&x[3])
		}
		for ; i < n; i++ {
			*at = from + i
			ys[i] = f(&xs[i])
		}
		*at = frame.Passed
		return nil
	})
}

// TryMap returns the driver of a map that can fail or wait.
func TryMap[T, R any](in, out *frame.Type, f func(context.Context, T) (R, error)) operator.Operator {
	m := newMapper(in, out, nil)
	m.kernel = func(r *frame.Run, from, n int, col *frame.Column) (err error) {
		xs, ys := frame.Values[T](r)[from:from+n], frame.Fill[R](col, n)
		ctx := m.RT.Ctx
		at := r.Hand()
		for i, x := range xs {
			*at = from + i
			if ys[i], err = f(ctx, x); err != nil {
				return err
			}
		}
		*at = frame.Passed
		return nil
	}
	return m
}
