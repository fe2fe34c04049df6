package pebble

import (
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

// Slot implements statebackend.MapTable.
func (t *mapTable) Slot(i int, k unsafe.Pointer) (slot unsafe.Pointer, fresh bool, err error) {
	if !t.fixed {
		return nil, false, t.errLayout("slot")
	}
	if err := t.enter(int(t.size)); err != nil {
		return nil, false, err
	}
	now := t.now()
	if t.s.TTL != nil && !t.s.TTL.ReturnExpired {
		if err := t.clearExpired(i, k, now); err != nil {
			return nil, false, err
		}
	}
	r, fresh, err := t.write(i, k, int(t.size), now)
	if err != nil {
		return nil, false, err
	}
	r.lent = t.epoch
	return r.address(), fresh, nil
}

// clearExpired removes the entry of map key k if it has expired, so that a slot for it is fresh.
func (t *mapTable) clearExpired(i int, k unsafe.Pointer, now int64) error {
	number, owner, err := t.number(i, k)
	if err != nil || number == 0 {
		return err
	}
	r, err := t.entry(owner, number)
	if err != nil || !t.expired(readTail(r.value()).at, now) {
		return err
	}
	return t.drop(owner, number)
}

// Load implements statebackend.MapTable.
func (t *mapTable) Load(i int, k, v unsafe.Pointer) (bool, error) {
	r, number, owner, err := t.find(i, k)
	if r == nil || err != nil {
		return false, err
	}
	return t.show(r, owner, number, nil, v)
}

// show copies an entry to k and v, either of which may be nil, and does what a read does; false if it has expired.
func (t *mapTable) show(r *row, owner []byte, number uint64, k, v unsafe.Pointer) (bool, error) {
	l, now := readTail(r.value()), t.now()
	gone := t.expired(l.at, now)
	if gone && !t.s.TTL.ReturnExpired {
		return false, t.drop(owner, number)
	}
	if k != nil {
		if err := t.s.MapKey.Decode(mapKey(r.value(), &l), k); err != nil {
			return false, t.unread(err)
		}
	}
	if v != nil {
		if err := t.fetch(mapValue(r.value(), &l), v); err != nil {
			return false, err
		}
	}
	if gone {
		return true, t.drop(owner, number)
	}
	if t.s.TTL != nil && t.s.TTL.OnRead {
		l.at = now
		t.store.cache.touch(r)
		l.write(r.value())
	}
	return true, nil
}

// Save implements statebackend.MapTable.
func (t *mapTable) Save(i int, k, v unsafe.Pointer) error { return t.save(i, k, v, t.now()) }

func (t *mapTable) save(i int, k, v unsafe.Pointer, at int64) error {
	b, n, err := t.bring(v)
	if err != nil {
		return err
	}
	if err := t.enter(n); err != nil {
		return err
	}
	r, _, err := t.write(i, k, n, at)
	if err != nil {
		return err
	}
	copy(r.value()[:n], b)
	return nil
}

// Has implements statebackend.MapTable.
func (t *mapTable) Has(i int, k unsafe.Pointer) (bool, error) {
	r, _, _, err := t.find(i, k)
	return r != nil && err == nil && !t.expired(readTail(r.value()).at, t.now()), err
}

// Remove implements statebackend.MapTable.
func (t *mapTable) Remove(i int, k unsafe.Pointer) (bool, error) {
	r, number, owner, err := t.find(i, k)
	if r == nil || err != nil {
		return false, err
	}
	alive := !t.expired(readTail(r.value()).at, t.now())
	if err := t.drop(owner, number); err != nil {
		return false, err
	}
	return alive, nil
}

// Count implements statebackend.MapTable.
func (t *mapTable) Count(i int) int {
	err := t.enter(0)
	var h mapHead
	if err == nil {
		h, err = t.head(t.compose(t.shape.spaces[0], i))
	}
	t.store.fail(err)
	return int(h.count)
}

// Delete implements statebackend.MapTable.
func (t *mapTable) Delete(i int) error {
	if err := t.enter(0); err != nil {
		return err
	}
	owner := t.ownerOf(i)
	h, err := t.head(owner)
	if err != nil || h.count == 0 {
		return err
	}
	for number := h.first; number != 0; {
		if err := t.store.cache.trim(0); err != nil {
			return err
		}
		l, err := t.dropRows(owner, number)
		if err != nil {
			return err
		}
		number = l.next
	}
	t.endWalks(owner)
	return t.setHead(owner, mapHead{})
}

// Each implements statebackend.MapTable.
func (t *mapTable) Each(i int, k, v unsafe.Pointer, f func() bool) error {
	if err := t.enter(0); err != nil {
		return err
	}
	owner := t.ownerOf(i)
	h, err := t.head(owner)
	if err != nil || h.count == 0 {
		return err
	}
	depth := len(t.walks)
	t.walks = append(t.walks, walk{owner: owner, at: h.first, before: true})
	defer func() { t.walks = t.walks[:depth] }()
	for {
		if err := t.enter(0); err != nil {
			return err
		}
		w := &t.walks[depth]
		if !w.before {
			r, err := t.entry(owner, w.at)
			if err != nil {
				return err
			}
			w.at = readTail(r.value()).next
		}
		if w.at == 0 {
			return nil
		}
		w.before = false
		r, err := t.entry(owner, w.at)
		if err != nil {
			return err
		}
		show, err := t.show(r, owner, w.at, k, v)
		if err != nil {
			return err
		}
		if show && !f() {
			return nil
		}
	}
}

// Range implements statebackend.MapTable.
func (t *mapTable) Range(f func(e *statebackend.Entry) bool) error {
	return t.each(t.shape.spaces[2], func(_, value []byte, e *entry) bool {
		l := readTail(value)
		if t.expired(l.at, e.now) {
			return true
		}
		e.At, e.MapKey, e.bytes = l.at, mapKey(value, &l), mapValue(value, &l)
		return f(&e.Entry)
	})
}
