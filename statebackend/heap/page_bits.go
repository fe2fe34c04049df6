package heap

import "unsafe"

// pageBits are bits for the entries of pages. Pages without a set bit share one empty bitmap, so that a lookup has no branch
// for them and a page costs memory only once it has a bit. Pages beyond the last one that was set have none.
type pageBits struct {
	words int              // of a page's bitmap
	pages []unsafe.Pointer // bitmaps
	empty unsafe.Pointer
	own   []uint32 // the pages with bitmaps of their own
	n     int      // set bits
}

// newPageBits makes bits for pages of so many entries, all clear.
func newPageBits(entries int) pageBits {
	words := (entries + 63) / 64
	return pageBits{words: words, empty: memory(uintptr(words) * 8)}
}

// has says whether the bit of an entry is set.
func (b *pageBits) has(page uint32, pos uint64) bool { return hasBit(b.pages, page, pos) }

// hasBit is has of the bitmaps of pages.
func hasBit(pages []unsafe.Pointer, page uint32, pos uint64) bool {
	return int(page) < len(pages) && *bitsAt(pages[page], pos/64)>>(pos%64)&1 != 0
}

// bitsAt is a word of a bitmap.
func bitsAt(bitmap unsafe.Pointer, w uint64) *uint64 {
	return (*uint64)(unsafe.Add(bitmap, w*8))
}

// set sets the bit of an entry, which is clear.
func (b *pageBits) set(page uint32, pos uint64) {
	for int(page) >= len(b.pages) {
		b.pages = append(b.pages, b.empty)
	}
	if b.pages[page] == b.empty {
		b.pages[page] = memory(uintptr(b.words) * 8)
		b.own = append(b.own, page)
	}
	*bitsAt(b.pages[page], pos/64) |= 1 << (pos % 64)
	b.n++
}

// clear clears the bit of an entry and says whether it was set.
func (b *pageBits) clear(page uint32, pos uint64) bool {
	if !b.has(page, pos) {
		return false
	}
	*bitsAt(b.pages[page], pos/64) &^= 1 << (pos % 64)
	b.n--
	return true
}

// bitmap is the bitmap of a page, for reading.
func (b *pageBits) bitmap(page int) unsafe.Pointer {
	if page < len(b.pages) {
		return b.pages[page]
	}
	return b.empty
}

// clone copies the bits.
func (b *pageBits) clone() pageBits {
	c := pageBits{words: b.words, empty: b.empty, n: b.n, own: append([]uint32(nil), b.own...)}
	c.pages = append(c.pages, b.pages...)
	for _, page := range c.own {
		c.pages[page] = memory(uintptr(b.words) * 8)
		copyBytes(c.pages[page], b.pages[page], uintptr(b.words)*8)
	}
	return c
}
