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
	live   int
	lots
	guard // last: what lookups read lies together
}

// maxRows keeps row numbers plus one in what an index word has for them.
const maxRows = 1<<rowBits - 2

func newSlab(l *ledger, size uintptr) slab {
	s := slab{ledger: l, size: size}
	for 1<<s.bits < slotsPerPage(size) {
		s.bits++
	}
	s.bytes = size << s.bits
	bitmap := uintptr(max(1, 1<<s.bits/64)) * 8
	s.rows = uint32((s.bytes - bitmap) / size)
	s.used = s.bytes - bitmap
	s.lots.reset()
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

// make makes a row of zeros for a key with a hash.
func (s *slab) make(hash uint64) (id uint32, row unsafe.Pointer, err error) {
	at := s.lots.of(hash)
	if !s.all[at].hasRoom() {
		if at, err = s.grow(hash); err != nil {
			return 0, nil, err
		}
	}
	l := &s.all[at]
	if id = l.next; l.free != 0 {
		id = l.free - 1
	}
	if err := s.touch(id); err != nil {
		return 0, nil, err
	}
	row = s.at(id)
	if l.free != 0 {
		l.free = *(*uint32)(row)
		*(*uint32)(row) = 0
	} else {
		l.next = id + 1
	}
	w, bit := s.bit(id)
	*w |= bit
	s.live++
	if s.track != nil {
		s.track.make(s.place(id))
	}
	return id, row, nil
}

// append makes a row as make does if there is the usual place for it: the next one on the page that is being filled, of a table
// that nobody notes or keeps anything of.
func (s *slab) append(hash uint64) (id uint32, row unsafe.Pointer, ok bool) {
	l := &s.all[s.lots.of(hash)]
	if l.free != 0 || l.next == l.end || s.track != nil || s.guarded() {
		return 0, nil, false
	}
	id = l.next
	page, pos := s.place(id)
	mem := s.pages[page]
	*bitsAt(unsafe.Add(mem, s.used), pos/64) |= 1 << (pos % 64)
	l.next, s.live = id+1, s.live+1
	return id, unsafe.Add(mem, uintptr(pos)*s.size), true
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

// grow makes another page for rows of a key with a hash and says which lot it is of.
func (s *slab) grow(hash uint64) (at int, err error) {
	if len(s.pages) >= maxRows>>s.bits {
		return 0, s.ledger.store.errTooMany(s.ledger.state)
	}
	if err := s.ledger.reserve(int64(s.bytes)); err != nil {
		return 0, err
	}
	s.lots.begin(s.live)
	at = s.lots.of(hash)
	l := &s.all[at]
	l.next = uint32(len(s.pages)) << s.bits
	l.end = l.next + s.rows // the rest of the page is the bitmap
	s.pages, s.lotOf = append(s.pages, memory(s.bytes)), append(s.lotOf, uint16(at))
	return at, nil
}

// drop frees a row, whose page was touched.
func (s *slab) drop(id uint32) {
	row := s.at(id)
	clearBytes(row, s.size)
	l := &s.all[s.lotOf[id>>(s.bits&31)]]
	*(*uint32)(row) = l.free
	l.free = id + 1
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

// shrink gives the memory back when the last row is gone, but for keep pages: one, or none.
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
	s.lots.reset()
	if keep > 0 {
		clearBytes(s.pages[0], s.bytes)
		s.lotOf = append(s.lotOf, 0)
		s.all[0].end = s.rows
	}
}

// scan calls f for every row in use of a page until f returns false. f may drop rows.
func (s *slab) scan(page int, f func(id uint32, row unsafe.Pointer) bool) bool {
	first := uint32(page) << s.bits
	for id := first; page < len(s.pages) && id < first+s.rows; id++ {
		if s.has(id) && !f(id, s.at(id)) {
			return false
		}
	}
	return true
}
