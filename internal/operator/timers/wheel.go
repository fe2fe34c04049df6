package timers

import (
	"math"
	"math/bits"
)

const (
	levels    = 8
	slotCount = 256
	chunkRefs = 15
	chunkPage = 64
)

// ref is a timer's place in time. It is dead once the record's generation is another.
type ref struct {
	at  int64
	id  uint32
	gen uint32 // 0: fired or moved
}

// chunk is a piece of a slot: 256 bytes.
type chunk struct {
	refs [chunkRefs]ref
	next uint32 // the chunk after it in the slot or the free list; 0: none
	n    uint32
	_    uint64
}

// slot is a queue of chunks. min is no larger than any time in it.
type slot struct {
	head, tail uint32
	min        int64
}

type level struct {
	slots [slotCount]slot
	used  [slotCount / 64]uint64
}

// wheel orders refs by time. All times are >= base; a ref stands on the level of the highest byte in which its time
// differs from base, in the slot of that byte. So a slot of level 0 holds one time, a lower level is always before a
// higher one, and within a level slots are in time order.
type wheel struct {
	levels [levels]*level
	base   uint64 // ordered form
	refs   int    // dead ones included
	chunks []*[chunkPage]chunk
	free   uint32 // first free chunk
	made   uint32 // chunks ever made
}

// ordered maps times to unsigned numbers in the same order.
func ordered(at int64) uint64 { return uint64(at) ^ 1<<63 }

// unordered is the way back.
func unordered(u uint64) int64 { return int64(u ^ 1<<63) }

// place is the level and slot of a time >= base.
func (w *wheel) place(at int64) (l, s int) {
	u := ordered(at)
	if d := u ^ w.base; d != 0 {
		l = (bits.Len64(d) - 1) / 8
	}
	return l, int(uint8(u >> (8 * l)))
}

// add puts in a ref with a time >= base.
func (w *wheel) add(r ref) {
	l, s := w.place(r.at)
	lv := w.levels[l]
	if lv == nil {
		lv = &level{}
		w.levels[l] = lv
	}
	w.refs++
	sl := &lv.slots[s]
	if sl.tail == 0 {
		lv.used[s/64] |= 1 << (s % 64)
		sl.head = w.newChunk()
		sl.tail, sl.min = sl.head, r.at
	}
	sl.min = min(sl.min, r.at)
	c := w.chunk(sl.tail)
	if c.n == chunkRefs {
		c.next = w.newChunk()
		sl.tail = c.next
		c = w.chunk(sl.tail)
	}
	c.refs[c.n] = r
	c.n++
}

// first is the earliest slot that is not empty.
func (w *wheel) first() (l, s int, ok bool) {
	for l, lv := range w.levels {
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

// bound is a time that no ref is before; that of a deleted timer may be it. ok is false if the wheel is empty.
func (w *wheel) bound() (at int64, ok bool) {
	l, s, ok := w.first()
	if !ok {
		return 0, false
	}
	return w.levels[l].slots[s].min, true
}

// lower moves base to the earliest time of the slot, the first of the wheel, and its refs to lower levels.
func (w *wheel) lower(l, s int) {
	sl := w.take(l, s)
	w.base = ordered(sl.min)
	for id := sl.head; id != 0; {
		c := w.chunk(id)
		w.refs -= int(c.n)
		for _, r := range c.refs[:c.n] {
			w.add(r)
		}
		id = w.freeChunk(id, c)
	}
}

// take empties a slot and returns what it was.
func (w *wheel) take(l, s int) slot {
	lv := w.levels[l]
	sl := lv.slots[s]
	lv.slots[s] = slot{}
	lv.used[s/64] &^= 1 << (s % 64)
	return sl
}

// rest moves the base of an empty wheel forward, so that new refs stand low.
func (w *wheel) rest(at int64) {
	if w.refs == 0 && at != math.MaxInt64 {
		w.base = max(w.base, ordered(at+1))
	}
}

func (w *wheel) chunk(id uint32) *chunk { return &w.chunks[(id-1)/chunkPage][(id-1)%chunkPage] }

func (w *wheel) newChunk() uint32 {
	if id := w.free; id != 0 {
		c := w.chunk(id)
		w.free = c.next
		c.next, c.n = 0, 0
		return id
	}
	if w.made%chunkPage == 0 {
		w.chunks = append(w.chunks, new([chunkPage]chunk))
	}
	w.made++
	return w.made
}

// freeChunk returns the chunk that came after it.
func (w *wheel) freeChunk(id uint32, c *chunk) (next uint32) {
	next = c.next
	c.next = w.free
	w.free = id
	return next
}

func (w *wheel) memory() int64 {
	n := int64(len(w.chunks)) * chunkPage * 256
	for _, lv := range w.levels {
		if lv != nil {
			n += slotCount*16 + 32
		}
	}
	return n
}
