// Package exchange is how frames travel between the subtasks of one process: bounded single-producer queues with
// recycling, writers that partition runs over them, and gates that read them. It owns the queues and the partitioning;
// it never starts a goroutine and never waits except through the Waiter of the subtask that calls it.
package exchange

import (
	"sync/atomic"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
)

// Depth is the number of frames that a channel holds at most.
const Depth = 8

// ringLen is the number of slots of a ring. The way back has room for every frame that there can be: Depth under way, one
// that the producer fills and one that the consumer works on. A frame that found no room would be lost, and the writer
// would reserve memory for another one at each swing of the backpressure.
const ringLen = 2 * Depth

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
	if t-r.ahead == limit {
		if r.ahead = r.head.Load(); t-r.ahead == limit {
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

// Channel connects one producing with one consuming subtask: frames in order one way, empty frames back.
type Channel struct {
	full    ring // producer -> consumer
	empty   ring // consumer -> producer
	waiting atomic.Bool
	// Producer and Consumer are the waiting points of the two subtasks; set before either runs.
	Producer, Consumer host.Waiter
}

// Offer sends f; false if the channel is full. Producer only.
func (c *Channel) Offer(f *frame.Frame) bool {
	if !c.full.put(f, Depth) {
		return false
	}
	c.Consumer.Wake()
	return true
}

// AwaitRoom announces that the producer waits for room; it reports whether there is room already. Producer only: set
// the flag, look again, then wait.
func (c *Channel) AwaitRoom() bool {
	c.waiting.Store(true)
	if c.full.len() < Depth {
		c.waiting.Store(false)
		return true
	}
	return false
}

// Poll receives a frame; nil if there is none. Consumer only. A waiting producer is woken when half of the room is
// free, so that the two do not take turns frame by frame.
func (c *Channel) Poll() *frame.Frame {
	f := c.full.take()
	if f != nil && c.waiting.Load() && c.full.len() <= Depth/2 {
		c.waiting.Store(false)
		c.Producer.Wake()
	}
	return f
}

// Len is the number of frames under way, as either end sees it.
func (c *Channel) Len() int { return c.full.len() }

// Return gives a received frame back for reuse. Consumer only.
func (c *Channel) Return(f *frame.Frame) {
	if !f.Release() {
		return
	}
	f.Recycle()
	c.empty.put(f, ringLen)
}

// Fresh is an empty frame: a returned one, or nil. Producer only.
func (c *Channel) Fresh() *frame.Frame { return c.empty.take() }
