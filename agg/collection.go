package agg

import (
	"cmp"
	"slices"
)

// Collect makes a slice of all elements in order of arrival. Its accumulator grows with the elements and is encoded at
// every change when it is kept in state: state.List and windows without an aggregate are cheaper for many elements.
func Collect[T any]() Aggregate[T, []T, []T] { return &collect[T]{} }

type collect[T any] struct{}

func (*collect[T]) Create() []T           { return nil }
func (*collect[T]) Add(acc *[]T, x T)     { *acc = append(*acc, x) }
func (*collect[T]) Merge(acc, other *[]T) { *acc = append(*acc, *other...) }
func (*collect[T]) Result(acc *[]T) []T   { return slices.Clip(*acc) }
func (*collect[T]) Regroupable() bool     { return true }

// CountDistinct counts the different values that of selects, exactly. Its accumulator holds them all.
func CountDistinct[T any, K comparable](of func(T) K) Aggregate[T, map[K]struct{}, int64] {
	return &countDistinct[T, K]{of}
}

type countDistinct[T any, K comparable] struct{ of func(T) K }

func (*countDistinct[T, K]) Create() map[K]struct{} { return nil }

func (c *countDistinct[T, K]) Add(acc *map[K]struct{}, x T) {
	if *acc == nil {
		*acc = map[K]struct{}{}
	}
	(*acc)[c.of(x)] = struct{}{}
}

func (c *countDistinct[T, K]) Merge(acc, other *map[K]struct{}) {
	if len(*acc) == 0 {
		*acc = *other
		return
	}
	for k := range *other {
		(*acc)[k] = struct{}{}
	}
}

func (*countDistinct[T, K]) Result(acc *map[K]struct{}) int64 { return int64(len(*acc)) }
func (*countDistinct[T, K]) Regroupable() bool                { return true }
func (*countDistinct[T, K]) Commutative() bool                { return true }

// Ranked is an element of the accumulator of TopN.
type Ranked[T any, V cmp.Ordered] struct {
	Rank    V // what it is ranked by
	Element T // the element
}

// TopN keeps the n elements for which by is greatest, the greatest first; of equals the earlier one is kept and comes
// first. NaN is greater than any number. A negative n means 0.
func TopN[T any, V cmp.Ordered](n int, by func(T) V) Aggregate[T, []Ranked[T, V], []T] {
	return &topN[T, V]{max(n, 0), by}
}

type topN[T any, V cmp.Ordered] struct {
	n  int
	by func(T) V
}

func (*topN[T, V]) Create() []Ranked[T, V] { return nil }

func (t *topN[T, V]) Add(acc *[]Ranked[T, V], x T) { t.insert(acc, Ranked[T, V]{t.by(x), x}) }

func (t *topN[T, V]) insert(acc *[]Ranked[T, V], r Ranked[T, V]) {
	list := *acc
	at, _ := slices.BinarySearchFunc(list, r.Rank, func(e Ranked[T, V], rank V) int {
		if compare(e.Rank, rank) >= 0 {
			return -1 // equals that came before stay before
		}
		return 1
	})
	if at >= t.n {
		return
	}
	if len(list) == t.n {
		list = list[:t.n-1]
	}
	*acc = slices.Insert(list, at, r)
}

func (t *topN[T, V]) Merge(acc, other *[]Ranked[T, V]) {
	for _, r := range *other {
		t.insert(acc, r)
	}
}

func (*topN[T, V]) Result(acc *[]Ranked[T, V]) []T {
	out := make([]T, len(*acc))
	for i, r := range *acc {
		out[i] = r.Element
	}
	return out
}

func (*topN[T, V]) Regroupable() bool { return true }
