package heap

import "unsafe"

// guard is what the owner of pages knows of open snapshots and of changes. Before an entry is changed it must be touched:
// if a snapshot may need it as it is, it is copied first. All but shadows belongs to the subtask's goroutine.
type guard struct {
	shadows []*shadow
	track   *tracker   // of changes; nil: they are not tracked
	shifts  uint64     // counts pages that were replaced by copies, which invalidates addresses
	ahead   *lookahead // emptied then; nil: there is none

	spare      []unsafe.Pointer // chunks for copies, of an earlier snapshot
	spareBytes uintptr          // of each
	tables     []unsafe.Pointer // chunks for kept tables, of the same
	tableBytes uintptr          // of each
	stretch    []uint64         // memory for the stretches of a leaf, of an earlier snapshot
}

// guarded says whether touching may have something to do.
func (g *guard) guarded() bool {
	for _, sh := range g.shadows {
		if !sh.passed.Load() {
			return true
		}
	}
	return false
}

// marked says whether what is noted as changed was touched for all open snapshots: they began no later than the noting did.
func (g *guard) marked() bool {
	n := len(g.shadows)
	return g.track != nil && (n == 0 || g.shadows[n-1].frozen.id <= g.track.since)
}

// preserve lets all open snapshots have an entry that is about to be changed. It returns the page to change: the same one,
// or a copy if a snapshot is being written from it at this moment.
func (g *guard) preserve(page, pos int, mem unsafe.Pointer, l *ledger) (unsafe.Pointer, error) {
	return g.each(mem, func(sh *shadow, mem unsafe.Pointer) (unsafe.Pointer, error) { return sh.keep(page, pos, mem, l) })
}

// preserved says whether the only open snapshot has a copy of an entry or needs none: then there is nothing to do.
func (g *guard) preserved(page, pos int) bool {
	return len(g.shadows) == 1 && g.shadows[0].isSettled(page, pos)
}

// look reads what the only open snapshot will note a copy of an entry in, so that it is at hand.
func (g *guard) look(page, pos int) byte {
	if len(g.shadows) != 1 {
		return 0
	}
	sh := g.shadows[0]
	if page >= len(sh.kept) || sh.isOver(page) || sh.kept[page] == nil {
		return 0
	}
	number := sh.numberOf(page, pos)
	if number == nil {
		return 0
	}
	return *(*byte)(unsafe.Pointer(number))
}

// preserveAll does so for all entries of a page.
func (g *guard) preserveAll(page int, mem unsafe.Pointer, l *ledger) (unsafe.Pointer, error) {
	if err := l.store.failed; err != nil {
		return mem, err
	}
	return g.each(mem, func(sh *shadow, mem unsafe.Pointer) (unsafe.Pointer, error) { return sh.keepAll(page, mem, l) })
}

func (g *guard) each(mem unsafe.Pointer, keep func(*shadow, unsafe.Pointer) (unsafe.Pointer, error)) (unsafe.Pointer, error) {
	at := mem
	var err error
	for _, sh := range g.shadows {
		if at, err = keep(sh, at); err != nil {
			break
		}
	}
	if at != mem {
		g.shifts++
		if g.ahead != nil {
			g.ahead.forget()
		}
	}
	return at, err
}

// leave leaves the pages that the owner is about to drop to the snapshots that need them. It moves their bytes from the
// ledger to the snapshots and says how many they are.
func (g *guard) leave(l *ledger) (bytes int64) {
	pages := 0
	for _, sh := range g.shadows {
		pages = max(pages, len(sh.states))
	}
	for page := range pages {
		taken := false
		for _, sh := range g.shadows {
			as := pageLeft
			if taken {
				as = pageShared
			}
			if page < len(sh.states) && sh.take(page, as) && !taken {
				l.transfer(sh.frozen, int64(sh.bytes))
				bytes += int64(sh.bytes)
				taken = true
			}
		}
	}
	g.shadows = nil
	return bytes
}

// forget ends a snapshot.
func (g *guard) forget(sh *shadow) {
	for i, s := range g.shadows {
		if s == sh {
			g.shadows = append(g.shadows[:i:i], g.shadows[i+1:]...)
			g.recycle(sh)
			return
		}
	}
}

// recycle keeps the chunks of a snapshot that has ended for the next one. Snapshots come one after the other in most jobs;
// without this each would leave as much garbage as was changed while it was open. The memory is no longer reserved, as
// that of any garbage, until it is used again.
func (g *guard) recycle(sh *shadow) {
	if bytes := sh.unitSize() << sh.chunk; bytes != g.spareBytes {
		g.spare, g.spareBytes = nil, bytes
	}
	for _, c := range sh.copies {
		if c == nil {
			break
		}
		g.spare = append(g.spare, c)
	}
	if len(sh.tables) > 0 && sh.tableChunk() != g.tableBytes {
		g.tables, g.tableBytes = nil, sh.tableChunk()
	}
	g.tables = append(g.tables, sh.tables...)
	if len(sh.stretch) > len(g.stretch) {
		g.stretch = sh.stretch
	}
	sh.copies, sh.kept, sh.tables, sh.stretch = nil, nil, nil, nil
}

// takeStretch gives memory for the stretches of a leaf, which is not zero and not reserved; nil if there is none.
func (g *guard) takeStretch() []uint64 {
	s := g.stretch
	g.stretch = nil
	return s
}

// tableChunk gives a reserved chunk for kept tables, which is not zero.
func (g *guard) tableChunk(bytes uintptr) unsafe.Pointer {
	if g.tableBytes != bytes {
		return memory(bytes)
	}
	return takeLast(&g.tables, bytes)
}

// takeLast takes the last of some chunks, which is not zero, or makes one: reserved memory.
func takeLast(chunks *[]unsafe.Pointer, bytes uintptr) unsafe.Pointer {
	n := len(*chunks)
	if n == 0 {
		return memory(bytes)
	}
	c := (*chunks)[n-1]
	(*chunks)[n-1] = nil
	*chunks = (*chunks)[:n-1]
	return c
}

// forgetSpare drops what was kept of snapshots for the next one.
func (g *guard) forgetSpare() {
	g.spare, g.tables, g.stretch = nil, nil, nil
}

// copyChunk gives reserved memory for copies, which is not zero.
func (g *guard) copyChunk(bytes uintptr) unsafe.Pointer {
	if g.spareBytes != bytes {
		return memory(bytes)
	}
	return takeLast(&g.spare, bytes)
}
