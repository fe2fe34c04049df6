package heap

import "unsafe"

// slab keeps rows of one size, numbered from 0, which never move. Numbers of freed rows are used again.
type slab struct {
	ledger *ledger
	pages  []unsafe.Pointer
	used   []uint64 // a bit per row
	size   uintptr
	bytes  uintptr // of a page
	bits   uint8   // a page has 1<<bits rows
	next   uint32  // rows ever made
	free   uint32  // first of the chain of freed rows, plus one; it goes through their first 4 bytes
	live   int
}

// maxRows keeps row numbers plus one in 32 bits.
const maxRows = 1<<32 - 2

func newSlab(l *ledger, size uintptr) slab {
	s := slab{ledger: l, size: size}
	for 1<<s.bits < slotsPerPage(size) {
		s.bits++
	}
	s.bytes = size << s.bits
	return s
}

// at is the address of a row.
func (s *slab) at(id uint32) unsafe.Pointer {
	return unsafe.Add(s.pages[id>>(s.bits&31)], uintptr(id&(1<<(s.bits&31)-1))*s.size)
}

// make makes a row of zeros.
func (s *slab) make() (id uint32, row unsafe.Pointer, err error) {
	if s.free != 0 {
		id = s.free - 1
		row = s.at(id)
		s.free = *(*uint32)(row)
		*(*uint32)(row) = 0
	} else {
		id = s.next
		if int(id>>s.bits) == len(s.pages) {
			if err := s.grow(); err != nil {
				return 0, nil, err
			}
		}
		s.next++
		row = s.at(id)
	}
	s.used[id/64] |= 1 << (id % 64)
	s.live++
	return id, row, nil
}

func (s *slab) grow() error {
	if len(s.pages) >= maxRows>>s.bits {
		return s.ledger.store.errTooMany(s.ledger.state)
	}
	if err := s.ledger.reserve(s.pageCost()); err != nil {
		return err
	}
	s.pages = append(s.pages, memory(s.bytes))
	for range max(1, 1<<s.bits/64) {
		s.used = append(s.used, 0)
	}
	return nil
}

func (s *slab) pageCost() int64 { return int64(s.bytes) + 8<<s.bits/64 }

// drop frees a row.
func (s *slab) drop(id uint32) {
	row := s.at(id)
	clearBytes(row, s.size)
	*(*uint32)(row) = s.free
	s.free = id + 1
	s.hide(id)
	s.live--
}

// hide keeps a row from being scanned.
func (s *slab) hide(id uint32) { s.used[id/64] &^= 1 << (id % 64) }

func (s *slab) has(id uint32) bool { return s.used[id/64]&(1<<(id%64)) != 0 }

// shrink gives the memory back when the last row is gone.
func (s *slab) shrink(keep int) {
	if s.live != 0 || len(s.pages) <= keep {
		return
	}
	s.ledger.release(int64(len(s.pages)-keep) * s.pageCost())
	s.pages = append([]unsafe.Pointer(nil), s.pages[:keep]...)
	for _, p := range s.pages {
		clearBytes(p, s.bytes)
	}
	s.used = make([]uint64, keep*max(1, 1<<s.bits/64))
	s.next, s.free = 0, 0
}

// scan calls f for every row numbered in [from,to) until f returns false.
func (s *slab) scan(from, to uint32, f func(id uint32, row unsafe.Pointer) bool) bool {
	for id := from; id < min(to, s.next); id++ {
		if s.has(id) && !f(id, s.at(id)) {
			return false
		}
	}
	return true
}
