package slices

import (
	"math"
	"unsafe"

	"github.com/flott-dev/flott/window"
)

// advance fires the windows whose last ms is at most to, in the order of time, and drops what is not kept any more.
func (o *driver) advance(to int64) error {
	for n := len(o.hidden); n > 0 && o.hidden[n-1].until < to; n = len(o.hidden) {
		if err := o.fireTo(o.hidden[n-1].until); err != nil {
			return err
		}
		if err := o.unhide(); err != nil {
			return err
		}
	}
	return o.fireTo(to)
}

func (o *driver) fireTo(to int64) error {
	fire := o.fireSlices
	if o.cover != nil {
		fire = o.fireWindows
	}
	if err := fire(to); err != nil {
		return err
	}
	o.passed, o.stale = to, true
	if o.clocked { // the clock may go back into it
		o.current = &o.nowhere
	}
	return o.drop()
}

// fireSlices fires windows that are slices.
func (o *driver) fireSlices(to int64) error {
	for _, s := range o.shelf.list {
		last := s.last.MaxTimestamp()
		if last > to {
			return nil
		}
		if !o.clocked && last <= o.passed {
			continue
		}
		o.window = s.last.Time
		for o.cursor.start(); o.cursor.next(&s.column); {
			if s.shadows != nil && o.columns.deep { // making a result may change what is behind pointers
				if err := s.shadows.Keep(o.cursor.at...); err != nil {
					return err
				}
			}
			if err := o.send(o.cursor.ids, s.accs, o.cursor.at); err != nil {
				return err
			}
		}
		if o.lateness > 0 {
			if err := o.columns.pack(&s.column, o.keys.limit); err != nil {
				return err
			}
		}
	}
	return nil
}

// fireWindows fires windows that overlap.
func (o *driver) fireWindows(to int64) error {
	floor, ok := o.floor(o.passed)
	for ok {
		var w span
		if w, ok = nextWindow(&o.shelf, &floor); !ok || w.MaxTimestamp() > to {
			return nil
		}
		if err := o.fire(&w); err != nil {
			return err
		}
		floor, ok = o.grid.next(&w)
	}
	return nil
}

// floor is the first window whose last ms is after a time; false if there is none.
func (o *driver) floor(passed int64) (span, bool) {
	switch {
	case passed >= math.MaxInt64-1:
		return span{}, false
	case passed == math.MinInt64:
		return span{Time: window.Time{Start: math.MinInt64, End: math.MinInt64}}, true
	}
	t, err := o.grid.at(passed + 1)
	return t.first, err == nil
}

// nextWindow is the first window of slices that is floor or after it; false if there is none.
func nextWindow(h *shelf, floor *span) (span, bool) {
	w, ok := span{}, false
	if i := h.from(floor.Start); i < len(h.list) {
		if w, ok = h.list[i].first, true; w.before(floor) {
			return *floor, true
		}
	}
	for _, x := range h.wholes {
		if !x.before(floor) {
			if !ok || x.before(&w) {
				return x.span, true
			}
			break
		}
	}
	return w, ok
}

// fire makes the cover that of a window, which is after all that fired, and emits its results.
func (o *driver) fire(w *span) error {
	i, covered := o.covers()
	for ; i < covered && o.shelf.list[i].lo < w.Start; i++ {
		if err := o.evict(i); err != nil {
			return err
		}
	}
	o.from = w.Start
	for i = max(covered, o.shelf.from(w.Start)); i < len(o.shelf.list) && w.covers(o.shelf.list[i].lo); i++ {
		s := o.shelf.list[i]
		if err := o.columns.pack(&s.column, o.keys.limit); err != nil {
			return err
		}
		if err := o.cover.add(s); err != nil {
			return err
		}
	}
	o.covered, o.covering, o.window = *w, true, w.Time
	if x := o.shelf.wholeOf(w); x != nil {
		return o.emitWith(x, w)
	}
	if err := o.cover.emit(); err != nil {
		return err
	}
	if o.tangles != nil {
		return o.tangles.emit(w)
	}
	return nil
}

// covers is the range of the shelf whose slices are in the cover.
func (o *driver) covers() (from, to int) {
	if !o.covering {
		return 0, 0
	}
	from = o.shelf.from(o.from)
	if o.covered.open {
		return from, len(o.shelf.list)
	}
	return from, max(from, o.shelf.from(o.covered.End))
}

// evict takes the slice at place i of the shelf, the oldest one, out of the cover.
func (o *driver) evict(i int) error {
	err := o.cover.evict(i)
	o.from = o.shelf.list[i].lo + 1
	return err
}

// drop drops the slices all of whose windows are gone.
func (o *driver) drop() error {
	o.dropWholes()
	n := 0
	for ; n < len(o.shelf.list) && o.gone(&o.shelf.list[n].last); n++ {
		s := o.shelf.list[n]
		if o.covering && s.lo >= o.from && o.covered.covers(s.lo) {
			if err := o.evict(n); err != nil {
				return err
			}
		}
		o.remember(&s.column)
		o.columns.free(&s.column)
		o.columns.free(&s.rest)
	}
	if n == 0 {
		return nil
	}
	o.current = &o.nowhere
	upTo := o.shelf.list[n-1].lo
	o.shelf.shift(n)
	o.drops += n
	if o.tangles != nil {
		if err := o.tangles.forget(upTo); err != nil {
			return err
		}
	}
	o.needSweep()
	return nil
}

// send emits the results of accumulators at[i] of accs with the keys ids[i], for the window that fires.
func (o *driver) send(ids []uint32, accs unsafe.Pointer, at []uint32) error {
	if o.base != nil {
		return o.sendWith(ids, accs, at)
	}
	for len(ids) > 0 {
		out := o.emitter.Column
		if out.Len() != 0 && out.Room() < len(ids) { // an empty frame is filled faster
			if err := o.emitter.Flush(); err != nil {
				return err
			}
		}
		n := min(len(ids), out.Room())
		o.k.EmitColumn(out, o.keys.keys, unsafe.Pointer(&o.window), accs, ids[:n], at[:n], o.window.MaxTimestamp())
		ids, at = ids[n:], at[n:]
	}
	return nil
}

// sendOne emits one result.
func (o *driver) sendOne(id uint32, w *span, acc unsafe.Pointer) error {
	out := o.emitter.Column
	if out.Room() == 0 {
		if err := o.emitter.Flush(); err != nil {
			return err
		}
	}
	o.window = w.Time
	o.k.Emit(out, o.keys.at(id), unsafe.Pointer(&o.window), acc, w.MaxTimestamp())
	return nil
}
