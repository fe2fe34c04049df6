package heap

import "unsafe"

// guard is what the owner of pages knows of open snapshots. Before a page is changed it must be touched: if a snapshot
// may need it as it is, its entries are copied first. All but shadows belongs to the subtask's goroutine.
type guard struct {
	pristine  []bool // by page: not touched since the last snapshot was taken
	remaining int    // pages that are pristine; 0 while no snapshot is open
	shadows   []*shadow
	track     *tracker // of changes; nil: they are not tracked
}

// protects says whether touching may have something to do.
func (g *guard) protects(page int) bool { return page < len(g.pristine) && g.pristine[page] }

// freeze begins a snapshot of the pages that it needs.
func (g *guard) freeze(sh *shadow) {
	g.shadows = append(g.shadows, sh)
	pristine := make([]bool, len(sh.mem))
	copy(pristine, g.pristine)
	g.pristine, g.remaining = pristine, 0
	for i := range pristine {
		pristine[i] = pristine[i] || sh.states[i].Load() == pagePristine
		g.remaining += one(pristine[i])
	}
}

// preserve lets all open snapshots have a page of n entries that is about to be changed. It returns the page to change:
// the same one, or a copy if a snapshot is being written from it at this moment.
func (g *guard) preserve(page int, mem unsafe.Pointer, n int, l *ledger) (unsafe.Pointer, error) {
	if err := l.store.failed; err != nil {
		return mem, err
	}
	for _, sh := range g.shadows {
		if page >= len(sh.states) {
			continue
		}
		var err error
		if mem, err = sh.preserve(page, mem, n, l); err != nil {
			return mem, err
		}
	}
	g.pristine[page] = false
	g.remaining--
	return mem, nil
}

// leave leaves the pages that the owner is about to drop to the snapshots that need them. It moves their bytes from the
// ledger to the snapshots and says how many they are.
func (g *guard) leave(l *ledger) (bytes int64) {
	for page, pristine := range g.pristine {
		if !pristine {
			continue
		}
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
	g.pristine, g.remaining, g.shadows = nil, 0, nil
	return bytes
}

// forget ends a snapshot.
func (g *guard) forget(sh *shadow) {
	for i, s := range g.shadows {
		if s == sh {
			g.shadows = append(g.shadows[:i:i], g.shadows[i+1:]...)
			break
		}
	}
	if len(g.shadows) == 0 {
		g.pristine, g.remaining = g.pristine[:0], 0
	}
}
