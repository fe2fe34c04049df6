package heap

import (
	"math/bits"
	"unsafe"
)

// pageShape says how entries lie in a page.
type pageShape struct {
	size   uintptr // of an entry, in bytes; whole words
	slots  int     // entries, live or not
	bytes  uintptr // of a page
	bitmap uintptr // where the bitmap of live entries lies; 0: there is none, the first word of an entry tells
}

// A pack holds the live entries of a page: its own size in bytes, a bitmap of their positions, for each word of the bitmap
// the number of entries before it (uint16), the entries.

// words is the number of words of a bitmap.
func (s *pageShape) words() int { return (s.slots + 63) / 64 }

// head is the number of bytes of a pack before its entries.
func (s *pageShape) head() uintptr {
	w := uintptr(s.words())
	return 8 * (1 + w + (w+3)/4)
}

// live gives word w of the bitmap of a page.
func (s *pageShape) live(mem unsafe.Pointer, w int) uint64 {
	if s.bitmap != 0 {
		return *(*uint64)(unsafe.Add(mem, s.bitmap+uintptr(w)*8))
	}
	from, to := w*64, min(w*64+64, s.slots)
	var set uint64
	for i := to - 1; i >= from; i-- {
		set = set<<1 | uint64(one(*(*uint64)(unsafe.Add(mem, uintptr(i)*s.size)) != 0))
	}
	return set
}

// count is the number of live entries of a page.
func (s *pageShape) count(mem unsafe.Pointer) (n int) {
	for w := range s.words() {
		n += bits.OnesCount64(s.live(mem, w))
	}
	return n
}

// packBytes is the size of a pack of n entries. There is room for one more, which pack may write before it knows better.
func (s *pageShape) packBytes(n int) uintptr { return s.head() + uintptr(n+1)*s.size }

// bytesOf is the size of a pack.
func (s *pageShape) bytesOf(pack unsafe.Pointer) uintptr { return *(*uintptr)(pack) }

// pack packs a page, or only some of its entries, into as many reserved bytes as packBytes says.
func (s *pageShape) pack(mem unsafe.Pointer, bytes uintptr, only unsafe.Pointer) unsafe.Pointer {
	pack := memory(bytes)
	*(*uintptr)(pack) = bytes
	words := s.words()
	at, n := s.head(), 0
	for w := range words {
		from, to := unsafe.Add(mem, uintptr(w)*64*s.size), unsafe.Add(pack, at+uintptr(n)*s.size)
		*(*uint16)(unsafe.Add(pack, 8*(1+words)+2*w)) = uint16(n)
		var live uint64
		switch {
		case only != nil:
			live = *bitsAt(only, uint64(w))
			s.packSome(to, from, live)
		case s.size == 16 && s.bitmap == 0:
			live = packPairs(to, from)
		default:
			live = s.live(mem, w)
			s.packSome(to, from, live)
		}
		*(*uint64)(unsafe.Add(pack, 8*(1+w))) = live
		n += bits.OnesCount64(live)
	}
	return pack
}

// packSome copies those of 64 entries that are live.
func (s *pageShape) packSome(to, from unsafe.Pointer, live uint64) {
	if live == ^uint64(0) {
		copyBytes(to, from, 64*s.size)
		return
	}
	for at := uintptr(0); live != 0; live &= live - 1 {
		copyWords(unsafe.Add(to, at), unsafe.Add(from, uintptr(bits.TrailingZeros64(live))*s.size), s.size)
		at += s.size
	}
}

// packPairs copies those of 64 entries of 16 bytes whose first word isn't 0, and tells which they are. There is no
// branch, which the processor would mispredict for a third of the entries.
func packPairs(to, from unsafe.Pointer) (live uint64) {
	at := uintptr(0)
	for i := range uintptr(64) {
		e := (*[2]uint64)(unsafe.Add(from, i*16))
		k, v := e[0], e[1]
		*(*[2]uint64)(unsafe.Add(to, at)) = [2]uint64{k, v}
		set := uint64(one(k != 0))
		live |= set << (i & 63)
		at += uintptr(set) << 4
	}
	return live
}

// pageView is a page or a pack of one.
type pageView struct {
	*pageShape
	base   unsafe.Pointer
	packed bool
	only   unsafe.Pointer // the bitmap of the entries that count; nil: all
}

// live gives word w of the bitmap.
func (v pageView) live(w int) uint64 {
	if v.packed {
		return *(*uint64)(unsafe.Add(v.base, 8*(1+w)))
	}
	if v.only != nil {
		return *bitsAt(v.only, uint64(w))
	}
	return v.pageShape.live(v.base, w)
}

// at is the address of the live entry at a position.
func (v pageView) at(pos int) unsafe.Pointer {
	if !v.packed {
		return unsafe.Add(v.base, uintptr(pos)*v.size)
	}
	set := v.live(pos / 64)
	before := *(*uint16)(unsafe.Add(v.base, 8*(1+v.words())+pos/64*2))
	nth := int(before) + bits.OnesCount64(set&(1<<(pos%64)-1))
	return unsafe.Add(v.base, v.head()+uintptr(nth)*v.size)
}

// copyWords copies whole words.
func copyWords(dst, src unsafe.Pointer, n uintptr) {
	for i := uintptr(0); i < n; i += 8 {
		*(*uint64)(unsafe.Add(dst, i)) = *(*uint64)(unsafe.Add(src, i))
	}
}
