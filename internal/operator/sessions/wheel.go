package sessions

import (
	"math"
	"math/bits"
)

const (
	digitBits = 11
	levels    = 6 // of 11 bits: all 64 bits of a time
	slotCount = 1 << digitBits
	chunkLen  = 20
	chunkPage = 64
	pageBytes = chunkPage * 256
)

// chunk is a piece of a slot: 256 bytes.
type chunk struct {
	at   [chunkLen]int64
	id   [chunkLen]uint32
	n    uint32
	next uint32 // the chunk after it in the slot or the free list; 0: none
	_    uint64
}

// slot is a queue of chunks.
type slot struct{ head, tail uint32 }

type level struct {
	slots [slotCount]slot
	used  [slotCount / 64]uint64
	words uint32 // which of used are not 0
}

const levelBytes = slotCount*8 + slotCount/8 + 8

// wheel orders entries, a number each, by time. All times are >= base; an entry stands on the level of the highest digit
// (11 bits) in which its time differs from base, in the slot of that digit. So a slot of level 0 holds one time, a lower
// level is always before a higher one, and within a level slots are in time order. Most entries move once, a slot at a time,
// from level 1 to level 0. Once the memory has grown to the number of entries nothing is allocated.
type wheel struct {
	levels [levels]*level
	base   uint64 // ordered form
	n      int
	pages  []*[chunkPage]chunk
	free   uint32 // first free chunk
	made   uint32 // chunks ever made
	ledger *ledger
	err    error // of the ledger; memory is taken all the same, so that add need not fail
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
	w.put(u, at, id)
}

func (w *wheel) put(u uint64, at int64, id uint32) {
	l := 0
	if d := u ^ w.base; d >= slotCount {
		l = (bits.Len64(d) - 1) / digitBits
	}
	lv := w.levels[l]
	if lv == nil {
		lv = w.newLevel(l)
	}
	s := u >> (digitBits * l) % slotCount
	sl := &lv.slots[s]
	if sl.tail == 0 {
		lv.used[s/64] |= 1 << (s % 64)
		lv.words |= 1 << (s / 64)
		sl.head = w.newChunk()
		sl.tail = sl.head
	}
	c := w.chunk(sl.tail)
	if c.n == chunkLen {
		c.next = w.newChunk()
		sl.tail = c.next
		c = w.chunk(sl.tail)
	}
	c.at[c.n], c.id[c.n] = at, id
	c.n++
}

// first is the earliest slot that is not empty.
func (w *wheel) first() (l, s int, ok bool) {
	for l, lv := range w.levels {
		if lv != nil && lv.words != 0 {
			i := bits.TrailingZeros32(lv.words)
			return l, 64*i + bits.TrailingZeros64(lv.used[i]), true
		}
	}
	return 0, 0, false
}

// start is the earliest time that a slot can hold.
func (w *wheel) start(l, s int) uint64 {
	shift := digitBits * l
	return w.base>>shift>>digitBits<<digitBits<<shift | uint64(s)<<shift
}

// bound is a time that no entry is before; ok is false if there is none.
func (w *wheel) bound() (at int64, ok bool) {
	l, s, ok := w.first()
	return unordered(w.start(l, s)), ok
}

// pop takes out entries of one time, the earliest, which is <= upTo; nil: there are none left. The caller frees the chunk.
func (w *wheel) pop(upTo int64) (name uint32, c *chunk) {
	for {
		l, s, ok := w.first()
		if !ok || w.start(l, s) > ordered(upTo) {
			return 0, nil
		}
		if l > 0 {
			w.lower(l, s, upTo)
			continue
		}
		w.base = w.start(l, s)
		sl := &w.levels[0].slots[s]
		name = sl.head
		c = w.chunk(name)
		if name == sl.tail {
			w.take(0, s)
		} else {
			sl.head = c.next
		}
		w.n -= int(c.n)
		return name, c
	}
}

// lower moves base into the slot, the first of the wheel, which begins at upTo or before, and its entries to lower levels.
func (w *wheel) lower(l, s int, upTo int64) {
	sl := w.take(l, s)
	earliest := int64(math.MaxInt64)
	for id := sl.head; id != 0; {
		c := w.chunk(id)
		for _, at := range c.at[:c.n] {
			earliest = min(earliest, at)
		}
		id = c.next
	}
	w.base = min(ordered(earliest), ordered(upTo))
	w.again(sl)
}

// again puts the entries of a slot that was taken in their places.
func (w *wheel) again(sl slot) {
	for id := sl.head; id != 0; {
		c := w.chunk(id)
		for i, at := range c.at[:c.n] {
			w.put(ordered(at), at, c.id[i])
		}
		next := c.next
		w.freeChunk(id, c)
		id = next
	}
}

// rebase moves base back: a clock of processing time was set back.
func (w *wheel) rebase(base uint64) {
	var all []slot
	for l, lv := range w.levels {
		for lv != nil && lv.words != 0 {
			i := bits.TrailingZeros32(lv.words)
			all = append(all, w.take(l, 64*i+bits.TrailingZeros64(lv.used[i])))
		}
	}
	w.base = base
	for _, sl := range all {
		w.again(sl)
	}
}

// rest moves the base of an empty wheel forward to a time that no entry will be before, so that new entries stand low.
func (w *wheel) rest(at int64) {
	if w.n == 0 {
		w.base = max(w.base, ordered(at))
	}
}

// take empties a slot and returns what it was.
func (w *wheel) take(l, s int) slot {
	lv := w.levels[l]
	sl := lv.slots[s]
	lv.slots[s] = slot{}
	if lv.used[s/64] &^= 1 << (s % 64); lv.used[s/64] == 0 {
		lv.words &^= 1 << (s / 64)
	}
	return sl
}

func (w *wheel) newLevel(l int) *level {
	w.reserve(levelBytes)
	w.levels[l] = &level{}
	return w.levels[l]
}

func (w *wheel) chunk(id uint32) *chunk { return &w.pages[(id-1)/chunkPage][(id-1)%chunkPage] }

func (w *wheel) newChunk() uint32 {
	if id := w.free; id != 0 {
		c := w.chunk(id)
		w.free = c.next
		c.next, c.n = 0, 0
		return id
	}
	if w.made%chunkPage == 0 {
		w.reserve(pageBytes)
		w.pages = append(w.pages, new([chunkPage]chunk))
	}
	w.made++
	return w.made
}

func (w *wheel) freeChunk(id uint32, c *chunk) {
	c.next = w.free
	w.free = id
}

func (w *wheel) reserve(n int64) {
	if err := w.ledger.reserve(n); err != nil && w.err == nil {
		w.err = err
	}
}
