package slices

import (
	"github.com/flott-dev/flott/internal/frame"
)

// totals is the cover of accumulators that can be taken back: one total per id, to which a slice is added when it comes in
// and from which it is taken back when it goes. An id has a result while a slice holds it, whatever its total is.
type totals struct {
	*sums
	o    *driver
	sum  column   // by id
	held []uint32 // by id: the slices of the cover that hold it
}

func (t *totals) open() error {
	if err := t.reach(&t.sum, t.o.keys.limit); err != nil {
		return err
	}
	if n := t.sum.room - len(t.held); n > 0 {
		if err := t.reserve(4 * int64(n)); err != nil {
			return err
		}
		t.held = append(t.held, make([]uint32, n)...)
	}
	return nil
}

func (t *totals) add(s *slice) error {
	if err := t.open(); err != nil {
		return err
	}
	for t.cursor.start(); t.cursor.next(&s.column); {
		if err := t.merge(&t.sum, s); err != nil {
			return err
		}
		held := t.held
		for _, id := range t.cursor.ids {
			held[id]++
		}
	}
	return nil
}

func (t *totals) evict(i int) error {
	s := t.o.shelf.list[i]
	for t.cursor.start(); t.cursor.next(&s.column); {
		ids := t.cursor.ids
		t.k.SubtractColumn(t.sum.accs, s.accs, ids, t.cursor.at)
		held, bits := t.held, t.sum.bits
		for _, id := range ids {
			held[id]--
			if held[id] == 0 {
				bits[id>>6] &^= 1 << (id & 63)
				if !t.k.Plain {
					t.mem.Zero(t.mem.At(t.sum.accs, int(id)), 1)
				}
			}
		}
	}
	return nil
}

func (t *totals) amend(_ int, id uint32, fresh bool, r *frame.Run, e int) error {
	if err := t.open(); err != nil {
		return err
	}
	t.k.Add(t.mem.At(t.sum.accs, int(id)), t.held[id] == 0, r, e)
	if fresh {
		t.held[id]++
		t.sum.bits[id>>6] |= 1 << (id & 63)
	}
	return nil
}

func (t *totals) emit() error {
	for t.cursor.start(); t.cursor.nextOf(t.sum.bits); {
		if err := t.o.send(t.cursor.ids, t.sum.accs, t.cursor.ids); err != nil {
			return err
		}
	}
	return nil
}

func (t *totals) remove(id uint32) error {
	if int(id) >= t.sum.room || t.held[id] == 0 {
		return nil
	}
	t.held[id] = 0
	return t.columns.remove(&t.sum, id, id)
}

func (t *totals) adopt(id uint32) error {
	if err := t.open(); err != nil {
		return err
	}
	from, to := t.o.covers()
	for _, s := range t.o.shelf.list[from:to] {
		at, ok := t.find(&s.column, id)
		if !ok {
			continue
		}
		acc := t.mem.At(t.sum.accs, int(id))
		if err := t.mergeOne(acc, t.held[id] != 0, t.mem.At(s.accs, int(at))); err != nil {
			return err
		}
		t.held[id]++
		t.sum.bits[id>>6] |= 1 << (id & 63)
	}
	return nil
}

func (t *totals) clear() {
	t.empty(&t.sum)
	clear(t.held)
}
