package slices

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/flott-dev/flott/internal/operator/windows"
)

// none is no id: what stands in a listed column where an id was removed.
const none = windows.NoKey

// column holds the accumulators of some ids. A dense one has a place for every id and a bit for those that are there; a
// listed one has the ids that are there, in the order in which they came, and is for slices that few of all keys are in.
type column struct {
	accs  unsafe.Pointer // zero where there is no accumulator
	room  int            // accumulators that fit
	n     int            // accumulators
	dense bool
	bits  []uint64 // dense: room of them
	ids   []uint32 // listed: by position
	table []uint32 // listed: position+1 by hash of the id; nil until it is looked at

	// shadows are the snapshots that need the accumulators; shared says that they may need bits or ids as well.
	shadows windows.Shadows
	shared  bool
}

// columns makes columns, sees to it that snapshots have what is in them, and keeps the memory of some that are gone.
type columns struct {
	ledger
	accs  *windows.Memory
	deep  bool // accumulators are copied by their encoding only
	spare []column
	keep  int // spare columns that are kept
}

const (
	maxSpare = 8
	// least is the room of the smallest column.
	least = 64
	// sparse is the part of all ids, 1 in so many, up to which a column is listed.
	sparse = 8
)

func (m *columns) bytes(c *column) int64 {
	return int64(c.room)*int64(m.accs.Size) + 8*int64(cap(c.bits)) + 4*int64(cap(c.ids)) + 4*int64(cap(c.table))
}

// roomFor is the room of a column for n ids: some more, and few different ones, so that memory can be used again.
func roomFor(n int) int {
	if n <= least {
		return least
	}
	step := 1 << max(6, bits.Len(uint(n-1))-4)
	return (n + step - 1) &^ (step - 1)
}

// make gives an empty column with room for n ids.
func (m *columns) make(n int, dense bool) (c column, err error) {
	want := roomFor(n)
	for i := range m.spare {
		if s := &m.spare[i]; s.dense == dense && s.room >= want && s.room <= 2*want {
			c = *s
			m.spare[i] = m.spare[len(m.spare)-1]
			m.spare = m.spare[:len(m.spare)-1]
			return c, nil
		}
	}
	size := int64(want) * (int64(m.accs.Size) + 4)
	if dense {
		size = int64(want)*int64(m.accs.Size) + int64(want)/8
	}
	if err = m.reserve(size); err != nil && len(m.spare) > 0 { // of other sizes
		m.forgetSpare()
		err = m.reserve(size)
	}
	if err != nil {
		return c, err
	}
	c = column{accs: m.accs.New(want), room: want, dense: dense}
	if dense {
		c.bits = make([]uint64, want/64)
	} else {
		c.ids = make([]uint32, 0, want)
	}
	return c, nil
}

// free takes a column back, emptied, or leaves it to the snapshots that need it.
func (m *columns) free(c *column) {
	if c.room == 0 || m.lend(c) {
		return
	}
	if len(m.spare) >= max(m.keep, maxSpare) {
		m.release(m.bytes(&m.spare[0]))
		m.spare = append(m.spare[:0], m.spare[1:]...)
	}
	m.empty(c)
	m.spare = append(m.spare, *c)
	*c = column{}
}

// forgetSpare gives back the memory that is kept.
func (m *columns) forgetSpare() {
	for i := range m.spare {
		m.release(m.bytes(&m.spare[i]))
	}
	clear(m.spare)
	m.spare = m.spare[:0]
}

// empty removes all accumulators.
func (m *columns) empty(c *column) {
	if c.dense {
		m.accs.Zero(c.accs, c.room)
		clear(c.bits)
	} else {
		m.accs.Zero(c.accs, len(c.ids))
		c.ids = c.ids[:0]
		m.release(4 * int64(cap(c.table)))
		c.table = nil
	}
	c.n = 0
}

// drop gives all memory back.
func (m *columns) drop() {
	if m.held != 0 {
		m.release(m.held)
	}
	m.spare = nil
}

// grow makes room for n ids.
func (m *columns) grow(c *column, n int) error {
	if n <= c.room {
		return nil
	}
	bigger, err := m.make(max(n, 2*c.room), c.dense)
	if err != nil {
		return err
	}
	if err := m.leave(c); err != nil {
		return err
	}
	m.accs.Move(bigger.accs, c.accs, c.room)
	copy(bigger.bits, c.bits)
	bigger.ids = append(bigger.ids, c.ids...)
	bigger.n = c.n
	m.free(c)
	*c = bigger
	return nil
}

// widen makes a listed column dense, with room for limit ids.
func (m *columns) widen(c *column, limit int) error {
	wide, err := m.make(limit, true)
	if err == nil {
		err = m.leave(c)
	}
	if err != nil {
		return err
	}
	for i, id := range c.ids {
		if id != none {
			m.accs.Move(m.accs.At(wide.accs, int(id)), m.accs.At(c.accs, i), 1)
			wide.bits[id>>6] |= 1 << (id & 63)
		}
	}
	wide.n = c.n
	m.free(c)
	*c = wide
	return nil
}

// pack makes a dense column that is not half full a listed one, if there are many ids.
func (m *columns) pack(c *column, limit int) error {
	if !c.dense || limit <= least || c.n >= c.room/2 {
		return nil
	}
	return m.narrow(c)
}

// narrow makes a dense column a listed one.
func (m *columns) narrow(c *column) error {
	listed, err := m.make(c.n, false)
	if err == nil {
		err = m.leave(c)
	}
	if err != nil {
		return err
	}
	for w, word := range c.bits {
		for ; word != 0; word &= word - 1 {
			id := w<<6 + bits.TrailingZeros64(word)
			m.accs.Move(m.accs.At(listed.accs, len(listed.ids)), m.accs.At(c.accs, id), 1)
			listed.ids = append(listed.ids, uint32(id))
		}
	}
	listed.n = c.n
	m.free(c)
	*c = listed
	return nil
}

// find is the place of the accumulator of an id.
func (m *columns) find(c *column, id uint32) (at uint32, ok bool) {
	if c.dense {
		return id, int(id) < c.room && c.bits[id>>6]>>(id&63)&1 != 0
	}
	if len(c.ids) == 0 {
		return 0, false
	}
	if c.table == nil && m.index(c) != nil { // no memory is left: whoever needs more fails
		i := slices.Index(c.ids, id)
		return uint32(max(i, 0)), i >= 0
	}
	for h := slotOf(id, c.table); ; h = (h + 1) & uint32(len(c.table)-1) {
		switch p := c.table[h]; {
		case p == 0:
			return 0, false
		case c.ids[p-1] == id:
			return p - 1, true
		}
	}
}

func slotOf(id uint32, table []uint32) uint32 {
	return uint32(uint64(id)*0x9e3779b97f4a7c15>>32) & uint32(len(table)-1)
}

// index makes the hash table of a listed column.
func (m *columns) index(c *column) error {
	size := 1 << bits.Len(uint(2*c.room-1))
	if err := m.reserve(4 * int64(size)); err != nil {
		return err
	}
	c.table = make([]uint32, size)
	for i, id := range c.ids {
		if id != none {
			enter(c.table, id, uint32(i))
		}
	}
	return nil
}

func enter(table []uint32, id, at uint32) {
	h := slotOf(id, table)
	for table[h] != 0 {
		h = (h + 1) & uint32(len(table)-1)
	}
	table[h] = at + 1
}

// insert finds or makes the place of an id; fresh says that it was made. limit is more than any id.
func (m *columns) insert(c *column, id uint32, limit int) (at uint32, fresh bool, err error) {
	if at, ok := m.find(c, id); ok {
		return at, false, nil
	}
	if c.dense {
		if err := m.grow(c, limit); err != nil {
			return 0, false, err
		}
		if err := m.own(c); err != nil {
			return 0, false, err
		}
		c.bits[id>>6] |= 1 << (id & 63)
		c.n++
		return id, true, nil
	}
	if len(c.ids) == c.room || c.room == 0 {
		if err := m.grow(c, len(c.ids)+1); err != nil {
			return 0, false, err
		}
	}
	if c.table == nil {
		if err := m.index(c); err != nil {
			return 0, false, err
		}
	}
	at = uint32(len(c.ids))
	c.ids = append(c.ids, id)
	enter(c.table, id, at)
	c.n++
	return at, true, nil
}

// remove removes the accumulator of an id.
func (m *columns) remove(c *column, id, at uint32) error {
	if err := c.shadows.Keep(at); err != nil {
		return err
	}
	if err := m.own(c); err != nil {
		return err
	}
	m.accs.Zero(m.accs.At(c.accs, int(at)), 1)
	if c.dense {
		c.bits[id>>6] &^= 1 << (id & 63)
	} else {
		c.ids[at] = none
	}
	c.n--
	return nil
}
