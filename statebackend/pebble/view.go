package pebble

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/flott-dev/flott/statebackend"
)

// view is the dirty rows of a cache at one moment. Taking it takes hold of the segments only: the rows are copied when the
// reader comes to a segment, or before the first change of a row, or before the segment is cleared, whichever is first.
type view struct {
	// Set when it is taken.
	moment uint32 // rows with an older stamp are those of the moment
	owners []*ledger
	budget statebackend.Budget
	copies *atomic.Int64 // of the store: bytes that all its views hold

	mu       sync.Mutex
	segments []taken
	rows     []heldRow
	data     []byte // keys and values
	reserved int64
	over     bool
	sorted   bool
	err      error
	later    []func() // add rows; the reader's
	tracing  bool     // keys that are written to the tree are noted
	written  []string // them
}

// taken is a segment as a view takes hold of it.
type taken struct {
	s    *segment // nil once the view has what it needs of it
	used int      // words at the moment
}

// heldRow is a copied row: its key begins at byte at of the data, its value follows.
type heldRow struct {
	at         int
	klen, vlen int
	live       bool
}

// view takes hold of the dirty rows. It begins another generation.
func (c *cache) view() *view {
	s := c.store
	s.generation++
	v := &view{moment: s.generation, owners: c.owners[:len(c.owners):len(c.owners)], budget: s.Memory, copies: &s.tree.copies}
	for _, g := range c.segments {
		if g == nil || g.dirty == 0 {
			continue
		}
		g.views = append(g.views, pending{v, len(v.segments)})
		v.segments = append(v.segments, taken{g, g.used})
	}
	return v
}

// preserve lets the snapshots that are under way copy a row of a segment that is about to change, and makes it a dirty one.
func (c *cache) preserve(s *segment, r *row) {
	for _, p := range s.views {
		p.v.mu.Lock()
		if p.v.segments[p.place].s != nil {
			p.v.copy(r)
		}
	}
	r.stamp = c.store.generation
	r.state |= dirty
	n := 0
	for _, p := range s.views {
		if p.v.segments[p.place].s != nil {
			s.views[n] = p
			n++
		}
		p.v.mu.Unlock()
	}
	clear(s.views[n:])
	s.views = s.views[:n]
}

// settle lets the snapshots that are under way copy all that they need of a segment.
func (c *cache) settle(s *segment) {
	for _, p := range s.views {
		p.v.mu.Lock()
		p.v.take(p.place)
		p.v.mu.Unlock()
	}
	clear(s.views)
	s.views = s.views[:0]
}

// take copies the rows of a segment. The caller holds the lock.
func (v *view) take(place int) {
	t := v.segments[place]
	if t.s == nil {
		return
	}
	v.segments[place].s = nil
	for at := 0; at < t.used && !v.over; {
		r := t.s.at(at)
		at += r.words()
		v.copy(r)
	}
}

// copy copies a row if it is dirty and has not changed since the moment. The caller holds the lock.
func (v *view) copy(r *row) {
	if int32(r.stamp-v.moment) >= 0 || r.state&(dirty|dead) != dirty || v.over {
		return
	}
	at := len(v.data)
	v.data = append(v.data, r.key()...)
	middle := len(v.data)
	if r.is(live) {
		var err error
		if v.data, err = v.owners[r.owner].pack(v.data, r); err != nil {
			v.fail(err)
			return
		}
	}
	v.rows = append(v.rows, heldRow{at: at, klen: middle - at, vlen: len(v.data) - middle, live: r.is(live)})
	v.account()
}

// account draws what the copies take on the budget. If it refuses, the snapshot fails, and the store goes on.
func (v *view) account() {
	const step = 64 << 10
	if n := int64(cap(v.data)) + int64(cap(v.rows))*32 - v.reserved; n > 0 {
		n = (n + step - 1) / step * step
		if v.budget != nil {
			if err := v.budget.Reserve(n); err != nil {
				v.fail(fmt.Errorf("%w: a snapshot has copied %d bytes of state that changes and needs %d more: give the process more memory: %w",
					statebackend.ErrOutOfMemory, v.reserved, n, err))
				return
			}
		}
		v.reserved += n
		v.copies.Add(n)
	}
}

func (v *view) fail(err error) {
	if v.err == nil {
		v.err = err
	}
	v.drop()
}

// drop lets go of all that is held. The caller holds the lock.
func (v *view) drop() {
	v.over = true
	clear(v.segments)
	v.rows, v.data = nil, nil
	if v.budget != nil && v.reserved > 0 {
		v.budget.Release(v.reserved)
	}
	v.copies.Add(-v.reserved)
	v.reserved = 0
}

// release ends the view.
func (v *view) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drop()
}

// ended says whether the view was released.
func (v *view) ended() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.over
}

// finish copies what was not copied yet.
func (v *view) finish() {
	for place := range v.segments {
		v.mu.Lock()
		v.take(place)
		v.mu.Unlock()
	}
}

// collect copies what was not copied yet and sorts the rows. The reader calls it.
func (v *view) collect() error {
	v.finish()
	for _, add := range v.later {
		add()
	}
	v.later = nil
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err == nil && !v.sorted {
		v.sort()
	}
	return v.err
}

func (v *view) sort() {
	slices.SortFunc(v.rows, func(a, b heldRow) int { return bytes.Compare(v.key(a), v.key(b)) })
	v.sorted = true
}

func (v *view) key(h heldRow) []byte   { return v.data[h.at : h.at+h.klen : h.at+h.klen] }
func (v *view) value(h heldRow) []byte { return v.data[h.at+h.klen : h.at+h.klen+h.vlen] }

// between gives the rows with keys from from and before to of a view that was collected.
func (v *view) between(from, to []byte) []heldRow {
	first := sort.Search(len(v.rows), func(i int) bool { return bytes.Compare(v.key(v.rows[i]), from) >= 0 })
	last := sort.Search(len(v.rows), func(i int) bool { return bytes.Compare(v.key(v.rows[i]), to) >= 0 })
	return v.rows[first:last]
}
