package timers

import (
	"encoding/binary"
	"math/bits"
)

const (
	pageSlots = 4096
	pageFull  = pageSlots * 3 / 4
	maxDepth  = 20 // the upper bits of a tag choose the page, the lower 12 the slot
)

// index finds records by tag: extendible hashing over pages of slots. A slot holds the tag and the record's number+1.
type index struct {
	dir   []*page // by the tag's upper bits; a page of small depth stands at several places
	shift uint    // 32 - depth of dir
	pages int
}

type page struct {
	slots [pageSlots]uint64
	n     int
	depth uint
}

const (
	mixA = 0x9e3779b97f4a7c15
	mixB = 0xd6e8feb86659fd93
)

// tagOf hashes key (by its hash), namespace and time. Both halves of the product are used: timers of one key differ in
// few bits.
func tagOf(hash uint64, namespace []byte, at int64) uint32 {
	h := fold(hash^mixB, uint64(at)^mixA)
	for len(namespace) >= 8 {
		h = fold(h^binary.LittleEndian.Uint64(namespace), mixA)
		namespace = namespace[8:]
	}
	if len(namespace) != 0 {
		var rest uint64
		for i, b := range namespace {
			rest |= uint64(b) << (8 * i)
		}
		h = fold(h^rest, mixB)
	}
	h = fold(h, mixB)
	return uint32(h >> 32)
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo ^ a
}

func (x *index) page(tag uint32) *page { return x.dir[tag>>x.shift] }

// add puts in a record that is not in the index.
func (x *index) add(tag, id uint32) {
	if x.dir == nil {
		x.dir, x.shift, x.pages = []*page{{}}, 32, 1
	}
	p := x.page(tag)
	for p.n >= pageFull {
		if p.depth == maxDepth {
			panic("timers: index page full of equal hashes")
		}
		x.split(p, tag)
		p = x.page(tag)
	}
	p.put(uint64(tag)<<32 | uint64(id+1))
}

func (p *page) put(slot uint64) {
	i := uint32(slot>>32) % pageSlots
	for p.slots[i] != 0 {
		i = (i + 1) % pageSlots
	}
	p.slots[i] = slot
	p.n++
}

// remove takes out a record that is in the index, and moves later ones of the same stretch up so that no grave stays.
func (x *index) remove(tag, id uint32) {
	p := x.page(tag)
	slot := uint64(tag)<<32 | uint64(id+1)
	i := tag % pageSlots
	for p.slots[i] != slot {
		i = (i + 1) % pageSlots
	}
	p.n--
	for j := i; ; {
		j = (j + 1) % pageSlots
		if p.slots[j] == 0 {
			break
		}
		home := uint32(p.slots[j]>>32) % pageSlots
		if (j-home)%pageSlots >= (j-i)%pageSlots {
			p.slots[i] = p.slots[j]
			i = j
		}
	}
	p.slots[i] = 0
}

// split halves the page p of tag by the next bit of the tags.
func (x *index) split(p *page, tag uint32) {
	if p.depth == 32-x.shift {
		wide := make([]*page, 2*len(x.dir))
		for i, q := range x.dir {
			wide[2*i], wide[2*i+1] = q, q
		}
		x.dir = wide
		x.shift--
	}
	depth := p.depth + 1
	low, high := &page{depth: depth}, &page{depth: depth}
	bit := uint64(1) << (64 - depth)
	for _, slot := range p.slots {
		switch {
		case slot == 0:
		case slot&bit == 0:
			low.put(slot)
		default:
			high.put(slot)
		}
	}
	span := 1 << (32 - x.shift - p.depth) // places of the old page
	first := int(tag>>x.shift) &^ (span - 1)
	for i := range span / 2 {
		x.dir[first+i], x.dir[first+span/2+i] = low, high
	}
	x.pages++
}

func (x *index) memory() int64 { return int64(x.pages)*(pageSlots*8+16) + int64(len(x.dir))*8 }
