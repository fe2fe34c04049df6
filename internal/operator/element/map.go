// Package element holds the drivers of operators that look at one element at a time without state: map, filter, flat
// map, update. Only the loops that call user closures are generic; everything else is in package operator.
package element

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// mapped is what map drivers share: an output column and the timestamps of the input.
type mapped struct {
	operator.Unary
	buf   *frame.Column
	run   frame.Run
	times []int64
}

func (m *mapped) Open(rt *operator.Runtime) error {
	m.buf = frame.NewColumn(m.Out.Type, m.Out.Type.FrameLen(frame.Bytes))
	return m.Unary.Open(rt)
}

// push sends the n elements of the output column with the timestamps of in from offset from on.
func (m *mapped) push(in *frame.Run, from int) error {
	m.run = m.buf.Run()
	m.times = operator.LendTimes(&m.run, in, from, m.times)
	err := m.Out.Push(&m.run)
	m.buf.Reset()
	return err
}

// mapper applies f to each element.
type mapper[T, R any] struct {
	mapped
	f func(T) R
}

// Map returns the driver of map. in and out are the handles of T and R.
func Map[T, R any](in, out *frame.Type, f func(T) R) operator.Operator {
	return &mapper[T, R]{mapped: mapped{Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}}, f: f}
}

func (m *mapper[T, R]) Inputs() []operator.Input { return []operator.Input{m} }

// Push implements operator.Input. The loop is unrolled because Go keeps no register across a closure call: the index
// goes through memory once per four calls instead of each.
func (m *mapper[T, R]) Push(r *frame.Run) error {
	xs, f := frame.Values[T](r), m.f
	for from := 0; from < len(xs); {
		n := min(len(xs)-from, m.buf.Cap())
		in, out := xs[from:from+n], frame.Fill[R](m.buf, n)
		i := 0
		for ; i+4 <= n; i += 4 {
			x, o := in[i:i+4:i+4], out[i:i+4:i+4]
			o[0] = f(x[0])
			o[1] = f(x[1])
			o[2] = f(x[2])
			o[3] = f(x[3])
		}
		for ; i < n; i++ {
			out[i] = f(in[i])
		}
		if err := m.push(r, from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// pointerMapper applies f to the address of each element.
type pointerMapper[T, R any] struct {
	mapped
	f func(*T) R
}

// MapPtr returns the driver of map by pointer.
func MapPtr[T, R any](in, out *frame.Type, f func(*T) R) operator.Operator {
	return &pointerMapper[T, R]{mapped: mapped{Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}}, f: f}
}

func (m *pointerMapper[T, R]) Inputs() []operator.Input { return []operator.Input{m} }

func (m *pointerMapper[T, R]) Push(r *frame.Run) error {
	xs, f := frame.Values[T](r), m.f
	for from := 0; from < len(xs); {
		n := min(len(xs)-from, m.buf.Cap())
		in, out := xs[from:from+n], frame.Fill[R](m.buf, n)
		i := 0
		for ; i+4 <= n; i += 4 {
			x, o := in[i:i+4:i+4], out[i:i+4:i+4]
			o[0] = f(&x[0])
			o[1] = f(&x[1])
			o[2] = f(&x[2])
			o[3] = f(&x[3])
		}
		for ; i < n; i++ {
			out[i] = f(&in[i])
		}
		if err := m.push(r, from); err != nil {
			return err
		}
		from += n
	}
	return nil
}
