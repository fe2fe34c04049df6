package heap

import (
	"errors"
	"math/bits"
	"unsafe"
)

// ref is an address in an arena: a chunk's number and the offset in it, in words. Arenas hand out at most refBits.
type ref uint64

const (
	refOffsetBits = 17 // in words: chunks of 1 MiB
	refChunkBits  = 24
	refBits       = refOffsetBits + refChunkBits

	maxChunk   = 1 << 20
	minChunk   = 4 << 10
	ownChunk   = 16 << 10 // records from here on get a chunk of their own
	smallRoom  = 256      // up to here, room comes in words, then in quarters of a power of two
	smallRooms = smallRoom / 8
	rooms      = smallRooms + 4*6 + 1
	// slack is the garbage that is not worth a compaction.
	slack = 64 << 10
)

type chunk struct {
	size   int
	frozen uint32 // bytes that were in use when the last snapshot was taken
	single bool   // of one large record
	old    bool   // being emptied by a compaction
}

// reach finds records: the addresses of the chunks. A copy of it is what a snapshot needs of an arena.
type reach []unsafe.Pointer

// at is the address of a record.
func (c reach) at(r ref) unsafe.Pointer {
	return unsafe.Add(c[r>>refOffsetBits], uintptr(r&(1<<refOffsetBits-1))<<3)
}

// arena keeps records of bytes. Freed records of an arena that nobody else points into are used again by size. In an
// exposed arena, whose bytes user strings point to, bytes are written once: freed records are garbage, and chunks that
// a compaction has emptied are left to the garbage collector, which knows who still reads them.
//
// Compaction is the owner's work: begin it when worthwhile, show every record to move, then end it.
//
// While a snapshot is open, no record that was there when it was taken is written over: owners ask frozen before they
// change one in place, and room that is freed is used again only when the snapshot has been released.
type arena struct {
	reach
	ledger  *ledger
	exposed bool
	chunks  []chunk  // beside reach; of size 0: vacant
	vacant  []uint32 // numbers of chunks that were dropped
	cur     uint32   // the open chunk, if any (end > 0)
	off     int
	end     int
	total   int64         // bytes of chunks shared by records
	live    int64         // bytes of records in them
	free    [rooms]uint64 // first of a chain of free records by room, plus one; it goes through their first word
	moving  bool
	credit  int64   // bytes that the compaction may still copy in this step
	made    int64   // bytes of records made since the last step
	later   []freed // in order
	settled int     // of later: room that is usable again
}

// freed is a record that was freed while a snapshot needed it.
type freed struct {
	ref  ref
	n    uint32
	last uint32 // the last snapshot that was open, by the low bits of its id
}

// errPaused ends a step of a compaction that has copied enough.
var errPaused = errors.New("enough for one step")

// stepBytes is what a step of a compaction copies, more only if more was written meanwhile.
const stepBytes = 256 << 10

func newArena(l *ledger, exposed bool) *arena {
	return &arena{ledger: l, exposed: exposed}
}

// roomOf gives the size class of a record of n > 0 bytes and the bytes it takes.
func roomOf(n int) (class, room int) {
	if n <= smallRoom {
		class = (n + 7) / 8
		return class, class * 8
	}
	e := bits.Len(uint(n-1)) - 1 // 2^e < n <= 2^(e+1)
	quarter := 1 << (e - 2)
	q := (n - 1<<e + quarter - 1) / quarter
	return smallRooms + (e-8)*4 + q, 1<<e + q*quarter
}

// make makes room for n > 0 bytes; how much it is tells roomOf. The bytes are not zero.
func (a *arena) make(n int) (ref, error) {
	if n >= ownChunk {
		no, err := a.addChunk(int(roundUp(uintptr(n))), true)
		return ref(no) << refOffsetBits, err
	}
	class, room := roomOf(n)
	a.made += int64(room)
	if head := a.free[class]; head != 0 {
		r := ref(head - 1)
		a.free[class] = *(*uint64)(a.at(r))
		a.live += int64(room)
		return r, nil
	}
	if a.off+room > a.end {
		no, err := a.addChunk(max(a.chunkSize(), room), false)
		if err != nil {
			return 0, err
		}
		a.cur, a.off, a.end = no, 0, a.chunks[no].size
		a.total += int64(a.end)
	}
	r := ref(a.cur)<<refOffsetBits | ref(a.off>>3)
	a.off += room
	a.live += int64(room)
	return r, nil
}

// chunkSize keeps the open chunk small beside what the arena holds.
func (a *arena) chunkSize() int {
	size := minChunk
	for size < maxChunk && int64(size) < a.live/4 {
		size *= 2
	}
	return size
}

func (a *arena) addChunk(size int, single bool) (uint32, error) {
	if len(a.vacant) == 0 && len(a.chunks) == 1<<refChunkBits {
		return 0, a.ledger.store.errTooMany(a.ledger.state)
	}
	if err := a.ledger.reserve(int64(size)); err != nil {
		return 0, err
	}
	c, mem := chunk{size: size, single: single}, memory(uintptr(size))
	if n := len(a.vacant); n > 0 {
		no := a.vacant[n-1]
		a.vacant = a.vacant[:n-1]
		a.chunks[no], a.reach[no] = c, mem
		return no, nil
	}
	a.chunks, a.reach = append(a.chunks, c), append(a.reach, mem)
	return uint32(len(a.chunks) - 1), nil
}

func (a *arena) dropChunk(no uint32) {
	if c := &a.chunks[no]; c.frozen > 0 {
		a.ledger.leave(int64(c.size))
	} else {
		a.ledger.release(int64(c.size))
	}
	a.chunks[no], a.reach[no] = chunk{}, nil
	a.vacant = append(a.vacant, no)
}

// drop frees a record of n bytes.
func (a *arena) drop(r ref, n int) {
	no := uint32(r >> refOffsetBits)
	if n >= ownChunk {
		a.dropChunk(no)
		return
	}
	class, room := roomOf(n)
	a.live -= int64(room)
	if a.live == 0 && !a.moving {
		a.reset()
		return
	}
	if a.exposed || a.chunks[no].old {
		return
	}
	if a.frozen(r) {
		a.freeLater(r, n)
		return
	}
	a.chain(r, class)
}

// chain makes the room of a freed record usable.
func (a *arena) chain(r ref, class int) {
	*(*uint64)(a.at(r)) = a.free[class]
	a.free[class] = uint64(r) + 1
}

// reset drops all shared chunks: no record is left in them.
func (a *arena) reset() {
	if a.total <= slack {
		if !a.exposed && a.end > 0 && a.total == int64(a.end) && !a.frozen(ref(a.cur)<<refOffsetBits) {
			a.forgetFreed()
			a.free, a.off = [rooms]uint64{}, 0 // one chunk that nobody reads: begin it anew
		}
		return
	}
	for no := range a.chunks {
		if c := &a.chunks[no]; c.size > 0 && !c.single {
			a.dropChunk(uint32(no))
		}
	}
	a.forgetFreed()
	a.free = [rooms]uint64{}
	a.cur, a.off, a.end, a.total = 0, 0, 0, 0
}

// worthwhile says whether more than half of the arena is garbage.
func (a *arena) worthwhile() bool { return !a.moving && a.total > 2*a.live+slack }

// begin starts a compaction: new records go to new chunks.
func (a *arena) begin() {
	a.moving = true
	for i := range a.chunks {
		a.chunks[i].old = a.chunks[i].size > 0 && !a.chunks[i].single
	}
	a.forgetFreed()
	a.free = [rooms]uint64{}
	a.cur, a.off, a.end = 0, 0, 0
}

// move copies a record of n bytes out of a chunk that is being emptied; others stay. An error leaves the record where
// it is, to be shown again in the next step.
func (a *arena) move(r ref, n int) (ref, error) {
	if !a.chunks[r>>refOffsetBits].old {
		return r, nil
	}
	if a.credit <= 0 {
		return r, errPaused
	}
	to, err := a.make(n)
	if err != nil {
		return r, err
	}
	copyBytes(a.at(to), a.at(r), uintptr(n))
	_, room := roomOf(n)
	a.live -= int64(room)
	a.credit -= int64(room)
	return to, nil
}

// finish drops the emptied chunks.
func (a *arena) finish() {
	a.moving = false
	for no := range a.chunks {
		if c := &a.chunks[no]; c.old {
			a.total -= int64(c.size)
			a.dropChunk(uint32(no))
		}
	}
}

// close drops everything.
func (a *arena) close() {
	for no := range a.chunks {
		if a.chunks[no].size > 0 {
			a.dropChunk(uint32(no))
		}
	}
	a.forgetFreed()
	*a = arena{ledger: a.ledger, exposed: a.exposed}
}
