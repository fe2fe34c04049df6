package heap

import (
	"math/bits"
	"unsafe"
)

// Entries that the updater has copied lie in the order in which it changed them, anywhere as seen from their pages. They are
// therefore not copied with their pages, which would wait for memory at each: the pages only say which are wanted, and when all
// have been read and no more can be added, the copies are read in their own order, chunk by chunk. Of few entries all copies are
// wanted. Where it matters in which page an entry lies, and where units of many entries are copied of which some have changed, the
// copies are copied with their pages.

// postpones says whether the updater's copies follow behind the pages.
func (l *leaf) postpones() bool { return l.wanted != nil || l.bare && l.sh.few }

// passed says whether all pages, and chunks of copies behind them, have been read.
func (l *leaf) passed(at int) bool {
	pages := len(l.sh.states)
	switch {
	case at < pages:
		return false
	case !l.postpones():
		return true
	}
	return (at-pages)<<l.sh.chunk >= int(l.sh.n)
}

// postpone gives the live entries of a word of a page without those that follow with the copies.
func (l *leaf) postpone(v *pageView, w int) (live uint64) {
	if v.kept == nil || !l.postpones() {
		return v.live(w)
	}
	if v.few {
		return v.withoutCopied(w)
	}
	if v.bitmap == 0 {
		return l.postponeUnits(v, w)
	}
	live = v.live(w)
	for rest := live; rest != 0; rest &= rest - 1 {
		bit := bits.TrailingZeros64(rest)
		pos := w*64 + bit
		if n := *v.copyOf(v.kept, pos); n != 0 {
			l.want((n-1)<<v.shift|uint32(pos&(1<<v.shift-1)), 1)
			live &^= 1 << bit
		}
	}
	return live
}

// withoutCopied gives the entries of a word of a page that a snapshot of few needs and the updater has not copied.
func (v *pageView) withoutCopied(w int) (live uint64) {
	live = v.live(w)
	for rest := live; rest != 0; rest &= rest - 1 {
		if *v.copyOfFew(v.kept, v.only, w*64+bits.TrailingZeros64(rest)) != 0 {
			live &^= rest & -rest
		}
	}
	return live
}

// postponeUnits does so where entries tell whether they are live: which of the copies are turns out later.
func (l *leaf) postponeUnits(v *pageView, w int) (live uint64) {
	for pos, end := w*64, min(w*64+64, v.slots); pos < end; pos += 1 << v.shift {
		if n := *v.copyOf(v.kept, pos); n != 0 {
			l.want((n-1)<<v.shift, min(end-pos, 1<<v.shift))
			continue
		}
		for i := pos; i < min(pos+1<<v.shift, end); i++ {
			live |= uint64(one(isKey(unsafe.Add(v.base, uintptr(i)*v.size)))) << (i & 63)
		}
	}
	return live
}

// isKey says whether an entry that begins with its key has one.
func isKey(e unsafe.Pointer) bool { return *(*uint64)(e) != 0 }

// want notes n entries of copies, by number.
func (l *leaf) want(first uint32, n int) {
	l.wanted[first/64] |= (1<<n - 1) << (first % 64)
}

// copyKept copies what is wanted of a chunk of the updater's copies.
func (l *leaf) copyKept(chunk int) error {
	sh := l.sh
	first, n := chunk<<(sh.chunk+sh.shift), 1<<(sh.chunk+sh.shift)
	n = min(n, int(sh.n)<<sh.shift-first)
	base := sh.copies[chunk]
	if sh.few {
		for i := range n {
			if err := l.copy(unsafe.Add(base, uintptr(i)*sh.size), entryPlace{}); err != nil {
				return err
			}
		}
		return nil
	}
	for i := 0; i < n; {
		rest := l.wanted[(first+i)/64] >> ((first + i) % 64)
		if rest == 0 {
			i += 64 - (first+i)%64
			continue
		}
		if i += bits.TrailingZeros64(rest); i >= n {
			break
		}
		e := unsafe.Add(base, uintptr(i)*sh.size)
		i++
		if sh.bitmap == 0 && !isKey(e) {
			continue
		}
		if err := l.copy(e, entryPlace{}); err != nil {
			return err
		}
	}
	return nil
}
