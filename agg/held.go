package agg

import (
	"cmp"
	"math"
	"reflect"
	"unsafe"
)

// Held is the accumulator of aggregates that hold one of the values they have seen.
type Held[V any] struct {
	Value V    // the value that is held, zero if there is none
	Seen  bool // whether there is a value
}

// Min is the least of what of selects; the zero value of no elements. NaN is greater than any number, and 0 than -0.
func Min[T any, V cmp.Ordered](of func(T) V) Aggregate[T, Held[V], V] {
	c := totalOrder[V]()
	return &holder[T, V]{of, func(old, new V) bool { return c(new, old) < 0 }, true}
}

// Max is the greatest of what of selects; the zero value of no elements. NaN is greater than any number, and 0 than -0.
func Max[T any, V cmp.Ordered](of func(T) V) Aggregate[T, Held[V], V] {
	c := totalOrder[V]()
	return &holder[T, V]{of, func(old, new V) bool { return c(new, old) > 0 }, true}
}

// First is what of selects of the first element; the zero value of no elements.
func First[T, V any](of func(T) V) Aggregate[T, Held[V], V] {
	return &holder[T, V]{of, func(V, V) bool { return false }, false}
}

// Last is what of selects of the last element; the zero value of no elements.
func Last[T, V any](of func(T) V) Aggregate[T, Held[V], V] {
	return &holder[T, V]{of, func(V, V) bool { return true }, false}
}

// holder holds a value until another one replaces it.
type holder[T, V any] struct {
	of        func(T) V
	replaces  func(old, new V) bool
	unordered bool // it is the same one in whatever order they come
}

func (*holder[T, V]) Create() (h Held[V]) { return h }

func (h *holder[T, V]) Add(acc *Held[V], x T) { h.see(acc, h.of(x)) }

func (h *holder[T, V]) see(acc *Held[V], v V) {
	if !acc.Seen || h.replaces(acc.Value, v) {
		acc.Value, acc.Seen = v, true
	}
}

func (h *holder[T, V]) Merge(acc, other *Held[V]) {
	if other.Seen {
		h.see(acc, other.Value)
	}
}

// AddColumn and MergeColumn: see columns.go.
func (h *holder[T, V]) AddColumn(accs *Held[V], ids []uint32, xs []T) {
	xs = xs[:len(ids)]
	for i, id := range ids {
		h.see(cell(accs, id), h.of(xs[i]))
	}
}

func (h *holder[T, V]) MergeColumn(accs, other *Held[V], into, from []uint32) {
	from = from[:len(into)]
	for i, id := range into {
		if o := cell(other, from[i]); o.Seen {
			h.see(cell(accs, id), o.Value)
		}
	}
}

func (*holder[T, V]) Result(acc *Held[V]) V { return acc.Value }
func (*holder[T, V]) Regroupable() bool     { return true }
func (h *holder[T, V]) Commutative() bool   { return h.unordered }

// compare is a total order up to the sign of zero: NaN is equal to NaN and greater than any number, as in Flink.
func compare[V cmp.Ordered](a, b V) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	switch aNaN, bNaN := a != a, b != b; {
	case aNaN && bNaN:
		return 0
	case aNaN:
		return 1
	}
	return -1
}

// totalOrder is compare, and -0 before 0, as in Flink: what is least does not depend on which comes first.
func totalOrder[V cmp.Ordered]() func(a, b V) int {
	switch reflect.TypeFor[V]().Kind() {
	case reflect.Float32:
		return func(a, b V) int {
			return compareZeros(a, b, func(v *V) float64 { return float64(*(*float32)(unsafe.Pointer(v))) })
		}
	case reflect.Float64:
		return func(a, b V) int {
			return compareZeros(a, b, func(v *V) float64 { return *(*float64)(unsafe.Pointer(v)) })
		}
	}
	return compare[V]
}

func compareZeros[V cmp.Ordered](a, b V, number func(*V) float64) int {
	c := compare(a, b)
	if zero := *new(V); c == 0 && a == zero {
		switch x, y := math.Signbit(number(&a)), math.Signbit(number(&b)); {
		case x && !y:
			return -1
		case y && !x:
			return 1
		}
	}
	return c
}
