package windows

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/serde"
)

// Lane is an array of which a snapshot needs the values.
type Lane struct {
	Memory *Memory
	Values unsafe.Pointer
	// Pointers says that values have pointers, Code, if it is set, that what is behind them changes: what is kept of them is
	// their encoding.
	Pointers bool
	Code     *serde.Handle
}

// Shadow is what one snapshot has of up to three arrays with the same places, which go on being written. The updater, the
// subtask's goroutine, calls Keep before it changes values: the first time it copies the unit of some values that they are in.
// The writer, on its own goroutine, reads copies, and in place what has none. Both hold the block of a unit meanwhile, the
// updater for some tens of nanoseconds, the writer for a microsecond or two.
//
// Whoever moves values elsewhere for good lends the arrays to the snapshot, which then has them for itself (Shadows.Lend).
type Shadow struct {
	borrower
	body atomic.Pointer[shade] // nil: the snapshot has been released
}

// shade is what a Shadow holds as long as its snapshot does.
type shade struct {
	account *account
	lanes   []lane
	n       int                     // places
	shift   uint8                   // of a place: its unit
	present func(place uint32) bool // for what is encoded: there is a value
	settled []uint64                // a word for each block, a bit for each unit: there is a copy. The updater's
	blocks  []block
	chunk   int // units for which memory is made at a time
	left    int // of the last chunk
}

type lane struct {
	Lane
	last unsafe.Pointer // chunk
}

// block is 64 units. Its copies are read and written by who holds it.
type block struct {
	held atomic.Bool
	kept [maxLanes]*[blockUnits]unsafe.Pointer // by lane and unit: an array of values, or a *unitCode
}

// unitCode are the encodings of the values of a unit.
type unitCode struct {
	code []byte
	ends [encodedUnit]uint32
}

const (
	maxLanes   = 3
	blockBits  = 6
	blockUnits = 1 << blockBits
	// unitBytes is the size that a unit has, if it can: less is not worth the bookkeeping, and more is copied in vain.
	unitBytes = 512
	// encodedUnit is how many values at most are encoded together.
	encodedUnit = 8
	// chunkBytes bounds the memory that is made for copies at a time.
	chunkBytes = 32 << 10
)

func newShade(a *account, n int, present func(uint32) bool, lanes []Lane) *shade {
	s := &shade{account: a, n: n, present: present, lanes: make([]lane, len(lanes))}
	size, most := uintptr(0), blockBits
	for i, l := range lanes {
		s.lanes[i].Lane = l
		if size += l.Memory.Size; l.Code != nil {
			most = bits.Len(encodedUnit) - 1
		}
	}
	for int(s.shift) < most && size<<(s.shift+1) <= unitBytes {
		s.shift++
	}
	units := (n + 1<<s.shift - 1) >> s.shift
	s.settled = make([]uint64, (units+blockUnits-1)>>blockBits)
	s.blocks = make([]block, len(s.settled))
	if rest := units & (blockUnits - 1); rest != 0 {
		s.settled[len(s.settled)-1] = ^uint64(0) << rest
	}
	s.chunk = max(1, min(units/8, chunkBytes/max(1, int(size<<s.shift))))
	return s
}

// keep lets the snapshot have the values at places that are about to change.
func (s *shade) keep(places []uint32) error {
	settled, shift := s.settled, s.shift
	for _, at := range places {
		unit := at >> (shift & 31)
		if b := unit >> blockBits; int(b) < len(settled) && settled[b]>>(unit&(blockUnits-1))&1 == 0 {
			if err := s.copy(unit); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepAll lets the snapshot have all values.
func (s *shade) keepAll() error {
	for b, word := range s.settled {
		for word = ^word; word != 0; word &= word - 1 {
			if err := s.copy(uint32(b<<blockBits + bits.TrailingZeros64(word))); err != nil {
				return err
			}
		}
	}
	return nil
}

// copy copies a unit. If the snapshot has been released it does nothing.
func (s *shade) copy(unit uint32) error {
	b := &s.blocks[unit>>blockBits]
	if more, err := s.prepare(b); !more {
		return err
	}
	first := int(unit) << s.shift
	n := min(1<<s.shift, s.n-first)
	coded, err := s.fill(b, unit, first, n)
	if err != nil {
		return err
	}
	s.settled[unit>>blockBits] |= 1 << (unit & (blockUnits - 1))
	if coded != 0 {
		_, err = s.account.draw(coded)
	}
	return err
}

// prepare makes the memory for a copy; false if there is no need or no memory.
func (s *shade) prepare(b *block) (bool, error) {
	tables, values := int64(0), int64(0)
	for i := range s.lanes {
		if b.kept[i] == nil {
			tables += blockUnits * int64(unsafe.Sizeof(unsafe.Pointer(nil)))
		}
		if l := &s.lanes[i]; l.Code == nil && s.left == 0 {
			values += int64(s.chunk) << s.shift * int64(l.Memory.Size)
		}
	}
	if tables+values == 0 {
		return true, nil
	}
	if more, err := s.account.draw(tables + values); !more {
		return false, err
	}
	if s.left == 0 {
		for i := range s.lanes {
			if l := &s.lanes[i]; l.Code == nil {
				l.last = l.Memory.New(s.chunk << s.shift)
			}
		}
		s.left = s.chunk
	}
	if tables != 0 {
		b.hold()
		for i := range s.lanes {
			b.kept[i] = new([blockUnits]unsafe.Pointer)
		}
		b.free()
	}
	return true, nil
}

// fill copies the n values of a unit from the first on. It returns the memory of what it has encoded.
func (s *shade) fill(b *block, unit uint32, first, n int) (coded int64, err error) {
	b.hold()
	defer b.free() // encoding may panic
	at := unit & (blockUnits - 1)
	for i := range s.lanes {
		l := &s.lanes[i]
		if l.Code != nil {
			c := &unitCode{}
			for j := range n {
				if s.present(uint32(first + j)) {
					if c.code, err = l.Code.Append(c.code, l.Memory.At(l.Values, first+j)); err != nil {
						return 0, fmt.Errorf("encode an accumulator for a snapshot: %w", err)
					}
				}
				c.ends[j] = uint32(len(c.code))
			}
			coded += int64(cap(c.code)) + int64(unsafe.Sizeof(*c))
			b.kept[i][at] = unsafe.Pointer(c)
			continue
		}
		to, from := l.Memory.At(l.last, (s.chunk-s.left)<<s.shift), l.Memory.At(l.Values, first)
		if l.Pointers {
			l.Memory.Move(to, from, n)
		} else {
			bytes := uintptr(n) * l.Memory.Size
			copy(unsafe.Slice((*byte)(to), bytes), unsafe.Slice((*byte)(from), bytes))
		}
		b.kept[i][at] = to
	}
	s.left--
	return coded, nil
}

// hold keeps the other goroutine out of a block. What is done with it is short.
func (b *block) hold() {
	for !b.held.CompareAndSwap(false, true) {
		runtime.Gosched()
	}
}

func (b *block) free() { b.held.Store(false) }

// of is the block of a place.
func (s *shade) of(place uint32) int { return int(place >> (s.shift & 31) >> blockBits) }

// at is the address of the value at a place as it was. The block is held.
func (s *shade) at(b *block, i int, place uint32) unsafe.Pointer {
	l := &s.lanes[i]
	if kept := b.kept[i]; kept != nil {
		if p := kept[place>>(s.shift&31)&(blockUnits-1)]; p != nil {
			return l.Memory.At(p, int(place&(1<<(s.shift&31)-1)))
		}
	}
	return l.Memory.At(l.Values, int(place))
}

// read copies to dst what lies offset bytes after the beginning of each value of a lane, of those at the first of the places
// that are in one block, and says how many. It is the writer's.
func (s *shade) read(i int, offset uintptr, m *Memory, pointers bool, places []uint32, dst unsafe.Pointer) int {
	which := s.of(places[0])
	b := &s.blocks[which]
	b.hold()
	defer b.free()
	for n, place := range places {
		if s.of(place) != which {
			return n
		}
		from := unsafe.Add(s.at(b, i, place), offset)
		if m.Size == 8 && !pointers {
			*(*uint64)(unsafe.Add(dst, n*8)) = *(*uint64)(from)
		} else {
			m.Move(m.At(dst, n), from, 1)
		}
	}
	return len(places)
}

// encode is read for a lane that is encoded: it appends to code, and to ends where each encoding ends.
func (s *shade) encode(i int, places []uint32, code []byte, ends []int) ([]byte, []int, error) {
	l := &s.lanes[i]
	which := s.of(places[0])
	b := &s.blocks[which]
	b.hold()
	defer b.free()
	for _, place := range places {
		if s.of(place) != which {
			break
		}
		var u *unitCode
		if kept := b.kept[i]; kept != nil {
			u = (*unitCode)(kept[place>>(s.shift&31)&(blockUnits-1)])
		}
		if u == nil {
			var err error
			if code, err = l.Code.Append(code, l.Memory.At(l.Values, int(place))); err != nil {
				return code, ends, fmt.Errorf("encode an accumulator: %w", err)
			}
		} else {
			j := place & (1<<(s.shift&31) - 1)
			from := uint32(0)
			if j > 0 {
				from = u.ends[j-1]
			}
			code = append(code, u.code[from:u.ends[j]]...)
		}
		ends = append(ends, len(code))
	}
	return code, ends, nil
}

// Each visits all places in order, with the address of each one's value in the first lane, and says where that in another lane
// is. It is the writer's, and visit must be short and keep nothing.
func (s *Shadow) Each(visit func(place uint32, first unsafe.Pointer, other func(lane int) unsafe.Pointer)) {
	sh := s.body.Load()
	if sh == nil {
		return
	}
	var b *block
	var place uint32
	other := func(i int) unsafe.Pointer { return sh.at(b, i, place) }
	per := blockUnits << sh.shift
	for i := range sh.blocks {
		b = &sh.blocks[i]
		b.hold()
		for at := i * per; at < min(sh.n, (i+1)*per); at++ {
			place = uint32(at)
			visit(place, sh.at(b, 0, place), other)
		}
		b.free()
	}
}

// Shadows are those of the snapshots that are being written of some arrays of a driver. It belongs to the updater.
type Shadows []*Shadow

// reap forgets the snapshots that have been released.
func (l *Shadows) reap() {
	all := *l
	n := 0
	for _, s := range all {
		if s.body.Load() != nil {
			all[n] = s
			n++
		}
	}
	clear(all[n:])
	if *l = all[:n]; n == 0 {
		*l = nil
	}
}

// Open says whether there are snapshots that have not been released.
func (l *Shadows) Open() bool {
	l.reap()
	return len(*l) > 0
}

// Keep must be called before values at places are changed, unless they are none in any snapshot.
func (l *Shadows) Keep(places ...uint32) error {
	gone := false
	for _, s := range *l {
		body := s.body.Load()
		if body == nil { // it stays until all have been asked: others may end at this moment, and the list would move
			gone = true
			continue
		}
		if err := body.keep(places); err != nil {
			return err
		}
	}
	if gone {
		l.reap()
	}
	return nil
}

// KeepAll is Keep for all places.
func (l *Shadows) KeepAll() error {
	l.reap()
	for _, s := range *l {
		if s := s.body.Load(); s != nil {
			if err := s.keepAll(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Lend leaves the arrays, of so many bytes that are reserved, to the snapshots, and forgets these. False: none needs them any
// more, and they are the driver's. Values that were moved elsewhere, and are encoded, must be kept before: the snapshots could
// not tell that what is behind their pointers changes.
func (l *Shadows) Lend(m *host.Memory, bytes int64) bool {
	lent := newLoan(m, bytes)
	for _, s := range *l {
		s.take(lent)
	}
	*l = nil
	return lent.made()
}

// Draw has one of the snapshots pay for n bytes that are kept for them; they are not the driver's any more.
func (l *Shadows) Draw(n int64) error {
	for _, s := range *l {
		if b := s.body.Load(); b != nil {
			if there, err := b.account.draw(n); there || err != nil {
				return err
			}
		}
	}
	return nil
}
