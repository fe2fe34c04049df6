package state

import (
	"iter"
	"unsafe"
)

// List is a list per key.
type List[V any] struct {
	cell *Cell
	buf  V // see Value
}

// NewList declares a list per key; see NewValue.
func NewList[V any](b Binder, name string, opts ...Option) *List[V] {
	spec, _, ok := declare[V](b, name, opts)
	if !ok {
		return &List[V]{cell: NewUnkeyedCell(name, new(CurrentRun))}
	}
	spec.List = true
	return &List[V]{cell: b.BindTable(spec)}
}

// Add appends x to the list of the key at hand. The state keeps a copy.
func (l *List[V]) Add(x V) {
	if l.cell.ready() {
		l.add(x)
	}
}

func (l *List[V]) add(x V) {
	l.buf = x
	l.cell.Err(l.cell.List.Append(l.cell.Run.Index, unsafe.Pointer(&l.buf)))
	var zero V
	l.buf = zero
}

// AddAll appends all of xs.
func (l *List[V]) AddAll(xs []V) {
	if !l.cell.ready() {
		return
	}
	for _, x := range xs {
		l.add(x)
	}
}

// Set replaces the list by a copy of xs; an empty xs clears it.
func (l *List[V]) Set(xs []V) {
	l.Clear()
	l.AddAll(xs)
}

// Get gives all elements in order, nil if there is none. The slice and its elements are the caller's.
func (l *List[V]) Get() []V {
	if !l.cell.ready() {
		return nil
	}
	n := l.cell.List.Count(l.cell.Run.Index)
	if n == 0 {
		return nil
	}
	out := make([]V, 0, n)
	l.each(func(x V) bool {
		out = append(out, x)
		return true
	})
	return out
}

// All iterates over the elements in order. The list must not be changed meanwhile; the task fails if it is.
func (l *List[V]) All() iter.Seq[V] {
	return func(yield func(V) bool) {
		if l.cell.ready() {
			l.each(yield)
		}
	}
}

func (l *List[V]) each(yield func(V) bool) {
	var zero V
	l.cell.Err(l.cell.List.Each(l.cell.Run.Index, unsafe.Pointer(&l.buf), func() bool {
		x := l.buf
		l.buf = zero
		return yield(x)
	}))
}

// Len is the number of elements.
func (l *List[V]) Len() int {
	if !l.cell.ready() {
		return 0
	}
	return l.cell.List.Count(l.cell.Run.Index)
}

// Exists says whether the list has an element.
func (l *List[V]) Exists() bool {
	return l.cell.ready() && l.cell.List.Has(l.cell.Run.Index)
}

// Clear removes all elements.
func (l *List[V]) Clear() {
	if l.cell.ready() {
		l.cell.Err(l.cell.List.Delete(l.cell.Run.Index))
	}
}
