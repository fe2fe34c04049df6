package slices

import (
	"fmt"
	"math"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// placeEvents puts the elements of a run into slices by their timestamps, those that follow each other in one slice together.
func (o *driver) placeEvents(r *frame.Run) error {
	if r.N == 0 {
		return nil
	}
	if r.Times == nil {
		return o.errNoTime()
	}
	ids, err := o.keys.of(r)
	if err != nil {
		return err
	}
	for from := 0; from < r.N; {
		s := o.current
		to := from + s.reach(r.Times[from:r.N])
		switch {
		case to == from:
			err = o.seek(r.Times[from])
		case s == &o.outside:
			err = o.reject(r, from, to)
		default:
			err = o.put(s, r, ids[from:to], from)
		}
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// placeNow puts a run into the slice of the task's now.
func (o *driver) placeNow(r *frame.Run) error {
	if r.N == 0 {
		return nil
	}
	ids, err := o.keys.of(r)
	if err != nil {
		return err
	}
	if !o.current.contains(o.RT.Now) {
		if err := o.seek(o.RT.Now); err != nil {
			return err
		}
	}
	if o.current == &o.outside {
		return nil
	}
	return o.put(o.current, r, ids, 0)
}

// reach is how many of the times, from the first on, are in the slice.
func (s *stretch) reach(times []int64) int {
	lo, width := s.lo, s.width
	for i, ts := range times {
		if uint64(ts-lo) >= width {
			return i
		}
	}
	return len(times)
}

func (o *driver) errNoTime() error {
	return fmt.Errorf("put an element into its windows (%s): %w", o.spec.Place, window.ErrNoTimestamp)
}

// seek makes the slice of a time the current one.
func (o *driver) seek(ts int64) error {
	if ts == math.MinInt64 && !o.clocked {
		return o.errNoTime()
	}
	if !o.clocked {
		if s := o.shelf.with(ts); s != nil {
			o.current = s
			return nil
		}
	}
	t, err := o.grid.at(ts)
	if err != nil {
		return err
	}
	if t.gap || !o.clocked && o.gone(&t.last) {
		o.outside = slice{stretch: t}
		o.current = &o.outside
		return nil
	}
	if o.clocked && o.cover != nil && t.first.MaxTimestamp() <= o.passed {
		if err := o.hide(ts); err != nil {
			return err
		}
	}
	if o.current = o.shelf.at(t.lo); o.current == nil {
		return o.begin(t)
	}
	return nil
}

// begin makes a new slice the current one. It gets a place for each key if the one before has, as time goes on as it did;
// others do when there is need.
func (o *driver) begin(t stretch) (err error) {
	limit, last := o.keys.limit, o.last
	if n := len(o.shelf.list); n > 0 {
		last = o.shelf.list[n-1].n
	}
	dense, room := true, limit+limit/8
	if limit > least && last < limit/sparse {
		dense, room = false, last
	}
	o.current, o.stale = &o.nowhere, true
	s := o.shelf.put(t)
	if s.column, err = o.columns.make(room, dense); err == nil {
		o.current = s
	}
	return err
}

// gone says whether a window of event time is not kept any more.
func (o *driver) gone(w *span) bool { return watermark.Add(w.MaxTimestamp(), o.lateness) <= o.passed }

// reject takes the elements [from, to) of a run, which are in no window that is kept.
func (o *driver) reject(r *frame.Run, from, to int) error {
	for i := from; i < to; i++ {
		if watermark.Add(r.Times[i], o.lateness) > o.passed {
			continue // between windows, but not late
		}
		if err := o.late.Reject(r, i); err != nil {
			return err
		}
	}
	return nil
}

// put adds elements that are in one slice, those of r from the given one on; ids are their keys.
func (o *driver) put(s *slice, r *frame.Run, ids []uint32, from int) error {
	for len(ids) > 0 {
		n := len(ids)
		if o.tangles != nil {
			var err error
			if n, err = o.tangles.ordered(ids, s.lo); err != nil {
				return err
			}
		}
		if err := o.putInOrder(s, r, ids[:n], from); err != nil {
			return err
		}
		if n == len(ids) {
			return nil
		}
		if err := o.tangle(s, ids[n], r, from+n); err != nil {
			return err
		}
		ids, from = ids[n+1:], from+n+1
	}
	return nil
}

// putInOrder adds elements in the order of slices, or in whatever order if it does not matter.
func (o *driver) putInOrder(s *slice, r *frame.Run, ids []uint32, from int) error {
	if o.clocked || s.first.MaxTimestamp() > o.passed {
		return o.fold(s, r, ids, from)
	}
	for i, id := range ids {
		if err := o.amend(s, id, r, from+i); err != nil {
			return err
		}
	}
	return nil
}

// fold adds elements to a slice none of whose windows has fired.
func (o *driver) fold(s *slice, r *frame.Run, ids []uint32, from int) error {
	c, limit := &s.column, o.keys.limit
	if few := c.n < limit/sparse; !c.dense || few && c.room < limit {
		if err := o.reshape(c, few); err != nil {
			return err
		}
	}
	if !c.dense {
		return o.foldListed(c, r, ids, from)
	}
	if err := o.columns.grow(c, limit); err != nil {
		return err
	}
	if c.shadows != nil {
		if err := c.shadows.Keep(ids...); err != nil {
			return err
		}
	}
	var fresh []bool
	if c.n < o.keys.used() {
		if err := o.columns.own(c); err != nil {
			return err
		}
		fresh = o.fresh[:len(ids)]
		n := mark(c.bits, ids, fresh)
		if c.n += n; n == 0 {
			fresh = nil
		}
	}
	o.k.AddColumn(c.accs, ids, fresh, r, from)
	return nil
}

// reshape lists a column that few ids are in, and gives others a place for each.
func (o *driver) reshape(c *column, few bool) error {
	switch {
	case !few && !c.dense:
		return o.columns.widen(c, o.keys.limit+o.keys.limit/8)
	case few && c.dense && o.keys.limit > least:
		return o.columns.narrow(c)
	}
	return nil
}

// mark sets the bits of ids, tells which were not set, and counts them.
func mark(bits []uint64, ids []uint32, fresh []bool) int {
	fresh = fresh[:len(ids)]
	n := 0
	for i, id := range ids {
		word := &bits[id>>6]
		set := *word >> (id & 63) & 1
		*word |= 1 << (id & 63)
		fresh[i] = set == 0
		n += int(set)
	}
	return len(ids) - n
}

func (o *driver) foldListed(c *column, r *frame.Run, ids []uint32, from int) (err error) {
	at, fresh := o.at[:len(ids)], o.fresh[:len(ids)]
	for i, id := range ids {
		if at[i], fresh[i], err = o.columns.insert(c, id, o.keys.limit); err != nil {
			return err
		}
	}
	if c.shadows != nil {
		if err := c.shadows.Keep(at...); err != nil {
			return err
		}
	}
	o.k.AddColumn(c.accs, at, fresh, r, from)
	return nil
}
