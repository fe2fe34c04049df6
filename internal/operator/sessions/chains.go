package sessions

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/watermark"
)

// node is a session, [start, end) in ms. The sessions of a key are a chain in order of their starts.
type node struct {
	start, end int64 // start > end: there is no session
	due        int64 // the time of the entry in the wheel that counts
	older      uint32
	newer      uint32           // 0: this is the key's latest, which the table knows; freeNode: the node is nobody's
	tail       [tailBytes]uint8 // accumulator and key, as far as they fit: a session is one line of the cache
}

const (
	nodeBytes = unsafe.Sizeof(node{}) // 64
	tailBytes = 32
	// noTime is the due time of no entry.
	noTime   = math.MinInt64
	freeNode = math.MaxUint32
	// firstNodes is the number of nodes of the first memory.
	firstNodes = 1024
)

// reset takes the session out of a node: no time touches it.
func (n *node) reset() {
	n.start, n.end, n.due = math.MaxInt64, math.MinInt64, noTime
}

func (n *node) empty() bool { return n.start > n.end }

// chains are the sessions of all keys. Nodes are named by number, from 1 on; node i has accumulator i and key i. A key that
// the table knows has at least one node: if it has no session, an empty one.
type chains struct {
	ledger    ledger
	k         *windows.Incremental
	nodes     []node // all that there is memory for
	accs      column
	keys      column
	used      int      // nodes ever handed out, with node 0, which is nobody's
	free      []uint32 // nodes that are nobody's again, with room for all: a list through them would be waited for
	live      int      // sessions
	idle      int      // keys without a session
	wheel     wheel
	watermark int64 // sessions that end at it or before have fired
	lateness  int64
	memory    windows.Memory  // of nodes
	shadows   windows.Shadows // the snapshots that need sessions
	deep      bool            // accumulators are copied by their encoding only
}

// column is a value for each node.
type column struct {
	*windows.Memory
	base   unsafe.Pointer // the value of node 0
	stride uintptr
	scale  uint32  // of node numbers: that of the value in an array of such values at base
	inside bool    // it is in the tail of the nodes
	offset uintptr // where
	plain  bool    // no pointers
}

// place says where the values lie: in the tail of the nodes, from offset on, if they fit there. whole says that their
// distance must be a multiple of their size. It returns what is left of the tail.
func (c *column) place(m *windows.Memory, pointers, whole bool, offset uintptr) uintptr {
	c.Memory, c.stride, c.scale, c.plain = m, m.Size, 1, !pointers
	end := (offset + m.Size + 7) &^ 7
	if pointers || m.Size == 0 || end > nodeBytes || whole && nodeBytes%m.Size != 0 {
		return offset
	}
	c.inside, c.stride, c.scale, c.offset = true, nodeBytes, uint32(nodeBytes/m.Size), offset
	return end
}

func (c *column) at(id uint32) unsafe.Pointer { return unsafe.Add(c.base, uintptr(id)*c.stride) }

// bytes is the memory of its own that it takes for a node.
func (c *column) bytes() int64 {
	if c.inside {
		return 0
	}
	return int64(c.Size)
}

// grow makes room for so many nodes, of which the first used have values.
func (c *column) grow(nodes []node, used int) {
	if c.inside {
		c.base = unsafe.Add(unsafe.Pointer(unsafe.SliceData(nodes)), c.offset)
		return
	}
	base := c.New(len(nodes))
	if used > 1 {
		c.Move(base, c.base, used)
	}
	c.base = base
}

// clear makes the value of a node zero.
func (c *column) clear(id uint32) {
	if c.plain && c.Size == 8 {
		*(*uint64)(c.at(id)) = 0
		return
	}
	c.Zero(c.at(id), 1)
}

func (c *chains) open(lateness int64, keyPointers bool) error {
	tail := c.accs.place(&c.k.Accs, c.k.Acc.Pointers, true, nodeBytes-tailBytes)
	c.keys.place(&c.k.Keys, keyPointers, false, tail)
	c.used, c.watermark, c.lateness = 1, noTime, lateness
	c.memory, c.deep = windows.MemoryOf[node](), c.k.Acc.Layout == serde.Encoded
	c.wheel.ledger = &c.ledger
	if err := c.ledger.reserve(int64(unsafe.Sizeof(c.wheel))); err != nil {
		return err
	}
	if err := c.grow(); err != nil {
		return err
	}
	c.nodes[0].reset()
	c.nodes[0].due = math.MaxInt64 // no element is put there in passing
	return nil
}

// alloc hands out a node without a session; its accumulator is zero, its key the caller's to write.
func (c *chains) alloc() (uint32, error) {
	if n := len(c.free); n != 0 {
		id := c.free[n-1]
		c.free = c.free[:n-1]
		c.nodes[id].newer = 0
		return id, nil
	}
	if c.used == len(c.nodes) {
		if err := c.grow(); err != nil {
			return 0, err
		}
	}
	id := uint32(c.used)
	c.used++
	c.nodes[id].reset()
	return id, nil
}

// grow doubles the memory.
func (c *chains) grow() error {
	size := max(2*len(c.nodes), firstNodes)
	if size > freeNode/int(c.accs.scale) {
		return fmt.Errorf("operator %q: session windows: more sessions than one subtask can hold: raise the parallelism", c.ledger.operator)
	}
	each := c.each()
	if err := c.ledger.reserve(int64(size-len(c.nodes)) * each); err != nil {
		return err
	}
	if c.shadows.Open() {
		if err := c.lend(); err != nil {
			return err
		}
	}
	nodes := make([]node, size)
	copy(nodes, c.nodes[:min(c.used, len(c.nodes))])
	c.accs.grow(nodes, c.used)
	c.keys.grow(nodes, c.used)
	c.nodes, c.free = nodes, make([]uint32, 0, size) // there was none free
	return nil
}

// each is the memory of a node.
func (c *chains) each() int64 { return int64(nodeBytes) + 4 + c.accs.bytes() + c.keys.bytes() }

// lend leaves the arrays, which are to be replaced, to the snapshots that need them.
func (c *chains) lend() error {
	if c.deep {
		if err := c.shadows.KeepAll(); err != nil {
			return err
		}
	}
	bytes := c.each() * int64(len(c.nodes))
	if err := c.ledger.reserve(bytes); err != nil {
		return err
	}
	if c.shadows.Lend(c.ledger.memory, bytes) {
		c.ledger.held -= bytes
	} else {
		c.ledger.give(bytes)
	}
	return nil
}

// release makes a node nobody's.
func (c *chains) release(id uint32) error {
	if err := c.shadows.Keep(id); err != nil {
		return err
	}
	if !c.keys.plain {
		c.keys.clear(id)
	}
	s := &c.nodes[id]
	s.reset()
	s.older, s.newer = 0, freeNode
	c.free = append(c.free, id)
	return nil
}

// cleanup is when a session that ends at last leaves.
func (c *chains) cleanup(last int64) int64 { return watermark.Add(last, c.lateness) }

// next is when something happens to a session: it fires, or it leaves.
func (c *chains) next(s *node) int64 {
	if last := s.end - 1; last > c.watermark {
		return last
	}
	return c.cleanup(s.end - 1)
}

// enter makes sure that the wheel knows of what comes next for a session.
func (c *chains) enter(id uint32) {
	s := &c.nodes[id]
	if at := c.next(s); s.due == noTime || s.due > at {
		s.due = at
		c.wheel.add(at, id)
	}
}

// find looks for sessions of the chain that touch [start, end): the latest of them, or 0; newer is the one after it, or
// after where it would be. latest is the chain's latest node.
func (c *chains) find(latest uint32, start, end int64) (found, newer uint32) {
	found = latest
	for found != 0 && c.nodes[found].start > end {
		found, newer = c.nodes[found].older, found
	}
	if found != 0 && c.nodes[found].end < start {
		found = 0
	}
	return found, newer
}

// begin makes a new session where find found none. latest is where the table names the chain's latest node.
func (c *chains) begin(latest *uint32, newer uint32, start, end int64) (id uint32, err error) {
	if id = *latest; c.nodes[id].empty() {
		c.idle--
	} else if id, err = c.insert(latest, newer); err != nil {
		return 0, err
	}
	if err := c.shadows.Keep(id); err != nil {
		return 0, err
	}
	c.live++
	c.nodes[id].start, c.nodes[id].end = start, end
	c.enter(id)
	return id, nil
}

// insert links a new node in, before newer, or as the chain's latest.
func (c *chains) insert(latest *uint32, newer uint32) (uint32, error) {
	id, err := c.alloc()
	if err != nil {
		return 0, err
	}
	c.keys.Move(c.keys.at(id), c.keys.at(*latest), 1)
	older := *latest
	if newer != 0 {
		older = c.nodes[newer].older
	}
	c.nodes[id].older, c.nodes[id].newer = older, newer
	if older != 0 {
		c.nodes[older].newer = id
	}
	c.relink(latest, newer, id)
	return id, nil
}

// relink makes id the node before newer, or the chain's latest.
func (c *chains) relink(latest *uint32, newer, id uint32) {
	if newer != 0 {
		c.nodes[newer].older = id
	} else {
		*latest = id
	}
}

// oldest is the oldest session that touches [start, ...), from one on that does.
func (c *chains) oldest(id uint32, start int64) uint32 {
	for {
		older := c.nodes[id].older
		if older == 0 || c.nodes[older].end < start {
			return id
		}
		id = older
	}
}

// merge makes one session of those from oldest to newest: that is the oldest's node. Accumulators are merged in order.
func (c *chains) merge(latest *uint32, oldest, newest uint32) error {
	if err := c.shadows.Keep(oldest); err != nil {
		return err
	}
	end, newer := c.nodes[newest].end, c.nodes[newest].newer
	for id := c.nodes[oldest].newer; id != newer; {
		if err := c.shadows.Keep(id); err != nil {
			return err
		}
		c.k.Merge(c.accs.at(oldest), c.accs.at(id))
		c.accs.clear(id)
		next := c.nodes[id].newer
		if err := c.release(id); err != nil {
			return err
		}
		c.live--
		id = next
	}
	c.nodes[oldest].end, c.nodes[oldest].newer = end, newer
	c.relink(latest, newer, oldest)
	return nil
}

// extend makes a session cover [start, end) as well.
func (c *chains) extend(id uint32, start, end int64) error {
	if err := c.shadows.Keep(id); err != nil {
		return err
	}
	s := &c.nodes[id]
	s.start, s.end = min(s.start, start), max(s.end, end)
	c.enter(id)
	return nil
}

// leave ends a session. The node of a key's latest one stays, empty.
func (c *chains) leave(id uint32) error {
	if err := c.shadows.Keep(id); err != nil {
		return err
	}
	c.accs.clear(id)
	c.live--
	s := &c.nodes[id]
	older, newer := s.older, s.newer
	if newer == 0 {
		s.reset()
		c.idle++
		return nil
	}
	c.nodes[newer].older = older
	if older != 0 {
		c.nodes[older].newer = newer
	}
	return c.release(id)
}

// close gives everything back, but for what snapshots need.
func (c *chains) close() {
	if c.shadows.Open() {
		if bytes := c.each() * int64(len(c.nodes)); c.shadows.Lend(c.ledger.memory, bytes) {
			c.ledger.held -= bytes
		}
	}
	c.ledger.release()
	c.nodes, c.free, c.accs, c.keys, c.wheel = nil, nil, column{}, column{}, wheel{}
}
