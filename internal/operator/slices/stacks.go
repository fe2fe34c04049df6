package slices

import (
	"math"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/watermark"
)

// stacks is the cover of accumulators that can't be taken back: two stacks of slices. Of the younger half one accumulator per
// id is kept, to which slices are added as they come. Of the older half each slice has, for the ids that it holds, those of
// the slices younger than it (slice.rest), so that the half is one accumulator per id when the oldest slice is gone, too.
// When the older half is used up, the younger one becomes the older: so each accumulator of a slice is merged twice.
type stacks struct {
	*sums
	o *driver
	// old and young are the halves, by id. Slices that start at split or later are in the younger.
	old, young column
	split      int64
	words      []uint64
	result     unsafe.Pointer // a batch of accumulators of both halves
}

func newStacks(o *driver, s *sums) *stacks {
	return &stacks{sums: s, o: o, split: math.MinInt64, result: s.k.Accs.New(batch + 64)}
}

func (t *stacks) open() error {
	if err := t.reach(&t.old, t.o.keys.limit); err != nil {
		return err
	}
	return t.reach(&t.young, t.o.keys.limit)
}

func (t *stacks) add(s *slice) error {
	if err := t.open(); err != nil {
		return err
	}
	for t.cursor.start(); t.cursor.next(&s.column); {
		if err := t.merge(&t.young, s); err != nil {
			return err
		}
	}
	return nil
}

func (t *stacks) evict(i int) error {
	s := t.o.shelf.list[i]
	if s.lo >= t.split {
		if err := t.flip(i); err != nil {
			return err
		}
	}
	for t.cursor.start(); t.cursor.next(&s.column); {
		ids, at := t.cursor.ids, t.cursor.at
		t.move(t.old.accs, ids, s.rest.accs, at) // a rest that is not there is zero
		bits, rests := t.old.bits, s.rest.bits
		for j, id := range ids {
			gone := ^rests[at[j]>>6] >> (at[j] & 63) & 1
			bits[id>>6] &^= gone << (id & 63)
		}
	}
	t.free(&s.rest)
	return nil
}

// flip makes the younger half, which begins at place i of the shelf, the older one, which is empty.
func (t *stacks) flip(i int) error {
	_, to := t.o.covers()
	t.keep = max(t.keep, to-i+maxSpare) // they are used again at the next flip
	for j := to - 1; j >= i; j-- {
		s := t.o.shelf.list[j]
		if err := t.reach(&s.rest, s.room); err != nil {
			return err
		}
		for t.cursor.start(); t.cursor.next(&s.column); {
			if err := t.stack(s); err != nil {
				return err
			}
		}
	}
	t.empty(&t.young)
	t.split = watermark.Add(t.o.shelf.list[to-1].lo, 1)
	return nil
}

// stack puts the cursor's batch of a slice's accumulators in front of the older half.
func (t *stacks) stack(s *slice) error {
	newIDs, newAt, oldIDs, oldAt := t.sort(&t.old)
	old := t.old.accs
	if err := t.copier.column(old, newIDs, s.accs, newAt); err != nil {
		return err
	}
	for _, id := range newIDs {
		t.old.bits[id>>6] |= 1 << (id & 63)
	}
	t.move(s.rest.accs, oldAt, old, oldIDs)
	for _, at := range oldAt {
		s.rest.bits[at>>6] |= 1 << (at & 63)
	}
	if err := t.copier.column(old, oldIDs, s.accs, oldAt); err != nil {
		return err
	}
	return t.copies(old, oldIDs, s.rest.accs, oldAt)
}

func (t *stacks) amend(i int, id uint32, fresh bool, r *frame.Run, e int) error {
	if err := t.open(); err != nil {
		return err
	}
	s := t.o.shelf.list[i]
	if s.lo >= t.split {
		t.plus(&t.young, id, r, e)
		return nil
	}
	if fresh {
		if err := t.enter(i, id); err != nil {
			return err
		}
	}
	from, _ := t.o.covers()
	for _, older := range t.o.shelf.list[from:i] {
		if at, ok := t.find(&older.column, id); ok {
			t.plus(&older.rest, at, r, e)
		}
	}
	t.plus(&t.old, id, r, e)
	return nil
}

// enter gives the slice at place i of the shelf, in the older half, its rest of an id that is new in it.
func (t *stacks) enter(i int, id uint32) error {
	s := t.o.shelf.list[i]
	if err := t.reach(&s.rest, s.room); err != nil {
		return err
	}
	from, _ := t.o.covers()
	nearest, place := &t.old, id // what has the id in the slices younger than s
	for _, older := range t.o.shelf.list[from:i] {
		if at, ok := t.find(&older.column, id); ok {
			nearest, place = &older.rest, at
		}
	}
	if !nearest.has(place) {
		return nil
	}
	at, _ := t.find(&s.column, id)
	s.rest.bits[at>>6] |= 1 << (at & 63)
	m := t.mem
	return t.one(m.At(s.rest.accs, int(at)), m.At(nearest.accs, int(place)))
}

// plus adds element e of r to the accumulator at a place of a dense column.
func (t *stacks) plus(c *column, at uint32, r *frame.Run, e int) {
	t.k.Add(t.mem.At(c.accs, int(at)), !c.has(at), r, e)
	c.bits[at>>6] |= 1 << (at & 63)
}

// has says whether there is an accumulator at a place of a dense column.
func (c *column) has(at uint32) bool { return int(at) < c.room && c.bits[at>>6]>>(at&63)&1 != 0 }

func (t *stacks) emit() error {
	old, young := t.old.bits, t.young.bits
	for t.choose(old, young, false); t.cursor.nextOf(t.words); {
		if err := t.emitBoth(); err != nil {
			return err
		}
	}
	for t.choose(old, young, true); t.cursor.nextOf(t.words); {
		if err := t.o.send(t.cursor.ids, t.old.accs, t.cursor.ids); err != nil {
			return err
		}
	}
	for t.choose(young, old, true); t.cursor.nextOf(t.words); {
		if err := t.o.send(t.cursor.ids, t.young.accs, t.cursor.ids); err != nil {
			return err
		}
	}
	return nil
}

// choose makes the cursor go through the ids of one half that are, or are not, in the other.
func (t *stacks) choose(half, other []uint64, not bool) {
	t.cursor.start()
	t.words = append(t.words[:0], half...)
	for i := range t.words {
		var word uint64
		if i < len(other) {
			word = other[i]
		}
		if not {
			word = ^word
		}
		t.words[i] &= word
	}
}

// emitBoth emits the results of the cursor's batch of ids that are in both halves.
func (t *stacks) emitBoth() error {
	ids := t.cursor.ids
	ramp := t.ramp[:len(ids)]
	if err := t.copier.column(t.result, ramp, t.old.accs, ids); err != nil {
		return err
	}
	if err := t.copies(t.result, ramp, t.young.accs, ids); err != nil {
		return err
	}
	err := t.o.send(ids, t.result, ramp)
	t.mem.Zero(t.result, len(ids))
	return err
}

func (t *stacks) remove(id uint32) error {
	from, to := t.o.covers()
	for _, s := range t.o.shelf.list[from:to] {
		if at, ok := t.find(&s.column, id); ok {
			t.drop(&s.rest, at)
		}
	}
	t.drop(&t.old, id)
	t.drop(&t.young, id)
	return nil
}

// drop removes the accumulator at a place of a dense column, if there is one.
func (t *stacks) drop(c *column, at uint32) {
	if c.has(at) {
		t.mem.Zero(t.mem.At(c.accs, int(at)), 1)
		c.bits[at>>6] &^= 1 << (at & 63)
	}
}

func (t *stacks) adopt(id uint32) error {
	if err := t.open(); err != nil {
		return err
	}
	m := t.mem
	from, to := t.o.covers()
	for i := to - 1; i >= from; i-- {
		s := t.o.shelf.list[i]
		at, ok := t.find(&s.column, id)
		if !ok || s.lo >= t.split {
			continue
		}
		if err := t.reach(&s.rest, s.room); err != nil {
			return err
		}
		there := t.old.has(id)
		if there {
			m.Move(m.At(s.rest.accs, int(at)), m.At(t.old.accs, int(id)), 1)
			s.rest.bits[at>>6] |= 1 << (at & 63)
		}
		t.old.bits[id>>6] |= 1 << (id & 63)
		if err := t.one(m.At(t.old.accs, int(id)), m.At(s.accs, int(at))); err != nil {
			return err
		}
		if there {
			if err := t.mergeOne(m.At(t.old.accs, int(id)), true, m.At(s.rest.accs, int(at))); err != nil {
				return err
			}
		}
	}
	for _, s := range t.o.shelf.list[from:to] {
		if at, ok := t.find(&s.column, id); ok && s.lo >= t.split {
			if err := t.mergeOne(m.At(t.young.accs, int(id)), t.young.has(id), m.At(s.accs, int(at))); err != nil {
				return err
			}
			t.young.bits[id>>6] |= 1 << (id & 63)
		}
	}
	return nil
}

func (t *stacks) clear() {
	from, to := t.o.covers()
	for _, s := range t.o.shelf.list[from:to] {
		t.free(&s.rest)
	}
	t.empty(&t.old)
	t.empty(&t.young)
	t.split = math.MinInt64
}
