// Package element holds the drivers of operators that look at one element at a time without state: map, filter, flat
// map, update. A driver is written once; what must be compiled for the user's types is its kernel, a function value made
// by the constructor: that keeps an element type's share of a program small.
package element

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// mapper writes one element of its own column for each element of the input.
type mapper struct {
	operator.Unary
	kernel func(r *frame.Run, from, n int, out *frame.Column)
	buf    *frame.Column
	run    frame.Run
	times  []int64
}

func newMapper(in, out *frame.Type, kernel func(r *frame.Run, from, n int, out *frame.Column)) operator.Operator {
	return &mapper{Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, kernel: kernel}
}

// Inputs implements operator.Operator.
func (m *mapper) Inputs() []operator.Input { return []operator.Input{m} }

// Open implements operator.Operator.
func (m *mapper) Open(rt *operator.Runtime) error {
	m.buf = frame.NewColumn(m.Out.Type, m.Out.Type.FrameLen(frame.Bytes))
	return m.Unary.Open(rt)
}

// Push implements operator.Input.
func (m *mapper) Push(r *frame.Run) error {
	for from := 0; from < r.N; {
		n := min(r.N-from, m.buf.Cap())
		m.kernel(r, from, n, m.buf)
		if err := m.push(r, from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// push sends the output column with the timestamps of in from offset from on.
func (m *mapper) push(in *frame.Run, from int) error {
	m.run = m.buf.Run()
	m.times = operator.LendTimes(&m.run, in, from, m.times)
	err := m.Out.Push(&m.run)
	m.buf.Reset()
	return err
}

// Map returns the driver of map. in and out are the handles of T and R. The loop is unrolled because Go keeps no register
// across a closure call: the index goes through memory once per four calls instead of each.
func Map[T, R any](in, out *frame.Type, f func(T) R) operator.Operator {
	return newMapper(in, out, func(r *frame.Run, from, n int, col *frame.Column) {
		xs, ys := frame.Values[T](r)[from:from+n], frame.Fill[R](col, n)
		i := 0
		for ; i+4 <= n; i += 4 {
			x, y := xs[i:i+4:i+4], ys[i:i+4:i+4]
			y[0] = f(x[0])
			y[1] = f(x[1])
			y[2] = f(x[2])
			y[3] = f(x[3])
		}
		for ; i < n; i++ {
			ys[i] = f(xs[i])
		}
	})
}

// MapPtr returns the driver of map by pointer.
func MapPtr[T, R any](in, out *frame.Type, f func(*T) R) operator.Operator {
	return newMapper(in, out, func(r *frame.Run, from, n int, col *frame.Column) {
		xs, ys := frame.Values[T](r)[from:from+n], frame.Fill[R](col, n)
		i := 0
		for ; i+4 <= n; i += 4 {
			x, y := xs[i:i+4:i+4], ys[i:i+4:i+4]
			y[0] = f(&x[0])
			y[1] = f(&x[1])
			y[2] = f(&x[2])
			y[3] = f(&x[3])
		}
		for ; i < n; i++ {
			ys[i] = f(&xs[i])
		}
	})
}
