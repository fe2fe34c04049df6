package stream

import (
	"cmp"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/fields"
	"github.com/flott-dev/flott/internal/operator/keyed"
)

// Fold emits, for each element, the result of folding the elements of its key so far, this one included: f(f(init, x1),
// x2) ... Each key begins with a copy of init of its own; f may change what it gets and return it.
func (s *KeyedStream[T, K]) Fold[R any](init R, f func(acc R, x T) R) *Stream[R] {
	in, out, key := s.c.typ, typeOf[R](s.c.env), s.key
	return &Stream[R]{s.c.applyKeyed("Fold", key, out, func() operator.Operator { return keyed.Rolling(in, out, key, init, f) })}
}

// Aggregate emits, for each element, its key with the aggregate of the key's elements so far, this one included.
func (s *KeyedStream[T, K]) Aggregate[A, R any](a agg.Aggregate[T, A, R]) *Stream[KeyValue[K, R]] {
	in, out, key := s.c.typ, typeOf[KeyValue[K, R]](s.c.env), s.key
	acc := typeOf[A](s.c.env).Handle
	return &Stream[KeyValue[K, R]]{s.c.applyKeyed("Aggregate", key, out, func() operator.Operator {
		return keyed.Aggregate[T, K](in, out, acc, key, a)
	})}
}

// MinBy emits, for each element, the element of its key with the smallest sel so far. tie says which one of equals,
// KeepFirst unless given. A NaN is greater than every number.
func (s *KeyedStream[T, K]) MinBy[V cmp.Ordered](sel func(T) V, tie ...Tie) *Stream[T] {
	return s.chooseBy("Min By", sel, -1, tie)
}

// MaxBy is MinBy for the largest.
func (s *KeyedStream[T, K]) MaxBy[V cmp.Ordered](sel func(T) V, tie ...Tie) *Stream[T] {
	return s.chooseBy("Max By", sel, 1, tie)
}

func (s *KeyedStream[T, K]) chooseBy[V cmp.Ordered](name string, sel func(T) V, sign int, tie []Tie) *Stream[T] {
	typ, key, last := s.c.typ, s.key, s.c.tie(tie) == KeepLast
	choose := func(acc, x *T) {
		if d := fields.Compare(sel(*x), sel(*acc)); d == sign || last && d == 0 {
			*acc = *x
		}
	}
	return &Stream[T]{s.c.applyKeyed(name, key, typ, func() operator.Operator { return keyed.Reduce(typ, key, choose) })}
}
