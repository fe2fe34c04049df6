package pebble

// index finds the rows of the cache by the hashes of their keys: extendible hashing over pages that split alone, so that it
// grows without a pause. A slot is {24 bits of the hash}{number of the segment}{word in it}; no slot is 0.
type index struct {
	dir   []*indexPage // by the hash's upper bits; a page of small depth stands at several places
	shift uint         // 32 - depth of dir
	pages int
}

const (
	pageSlots = 1024
	pageFull  = pageSlots * 3 / 4
	pageDepth = 20
	pageBytes = pageSlots*8 + 16

	wordBits    = 14
	segmentBits = 26
	tagMask     = 1<<24 - 1
	maxSegments = 1<<segmentBits - 1
	placeMask   = 1<<(wordBits+segmentBits) - 1
)

type indexPage struct {
	slots [pageSlots]uint64
	n     int
	depth uint
}

func slotOf(hash uint32, segment uint32, word int) uint64 {
	return uint64(hash&tagMask)<<(wordBits+segmentBits) | uint64(segment)<<wordBits | uint64(word)
}

func newIndex() index { return index{dir: []*indexPage{{}}, shift: 32, pages: 1} }

func (x *index) page(hash uint32) *indexPage { return x.dir[hash>>x.shift] }

// put adds a slot. hashOf gives the hash of the row of a slot; grown is the number of pages more. It fails only if too many
// rows have hashes that agree in their upper bits.
func (x *index) put(hash uint32, slot uint64, hashOf func(slot uint64) uint32) (grown int, ok bool) {
	p := x.page(hash)
	for p.n >= pageFull {
		if p.depth == pageDepth {
			return grown, false
		}
		x.split(p, hash, hashOf)
		grown++
		p = x.page(hash)
	}
	p.put(hash, slot)
	return grown, true
}

func (p *indexPage) put(hash uint32, slot uint64) {
	i := hash % pageSlots
	for p.slots[i] != 0 {
		i = (i + 1) % pageSlots
	}
	p.slots[i] = slot
	p.n++
}

// move makes a slot of the index another one of the same hash.
func (x *index) move(hash uint32, old, slot uint64) {
	p := x.page(hash)
	i := hash % pageSlots
	for p.slots[i] != old {
		i = (i + 1) % pageSlots
	}
	p.slots[i] = slot
}

// remove takes a slot out, and moves later ones of the same stretch up so that no grave stays.
func (x *index) remove(hash uint32, slot uint64) {
	p := x.page(hash)
	i := hash % pageSlots
	for p.slots[i] != slot {
		i = (i + 1) % pageSlots
	}
	p.n--
	for j := i; ; {
		j = (j + 1) % pageSlots
		if p.slots[j] == 0 {
			break
		}
		home := uint32(p.slots[j]>>(wordBits+segmentBits)) % pageSlots
		if (j-home)%pageSlots >= (j-i)%pageSlots {
			p.slots[i] = p.slots[j]
			i = j
		}
	}
	p.slots[i] = 0
}

// split halves the page p of a hash by the next bit of the hashes.
func (x *index) split(p *indexPage, hash uint32, hashOf func(slot uint64) uint32) {
	if p.depth == 32-x.shift {
		wide := make([]*indexPage, 2*len(x.dir))
		for i, q := range x.dir {
			wide[2*i], wide[2*i+1] = q, q
		}
		x.dir = wide
		x.shift--
	}
	depth := p.depth + 1
	low, high := &indexPage{depth: depth}, &indexPage{depth: depth}
	bit := uint32(1) << (32 - depth)
	for _, slot := range p.slots {
		if slot == 0 {
			continue
		}
		if h := hashOf(slot); h&bit == 0 {
			low.put(h, slot)
		} else {
			high.put(h, slot)
		}
	}
	span := 1 << (32 - x.shift - p.depth) // places of the old page
	first := int(hash>>x.shift) &^ (span - 1)
	for i := range span / 2 {
		x.dir[first+i], x.dir[first+span/2+i] = low, high
	}
	x.pages++
}
