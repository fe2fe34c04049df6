package heap

import "unsafe"

// slab keeps rows of one size, numbered from 0, which never move but when a snapshot takes their page. Numbers of freed
// rows are used again. The last places of a page hold a bitmap of the rows in use instead of rows. A row must be touched
// before it is made, changed, dropped or hidden; make does it.
type slab struct {
	ledger *ledger
	pages  []unsafe.Pointer
	size   uintptr
	bytes  uintptr // of a page
	used   uintptr // offset of the bitmap
	rows   uint32  // of a page
	bits   uint8   // a page has numbers for 1<<bits rows
	next   uint32  // numbers ever given
	free   uint32  // first of the chain of freed rows, plus one; it goes through their first 4 bytes
	live   int
	guard  // last: what lookups read lies together
}

// maxRows keeps row numbers plus one in 32 bits.
const maxRows = 1<<32 - 2

func newSlab(l *ledger, size uintptr) slab {
	s := slab{ledger: l, size: size}
	for 1<<s.bits < slotsPerPage(size) {
		s.bits++
	}
	s.bytes = size << s.bits
	bitmap := uintptr(max(1, 1<<s.bits/64)) * 8
	s.rows = uint32((s.bytes - bitmap) / size)
	s.used = s.bytes - bitmap
	return s
}

// shape describes the pages.
func (s *slab) shape() pageShape {
	return pageShape{size: s.size, slots: int(s.rows), bytes: s.bytes, bitmap: s.used}.withUnits()
}

// at is the address of a row.
func (s *slab) at(id uint32) unsafe.Pointer {
	return unsafe.Add(s.pages[id>>(s.bits&31)], uintptr(id&(1<<(s.bits&31)-1))*s.size)
}

// touch must come before a change of a row; its address may be another one afterwards.
func (s *slab) touch(id uint32) error {
	if !s.guarded() {
		return nil
	}
	page, pos := s.place(id)
	mem, err := s.preserve(int(page), int(pos), s.pages[page], s.ledger)
	if mem != s.pages[page] {
		s.pages[page] = mem
	}
	return err
}

// touchPage must come before a change of any row of a page.
func (s *slab) touchPage(page int) (err error) {
	if s.guarded() {
		s.pages[page], err = s.preserveAll(page, s.pages[page], s.ledger)
	}
	return err
}

// make makes a row of zeros.
func (s *slab) make() (id uint32, row unsafe.Pointer, err error) {
	if s.free != 0 {
		id = s.free - 1
	} else {
		id = s.next
		if id&(1<<s.bits-1) == s.rows { // the rest of the page is the bitmap
			id = (id>>s.bits + 1) << s.bits
		}
		if int(id>>s.bits) == len(s.pages) {
			if err := s.grow(); err != nil {
				return 0, nil, err
			}
		}
	}
	if err := s.touch(id); err != nil {
		return 0, nil, err
	}
	row = s.at(id)
	if s.free != 0 {
		s.free = *(*uint32)(row)
		*(*uint32)(row) = 0
	} else {
		s.next = id + 1
	}
	w, bit := s.bit(id)
	*w |= bit
	s.live++
	if s.track != nil {
		s.track.make(s.place(id))
	}
	return id, row, nil
}

// place is where a row lies: its page and its position in it.
func (s *slab) place(id uint32) (page uint32, pos uint64) {
	return id >> (s.bits & 31), uint64(id & (1<<(s.bits&31) - 1))
}

// mark notes a change of a row, if changes are tracked.
func (s *slab) mark(id uint32) {
	if s.track != nil {
		s.track.mark(s.place(id))
	}
}

// bit is where the bitmap says whether a row is in use.
func (s *slab) bit(id uint32) (w *uint64, bit uint64) {
	pos := id & (1<<(s.bits&31) - 1)
	return (*uint64)(unsafe.Add(s.pages[id>>(s.bits&31)], s.used+uintptr(pos/64)*8)), 1 << (pos % 64)
}

func (s *slab) grow() error {
	if len(s.pages) >= maxRows>>s.bits {
		return s.ledger.store.errTooMany(s.ledger.state)
	}
	if err := s.ledger.reserve(int64(s.bytes)); err != nil {
		return err
	}
	s.pages = append(s.pages, memory(s.bytes))
	return nil
}

// drop frees a row, whose page was touched.
func (s *slab) drop(id uint32) {
	row := s.at(id)
	clearBytes(row, s.size)
	*(*uint32)(row) = s.free
	s.free = id + 1
	s.hide(id)
	s.live--
}

// hide keeps a row, whose page was touched, from being scanned.
func (s *slab) hide(id uint32) {
	w, bit := s.bit(id)
	*w &^= bit
	if s.track != nil {
		s.track.forget(s.place(id))
	}
}

func (s *slab) has(id uint32) bool {
	w, bit := s.bit(id)
	return *w&bit != 0
}

// shrink gives the memory back when the last row is gone, but for some pages.
func (s *slab) shrink(keep int) {
	if s.live != 0 || len(s.pages) <= keep {
		return
	}
	gone := int64(len(s.pages)) * int64(s.bytes)
	if len(s.shadows) > 0 {
		gone -= s.leave(s.ledger)
		keep = 0
	}
	s.ledger.release(gone - int64(keep)*int64(s.bytes))
	s.pages = append([]unsafe.Pointer(nil), s.pages[:keep]...)
	for _, p := range s.pages {
		clearBytes(p, s.bytes)
	}
	s.next, s.free = 0, 0
}

// scan calls f for every row in use of a page until f returns false. f may drop rows.
func (s *slab) scan(page int, f func(id uint32, row unsafe.Pointer) bool) bool {
	first := uint32(page) << s.bits
	for id := first; id < min(first+s.rows, s.next); id++ {
		if s.has(id) && !f(id, s.at(id)) {
			return false
		}
	}
	return true
}
