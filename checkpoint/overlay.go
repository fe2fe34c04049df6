package checkpoint

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/flott-dev/flott/statebackend"
)

// overlay is what the changes of one key group say, in the order in which they say it.
type overlay struct {
	cells   []cell
	entries []entry
	byKey   map[uint64]int32 // by the hash of the key: the last cell of the chain
	byEntry map[uint64]int32 // by cell and map key: the last entry of the chain
	seed    maphash.Seed
	kept    [][]byte // payloads of blocks, which keys and values view
	used    int
	filter  []uint64 // bits of the hashes that are there
}

// cell is what the changes say of one key and namespace.
type cell struct {
	hash           uint64
	key, namespace []byte
	number         int
	chain          int32 // another cell of the same hash; -1: none
	first, last    int32 // entries in their order; -1: none
	cleared        bool  // what lies below is no more
	given          bool  // all entries were given
}

// entry is a value, an element of a list or an entry of a map.
type entry struct {
	cell         int
	mapKey       []byte
	value        []byte
	at           int64
	before, next int32 // in the cell
	chain        int32 // another entry of the same hash
	deleted      bool
	moved        bool // it was taken away and put again: not where it was
	given        bool
}

// reset forgets everything.
func (o *overlay) reset() {
	o.cells, o.entries, o.used = o.cells[:0], o.entries[:0], 0
	if o.byKey == nil {
		o.byKey, o.byEntry, o.seed = map[uint64]int32{}, map[uint64]int32{}, maphash.MakeSeed()
		return
	}
	clear(o.byKey)
	clear(o.byEntry)
}

// keep copies a payload, for as long as the overlay is not reset.
func (o *overlay) keep(b []byte) []byte {
	if o.used == len(o.kept) {
		o.kept = append(o.kept, nil)
	}
	o.kept[o.used] = append(o.kept[o.used][:0], b...)
	o.used++
	return o.kept[o.used-1]
}

// filterBits is how many bits of the filter there are for each cell: most keys that nothing is said of are seen by them.
const filterBits = 16

// seal ends the noting: from now on has may be asked.
func (o *overlay) seal() {
	words := 1 << bits.Len(uint(len(o.cells)*filterBits/64))
	o.filter = slices.Grow(o.filter[:0], words)[:words]
	clear(o.filter)
	for i := range o.cells {
		h := o.cells[i].hash
		o.filter[h>>6&uint64(words-1)] |= 1 << (h & 63)
	}
}

// has says whether there may be a cell of a hash; false is sure.
func (o *overlay) has(hash uint64) bool {
	return o.filter[hash>>6&uint64(len(o.filter)-1)]&(1<<(hash&63)) != 0
}

// find gives the cell of a row; nil if there is none.
func (o *overlay) find(row *statebackend.Row) *cell {
	at, ok := o.byKey[row.Hash]
	for ok && at >= 0 {
		c := &o.cells[at]
		if bytes.Equal(c.key, row.Key) && bytes.Equal(c.namespace, row.Namespace) {
			return c
		}
		at = c.chain
	}
	return nil
}

// cell gives the cell of a row, and makes it if there is none. It is valid until the next one is made.
func (o *overlay) cell(row *statebackend.Row) *cell {
	if c := o.find(row); c != nil {
		return c
	}
	c := cell{hash: row.Hash, key: row.Key, namespace: row.Namespace, number: len(o.cells), chain: -1, first: -1, last: -1}
	if at, ok := o.byKey[row.Hash]; ok {
		c.chain = at
	}
	o.byKey[row.Hash] = int32(len(o.cells))
	o.cells = append(o.cells, c)
	return &o.cells[c.number]
}

// drop takes all entries out of the cell.
func (c *cell) drop() { c.first, c.last = -1, -1 }

// set notes the value of a key, in the place of what was noted of it before, however many layers have changed it.
func (o *overlay) set(c *cell, row *statebackend.Row) {
	c.cleared = true
	switch {
	case c.first >= 0:
		e := &o.entries[c.first]
		e.value, e.at, e.deleted = row.Value, row.At, row.Deleted
	case !row.Deleted:
		o.add(c, row)
	}
}

// add appends an entry.
func (o *overlay) add(c *cell, row *statebackend.Row) int32 {
	at := int32(len(o.entries))
	o.entries = append(o.entries, entry{cell: c.number, mapKey: row.MapKey, value: row.Value, at: row.At, chain: -1})
	o.link(c, at)
	return at
}

// link puts an entry at the end of its cell.
func (o *overlay) link(c *cell, at int32) {
	e := &o.entries[at]
	e.before, e.next = c.last, -1
	if c.last >= 0 {
		o.entries[c.last].next = at
	} else {
		c.first = at
	}
	c.last = at
}

// unlink takes an entry out of its cell.
func (o *overlay) unlink(c *cell, at int32) {
	e := &o.entries[at]
	if e.before >= 0 {
		o.entries[e.before].next = e.next
	} else {
		c.first = e.next
	}
	if e.next >= 0 {
		o.entries[e.next].before = e.before
	} else {
		c.last = e.before
	}
}

// place is the hash by which an entry of a map is found.
func (o *overlay) place(c *cell, mapKey []byte) uint64 {
	return maphash.Bytes(o.seed, mapKey) ^ uint64(c.number)*0x9e3779b97f4a7c15
}

// search finds an entry of a map; -1 if there is none.
func (o *overlay) search(c *cell, mapKey []byte) int32 {
	at, ok := o.byEntry[o.place(c, mapKey)]
	if !ok {
		return -1
	}
	for at >= 0 {
		if e := &o.entries[at]; e.cell == c.number && bytes.Equal(e.mapKey, mapKey) {
			return at
		}
		at = o.entries[at].chain
	}
	return -1
}

// lookup gives an entry of a map; nil if there is none.
func (o *overlay) lookup(c *cell, mapKey []byte) *entry {
	if at := o.search(c, mapKey); at >= 0 {
		return &o.entries[at]
	}
	return nil
}

// entry notes what a row says of an entry of a map.
func (o *overlay) entry(c *cell, row *statebackend.Row) {
	at := o.search(c, row.MapKey)
	if at < 0 {
		at = o.add(c, row)
		where := o.place(c, row.MapKey)
		if other, ok := o.byEntry[where]; ok {
			o.entries[at].chain = other
		}
		o.byEntry[where] = at
		o.entries[at].deleted = row.Deleted
		return
	}
	e := &o.entries[at]
	if e.deleted && !row.Deleted {
		e.moved = true
		o.unlink(c, at)
		o.link(c, at)
	}
	e.mapKey, e.value, e.at, e.deleted = row.MapKey, row.Value, row.At, row.Deleted
}

// forget makes the entries of a map ones that are there no more.
func (o *overlay) forget(c *cell) {
	for at := c.first; at >= 0; at = o.entries[at].next {
		o.entries[at].cell = -1
	}
}
