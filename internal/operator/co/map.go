package co

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// mapped is the part of a co-map that does not look at elements: an output column and the timestamps of the input.
type mapped struct {
	Joint
	buf   *frame.Column
	run   frame.Run
	times []int64
}

func (m *mapped) Open(rt *operator.Runtime) error {
	m.buf = frame.NewColumn(m.Out.Type, m.Out.Type.FrameLen(frame.Bytes))
	return m.Joint.Open(rt)
}

// push sends the output column with the timestamps of in from offset from on.
func (m *mapped) push(in *frame.Run, from int) error {
	m.run = m.buf.Run()
	m.times = operator.LendTimes(&m.run, in, from, m.times)
	err := m.Out.Push(&m.run)
	m.buf.Reset()
	return err
}

// mapper applies a function of its own to the elements of each input.
type mapper[A, B, R any] struct {
	mapped
	f func(A) R
	g func(B) R
}

// Map returns the driver of co-map: f of the first input's elements, g of the second's.
func Map[A, B, R any](in Inputs, out *frame.Type, f func(A) R, g func(B) R) operator.Operator {
	m := &mapper[A, B, R]{f: f, g: g}
	m.Join(in, out, m, m.push1, m.push2)
	return m
}

func (m *mapper[A, B, R]) push1(r *frame.Run) error { return mapRun(&m.mapped, r, m.f) }

func (m *mapper[A, B, R]) push2(r *frame.Run) error { return mapRun(&m.mapped, r, m.g) }

// mapRun is unrolled because Go keeps no register across a closure call.
func mapRun[T, R any](m *mapped, r *frame.Run, f func(T) R) error {
	xs := frame.Values[T](r)
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
