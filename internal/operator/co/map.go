package co

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// mapper applies a function of its own to the elements of each input.
type mapper struct {
	Joint
	mapping       operator.Mapping
	first, second operator.MapKernel
}

// Map returns the driver of co-map: f of the first input's elements, g of the second's.
func Map[A, B, R any](in Inputs, out *frame.Type, f func(A) R, g func(B) R) operator.Operator {
	return newMapper(in, out, operator.MapEach(f), operator.MapEach(g))
}

func newMapper(in Inputs, out *frame.Type, first, second operator.MapKernel) operator.Operator {
	m := &mapper{first: first, second: second}
	m.Join(in, out, m, m.push1, m.push2)
	return m
}

// Open implements operator.Operator.
func (m *mapper) Open(rt *operator.Runtime) error {
	m.mapping.Open(&m.Out)
	return m.Joint.Open(rt)
}

func (m *mapper) push1(r *frame.Run) error { return m.mapping.Push(r, m.first) }

func (m *mapper) push2(r *frame.Run) error { return m.mapping.Push(r, m.second) }
