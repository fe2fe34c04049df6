package state

import (
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Value is one value per key.
type Value[V any] struct {
	run   *CurrentRun
	ahead *statebackend.Lookahead
	cell  *Cell

	inPlace bool // the slot holds the Go value itself and nothing has to be known of accesses
	hasInit bool
	init    V
	buf     V // values on their way to and from the table: a local one would be allocated at each access
	changed V // the same for Update, whose function may call Get
}

// NewValue declares a value per key. The name is unique in its operator and lives on in snapshots. Mistakes (a type that
// can't be encoded, a name declared before with another type) fail the task before its first element.
func NewValue[V any](b Binder, name string, opts ...Option) *Value[V] {
	spec, d, ok := declare[V](b, name, opts)
	if !ok {
		return newValue[V](NewUnkeyedCell(name, new(CurrentRun)), false)
	}
	v := newValue[V](b.BindTable(spec), spec.Value.Layout == serde.Fixed && spec.TTL == nil)
	v.init, v.hasInit = initial[V](b, name, &d)
	return v
}

func newValue[V any](c *Cell, inPlace bool) *Value[V] {
	return &Value[V]{run: c.Run, ahead: c.ahead, cell: c, inPlace: inPlace}
}

// peek gives the slot of the key at hand if the table has looked it up ahead, else nil.
func (v *Value[V]) peek() *V {
	if i := uint(v.run.Index); i < uint(len(v.ahead.Slots)) {
		return (*V)(v.ahead.Slots[i])
	}
	return nil
}

// Get gives the value of the key at hand, or the default if it has none. The value is the caller's.
func (v *Value[V]) Get() V {
	if p := v.peek(); p != nil {
		return *p
	}
	x, ok := v.lookup()
	if !ok {
		return v.init
	}
	return x
}

// Lookup gives the value of the key at hand and says whether it has one. The value is the caller's.
func (v *Value[V]) Lookup() (x V, ok bool) {
	if p := v.peek(); p != nil {
		return *p, true
	}
	return v.lookup()
}

func (v *Value[V]) lookup() (x V, ok bool) {
	if !v.cell.ready() {
		return x, false
	}
	if v.inPlace {
		if p := (*V)(v.cell.Table.Find(v.run.Index)); p != nil {
			return *p, true
		}
		return x, false
	}
	ok, err := v.cell.Table.Load(v.run.Index, unsafe.Pointer(&v.buf))
	v.cell.Err(err)
	if ok && err == nil {
		v.buf, x = x, v.buf
		return x, true
	}
	return x, false
}

// Set makes x the value of the key at hand. The state keeps a copy.
func (v *Value[V]) Set(x V) {
	if p := v.peek(); p != nil {
		*p = x
		return
	}
	v.set(x)
}

func (v *Value[V]) set(x V) {
	if v.inPlace {
		if p, _ := v.cell.insert(); p != nil {
			*(*V)(p) = x
		}
		return
	}
	if !v.cell.ready() {
		return
	}
	v.buf = x
	v.cell.Err(v.cell.Table.Save(v.run.Index, unsafe.Pointer(&v.buf)))
	var zero V
	v.buf = zero
}

// Update lets f change the value of the key at hand in place; a key without a value gets the default first. f must not
// keep the address and must not use the same state.
func (v *Value[V]) Update(f func(*V)) {
	if p := v.peek(); p != nil {
		f(p)
		return
	}
	v.update(f)
}

func (v *Value[V]) update(f func(*V)) {
	if v.inPlace {
		if p, fresh := v.slot(); p != nil {
			if fresh && v.hasInit {
				*p = v.init
			}
			f(p)
		}
		return
	}
	x, ok := v.lookup()
	if v.run.err != nil {
		return
	}
	if !ok {
		x = v.init
	}
	v.changed = x
	f(&v.changed)
	x = v.changed
	var zero V
	v.changed = zero
	v.set(x)
}

// slot finds or inserts the slot of the key at hand; nil after a failure. Only in place.
func (v *Value[V]) slot() (p *V, fresh bool) {
	q, fresh := v.cell.insert()
	return (*V)(q), fresh
}

// Exists says whether the key at hand has a value.
func (v *Value[V]) Exists() bool {
	if v.peek() != nil {
		return true
	}
	return v.cell.ready() && v.cell.Table.Has(v.run.Index)
}

// Clear removes the value of the key at hand.
func (v *Value[V]) Clear() {
	if v.cell.ready() {
		v.cell.Err(v.cell.Table.Delete(v.run.Index))
	}
}
