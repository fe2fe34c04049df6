package pebble

import (
	"errors"
	"fmt"
	"hash/maphash"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

// cache holds rows of the tree, those that have been changed and not been written among them, in two queues of segments. A
// row begins in the small one. When the oldest segment of it is cleared, rows that were used since move to the main queue,
// the others go; in the main queue rows go that were not used since the segment was begun. So keys that come once pass
// through a tenth of the cache and leave those that come often alone. A key that comes back soon after it went begins in the
// main queue.
//
// Rows go and move only in trim, which is called where nobody holds a row: at the beginning of a table's methods and between
// the steps of long ones.
type cache struct {
	store        *store
	seed         maphash.Seed
	index        index
	segments     []*segment // by number
	numbers      []uint32   // those that are free
	spare        []*segment
	small, main  queue
	ghost        ghost
	owners       []*ledger // by number
	victims      []*row    // that are to be written
	late         []*row    // victims that go before they are written
	news         []news
	gone         []*segment
	buf          []byte
	bytes        int64 // of segments in use
	limit        int64
	reserved     int64 // of the budget
	layers       layers
	layered      int64 // bytes of layers
	mostLayered  int64 // of them
	few          int64 // bytes of rows that are not worth a file
	segmentWords int
	present      int  // rows that reads of the tree found, of late
	absent       int  // and did not find: filters of the lowest level pay for these only
	stuck        bool // an eviction found no row that may go
}

const (
	leastSegment = 4 << 10
	mostSegment  = 32 << 10
	// evictBytes is about how much is evicted at once: the rows of it are written in the order of their keys.
	evictBytes = 256 << 10
)

func newCache(s *store, limit int64) *cache {
	words := min(max(limit/64, leastSegment), mostSegment) / 8
	return &cache{store: s, seed: maphash.MakeSeed(), index: newIndex(), limit: limit, segmentWords: int(words), few: smallBytes, mostLayered: limit / layerShare}
}

// own makes a ledger an owner of rows.
func (c *cache) own(l *ledger) error {
	if len(c.owners) > 1<<16-1 {
		return fmt.Errorf("operator %q: state %q: too many states", c.store.Operator, l.s.Name)
	}
	l.name, l.owned = uint16(len(c.owners)), true
	c.owners = append(c.owners, l)
	return nil
}

func (c *cache) rowAt(place uint64) *row {
	return c.segments[place>>wordBits&maxSegments].at(int(place & (1<<wordBits - 1)))
}

func (c *cache) hashAt(slot uint64) uint32 { return c.rowAt(slot).hash }

// slotOf is what the index says of a row.
func (c *cache) slotOf(r *row) uint64 {
	base := unsafe.Pointer(&c.segments[r.seg].mem[0])
	return slotOf(r.hash, r.seg, int((uintptr(unsafe.Pointer(r))-uintptr(base))/8))
}

// find gives the row of a key that is in the cache, or nil.
func (c *cache) find(hash uint32, key []byte) *row {
	p := c.index.page(hash)
	for i := hash % pageSlots; p.slots[i] != 0; i = (i + 1) % pageSlots {
		if s := p.slots[i]; uint32(s>>(wordBits+segmentBits)) == hash&tagMask {
			if r := c.rowAt(s & placeMask); string(r.key()) == string(key) {
				return r
			}
		}
	}
	return nil
}

// get gives the row of a key, read from the tree if need be. It is live if there is one. what is slot or nothing: what rows
// of the kind are.
func (c *cache) get(l *ledger, key []byte, what uint8) (*row, error) {
	hash := uint32(maphash.Bytes(c.seed, key))
	if r := c.find(hash, key); r != nil {
		if r.heat < maxHeat {
			r.heat++
		}
		return r, nil
	}
	return c.fetch(l, hash, key, what)
}

// leastRoom is how much room the value of a row that does not exist yet will need at least.
func (c *cache) leastRoom(l *ledger, what uint8) int {
	if what&slot == 0 {
		return 0
	}
	return int(l.size) + l.tail
}

// load puts a row of the tree into the cache.
func (c *cache) load(l *ledger, hash uint32, key, value []byte, what uint8) (*row, error) {
	n, err := l.unpacked(value, what)
	if err != nil {
		return nil, err
	}
	r, err := c.add(l, hash, key, what, n)
	if err != nil {
		return nil, err
	}
	r.vlen = uint32(n)
	r.state |= live | known
	if err := l.unpack(r, value); err != nil {
		c.forget(r)
		return nil, err
	}
	return r, nil
}

// fresh makes the row of a key that the tree has never had, with room for a value.
func (c *cache) fresh(l *ledger, key []byte, what uint8, room int) (*row, error) {
	return c.add(l, uint32(maphash.Bytes(c.seed, key)), key, what, room)
}

// add puts a row that does not exist into the cache, with room for a value.
func (c *cache) add(l *ledger, hash uint32, key []byte, what uint8, room int) (*row, error) {
	q := &c.small
	if c.ghost.has(hash) {
		q = &c.main
	}
	r, err := c.make(q, l, hash, key, what, room)
	if err != nil {
		return nil, err
	}
	grown, ok := c.index.put(hash, c.slotOf(r), c.hashAt)
	if grown > 0 {
		err = c.reserve(int64(grown) * pageBytes) // a little late, and of little
	}
	if !ok {
		err = fmt.Errorf("%w: the cache has too many rows", statebackend.ErrOutOfMemory)
	}
	if err != nil {
		return nil, l.wrap("cache", err)
	}
	return r, nil
}

// make writes the head and key of a row at the end of a queue.
func (c *cache) make(q *queue, l *ledger, hash uint32, key []byte, what uint8, room int) (*row, error) {
	if !l.owned {
		if err := c.own(l); err != nil {
			return nil, err
		}
	}
	room = (room + 7) &^ 7
	words := wordsFor(len(key), room)
	r, s, err := c.place(q, words)
	if err != nil {
		return nil, l.wrap("cache", err)
	}
	*r = row{
		hash: hash, seg: s.number, stamp: c.store.generation, klen: uint32(len(key)), vcap: uint32(room),
		owner: l.name, state: what,
	}
	copy(r.key(), key)
	l.held += int64(words) * 8
	return r, nil
}

// forget takes a row out of the index and leaves its memory behind.
func (c *cache) forget(r *row) {
	c.index.remove(r.hash, c.slotOf(r))
	r.state |= dead
	c.owners[r.owner].held -= int64(r.words()) * 8
}

// touch says that a row is about to be another one.
func (c *cache) touch(r *row) {
	if r.stamp == c.store.generation && r.is(dirty) {
		return
	}
	s := c.segments[r.seg]
	if !r.is(dirty) {
		s.dirty++
	}
	if len(s.views) > 0 {
		c.preserve(s, r)
		return
	}
	r.stamp = c.store.generation
	r.state |= dirty
}

// put gives a row a value of n bytes, which the caller writes; as much of the old one as fits is in it. The row may be
// another one then.
func (c *cache) put(r *row, n int) (*row, error) {
	c.touch(r)
	if n <= int(r.vcap) && int(r.vcap) <= 4*(n+32) {
		r.vlen = uint32(n)
		r.state |= live
		return r, nil
	}
	if c.stretch(r, n) {
		return r, nil
	}
	l := c.owners[r.owner]
	p, err := c.make(&c.small, l, r.hash, r.key(), r.state, n)
	if err != nil {
		return nil, err
	}
	p.vlen, p.lent, p.heat = uint32(n), r.lent, r.heat
	p.state |= live
	copy(p.value(), r.value())
	c.segments[p.seg].dirty++
	c.index.move(r.hash, c.slotOf(r), c.slotOf(p))
	r.state |= dead
	l.held -= int64(r.words()) * 8
	return p, nil
}

// stretch makes room for a value of n bytes where a row is, if it is the last of its segment.
func (c *cache) stretch(r *row, n int) bool {
	s := c.segments[r.seg]
	more := (n+7)/8 - int(r.vcap)/8
	if more <= 0 || len(s.views) > 0 || s.used+more > len(s.mem) || s.at(s.used-r.words()) != r {
		return false
	}
	key := r.key()
	s.used += more
	r.vcap += uint32(more) * 8
	copy(r.key(), key) // they may overlap
	r.vlen = uint32(n)
	r.state |= live
	c.owners[r.owner].held += int64(more) * 8
	return true
}

// drop makes a row one that does not exist.
func (c *cache) drop(r *row) {
	c.touch(r)
	r.vlen, r.lent = 0, 0
	r.state &^= live
}

// pinned says whether somebody may write through the address of the row.
func (c *cache) pinned(r *row) bool { return r.lent == c.owners[r.owner].epoch }

// used is what counts for the limit.
func (c *cache) used() int64 { return c.bytes + int64(c.index.pages)*pageBytes + c.layered }

// reserve draws n bytes on the budget.
func (c *cache) reserve(n int64) error {
	if m := c.store.Memory; m != nil {
		if err := m.Reserve(n); err != nil {
			return fmt.Errorf("%w: the cache holds %d bytes and needs %d more: give the process more memory, "+
				"or the backend a smaller cache: %w", statebackend.ErrOutOfMemory, c.reserved, n, err)
		}
	}
	c.reserved += n
	return nil
}

func (c *cache) giveBack(n int64) {
	c.reserved -= n
	if m := c.store.Memory; m != nil && n > 0 {
		m.Release(n)
	}
}

// renew says that all addresses have ended.
func (c *cache) renew() { c.stuck = false }

// relax gives spare segments back, but for some.
func (c *cache) relax() {
	for n := len(c.spare); n > 2 && int64(n*c.segmentWords*8) > c.limit/16+2*evictBytes; n-- {
		c.scrap(c.spare[n-1])
		c.spare = c.spare[:n-1]
	}
}

func (c *cache) errWrite(err error) error {
	return fmt.Errorf("operator %q: write state to disk: %w", c.store.Operator, err)
}

// close gives all memory back.
func (c *cache) close() (err error) {
	for _, y := range c.layers.all {
		err = errors.Join(err, y.close())
	}
	c.giveBack(c.reserved)
	*c = cache{store: c.store, limit: c.limit}
	return err
}
