package state

import (
	"fmt"
	"iter"
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

// Map is a map per key. Its entries are single rows of the backend: an access costs the same however many there are.
type Map[K comparable, V any] struct {
	cell    *Cell
	inPlace bool
	key     K // see Value
	buf     V
	changed V
}

// NewMap declares a map per key; see NewValue. K must be usable as a key of a stream (see serde.KeyOf).
func NewMap[K comparable, V any](b Binder, name string, opts ...Option) *Map[K, V] {
	spec, d, ok := declare[V](b, name, opts)
	if ok {
		k, err := serde.KeyOf[K](d.key...)
		if err != nil {
			b.Report(fmt.Errorf("state %q: map key: %w", name, err))
			ok = false
		}
		spec.MapKey = k
	}
	if !ok {
		return &Map[K, V]{cell: NewUnkeyedCell(name, new(CurrentRun))}
	}
	return &Map[K, V]{cell: b.BindTable(spec), inPlace: spec.Value.Layout == serde.Fixed && spec.TTL == nil}
}

// Get gives the value of k in the map of the key at hand, or the zero value. The value is the caller's.
func (m *Map[K, V]) Get(k K) V {
	x, _ := m.Lookup(k)
	return x
}

// Lookup gives the value of k and says whether there is one. The value is the caller's.
func (m *Map[K, V]) Lookup(k K) (x V, ok bool) {
	if !m.cell.ready() {
		return x, false
	}
	m.key = k
	ok, err := m.cell.Map.Load(m.cell.Run.Index, unsafe.Pointer(&m.key), unsafe.Pointer(&m.buf))
	m.done(err)
	if ok && err == nil {
		m.buf, x = x, m.buf
		return x, true
	}
	return x, false
}

// Put makes x the value of k. The state keeps copies of both.
func (m *Map[K, V]) Put(k K, x V) {
	if !m.cell.ready() {
		return
	}
	m.key, m.buf = k, x
	m.done(m.cell.Map.Save(m.cell.Run.Index, unsafe.Pointer(&m.key), unsafe.Pointer(&m.buf)))
	var zero V
	m.buf = zero
}

// Update lets f change the value of k in place; an entry that isn't there is made with the zero value first. f must not
// keep the address and must not use the same state.
func (m *Map[K, V]) Update(k K, f func(*V)) {
	if !m.cell.ready() {
		return
	}
	if m.inPlace {
		m.key = k
		p, _, err := m.cell.Map.Slot(m.cell.Run.Index, unsafe.Pointer(&m.key))
		m.done(err)
		if err == nil {
			f((*V)(p))
		}
		return
	}
	x, _ := m.Lookup(k)
	if m.cell.Run.err != nil {
		return
	}
	m.changed = x
	f(&m.changed)
	x = m.changed
	var zero V
	m.changed = zero
	m.Put(k, x)
}

// Contains says whether k has a value.
func (m *Map[K, V]) Contains(k K) bool {
	if !m.cell.ready() {
		return false
	}
	m.key = k
	ok, err := m.cell.Map.Has(m.cell.Run.Index, unsafe.Pointer(&m.key))
	m.done(err)
	return ok
}

// Remove removes the entry of k, if there is one.
func (m *Map[K, V]) Remove(k K) {
	if !m.cell.ready() {
		return
	}
	m.key = k
	_, err := m.cell.Map.Remove(m.cell.Run.Index, unsafe.Pointer(&m.key))
	m.done(err)
}

// done ends an access: the handle keeps nothing of the user's key alive.
func (m *Map[K, V]) done(err error) {
	var zero K
	m.key = zero
	m.cell.Err(err)
}

// Len is the number of entries of the map of the key at hand; with a TTL, expired ones count until they are removed.
func (m *Map[K, V]) Len() int {
	if !m.cell.ready() {
		return 0
	}
	return m.cell.Map.Count(m.cell.Run.Index)
}

// All iterates over the entries in the order in which their keys were first put. The map may be changed meanwhile:
// entries removed before their turn are not shown, added ones are.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if !m.cell.ready() {
			return
		}
		var (
			key   K
			value V
			zero  V
		)
		m.cell.Err(m.cell.Map.Each(m.cell.Run.Index, unsafe.Pointer(&key), unsafe.Pointer(&value), func() bool {
			k, v := key, value
			value = zero
			return yield(k, v)
		}))
	}
}

// Keys iterates over the keys in the order of All.
func (m *Map[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		if !m.cell.ready() {
			return
		}
		var key K
		m.cell.Err(m.cell.Map.Each(m.cell.Run.Index, unsafe.Pointer(&key), nil, func() bool { return yield(key) }))
	}
}

// Values iterates over the values in the order of All.
func (m *Map[K, V]) Values() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range m.All() {
			if !yield(v) {
				return
			}
		}
	}
}

// Exists says whether the map of the key at hand has an entry.
func (m *Map[K, V]) Exists() bool { return m.Len() != 0 }

// Clear removes all entries of the map of the key at hand.
func (m *Map[K, V]) Clear() {
	if m.cell.ready() {
		m.cell.Err(m.cell.Map.Delete(m.cell.Run.Index))
	}
}
