package heap

import "slices"

// tracker notes which entries of the pages of an index have changed since the last snapshot that others may build on (the
// base), and which of them were made since. It belongs to the subtask's goroutine until a snapshot of the changes takes it
// over. An index without one pays a test of a pointer per call.
type tracker struct {
	ledger  *ledger
	changed pageBits
	made    pageBits
	gone    *deletions // the keys of what was removed; nil: the index's owner notes them elsewhere
	held    int64      // bytes that are reserved for bitmaps
	lost    bool       // there was no memory to note something: the next snapshot has to be whole
	since   uint64     // the id of the base

	zeroChanged, zeroMade bool       // the entry of key 0, which is in no page of a wordIndex
	lengths               [][]uint32 // by page and entry, of lists: the elements that were there at the base, plus one; 0: unchanged
}

// newTracker begins to track pages of so many entries since a base.
func newTracker(l *ledger, entries int, since uint64, gone *deletions) *tracker {
	return &tracker{ledger: l, changed: newPageBits(entries), made: newPageBits(entries), since: since, gone: gone}
}

// mark notes a change of an entry.
func (t *tracker) mark(page uint32, pos uint64) {
	if !t.changed.has(page, pos) {
		t.set(&t.changed, page, pos)
	}
}

// make notes that an entry was made.
func (t *tracker) make(page uint32, pos uint64) {
	t.mark(page, pos)
	if !t.made.has(page, pos) {
		t.set(&t.made, page, pos)
	}
}

func (t *tracker) set(b *pageBits, page uint32, pos uint64) {
	if t.lost {
		return
	}
	if int(page) >= len(b.pages) || b.pages[page] == b.empty {
		n := int64(b.words)*8 + bitmapBytes
		if t.ledger.reserve(n) != nil {
			t.lost = true
			return
		}
		t.held += n
	}
	b.set(page, pos)
}

// bitmapBytes is what a page's bitmap takes beside its bits.
const bitmapBytes = 16

// forget notes that an entry is gone and says whether it was made since the base.
func (t *tracker) forget(page uint32, pos uint64) (made bool) {
	t.changed.clear(page, pos)
	if int(page) < len(t.lengths) && t.lengths[page] != nil {
		t.lengths[page][pos] = 0
	}
	return t.made.clear(page, pos)
}

// noteLength notes that a list of n elements is about to change.
func (t *tracker) noteLength(page uint32, pos uint64, n uint32) {
	if p := t.length(page, pos); p != nil && *p == 0 {
		*p = n + 1
	}
}

// length is where the length of a list at the base is noted; nil if there was no memory for it.
func (t *tracker) length(page uint32, pos uint64) *uint32 {
	for int(page) >= len(t.lengths) {
		t.lengths = append(t.lengths, nil)
	}
	if t.lengths[page] == nil {
		n := int64(t.changed.words) * 64 * 4
		if t.lost || t.ledger.reserve(n) != nil {
			t.lost = true
			return nil
		}
		t.held += n
		t.lengths[page] = make([]uint32, t.changed.words*64)
	}
	return &t.lengths[page][pos]
}

// lengthAtBase is the number of elements that a changed list had at the base.
func (t *tracker) lengthAtBase(page uint32, pos uint64) uint32 {
	if int(page) < len(t.lengths) && t.lengths[page] != nil {
		return max(t.lengths[page][pos], 1) - 1
	}
	return 0
}

// count is the number of changed entries.
func (t *tracker) count() int { return t.changed.n + one(t.zeroChanged) }

// wasMade says whether an entry was made since the base.
func (t *tracker) wasMade(page uint32, pos uint64) bool { return t.made.has(page, pos) }

// moved notes that an entry has moved in its page.
func (t *tracker) moved(page uint32, from, to uint64) {
	changed := t.changed.clear(page, from)
	if t.made.clear(page, from) {
		t.make(page, to)
	} else if changed {
		t.mark(page, to)
	}
}

// drop gives the memory back.
func (t *tracker) drop() {
	t.ledger.release(t.held)
	t.held = 0
}

// handOver makes what was noted a snapshot's. If more is to be noted for the same base, the snapshot gets a copy.
func (t *tracker) handOver(f *frozen, keep bool) (*tracker, error) {
	if !keep {
		t.ledger.transfer(f, t.held)
		return t, nil
	}
	if err := f.reserve(t.held); err != nil {
		return nil, err
	}
	c := &tracker{changed: t.changed.clone(), made: t.made.clone(), held: t.held}
	c.zeroChanged, c.zeroMade = t.zeroChanged, t.zeroMade
	for _, l := range t.lengths {
		c.lengths = append(c.lengths, slices.Clone(l))
	}
	return c, nil
}
