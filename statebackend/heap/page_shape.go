package heap

import (
	"math/bits"
	"unsafe"
)

// pageShape says how entries lie in a page. Snapshots keep units of a few neighbouring entries from being changed.
type pageShape struct {
	size   uintptr // of an entry, in bytes; whole words
	slots  int     // entries, live or not
	bytes  uintptr // of a page
	bitmap uintptr // where the bitmap of live entries lies; 0: there is none, the first word of an entry tells
	shift  uint8   // a unit has 1<<shift entries
	head   uintptr // bytes of a kept table before its units
}

// unitBytes is about the size of a unit: less would cost more to know of than to copy.
const unitBytes = 128

// withUnits completes a shape.
func (s pageShape) withUnits() pageShape {
	for s.size<<(s.shift+1) <= unitBytes {
		s.shift++
	}
	if s.bitmap != 0 {
		s.head = uintptr(s.words()) * 8
	}
	return s
}

// words is the number of words of a bitmap.
func (s *pageShape) words() int { return (s.slots + 63) / 64 }

// units is the number of units of a page.
func (s *pageShape) units() int { return (s.slots + 1<<s.shift - 1) >> s.shift }

// unitSize is the size of a unit.
func (s *pageShape) unitSize() uintptr { return s.size << s.shift }

// A kept table says what a snapshot has of a page that was changed: the bitmap of its live entries as it was, unless entries
// tell, and for each unit the number of its copy, plus one; 0: it is as it was. If the snapshot needs few entries, units are single
// ones, and only those that it needs have a number: the table begins with how many of them there are before each word of the
// bitmap that says which, in 2 bytes each.

// keptBytes is the size of a kept table of all units.
func (s *pageShape) keptBytes() uintptr { return s.head + roundUp(uintptr(s.units())*4) }

// fewBytes is the size of a kept table of n entries.
func (s *pageShape) fewBytes(n int) uintptr { return s.ranksBytes() + roundUp(uintptr(n)*4) }

// ranksBytes is the size of what a kept table of few entries begins with.
func (s *pageShape) ranksBytes() uintptr { return roundUp(uintptr(s.words()) * 2) }

// rank is how many entries lie before word w of the bitmap, by a kept table of few entries.
func rank(kept unsafe.Pointer, w int) *uint16 { return (*uint16)(unsafe.Add(kept, uintptr(w)*2)) }

// copyOf is where a kept table has the number of the copy of a position's unit.
func (s *pageShape) copyOf(kept unsafe.Pointer, pos int) *uint32 {
	return (*uint32)(unsafe.Add(kept, s.head+uintptr(pos>>s.shift)*4))
}

// copyOfFew is copyOf in a table of few entries, with the bitmap that says which; nil if the position is none of them.
func (s *pageShape) copyOfFew(kept, only unsafe.Pointer, pos int) *uint32 {
	w, bit := pos/64, uint64(1)<<(pos%64)
	set := *bitsAt(only, uint64(w))
	if set&bit == 0 {
		return nil
	}
	n := uintptr(*rank(kept, w)) + uintptr(bits.OnesCount64(set&(bit-1)))
	return (*uint32)(unsafe.Add(kept, s.ranksBytes()+n*4))
}

// pageView is a page of a snapshot.
type pageView struct {
	*shadow
	base unsafe.Pointer
	kept unsafe.Pointer // nil: the page is as it was
	only unsafe.Pointer // the bitmap of the entries that count; nil: all
}

// live gives word w of the bitmap of entries.
func (v *pageView) live(w int) uint64 {
	switch {
	case v.only != nil:
		return *bitsAt(v.only, uint64(w))
	case v.bitmap == 0:
		return v.liveByKey(w)
	case v.kept != nil:
		return *bitsAt(v.kept, uint64(w))
	}
	return *bitsAt(unsafe.Add(v.base, v.bitmap), uint64(w))
}

// liveByKey finds out which entries have a key that isn't 0.
func (v *pageView) liveByKey(w int) (set uint64) {
	for pos, end := w*64, min(w*64+64, v.slots); pos < end; pos += 1 << v.shift {
		e := v.at(pos)
		for i := pos; i < min(pos+1<<v.shift, end); i++ {
			set |= uint64(one(isKey(unsafe.Add(e, uintptr(i-pos)*v.size)))) << (i & 63)
		}
	}
	return set
}

// at is the address of the entry at a position.
func (v *pageView) at(pos int) unsafe.Pointer {
	switch {
	case v.kept == nil:
	case v.few:
		if n := v.copyOfFew(v.kept, v.only, pos); n != nil && *n != 0 {
			return v.copyAt(*n)
		}
	default:
		if n := *v.copyOf(v.kept, pos); n != 0 {
			return unsafe.Add(v.copyAt(n), uintptr(pos&(1<<v.shift-1))*v.size)
		}
	}
	return unsafe.Add(v.base, uintptr(pos)*v.size)
}

// someOf says whether one of the entries of a position's unit has its bit set.
func (s *pageShape) someOf(bitmap unsafe.Pointer, pos int) bool {
	first := pos &^ (1<<s.shift - 1)
	return *bitsAt(bitmap, uint64(first/64))>>(first%64)&(1<<(1<<s.shift)-1) != 0
}

// copyWords copies whole words.
func copyWords(dst, src unsafe.Pointer, n uintptr) {
	for i := uintptr(0); i < n; i += 8 {
		*(*uint64)(unsafe.Add(dst, i)) = *(*uint64)(unsafe.Add(src, i))
	}
}
