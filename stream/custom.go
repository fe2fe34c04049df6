package stream

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/custom"
	"github.com/flott-dev/flott/process"
)

// Transform runs an operator of your own, which construct makes once per subtask: it sees runs of elements, watermarks
// and timers; see process.Operator. For elements one by one, Process is simpler and knows keys and state.
func (s *Stream[T]) Transform[P process.Operator[T, R], R any](name string, construct func(*process.Runtime) P) *Stream[R] {
	in, out := s.c.typ, typeOf[R](s.c.env)
	open := func(rt *process.Runtime) process.Operator[T, R] { return construct(rt) }
	return &Stream[R]{s.c.applySided(name, out, func(sides map[string]*frame.Type) operator.Operator {
		return custom.Operator(in, out, sides, open)
	}).timed()}
}
