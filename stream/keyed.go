package stream

import (
	"reflect"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/keyed"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// KeyValue is a value of a key: what rolling aggregates emit.
type KeyValue[K, V any] = process.KeyValue[K, V]

// Number is what can be added up.
type Number = keyed.Number

// KeyedStream is a stream whose elements of one key go to one subtask, in order; its operators have state per key.
type KeyedStream[T, K any] struct {
	c   *core
	key *operator.Key
}

// KeyBy partitions the stream by key. Keys are compared by value in an encoding that is the same in every process: types
// with pointers need MarshalBinary (a build error otherwise), a NaN fails the task, -0.0 is 0.0.
func (s *Stream[T]) KeyBy[K comparable](key func(T) K) *KeyedStream[T, K] {
	return keyBy[T, K](s.c, extractor(key))
}

// extractor makes a subtask's function that takes the keys out of a run.
func extractor[T, K any](key func(T) K) func() func(*frame.Run) serde.Column {
	return func() func(*frame.Run) serde.Column {
		buf := make([]K, frame.MaxLen)
		return func(r *frame.Run) serde.Column {
			xs := frame.Values[T](r)
			keys := buf[:len(xs)]
			i := 0
			at := r.Hand()
			for ; i+4 <= len(xs); i += 4 {
				x, k := xs[i:i+4:i+4], keys[i:i+4:i+4]
				*at = i
				k[0] = key(x[0])
				*at = i + 1
				k[1] = key(x[1])
				*at = i + 2
				k[2] = key(x[2])
				*at = i + 3
				k[3] = key(x[3])
			}
			for ; i < len(xs); i++ {
				*at = i
				keys[i] = key(xs[i])
			}
			*at = frame.Passed
			return column(buf, len(xs))
		}
	}
}

// KeyByPtr is KeyBy with a function that takes the element's address, for large elements.
func (s *Stream[T]) KeyByPtr[K comparable](key func(*T) K) *KeyedStream[T, K] {
	return keyBy[T, K](s.c, func() func(*frame.Run) serde.Column {
		buf := make([]K, frame.MaxLen)
		return func(r *frame.Run) serde.Column {
			xs := frame.Values[T](r)
			keys := buf[:len(xs)]
			at := r.Hand()
			for i := range xs {
				*at = i
				keys[i] = key(&xs[i])
			}
			*at = frame.Passed
			return column(buf, len(xs))
		}
	})
}

func column[K any](buf []K, n int) serde.Column {
	return serde.Column{P: unsafe.Pointer(unsafe.SliceData(buf)), N: n, Stride: unsafe.Sizeof(buf[0])}
}

func keyBy[T, K any](c *core, extract func() func(*frame.Run) serde.Column) *KeyedStream[T, K] {
	d, key := c.keyBy(reflect.TypeFor[K](), extract)
	return &KeyedStream[T, K]{c: d, key: key}
}

func (c *core) keyBy(t reflect.Type, extract func() func(*frame.Run) serde.Column) (*core, *operator.Key) {
	k, err := serde.KeyOfType(t, c.env.e.Settings.Serde...)
	if err != nil {
		c.env.report(err)
	}
	key := &operator.Key{Key: k, Extract: extract}
	return c.partitioned(&graph.Partitioner{Strategy: graph.Hash, Key: key}), key
}

// applyKeyed adds a keyed operator.
func (c *core) applyKeyed(name string, key *operator.Key, out *frame.Type, open func() operator.Operator) *core {
	d := c.apply(name, out, open)
	d.keyed(key)
	return d
}

// Reduce combines each element with the result so far of its key and emits the result. The first element of a key is
// emitted as it is.
func (s *KeyedStream[T, K]) Reduce(f func(a, b T) T) *Stream[T] {
	return s.ReducePtr(func(acc, x *T) { *acc = f(*acc, *x) })
}

// ReducePtr is Reduce with a function that changes the result so far in place.
func (s *KeyedStream[T, K]) ReducePtr(f func(acc, x *T)) *Stream[T] {
	typ, key := s.c.typ, s.key
	return &Stream[T]{s.c.applyKeyed("Reduce", key, typ, func() operator.Operator { return keyed.Reduce(typ, key, f) })}
}

// Sum emits, for each element, the running total of sel for its key. Integers wrap around as in Go.
func (s *KeyedStream[T, K]) Sum[N Number](sel func(T) N) *Stream[KeyValue[K, N]] {
	return s.total("Sum", sel, nil)
}

// Count emits, for each element, how many elements its key has had.
func (s *KeyedStream[T, K]) Count[N int64]() *Stream[KeyValue[K, N]] {
	return s.total[N]("Count", nil, nil)
}

// Min emits, for each element, the smallest sel so far of its key.
func (s *KeyedStream[T, K]) Min[N Number](sel func(T) N) *Stream[KeyValue[K, N]] {
	return s.total("Min", sel, func(a, b N) N { return min(a, b) })
}

// Max emits, for each element, the largest sel so far of its key.
func (s *KeyedStream[T, K]) Max[N Number](sel func(T) N) *Stream[KeyValue[K, N]] {
	return s.total("Max", sel, func(a, b N) N { return max(a, b) })
}

func (s *KeyedStream[T, K]) total[N Number](name string, sel func(T) N, fold func(acc, x N) N) *Stream[KeyValue[K, N]] {
	in, out, key := s.c.typ, typeOf[KeyValue[K, N]](s.c.env), s.key
	value := typeOf[N](s.c.env).Handle
	return &Stream[KeyValue[K, N]]{s.c.applyKeyed(name, key, out, func() operator.Operator {
		if fold != nil {
			return keyed.Fold[T, K](in, out, value, key, sel, fold)
		}
		return keyed.Sum[T, K](in, out, value, key, sel)
	})}
}

// Stream is the partitioned stream for operators that need no key: the elements of one key still meet in one subtask.
func (s *KeyedStream[T, K]) Stream() *Stream[T] { return &Stream[T]{s.c} }
