package heap

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

// mapRows makes the rows of a map table of a snapshot. It belongs to the writer.
type mapRows struct {
	rowWriter
	entries *shadow
	keys    keyLayout // of entries
	cells   *cells
	stamp   uintptr
	width   uint8          // bits of a position in a page of entries
	owners  uint8          // bits of a position in a page of owners
	row     unsafe.Pointer // a copy of the entry at hand
	older   []olderEntry   // changed entries that the base has, too, by owner; nil before it was looked for
	line    []uint32       // entries of a map that the base has not, the last one first
}

// olderEntry is a changed entry, as numbers of rows.
type olderEntry struct{ owner, id uint32 }

const olderEntryBytes = 8

// freeze implements keeper.
func (t *mapTable) freeze(f *frozen, how statebackend.Freezing, table *statebackend.FrozenTable) {
	pages := t.pages()
	ch := t.base.take(f, how, &t.ledger, pages[1].changed(), t.Len(), &table.TableInfo, pages...)
	w := &mapRows{stamp: t.stamp, width: t.entries.rows.bits, owners: t.owners.rows.bits}
	w.rowWriter = newRowWriter(f, t.owners.freeze(f, ch), &t.s, ch)
	var only *pageBits
	if ch != nil {
		only = &ch.trackers[1].changed
	}
	w.entries, w.keys = t.entries.freezeRows(f, only), t.entries.freezeKeys()
	w.also = w.entries
	w.cells = t.cells.freeze()
	entry := make([]uint64, w.entries.size/8)
	w.row = unsafe.Pointer(&entry[0])
	if table.Changes = ch != nil; table.Changes {
		table.Rows = w.rows(w.changed)
		return
	}
	table.Rows = w.rows(w.all)
}

// all yields the entries of a map.
func (w *mapRows) all(e unsafe.Pointer, r *statebackend.Row, yield func(*statebackend.Row, error) bool) (bool, error) {
	for id := (*mapHead)(unsafe.Add(e, w.slotOff)).first; id != 0; id = (*mapLinks)(w.row).next {
		w.read(id - 1)
		if more, err := w.show(r, yield); err != nil || !more {
			return more, err
		}
	}
	return true, nil
}

// read copies an entry.
func (w *mapRows) read(id uint32) {
	w.entries.read(int(id>>w.width), int(id&(1<<w.width-1)), w.row)
}

// show yields the entry that was read.
func (w *mapRows) show(r *statebackend.Row, yield func(*statebackend.Row, error) bool) (_ bool, err error) {
	slot := unsafe.Add(w.row, w.keys.slotOff)
	r.MapKey, _ = w.keys.keyBytes(w.row)
	if w.stamp != 0 {
		if r.At = *(*int64)(slot); w.expired(r.At) {
			return w.changes == nil || fade(r, yield), nil
		}
	}
	if r.Value, err = w.encode(w.cells, unsafe.Add(slot, w.stamp)); err != nil {
		return false, err
	}
	return yield(r, nil), nil
}

// changed yields the changed entries of a map: first those that the base has, whose place they take, then the others, which
// are the last ones of the map, in their order.
func (w *mapRows) changed(e unsafe.Pointer, r *statebackend.Row, yield func(*statebackend.Row, error) bool) (bool, error) {
	if w.older == nil {
		if err := w.findOlder(); err != nil {
			return false, err
		}
	}
	page, pos := w.place()
	owner := page<<w.owners | uint32(pos)
	at, _ := slices.BinarySearchFunc(w.older, owner, func(e olderEntry, owner uint32) int { return cmp.Compare(e.owner, owner) })
	for ; at < len(w.older) && w.older[at].owner == owner; at++ {
		w.read(w.older[at].id)
		if more, err := w.show(r, yield); err != nil || !more {
			return more, err
		}
	}
	made := w.changes.trackers[1]
	w.line = w.line[:0]
	for id := (*mapHead)(unsafe.Add(e, w.slotOff)).last; id != 0; id = (*mapLinks)(w.row).prev {
		id--
		if !made.wasMade(id>>w.width, uint64(id&(1<<w.width-1))) {
			break
		}
		w.line = append(w.line, id)
		w.read(id)
	}
	for _, id := range slices.Backward(w.line) {
		w.read(id)
		if more, err := w.show(r, yield); err != nil || !more {
			return more, err
		}
	}
	return true, nil
}

// findOlder looks for the changed entries that the base has.
func (w *mapRows) findOlder() error {
	t := w.changes.trackers[1]
	n := int64(t.changed.n-t.made.n) * olderEntryBytes
	if err := w.reserved(w.frozen.reserve(n)); err != nil {
		return err
	}
	w.changes.trackers[1].held += n // goes with it
	w.older = make([]olderEntry, 0, t.changed.n-t.made.n)
	for _, page := range t.changed.own {
		if int(page) >= len(w.entries.states) {
			continue
		}
		for i := range t.changed.words {
			set := *bitsAt(t.changed.bitmap(int(page)), uint64(i)) &^ *bitsAt(t.made.bitmap(int(page)), uint64(i))
			for ; set != 0; set &= set - 1 {
				id := page<<w.width | uint32(i*64+bits.TrailingZeros64(set))
				w.read(id)
				_, owner := w.keys.keyBytes(w.row)
				w.older = append(w.older, olderEntry{*(*uint32)(unsafe.Pointer(&owner[0])), id})
			}
		}
	}
	slices.SortFunc(w.older, func(a, b olderEntry) int {
		return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.id, b.id))
	})
	return nil
}

// reserved wraps the error of a reservation.
func (w *rowWriter) reserved(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %d bytes are kept for the snapshot and its order needs more: %w",
		statebackend.ErrOutOfMemory, w.frozen.held.Load(), err)
}
