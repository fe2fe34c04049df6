package heap

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// shadow is what one snapshot has of the pages of an index or a slab. Whoever comes first to a page takes hold of it by
// its state: the updater packs its live entries and then goes on in place; the writer reads it in place, a few
// microseconds at a time. An updater that finds the writer reading does not wait: it goes on with a copy of the page and
// leaves the old one to the writer.
type shadow struct {
	pageShape
	frozen *frozen
	guard  *guard
	only   *pageBits        // the entries that the snapshot needs; nil: all
	mem    []unsafe.Pointer // the pages at the moment
	states []atomic.Uint32
	packs  []unsafe.Pointer // of pages in state packed, see pageShape.pack
	ended  bool             // the writer's
}

// The states of a page of a snapshot.
const (
	pagePristine uint32 = iota // as it was; writer and updater use it
	pageReading                // the writer is reading it
	pagePacking                // the updater is packing it
	pagePacked                 // the snapshot has a pack of it
	pageLeft                   // the page is the snapshot's alone
	pageShared                 // the same, but its memory counts for another snapshot
	pageDone                   // the snapshot needs it no longer
)

func newShadow(f *frozen, g *guard, shape pageShape, mem []unsafe.Pointer, only *pageBits) *shadow {
	sh := &shadow{
		pageShape: shape, frozen: f, guard: g, only: only, mem: mem,
		states: make([]atomic.Uint32, len(mem)), packs: make([]unsafe.Pointer, len(mem)),
	}
	if only != nil {
		for i := range sh.states {
			if only.bitmap(i) == only.empty {
				sh.states[i].Store(pageDone)
			}
		}
	}
	g.freeze(sh)
	f.shadows = append(f.shadows, sh)
	return sh
}

// preserve lets the snapshot have a page that the updater is about to change; see guard.preserve.
func (sh *shadow) preserve(page int, mem unsafe.Pointer, n int, l *ledger) (unsafe.Pointer, error) {
	st := &sh.states[page]
	for {
		switch st.Load() {
		case pagePristine:
			if st.CompareAndSwap(pagePristine, pagePacking) {
				return mem, sh.keepPack(page, mem, n, l)
			}
		case pageReading:
			return sh.moveAway(page, mem, l)
		default:
			return mem, nil
		}
	}
}

// keepPack packs a page of n entries whose state the updater has set to packing.
func (sh *shadow) keepPack(page int, mem unsafe.Pointer, n int, l *ledger) error {
	st := &sh.states[page]
	var only unsafe.Pointer
	if sh.only != nil {
		only, n = sh.only.bitmap(page), sh.only.count(page)
	}
	bytes := sh.packBytes(n)
	if err := sh.frozen.reserve(int64(bytes)); err != nil {
		st.CompareAndSwap(pagePacking, pagePristine)
		return l.refused(int64(bytes), sh.frozen.held.Load(), err)
	}
	sh.packs[page] = sh.pack(mem, bytes, only)
	if !st.CompareAndSwap(pagePacking, pagePacked) { // the snapshot has ended meanwhile
		sh.packs[page] = nil
		sh.frozen.release(int64(bytes))
	}
	return nil
}

// moveAway copies a page that the writer is reading, for the updater.
func (sh *shadow) moveAway(page int, mem unsafe.Pointer, l *ledger) (unsafe.Pointer, error) {
	if err := sh.frozen.reserve(int64(sh.bytes)); err != nil {
		return mem, l.refused(int64(sh.bytes), sh.frozen.held.Load(), err)
	}
	if !sh.take(page, pageLeft) {
		sh.frozen.release(int64(sh.bytes))
		return mem, nil
	}
	to := memory(sh.bytes)
	copyBytes(to, mem, sh.bytes)
	return to, nil
}

// take makes a page the snapshot's own, in state left or shared, if it needs the page's memory.
func (sh *shadow) take(page int, as uint32) bool {
	st := &sh.states[page]
	for {
		s := st.Load()
		if s != pagePristine && s != pageReading {
			return false
		}
		if st.CompareAndSwap(s, as) {
			return true
		}
	}
}

// finish ends the snapshot of these pages and gives back what was kept. It is the writer's.
func (sh *shadow) finish() {
	if sh.ended {
		return
	}
	sh.ended = true
	var freed int64
	for i := range sh.states {
		switch sh.states[i].Swap(pageDone) {
		case pagePacked:
			freed += int64(sh.bytesOf(sh.packs[i]))
			sh.packs[i] = nil
		case pageLeft:
			freed += int64(sh.bytes)
		}
	}
	sh.mem = nil
	sh.frozen.release(freed)
}

// view gives a page for reading. If held, unhold must follow soon.
func (sh *shadow) view(page int) (v pageView, held bool) {
	st := &sh.states[page]
	for {
		switch st.Load() {
		case pagePristine:
			if st.CompareAndSwap(pagePristine, pageReading) {
				return pageView{&sh.pageShape, sh.mem[page], false, sh.onlyOf(page)}, true
			}
		case pagePacking:
			runtime.Gosched() // microseconds
		case pagePacked:
			return pageView{&sh.pageShape, sh.packs[page], true, nil}, false
		default:
			return pageView{&sh.pageShape, sh.mem[page], false, sh.onlyOf(page)}, false
		}
	}
}

// onlyOf is the bitmap of the entries of a page that the snapshot needs; nil: all.
func (sh *shadow) onlyOf(page int) unsafe.Pointer {
	if sh.only == nil {
		return nil
	}
	return sh.only.bitmap(page)
}

// needs says whether the snapshot has entries of a page.
func (sh *shadow) needs(page int) bool {
	return sh.only == nil || sh.only.bitmap(page) != sh.only.empty
}

// unhold ends the reading of a page that was held.
func (sh *shadow) unhold(page int) { sh.states[page].CompareAndSwap(pageReading, pagePristine) }

// read copies the entry at a position of a page to dst.
func (sh *shadow) read(page, pos int, dst unsafe.Pointer) {
	v, held := sh.view(page)
	copyWords(dst, v.at(pos), sh.size)
	if held {
		sh.unhold(page)
	}
}
