package sessions

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/flott-dev/flott/internal/operator/windows"
)

// node is a session, [start, end) in ms. The sessions of a key are a chain in order of their starts.
type node struct {
	start, end int64 // start > end: there is no session
	due        int64 // the time of the entry in the wheel that counts
	older      uint32
	newer      uint32 // 0: this is the key's latest, which the table knows; freeNode: the node is nobody's
}

const (
	nodeBytes = unsafe.Sizeof(node{})
	// noTime is the due time of no entry.
	noTime   = math.MinInt64
	freeNode = math.MaxUint32
	// firstNodes is the number of nodes of the first memory.
	firstNodes = 1024
)

// none is a node without a session: no time touches it.
var none = node{start: math.MaxInt64, end: math.MinInt64, due: noTime}

func (n *node) empty() bool { return n.start > n.end }

// chains are the sessions of all keys. Nodes are named by number, from 1 on; node i has accumulator i and key i. A key that
// the table knows has at least one node: if it has no session, an empty one.
type chains struct {
	ledger    ledger
	k         *windows.Incremental
	nodes     []node // all that there is memory for
	accs      unsafe.Pointer
	keys      unsafe.Pointer
	used      int    // nodes ever handed out, with node 0, which is nobody's
	free      uint32 // the first free node; the next is its older
	live      int    // sessions
	idle      int    // keys without a session
	wheel     wheel
	watermark int64 // sessions that end at it or before have fired
	lateness  int64
	hollow    bool // accumulators hold no pointers
	light     bool // keys hold no pointers
}

func (c *chains) open(lateness int64) error {
	c.used, c.watermark, c.lateness = 1, noTime, lateness
	c.wheel.ledger = &c.ledger
	if err := c.grow(); err != nil {
		return err
	}
	c.nodes[0] = none
	return nil
}

func (c *chains) acc(id uint32) unsafe.Pointer { return c.k.Accs.At(c.accs, int(id)) }

func (c *chains) key(id uint32) unsafe.Pointer { return c.k.Keys.At(c.keys, int(id)) }

// alloc hands out a node without a session; its accumulator is zero, its key the caller's to write.
func (c *chains) alloc() (uint32, error) {
	if id := c.free; id != 0 {
		c.free = c.nodes[id].older
		c.nodes[id] = none
		return id, nil
	}
	if c.used == len(c.nodes) {
		if err := c.grow(); err != nil {
			return 0, err
		}
	}
	id := uint32(c.used)
	c.used++
	c.nodes[id] = none
	return id, nil
}

// grow doubles the memory.
func (c *chains) grow() error {
	size := max(2*len(c.nodes), firstNodes)
	if size > freeNode {
		return fmt.Errorf("operator %q: session windows: more sessions than one subtask can hold: raise the parallelism", c.ledger.operator)
	}
	each := int64(nodeBytes + c.k.Accs.Size + c.k.Keys.Size)
	if err := c.ledger.reserve(int64(size-len(c.nodes)) * each); err != nil {
		return err
	}
	nodes, accs, keys := make([]node, size), c.k.Accs.New(size), c.k.Keys.New(size)
	copy(nodes, c.nodes)
	if c.used > 1 {
		c.k.Accs.Move(accs, c.accs, c.used)
		c.k.Keys.Move(keys, c.keys, c.used)
	}
	c.nodes, c.accs, c.keys = nodes, accs, keys
	return nil
}

// release makes a node nobody's.
func (c *chains) release(id uint32) {
	if !c.light {
		c.k.Keys.Zero(c.key(id), 1)
	}
	c.nodes[id] = none
	c.nodes[id].older, c.nodes[id].newer = c.free, freeNode
	c.free = id
}

// cleanup is when a session that ends at last leaves.
func (c *chains) cleanup(last int64) int64 { return plus(last, c.lateness) }

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
	c.k.Keys.Move(c.key(id), c.key(*latest), 1)
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

// zero clears an accumulator.
func (c *chains) zero(id uint32) {
	if c.hollow && c.k.Accs.Size == 8 {
		*(*uint64)(c.acc(id)) = 0
		return
	}
	c.k.Accs.Zero(c.acc(id), 1)
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
func (c *chains) merge(latest *uint32, oldest, newest uint32) {
	end, newer := c.nodes[newest].end, c.nodes[newest].newer
	for id := c.nodes[oldest].newer; id != newer; {
		c.k.Merge(c.acc(oldest), c.acc(id))
		c.zero(id)
		next := c.nodes[id].newer
		c.release(id)
		c.live--
		id = next
	}
	c.nodes[oldest].end, c.nodes[oldest].newer = end, newer
	c.relink(latest, newer, oldest)
}

// extend makes a session cover [start, end) as well.
func (c *chains) extend(id uint32, start, end int64) {
	s := &c.nodes[id]
	s.start, s.end = min(s.start, start), max(s.end, end)
	c.enter(id)
}

// leave ends a session. The node of a key's latest one stays, empty.
func (c *chains) leave(id uint32) {
	c.zero(id)
	c.live--
	s := &c.nodes[id]
	older, newer := s.older, s.newer
	if newer == 0 {
		s.start, s.end, s.due = none.start, none.end, none.due
		c.idle++
		return
	}
	c.nodes[newer].older = older
	if older != 0 {
		c.nodes[older].newer = newer
	}
	c.release(id)
}

// close gives everything back.
func (c *chains) close() {
	c.ledger.release()
	c.nodes, c.accs, c.keys, c.wheel = nil, nil, nil, wheel{}
}
