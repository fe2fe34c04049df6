// Package exchange is how frames travel between the subtasks of one process: bounded single-producer queues with
// recycling, writers that partition runs over them, and gates that read them. It owns the queues and the partitioning;
// it never starts a goroutine and never waits except through the Waiter of the subtask that calls it.
package exchange

import (
	"sync/atomic"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
)

// Depth is the number of frames that a channel holds at most before its producer waits.
const Depth = 8

// LeastDepth is what it holds of a consumer that is slow: one to work on, and one to follow.
const LeastDepth = 2

// Overdraft is how many more frames a channel takes of a producer that looks for room before it begins to work, so as not to
// wait in the middle of it: what one run makes of itself seldom needs more.
const Overdraft = 8

// urgent is how many frames there may be at most, when one is sent that must not wait: a barrier, with what lies before it.
const urgent = ringLen - 2

// ringLen is the number of slots of a ring. The way back has room for every frame that there can be: those under way, one
// that the producer fills and one that the consumer works on. A frame that found no room would be lost, and the writer
// would reserve memory for another one at each swing of the backpressure.
const ringLen = 8 * Depth

// ring is a bounded single-producer single-consumer queue of frames. Producer and consumer keep a copy of the other's
// position and look at the shared one only when the copy says full or empty.
type ring struct {
	slots [ringLen]*frame.Frame
	_     [64]byte
	tail  atomic.Uint64 // written by the producer
	ahead uint64        // producer's copy of head
	_     [48]byte
	head  atomic.Uint64 // written by the consumer
	known uint64        // consumer's copy of tail
	_     [48]byte
}

// put appends f unless limit frames are in the ring.
func (r *ring) put(f *frame.Frame, limit uint64) bool {
	t := r.tail.Load()
	if t-r.ahead >= limit {
		if r.ahead = r.head.Load(); t-r.ahead >= limit {
			return false
		}
	}
	r.slots[t%ringLen] = f
	r.tail.Store(t + 1)
	return true
}

func (r *ring) take() *frame.Frame {
	h := r.head.Load()
	if h == r.known {
		if r.known = r.tail.Load(); h == r.known {
			return nil
		}
	}
	f := r.slots[h%ringLen]
	r.slots[h%ringLen] = nil
	r.head.Store(h + 1)
	return f
}

func (r *ring) len() int { return int(r.tail.Load() - r.head.Load()) }

// below reports whether fewer than limit frames are in the ring. Producer only.
func (r *ring) below(limit uint64) bool {
	t := r.tail.Load()
	if t-r.ahead < limit {
		return true
	}
	r.ahead = r.head.Load()
	return t-r.ahead < limit
}

// Channel connects one producing with one consuming subtask: frames in order one way, empty frames back. Beside the queue
// the producer can announce that a barrier stands in it.
type Channel struct {
	full    ring          // producer -> consumer
	empty   ring          // consumer -> producer
	depth   atomic.Uint32 // 0: Depth
	waiting atomic.Bool
	notice  atomic.Pointer[notice] // the last one
	notices *atomic.Uint32         // of the gate that reads the channel: how many there were; nil without a gate
	backlog []*frame.Frame         // consumer only: what comes before the queue
	lent    bool                   // consumer only: the frame at work is of the backlog
	// Producer and Consumer are the waiting points of the two subtasks; set before either runs.
	Producer, Consumer host.Waiter
}

// notice says where a barrier stands: it is the last mark of the frame at this position of the queue.
type notice struct {
	value int64
	at    uint64
}

// Hold has the channel hold so many frames, LeastDepth to Depth: fewer of a slow consumer, so that a barrier behind them does not
// wait for long. What it has already stays. Consumer only.
func (c *Channel) Hold(frames int) { c.depth.Store(uint32(min(max(frames, LeastDepth), Depth))) }

// limit is how many frames it takes at the moment from a producer that may exceed what it holds by some.
func (c *Channel) limit(over uint64) uint64 {
	if n := c.depth.Load(); n != 0 {
		return min(uint64(n)+over, urgent)
	}
	return min(Depth+over, urgent)
}

// Offer sends f; false if the channel is full. Producer only.
func (c *Channel) Offer(f *frame.Frame) bool { return c.offer(f, c.limit(0)) }

func (c *Channel) offer(f *frame.Frame, limit uint64) bool {
	if !c.full.put(f, limit) {
		return false
	}
	c.Consumer.Wake()
	return true
}

// announce says that the barrier of that value is the last mark of the last frame that was sent. Producer only.
func (c *Channel) announce(value int64) {
	c.notice.Store(&notice{value: value, at: c.full.tail.Load() - 1})
	if c.notices != nil {
		c.notices.Add(1)
	}
	c.Consumer.Wake()
}

// AwaitRoom announces that the producer waits for room; it reports whether there is room already. Producer only: set
// the flag, look again, then wait.
func (c *Channel) AwaitRoom() bool { return c.awaitRoom(c.limit(0)) }

func (c *Channel) awaitRoom(limit uint64) bool {
	c.waiting.Store(true)
	if c.full.below(limit) {
		c.waiting.Store(false)
		return true
	}
	return false
}

// Poll receives a frame; nil if there is none. Consumer only. A waiting producer is woken when half of the room is
// free, so that the two do not take turns frame by frame.
func (c *Channel) Poll() *frame.Frame {
	if len(c.backlog) != 0 {
		f := c.backlog[0]
		c.backlog[0], c.backlog, c.lent = nil, c.backlog[1:], true
		return f
	}
	f := c.full.take()
	if f != nil && c.waiting.Load() && c.full.len() <= int(c.limit(0)/2) {
		c.waiting.Store(false)
		c.Producer.Wake()
	}
	return f
}

// Len is the number of frames under way, as either end sees it.
func (c *Channel) Len() int { return c.full.len() }

// Return gives a received frame back for reuse, before the next one is received. Consumer only.
func (c *Channel) Return(f *frame.Frame) {
	if c.lent {
		c.lent = false
		return
	}
	if !f.Release() {
		return
	}
	f.Recycle()
	c.empty.put(f, ringLen)
}

// Fresh is an empty frame: a returned one, or nil. Producer only.
func (c *Channel) Fresh() *frame.Frame { return c.empty.take() }
