package stream

import (
	"context"
	"iter"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/element"
	"github.com/flott-dev/flott/process"
)

// Stream is a stream of elements of type T: a node of the graph that is being built. Methods that begin with a verb add
// an operator and return its stream; Name, UID, Parallelism and the like configure the operator that made this one.
type Stream[T any] struct{ c *core }

// Map replaces each element by f of it.
func (s *Stream[T]) Map[R any](f func(T) R) *Stream[R] {
	in, out := s.c.typ, typeOf[R](s.c.env)
	return &Stream[R]{s.c.apply("Map", out, func() operator.Operator { return element.Map(in, out, f) })}
}

// MapPtr is Map with a function that takes the element's address, for large elements; f must neither keep the pointer nor
// change the element.
func (s *Stream[T]) MapPtr[R any](f func(*T) R) *Stream[R] {
	in, out := s.c.typ, typeOf[R](s.c.env)
	return &Stream[R]{s.c.apply("Map", out, func() operator.Operator { return element.MapPtr(in, out, f) })}
}

// TryMap is Map with a function that can fail or wait: an error fails the task, ctx ends with it.
func (s *Stream[T]) TryMap[R any](f func(ctx context.Context, x T) (R, error)) *Stream[R] {
	in, out := s.c.typ, typeOf[R](s.c.env)
	return &Stream[R]{s.c.apply("Map", out, func() operator.Operator { return element.TryMap(in, out, f) })}
}

// Filter keeps the elements for which f is true. f takes the element or its address.
func (s *Stream[T]) Filter[F func(T) bool | func(*T) bool](f F) *Stream[T] {
	typ := s.c.typ
	return &Stream[T]{s.c.apply("Filter", typ, func() operator.Operator {
		if f, ok := any(f).(func(*T) bool); ok {
			return element.FilterPtr(typ, f)
		}
		return element.Filter(typ, any(f).(func(T) bool))
	})}
}

// Update changes each element in place during the call: a map from T to T without copying.
func (s *Stream[T]) Update[F func(*T)](f F) *Stream[T] {
	typ := s.c.typ
	return &Stream[T]{s.c.apply("Update", typ, func() operator.Operator { return element.Update[T](typ, f) })}
}

// FlatMap replaces each element by what f emits for it, zero or more elements. emit may be called during the call only.
func (s *Stream[T]) FlatMap[R any](f func(x T, emit func(R))) *Stream[R] {
	in, out := s.c.typ, typeOf[R](s.c.env)
	return &Stream[R]{s.c.apply("Flat Map", out, func() operator.Operator { return element.FlatMap(in, out, f) })}
}

// FlatMapSeq is FlatMap with a function that returns an iterator, strings.FieldsSeq for example.
func (s *Stream[T]) FlatMapSeq[R any](f func(x T) iter.Seq[R]) *Stream[R] {
	in, out := s.c.typ, typeOf[R](s.c.env)
	return &Stream[R]{s.c.apply("Flat Map", out, func() operator.Operator { return element.FlatMapSeq(in, out, f) })}
}

// TryFlatMap is FlatMap with a function that can fail or wait.
func (s *Stream[T]) TryFlatMap[R any](f func(ctx context.Context, x T, emit func(R)) error) *Stream[R] {
	in, out := s.c.typ, typeOf[R](s.c.env)
	return &Stream[R]{s.c.apply("Flat Map", out, func() operator.Operator { return element.TryFlatMap(in, out, f) })}
}

// Then applies a function that takes the stream: it keeps the reading order with operations that are package functions.
func (s *Stream[T]) Then[R any](f func(*Stream[T]) R) R { return f(s) }

// Union is the stream of the elements of this and the other streams, in no particular order among them. A stream united
// with itself gives every element twice.
func (s *Stream[T]) Union(others ...*Stream[T]) *Stream[T] {
	cores := make([]*core, len(others))
	for i, o := range others {
		cores[i] = o.c
	}
	return &Stream[T]{s.c.union(cores)}
}

// SideOutput is the stream of what the operator that made this stream emits to tag.
func (s *Stream[T]) SideOutput[X any](tag process.OutputTag[X]) *Stream[X] {
	return &Stream[X]{s.c.side(tag.Name(), typeOf[X](s.c.env))}
}

// Broadcast sends every element to every subtask of the next operator.
func (s *Stream[T]) Broadcast() *Stream[T] { return &Stream[T]{s.c.strategy(graph.Broadcast)} }

// Shuffle sends each element to a random subtask of the next operator.
func (s *Stream[T]) Shuffle() *Stream[T] { return &Stream[T]{s.c.strategy(graph.Shuffle)} }

// ShuffleSeeded is Shuffle with a seed: the same seed and order of elements give the same choice.
func (s *Stream[T]) ShuffleSeeded(seed uint64) *Stream[T] {
	return &Stream[T]{s.c.partitioned(&graph.Partitioner{Strategy: graph.Shuffle, Seed: seed})}
}

// Forward keeps each element in the subtask of the same index; both operators need the same parallelism.
func (s *Stream[T]) Forward() *Stream[T] { return &Stream[T]{s.c.strategy(graph.Forward)} }

// Rebalance deals elements to the subtasks of the next operator in turn.
func (s *Stream[T]) Rebalance() *Stream[T] { return &Stream[T]{s.c.strategy(graph.Rebalance)} }

// Rescale deals elements in turn to a local subset of the next operator's subtasks: groups by the ratio of the
// parallelisms.
func (s *Stream[T]) Rescale() *Stream[T] { return &Stream[T]{s.c.strategy(graph.Rescale)} }

// Global sends all elements to subtask 0 of the next operator.
func (s *Stream[T]) Global() *Stream[T] { return &Stream[T]{s.c.strategy(graph.Global)} }

// PartitionCustom sends each element to the subtask that choose names for its key: 0 ... channels-1; another answer
// fails the task.
func (s *Stream[T]) PartitionCustom[K any](choose func(key K, channels int) int, key func(T) K) *Stream[T] {
	p := &graph.Partitioner{Strategy: graph.Custom, Select: func() func(*frame.Run, int, []uint16) error {
		return func(r *frame.Run, channels int, out []uint16) error {
			at := r.Hand()
			for i, x := range frame.Values[T](r) {
				*at = i
				c := choose(key(x), channels)
				if c < 0 || c >= channels {
					return badChannel(c, channels)
				}
				out[i] = uint16(c)
			}
			*at = frame.Passed
			return nil
		}
	}}
	return &Stream[T]{s.c.partitioned(p)}
}

// Name sets the operator's name in plans, metrics and errors.
func (s *Stream[T]) Name(name string) *Stream[T] { s.c.name(name); return s }

// Description sets a longer text for the plan.
func (s *Stream[T]) Description(text string) *Stream[T] { s.c.describe(text); return s }

// UID sets the operator's stable identity, unique in the job: savepoints find state by it.
func (s *Stream[T]) UID(uid string) *Stream[T] { s.c.uid(uid); return s }

// UIDHash forces the identity itself: 32 hex digits, from the logs or savepoints of another version.
func (s *Stream[T]) UIDHash(hex string) *Stream[T] { s.c.uidHash(hex); return s }

// Parallelism sets the operator's number of subtasks.
func (s *Stream[T]) Parallelism(n int) *Stream[T] { s.c.parallelism(n); return s }

// MaxParallelism sets the operator's number of key groups, 1 ... 32768.
func (s *Stream[T]) MaxParallelism(n int) *Stream[T] { s.c.maxParallelism(n); return s }

// ForceNonParallel fixes the operator to one subtask.
func (s *Stream[T]) ForceNonParallel() *Stream[T] {
	s.c.configure("the parallelism", func(n *graph.Node) { n.NonParallel, n.Parallelism = true, 1 })
	return s
}

// SlotSharingGroup puts the operator into a group: operators of different groups never share a slot.
func (s *Stream[T]) SlotSharingGroup(group string) *Stream[T] { s.c.slotGroup(group); return s }

// StartNewChain keeps the operator out of its input's task; its followers may join it.
func (s *Stream[T]) StartNewChain() *Stream[T] { s.c.chaining(graph.Head); return s }

// DisableChaining gives the operator a task of its own.
func (s *Stream[T]) DisableChaining() *Stream[T] { s.c.chaining(graph.Never); return s }

// BufferTimeout sets when the operator's elements are sent; see Env.SetBufferTimeout.
func (s *Stream[T]) BufferTimeout(d time.Duration) *Stream[T] { s.c.bufferTimeout(d); return s }
