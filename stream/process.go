package stream

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/element"
	"github.com/flott-dev/flott/internal/operator/keyed"
	"github.com/flott-dev/flott/process"
)

// Process runs a process function that construct makes once per subtask: it sees timestamps and may emit to side
// outputs. For state and timers key the stream first.
func (s *Stream[T]) Process[P process.Function[T, R], R any](construct func(*process.Runtime) P) *Stream[R] {
	in, out := s.c.typ, typeOf[R](s.c.env)
	open := func(rt *process.Runtime) process.Function[T, R] { return construct(rt) }
	return &Stream[R]{s.c.applySided("Process", out, func(sides map[string]*frame.Type) operator.Operator {
		return element.Process(in, out, sides, open)
	})}
}

// Process runs a keyed process function that construct makes once per subtask and that declares its state there.
func (s *KeyedStream[T, K]) Process[P process.KeyedFunction[K, T, R], R any](construct func(*process.Runtime) P) *Stream[R] {
	in, out, key := s.c.typ, typeOf[R](s.c.env), s.key
	open := func(rt *process.Runtime) process.KeyedFunction[K, T, R] { return construct(rt) }
	c := s.c.applySided("Keyed Process", out, func(sides map[string]*frame.Type) operator.Operator {
		return keyed.Process(in, out, key, sides, open)
	})
	c.timed().keyed(key) // timers of event time give theirs
	return &Stream[R]{c}
}

// applySided is apply for operators with side outputs: which ones are read is known when the graph is complete.
//
//go:noinline
func (c *core) applySided(name string, out *frame.Type, open func(sides map[string]*frame.Type) operator.Operator) *core {
	n := newNode(graph.Operator, name, out)
	n.New = func() operator.Operator { return open(n.Side) }
	n.Inputs = c.edges()
	return c.env.add(n).sided()
}

// keyed marks the stream's operator as one with state per key.
func (c *core) keyed(keys ...*operator.Key) {
	c.node.Key = keys
	c.node.Stateful = true
}
