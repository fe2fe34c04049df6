package sessions

import (
	"math"
	"math/bits"
)

const (
	nearBits  = 13 // of a time in ms: the slots of level 0, about 8 s
	farBits   = 9  // of the slots of a level above
	levels    = 6  // above level 0: all 64 bits of a time
	nearSlots = 1 << nearBits
	farSlots  = 1 << farBits
)

// Entries of level 0 are numbers alone, as a slot holds one time. A chunk is a line of the cache.
const (
	nearLen   = 14
	nearPage  = 256
	nearBytes = nearPage * 64
)

type nearChunk struct {
	ids  [nearLen]uint32
	n    uint32
	next uint32 // the chunk after it in the slot or the free list; 0: none
}

// Entries of the levels above know their time.
const (
	farLen   = 15
	farPage  = 64
	farBytes = farPage * 256
)

type farChunk struct {
	n, next uint32
	_       uint64
	entries [farLen]struct {
		at int64
		id uint32
	}
}

// slot is a queue of chunks.
type slot struct{ head, tail uint32 }

type farLevel struct {
	slots [farSlots]slot
	used  [farSlots / 64]uint64
}

const farLevelBytes = farSlots*8 + farSlots/8

// wheel orders entries, a number each, by time. All times are >= base; an entry stands on the level of the highest digit in
// which its time differs from base, in the slot of that digit: the last 13 bits are digit 0, 9 bits each of the others. So a
// slot of level 0 holds one time, a lower level is always before a higher one, and within a level slots are in time order.
// Entries move down, whole slots at a time, when their time comes near: hardly one of a short gap. Once the memory has grown
// to the number of entries nothing is allocated.
type wheel struct {
	near  [nearSlots]slot
	used  [nearSlots / 64]uint64
	words [nearSlots / 64 / 64]uint64 // which of used are not 0
	far   [levels]*farLevel
	base  uint64 // ordered form
	n     int    // entries

	nears    pool[[nearPage]nearChunk]
	fars     pool[[farPage]farChunk]
	ledger   *ledger
	shortage error // of the ledger; memory is taken all the same, so that add need not fail
}

// pool hands out chunks by number, from 1 on.
type pool[P any] struct {
	pages []*P
	free  uint32 // first free chunk
	made  uint32 // chunks ever made
}

// ordered maps times to unsigned numbers in the same order.
func ordered(at int64) uint64 { return uint64(at) ^ 1<<63 }

func unordered(u uint64) int64 { return int64(u ^ 1<<63) }

// add enters id for a time.
func (w *wheel) add(at int64, id uint32) {
	u := ordered(at)
	if u < w.base {
		w.rebase(u)
	}
	w.n++
	w.put(u, id)
}

func (w *wheel) put(u uint64, id uint32) {
	if u^w.base >= nearSlots {
		w.putFar(u, id)
		return
	}
	s := u % nearSlots
	sl := &w.near[s]
	if sl.tail == 0 {
		w.used[s/64] |= 1 << (s % 64)
		w.words[s/4096] |= 1 << (s / 64 % 64)
		sl.head = w.newNear()
		sl.tail = sl.head
	}
	c := w.nearChunk(sl.tail)
	if c.n == nearLen {
		c.next = w.newNear()
		sl.tail = c.next
		c = w.nearChunk(sl.tail)
	}
	c.ids[c.n] = id
	c.n++
}

func (w *wheel) putFar(u uint64, id uint32) {
	l := (bits.Len64(u^w.base) - 1 - nearBits) / farBits
	lv := w.far[l]
	if lv == nil {
		w.reserve(farLevelBytes)
		lv = &farLevel{}
		w.far[l] = lv
	}
	s := u >> shift(l) % farSlots
	sl := &lv.slots[s]
	if sl.tail == 0 {
		lv.used[s/64] |= 1 << (s % 64)
		sl.head = w.newFar()
		sl.tail = sl.head
	}
	c := w.farChunk(sl.tail)
	if c.n == farLen {
		c.next = w.newFar()
		sl.tail = c.next
		c = w.farChunk(sl.tail)
	}
	e := &c.entries[c.n]
	e.at, e.id = unordered(u), id
	c.n++
}

// shift is where the digit of a level above level 0 begins.
func shift(l int) int { return nearBits + farBits*l }

// nearest is the earliest time on level 0 that is not before from, a time >= base; ok is false if there is none.
func (w *wheel) nearest(from uint64) (u uint64, ok bool) {
	start := w.base &^ (nearSlots - 1)
	s := from - start
	if s >= nearSlots {
		return 0, false
	}
	j := s / 64
	if word := w.used[j] >> (s % 64) << (s % 64); word != 0 {
		return start + 64*j + uint64(bits.TrailingZeros64(word)), true
	}
	for j++; j < nearSlots/64; j = j&^63 + 64 {
		if word := w.words[j/64] >> (j % 64) << (j % 64); word != 0 {
			j = j&^63 + uint64(bits.TrailingZeros64(word))
			return start + 64*j + uint64(bits.TrailingZeros64(w.used[j])), true
		}
	}
	return 0, false
}

// firstFar is the earliest slot above level 0; ok is false if there is none.
func (w *wheel) firstFar() (l, s int, ok bool) {
	for l, lv := range w.far {
		if lv == nil {
			continue
		}
		for i, word := range lv.used {
			if word != 0 {
				return l, 64*i + bits.TrailingZeros64(word), true
			}
		}
	}
	return 0, 0, false
}

// start is the earliest time that a slot above level 0 can hold.
func (w *wheel) start(l, s int) uint64 {
	n := shift(l)
	return w.base>>n>>farBits<<farBits<<n | uint64(s)<<n
}

// bound is a time that no entry is before; ok is false if there is none.
func (w *wheel) bound() (at int64, ok bool) {
	if u, ok := w.nearest(w.base); ok {
		return unordered(u), true
	}
	l, s, ok := w.firstFar()
	return unordered(w.start(l, s)), ok
}

// pop takes out entries of one time, the earliest, if that is <= upTo; none: nil. The caller frees the chunk.
func (w *wheel) pop(upTo int64) (at int64, name uint32, c *nearChunk) {
	for {
		u, ok := w.nearest(w.base)
		if !ok {
			if !w.lower(ordered(upTo)) {
				return 0, 0, nil
			}
			continue
		}
		if u > ordered(upTo) {
			return 0, 0, nil
		}
		w.base = u
		sl := &w.near[u%nearSlots]
		name = sl.head
		c = w.nearChunk(name)
		if name == sl.tail {
			w.take(u % nearSlots)
		} else {
			sl.head = c.next
		}
		w.n -= int(c.n)
		return unordered(u), name, c
	}
}

// lower moves base into the first slot above level 0, and its entries down; false if that begins after upTo.
func (w *wheel) lower(upTo uint64) bool {
	l, s, ok := w.firstFar()
	if !ok || w.start(l, s) > upTo {
		return false
	}
	sl := w.takeFar(l, uint64(s))
	earliest := int64(math.MaxInt64)
	for id := sl.head; id != 0; {
		c := w.farChunk(id)
		for i := range c.n {
			earliest = min(earliest, c.entries[i].at)
		}
		id = c.next
	}
	w.base = min(ordered(earliest), upTo)
	w.again(sl)
	return true
}

// again puts the entries of a slot above level 0 that was taken in their places.
func (w *wheel) again(sl slot) {
	for name := sl.head; name != 0; {
		c := w.farChunk(name)
		for i := range c.n {
			e := &c.entries[i]
			w.put(ordered(e.at), e.id)
		}
		next := c.next
		c.next = w.fars.free
		w.fars.free = name
		name = next
	}
}

// rebase moves base back: a clock of processing time was set back.
func (w *wheel) rebase(base uint64) {
	type near struct {
		at  uint64
		ids []uint32
	}
	var nears []near
	for u, ok := w.nearest(w.base); ok; u, ok = w.nearest(w.base) {
		sl := w.take(u % nearSlots)
		for name := sl.head; name != 0; {
			c := w.nearChunk(name)
			nears = append(nears, near{u, append([]uint32(nil), c.ids[:c.n]...)})
			next := c.next
			w.freeNear(name, c)
			name = next
		}
	}
	var fars []slot
	for l, s, ok := w.firstFar(); ok; l, s, ok = w.firstFar() {
		fars = append(fars, w.takeFar(l, uint64(s)))
	}
	w.base = base
	for _, e := range nears {
		for _, id := range e.ids {
			w.put(e.at, id)
		}
	}
	for _, sl := range fars {
		w.again(sl)
	}
}

// rest moves the base of an empty wheel forward to a time that no entry will be before, so that new entries stand low.
func (w *wheel) rest(at int64) {
	if w.n == 0 {
		w.base = max(w.base, ordered(at))
	}
}

// take empties a slot of level 0 and returns what it was.
func (w *wheel) take(s uint64) slot {
	sl := w.near[s]
	w.near[s] = slot{}
	if w.used[s/64] &^= 1 << (s % 64); w.used[s/64] == 0 {
		w.words[s/4096] &^= 1 << (s / 64 % 64)
	}
	return sl
}

func (w *wheel) takeFar(l int, s uint64) slot {
	lv := w.far[l]
	sl := lv.slots[s]
	lv.slots[s] = slot{}
	lv.used[s/64] &^= 1 << (s % 64)
	return sl
}

func (w *wheel) nearChunk(name uint32) *nearChunk {
	return &w.nears.pages[(name-1)/nearPage][(name-1)%nearPage]
}

func (w *wheel) farChunk(name uint32) *farChunk {
	return &w.fars.pages[(name-1)/farPage][(name-1)%farPage]
}

func (w *wheel) newNear() uint32 {
	p := &w.nears
	if name := p.free; name != 0 {
		c := w.nearChunk(name)
		p.free = c.next
		c.next, c.n = 0, 0
		return name
	}
	if p.made%nearPage == 0 {
		w.reserve(nearBytes)
		p.pages = append(p.pages, new([nearPage]nearChunk))
	}
	p.made++
	return p.made
}

func (w *wheel) newFar() uint32 {
	p := &w.fars
	if name := p.free; name != 0 {
		c := w.farChunk(name)
		p.free = c.next
		c.next, c.n = 0, 0
		return name
	}
	if p.made%farPage == 0 {
		w.reserve(farBytes)
		p.pages = append(p.pages, new([farPage]farChunk))
	}
	p.made++
	return p.made
}

func (w *wheel) freeNear(name uint32, c *nearChunk) {
	c.next = w.nears.free
	w.nears.free = name
}

func (w *wheel) reserve(n int64) {
	if err := w.ledger.reserve(n); err != nil && w.shortage == nil {
		w.shortage = err
	}
}
