package heap

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// shadow is what one snapshot has of the pages of an index or a slab. Before the updater changes an entry for the first time
// it copies the entry's unit for the snapshot, holding the page by its state for some nanoseconds; the writer reads a page
// in place, copies of its units before what is there, holding it for some microseconds. An updater that finds the writer
// reading waits no longer than that: if the writer has been stopped meanwhile it goes on with a copy of the page and leaves
// the old one to the writer.
type shadow struct {
	pageShape
	frozen *frozen
	guard  *guard
	only   *pageBits        // the entries that the snapshot needs; nil: all
	few    bool             // it needs so few that kept tables are of these alone
	mem    []unsafe.Pointer // the pages at the moment
	states []atomic.Uint32
	kept   []unsafe.Pointer // by page: its kept table, see pageShape; written by the updater, holding the page
	copies []unsafe.Pointer // of units, perChunk in each
	n      uint32           // copies; the updater's
	chunk  uint8            // bits of the number of a copy in its chunk

	// settled has a bit for each unit, unitWords words for a page: there is a copy, or none is needed. It is the updater's, and
	// small enough to stay in the processor's cache where kept tables don't. It is empty if the snapshot needs few entries, and for
	// rows, which are claimed once.
	settled   []uint64
	unitWords int
	tables    []unsafe.Pointer // chunks with kept tables
	tabled    uintptr          // bytes in use of the last one
	stretch   []uint64         // what the leaf had, for the next one; the writer's until finish

	mu    sync.Mutex
	drawn int64 // bytes that are reserved for copies
	ended bool
	over  atomic.Bool // finish has nothing left to do

	passed atomic.Bool // all pages have been read
}

// The states of a page of a snapshot.
const (
	pageKept    uint32 = iota // the snapshot's entries are in the page, or copies; writer and updater use it
	pageReading               // the writer is reading it
	pageCopying               // the updater is copying a unit of it
	pageLeft                  // the page is the snapshot's alone
	pageShared                // the same, but its memory counts for another snapshot
	pageDone                  // the snapshot needs it no longer
)

const (
	// copyChunk bounds the memory that is made for copies at a time.
	copyChunk = 64 << 10
	// maxSpins is how often an updater looks whether the writer is done with a page.
	maxSpins = 20000
)

func newShadow(f *frozen, g *guard, shape pageShape, mem []unsafe.Pointer, only *pageBits) *shadow {
	sh := &shadow{
		pageShape: shape, frozen: f, guard: g, only: only, mem: mem,
		states: make([]atomic.Uint32, len(mem)), kept: make([]unsafe.Pointer, len(mem)),
	}
	units := len(mem) * sh.units()
	if only != nil && only.n <= units {
		sh.few, sh.shift, sh.head = true, 0, 0
		units = only.n
	} else if sh.bitmap == 0 {
		sh.unitWords = (sh.units() + 63) / 64
		sh.settled = make([]uint64, len(mem)*sh.unitWords)
	}
	for sh.unitSize()<<(sh.chunk+1) <= copyChunk && 1<<sh.chunk < units/64 {
		sh.chunk++
	}
	sh.copies = make([]unsafe.Pointer, units>>sh.chunk+1)
	if only != nil {
		for i := range sh.states {
			if !sh.needs(i) {
				sh.states[i].Store(pageDone)
			}
		}
	}
	g.shadows = append(g.shadows, sh)
	f.shadows = append(f.shadows, sh)
	return sh
}

// copyAt is the address of copy n, counted from one.
func (sh *shadow) copyAt(n uint32) unsafe.Pointer {
	n--
	return unsafe.Add(sh.copies[n>>sh.chunk], uintptr(n&(1<<sh.chunk-1))*sh.unitSize())
}

// isSettled says whether an entry may be changed as far as the snapshot is concerned. It is the updater's.
func (sh *shadow) isSettled(page, pos int) bool {
	switch {
	case page >= len(sh.states):
		return true
	case sh.few:
		return sh.isOver(page) || sh.isSettledOfFew(page, pos)
	case len(sh.settled) == 0:
		return sh.isOver(page)
	}
	unit := pos >> (sh.shift & 63)
	return sh.settled[page*sh.unitWords+unit>>6]>>(unit&63)&1 != 0
}

// isOver says whether all entries of a page may be changed.
func (sh *shadow) isOver(page int) bool {
	s := sh.states[page].Load()
	return s != pageKept && s != pageReading
}

// isSettledOfFew says so for a snapshot of few entries that still reads the page.
func (sh *shadow) isSettledOfFew(page, pos int) bool {
	if !sh.only.has(uint32(page), uint64(pos)) {
		return true
	}
	kept := sh.kept[page]
	return kept != nil && *sh.copyOfFew(kept, sh.only.bitmap(page), pos) != 0
}

// settle notes that the unit of an entry may be changed.
func (sh *shadow) settle(page, pos int) {
	if len(sh.settled) == 0 {
		return
	}
	unit := pos >> (sh.shift & 63)
	sh.settled[page*sh.unitWords+unit>>6] |= 1 << (unit & 63)
}

// settlePage notes that all entries of a page may be changed.
func (sh *shadow) settlePage(page int) {
	if len(sh.settled) == 0 {
		return
	}
	first := page * sh.unitWords
	for i := range sh.settled[first : first+sh.unitWords] {
		sh.settled[first+i] = ^uint64(0)
	}
}

// keep lets the snapshot have an entry that the updater is about to change. It returns the page to change: the same one, or
// a copy if the snapshot is being written from it at this moment.
func (sh *shadow) keep(page, pos int, mem unsafe.Pointer, l *ledger) (unsafe.Pointer, error) {
	if sh.isSettled(page, pos) {
		return mem, nil
	}
	if err := l.store.failed; err != nil {
		return mem, err
	}
	st := &sh.states[page]
	for spins := 0; ; spins++ {
		switch st.Load() {
		case pageKept:
			if st.CompareAndSwap(pageKept, pageCopying) {
				err := sh.copyUnit(page, pos, mem, l)
				if err == nil {
					sh.settle(page, pos)
				}
				st.CompareAndSwap(pageCopying, pageKept) // fails if the snapshot has ended meanwhile
				return mem, err
			}
		case pageReading:
			if spins >= maxSpins {
				return sh.moveAway(page, mem, l)
			}
		default:
			sh.settlePage(page)
			return mem, nil
		}
	}
}

// copyUnit copies the unit of a position of a page that the updater holds.
func (sh *shadow) copyUnit(page, pos int, mem unsafe.Pointer, l *ledger) error {
	if sh.only != nil && !sh.someOf(sh.only.bitmap(page), pos) {
		return nil
	}
	if sh.kept[page] == nil {
		if err := sh.makeTable(page, mem, l); err != nil || sh.kept[page] == nil {
			return err
		}
	}
	number := sh.numberOf(page, pos)
	if *number != 0 {
		return nil
	}
	if sh.n&(1<<sh.chunk-1) == 0 {
		bytes := sh.unitSize() << sh.chunk
		if more, err := sh.reserve(bytes, l); !more {
			return err
		}
		sh.copies[sh.n>>sh.chunk] = sh.guard.copyChunk(bytes)
	}
	sh.n++
	first := pos &^ (1<<sh.shift - 1)
	copyWords(sh.copyAt(sh.n), unsafe.Add(mem, uintptr(first)*sh.size), sh.unitSize())
	*number = sh.n
	return nil
}

// numberOf is where the kept table of a page has the number of the copy of a position's unit, of which the snapshot needs some.
func (sh *shadow) numberOf(page, pos int) *uint32 {
	if sh.few {
		return sh.copyOfFew(sh.kept[page], sh.only.bitmap(page), pos)
	}
	return sh.copyOf(sh.kept[page], pos)
}

// makeTable makes the kept table of a page, but if the snapshot has ended.
func (sh *shadow) makeTable(page int, mem unsafe.Pointer, l *ledger) error {
	if sh.few {
		return sh.makeTableOfFew(page, l)
	}
	kept, err := sh.table(sh.keptBytes(), l)
	if kept == nil {
		return err
	}
	clearBytes(kept, sh.keptBytes())
	if sh.bitmap != 0 && sh.only == nil {
		copyWords(kept, unsafe.Add(mem, sh.bitmap), sh.head)
	}
	sh.kept[page] = kept
	return nil
}

// makeTableOfFew makes the kept table of a page of which few entries are needed.
func (sh *shadow) makeTableOfFew(page int, l *ledger) error {
	only, n := sh.only.bitmap(page), 0
	for w := range sh.words() {
		n += bits.OnesCount64(*bitsAt(only, uint64(w)))
	}
	kept, err := sh.table(sh.fewBytes(n), l)
	if kept == nil {
		return err
	}
	n = 0
	for w := range sh.words() {
		*rank(kept, w) = uint16(n)
		n += bits.OnesCount64(*bitsAt(only, uint64(w)))
	}
	clearBytes(unsafe.Add(kept, sh.ranksBytes()), roundUp(uintptr(n)*4))
	sh.kept[page] = kept
	return nil
}

// mostTables is how much memory is made for kept tables at a time: many small pieces would be slow, and all of it at once, which the
// system has to find first, would keep elements waiting behind a barrier for milliseconds. A table has less than 9 KiB.
const mostTables = 64 << 10

// tableChunk is how much that is for this snapshot: no more than it can need.
func (sh *shadow) tableChunk() uintptr {
	if sh.few {
		return min(mostTables, uintptr(len(sh.only.own))*(sh.ranksBytes()+8)+roundUp(uintptr(sh.only.n)*4))
	}
	return min(mostTables, uintptr(len(sh.states))*sh.keptBytes())
}

// table gives memory for a kept table, which is not zero; nil if the snapshot has ended, or there is none.
func (sh *shadow) table(bytes uintptr, l *ledger) (unsafe.Pointer, error) {
	if chunk := sh.tableChunk(); len(sh.tables) == 0 || sh.tabled+bytes > chunk {
		if more, err := sh.reserve(chunk, l); !more {
			return nil, err
		}
		sh.tables, sh.tabled = append(sh.tables, sh.guard.tableChunk(chunk)), 0
	}
	at := unsafe.Add(sh.tables[len(sh.tables)-1], sh.tabled)
	sh.tabled += bytes
	return at, nil
}

// keepAll keeps all entries of a page.
func (sh *shadow) keepAll(page int, mem unsafe.Pointer, l *ledger) (unsafe.Pointer, error) {
	var err error
	for pos := 0; pos < sh.slots && err == nil; pos += 1 << sh.shift {
		mem, err = sh.keep(page, pos, mem, l)
	}
	return mem, err
}

// reserve draws bytes for copies; false if the snapshot has ended, or there is no memory.
func (sh *shadow) reserve(n uintptr, l *ledger) (bool, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.ended {
		return false, nil
	}
	if err := sh.frozen.reserve(int64(n)); err != nil {
		return false, l.refused(int64(n), sh.frozen.held.Load(), err)
	}
	sh.drawn += int64(n)
	return true, nil
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
		if s != pageKept && s != pageReading {
			return false
		}
		if st.CompareAndSwap(s, as) {
			return true
		}
	}
}

// finish ends the snapshot of these pages and gives back what was kept. It is the writer's.
func (sh *shadow) finish() {
	sh.mu.Lock()
	freed, ended := sh.drawn, sh.ended
	sh.drawn, sh.ended = 0, true
	sh.mu.Unlock()
	if ended {
		return
	}
	for i := range sh.states {
		if sh.states[i].Swap(pageDone) == pageLeft {
			freed += int64(sh.bytes)
		}
	}
	sh.mem = nil
	sh.frozen.release(freed)
	sh.over.Store(true)
}

// view gives a page for reading. If held, unhold must follow soon.
func (sh *shadow) view(page int) (v pageView, held bool) {
	st := &sh.states[page]
	for {
		switch st.Load() {
		case pageKept:
			if !st.CompareAndSwap(pageKept, pageReading) {
				continue
			}
			held = true
		case pageCopying:
			runtime.Gosched() // nanoseconds
			continue
		}
		return pageView{sh, sh.mem[page], sh.kept[page], sh.onlyOf(page)}, held
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

// done says that the snapshot needs nothing any more of a page that was viewed, held or not.
func (sh *shadow) done(page int) {
	if sh.states[page].Swap(pageDone) == pageLeft {
		sh.mem[page] = nil
		sh.frozen.release(int64(sh.bytes))
	}
}

// unhold ends the reading of a page that was held.
func (sh *shadow) unhold(page int) { sh.states[page].CompareAndSwap(pageReading, pageKept) }

// read copies the entry at a position of a page to dst.
func (sh *shadow) read(page, pos int, dst unsafe.Pointer) {
	v, held := sh.view(page)
	copyWords(dst, v.at(pos), sh.size)
	if held {
		sh.unhold(page)
	}
}
