package stream

import (
	"fmt"
	"slices"

	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/broadcast"
	"github.com/flott-dev/flott/process"
)

// BroadcastStream is a stream whose elements go to every subtask of the operator that it is connected with, where they
// fill broadcast state.
type BroadcastStream[B any] struct {
	c      *core
	states []process.BroadcastDescriptor
}

// BroadcastState broadcasts the stream with the states that its elements fill: descriptors of package state, made by
// state.NewBroadcast (Flink: broadcast(MapStateDescriptor...)). Connect it with another stream by ConnectBroadcast.
func (s *Stream[T]) BroadcastState(states ...process.BroadcastDescriptor) *BroadcastStream[T] {
	return &BroadcastStream[T]{c: s.c.strategy(graph.Broadcast), states: s.c.env.checkBroadcast(states)}
}

// checkBroadcast returns a copy of the states.
//
//go:noinline
func (e *Env) checkBroadcast(states []process.BroadcastDescriptor) []process.BroadcastDescriptor {
	seen := map[string]bool{}
	for _, d := range states {
		if err := d.Err(); err != nil {
			e.report(fmt.Errorf("broadcast a stream: %w", err))
		}
		if seen[d.Name()] {
			e.report(fmt.Errorf("broadcast a stream: two states are called %q", d.Name()))
		}
		seen[d.Name()] = true
	}
	return slices.Clone(states)
}

// BroadcastConnectedStream is a stream with a broadcast stream beside it. The operator's event time is the smaller of the
// two streams' that are not idle.
type BroadcastConnectedStream[T, B any] struct {
	c      [2]*core
	states []process.BroadcastDescriptor
}

// ConnectBroadcast joins the stream with a broadcast stream as the two inputs of one operator.
func (s *Stream[T]) ConnectBroadcast[B any](b *BroadcastStream[B]) *BroadcastConnectedStream[T, B] {
	return &BroadcastConnectedStream[T, B]{c: s.c.with(b.c), states: b.states}
}

// First is the stream that is not broadcast.
func (s *BroadcastConnectedStream[T, B]) First() *Stream[T] { return &Stream[T]{s.c[0]} }

// Second is the broadcast stream.
func (s *BroadcastConnectedStream[T, B]) Second() *BroadcastStream[B] {
	return &BroadcastStream[B]{c: s.c[1], states: s.states}
}

// Process runs a broadcast function that construct makes once per subtask.
func (s *BroadcastConnectedStream[T, B]) Process[P process.BroadcastFunction[T, B, R], R any](construct func(*process.Runtime) P) *Stream[R] {
	in, out, states := inputs(s.c), typeOf[R](s.c[0].env), s.states
	open := func(rt *process.Runtime) process.BroadcastFunction[T, B, R] { return construct(rt) }
	c := join("Co-Process-Broadcast", s.c, out, func(n *graph.Node) operator.Operator {
		return broadcast.Process(in, out, states, n.Side, open)
	})
	c.sided().node.Stateful = true
	return &Stream[R]{c}
}

// KeyedBroadcastConnectedStream is a keyed stream with a broadcast stream beside it.
type KeyedBroadcastConnectedStream[T, B, K any] struct {
	c      [2]*core
	key    *operator.Key
	states []process.BroadcastDescriptor
}

// ConnectBroadcast joins the keyed stream with a broadcast stream as the two inputs of one operator.
func (s *KeyedStream[T, K]) ConnectBroadcast[B any](b *BroadcastStream[B]) *KeyedBroadcastConnectedStream[T, B, K] {
	return &KeyedBroadcastConnectedStream[T, B, K]{c: s.c.with(b.c), key: s.key, states: b.states}
}

// First is the keyed stream.
func (s *KeyedBroadcastConnectedStream[T, B, K]) First() *KeyedStream[T, K] {
	return &KeyedStream[T, K]{c: s.c[0], key: s.key}
}

// Second is the broadcast stream.
func (s *KeyedBroadcastConnectedStream[T, B, K]) Second() *BroadcastStream[B] {
	return &BroadcastStream[B]{c: s.c[1], states: s.states}
}

// Process runs a keyed broadcast function that construct makes once per subtask and that declares its keyed state there.
func (s *KeyedBroadcastConnectedStream[T, B, K]) Process[P process.KeyedBroadcastFunction[K, T, B, R], R any](construct func(*process.Runtime) P) *Stream[R] {
	in, out, key, states := inputs(s.c), typeOf[R](s.c[0].env), s.key, s.states
	open := func(rt *process.Runtime) process.KeyedBroadcastFunction[K, T, B, R] { return construct(rt) }
	c := join("Co-Process-Broadcast-Keyed", s.c, out, func(n *graph.Node) operator.Operator {
		return broadcast.KeyedProcess(in, out, key, states, n.Side, open)
	})
	c.sided().timed().keyed(key, nil) // timers of event time give theirs
	return &Stream[R]{c}
}
