package slices

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
)

// amend adds an element to a slice of which a window has fired, and emits the windows that it is late for.
func (o *driver) amend(s *slice, id uint32, r *frame.Run, e int) error {
	at, fresh, err := o.columns.insert(&s.column, id, o.keys.limit)
	if err != nil {
		return err
	}
	if err := s.shadows.Keep(at); err != nil {
		return err
	}
	acc := o.k.Accs.At(s.accs, int(at))
	o.k.Add(acc, fresh, r, e)
	if o.cover == nil {
		return o.sendOne(id, &s.last, acc)
	}
	i := o.shelf.from(s.lo)
	if o.covering && s.lo >= o.from && o.covered.covers(s.lo) {
		if err := o.cover.amend(i, id, fresh, r, e); err != nil {
			return err
		}
	}
	first, last, ok := o.fired(s)
	if !ok {
		return nil
	}
	return o.refire(i, id, &first, &last)
}

// fired are the first and the last of the windows of a slice that have fired and are kept; false if there is none.
func (o *driver) fired(s *slice) (first, last span, ok bool) {
	for w, more := s.first, true; more && !s.last.before(&w) && w.MaxTimestamp() <= o.passed; w, more = o.grid.next(&w) {
		if o.gone(&w) {
			continue
		}
		if !ok {
			first, ok = w, true
		}
		last = w
	}
	return first, last, ok
}

// arm holds the accumulators of ever longer rows of slices, in one direction from a slice.
type arm struct {
	lo   []int64        // of the last slice of each row
	accs unsafe.Pointer // of the rows
	room int
}

// refire emits the windows first ... last of one key, which all cover the slice at place i of the shelf: each is a row of
// slices back from there and a row on from there, and windows share rows.
func (o *driver) refire(i int, id uint32, first, last *span) error {
	list := o.shelf.list
	back, on := &o.arms[0], &o.arms[1]
	from, to := i, i
	for from > 0 && first.covers(list[from-1].lo) {
		from--
	}
	for to+1 < len(list) && last.covers(list[to+1].lo) {
		to++
	}
	if err := o.stretchOut(back, i-from+1); err != nil {
		return err
	}
	if err := o.stretchOut(on, to-i); err != nil {
		return err
	}
	for j := i; j >= from; j-- {
		if err := o.lengthen(back, list[j], id, true); err != nil {
			return err
		}
	}
	for j := i + 1; j <= to; j++ {
		if err := o.lengthen(on, list[j], id, false); err != nil {
			return err
		}
	}
	err := o.emitRows(id, first, last)
	for _, a := range []*arm{back, on} {
		o.k.Accs.Zero(a.accs, len(a.lo))
	}
	return err
}

// stretchOut makes room for n rows.
func (o *driver) stretchOut(a *arm, n int) error {
	a.lo = a.lo[:0]
	if n <= a.room {
		return nil
	}
	room := max(n, 2*a.room)
	if err := o.columns.reserve(int64(room-a.room) * int64(o.k.Accs.Size)); err != nil {
		return err
	}
	a.accs, a.room = o.k.Accs.New(room), room
	return nil
}

// lengthen adds the row that is one slice longer, if the slice holds the id. Going back, the slice comes before the row.
func (o *driver) lengthen(a *arm, s *slice, id uint32, back bool) error {
	at, ok := o.columns.find(&s.column, id)
	if !ok {
		return nil
	}
	m, n := &o.k.Accs, len(a.lo)
	row, held := m.At(a.accs, n), m.At(s.accs, int(at))
	a.lo = append(a.lo, s.lo)
	if n == 0 {
		return o.sums.one(row, held)
	}
	before, after := m.At(a.accs, n-1), held
	if back {
		before, after = after, before
	}
	if err := o.sums.one(row, before); err != nil {
		return err
	}
	return o.sums.mergeOne(row, true, after)
}

// emitRows emits windows by the rows of both arms.
func (o *driver) emitRows(id uint32, first, last *span) error {
	m := &o.k.Accs
	back, on := &o.arms[0], &o.arms[1]
	b, n := len(back.lo), 0 // the rows that the window covers
	for w, more := *first, true; more && !last.before(&w); w, more = o.grid.next(&w) {
		for b > 1 && !w.covers(back.lo[b-1]) {
			b--
		}
		for n < len(on.lo) && w.covers(on.lo[n]) {
			n++
		}
		there, err := o.first(&w, id, o.acc)
		if err != nil {
			return err
		}
		if err := o.sums.mergeOne(o.acc, there, m.At(back.accs, b-1)); err != nil {
			return err
		}
		if n > 0 {
			if err := o.sums.mergeOne(o.acc, true, m.At(on.accs, n-1)); err != nil {
				return err
			}
		}
		if err := o.sendOne(id, &w, o.acc); err != nil {
			return err
		}
		m.Zero(o.acc, 1)
	}
	return nil
}

// tangle adds an element that is out of the order of its key's slices, and emits the windows that it is late for.
func (o *driver) tangle(s *slice, id uint32, r *frame.Run, e int) error {
	x, err := o.tangles.add(id, s, r, e)
	if err != nil || o.clocked {
		return err
	}
	first, last, ok := o.fired(s)
	for w := first; ok && !last.before(&w); w, ok = o.grid.next(&w) {
		if err := o.tangles.emitOne(x, &w); err != nil {
			return err
		}
	}
	return nil
}
