package exchange

import (
	"sync/atomic"

	"github.com/flott-dev/flott/internal/frame"
)

// Gate is the reading side of a task: all channels of all inputs, read in turn so that none starves.
type Gate struct {
	channels []*Channel
	readable []bool // neither ended nor blocked
	ended    []bool
	next     int
	notices  atomic.Uint32 // of all channels
	seen     uint32
}

// NewGate returns a gate over the channels.
func NewGate(channels []*Channel) *Gate {
	g := &Gate{channels: channels, readable: make([]bool, len(channels)), ended: make([]bool, len(channels))}
	for _, c := range channels {
		c.notices = &g.notices
	}
	g.Unblock()
	return g
}

// Noticed reports whether a barrier has been announced on any channel since the last call.
func (g *Gate) Noticed() bool {
	n := g.notices.Load()
	changed := n != g.seen
	g.seen = n
	return changed
}

// Notice gives the value of the last barrier that was announced on a channel, if it is in the queue or in the frame that was
// polled last.
func (g *Gate) Notice(channel int) (value int64, ok bool) {
	c := g.channels[channel]
	n := c.notice.Load()
	if n == nil || n.at+1 < c.full.head.Load() {
		return 0, false
	}
	return n.value, true
}

// Ahead shows all frames that will be polled up to the last barrier that was announced on a channel, the one with the barrier
// included. They stay the channel's.
func (g *Gate) Ahead(channel int, show func(*frame.Frame)) {
	c := g.channels[channel]
	n := c.notice.Load()
	if n == nil {
		return
	}
	for _, f := range c.backlog {
		show(f)
	}
	for at := c.full.head.Load(); at <= n.at; at++ {
		show(c.full.slots[at%ringLen])
	}
}

// Backlog puts frames before everything else on a channel. They are polled, and not reused.
func (g *Gate) Backlog(channel int, frames ...*frame.Frame) {
	c := g.channels[channel]
	c.backlog = append(c.backlog, frames...)
}

// Poll takes the next frame and says on which channel it came; nil if all are empty, blocked or ended.
func (g *Gate) Poll() (f *frame.Frame, channel int) {
	for range g.channels {
		c := g.next
		if g.next++; g.next == len(g.channels) {
			g.next = 0
		}
		if !g.readable[c] {
			continue
		}
		if f = g.channels[c].Poll(); f != nil {
			return f, c
		}
	}
	return nil, -1
}

// PollChannel takes the next frame of one channel; nil if it is empty, blocked or ended.
func (g *Gate) PollChannel(channel int) *frame.Frame {
	if !g.readable[channel] {
		return nil
	}
	return g.channels[channel].Poll()
}

// Return gives a frame of that channel back.
func (g *Gate) Return(f *frame.Frame, channel int) { g.channels[channel].Return(f) }

// Block leaves a channel unread, whose producer will wait when it is full: what has come on it must not be read before
// Unblock. What was taken of it already is not taken back, so that a barrier has to be the last of its frame, as a Writer
// sends it.
func (g *Gate) Block(channel int) { g.readable[channel] = false }

// Unblock has all channels read again that have not ended.
func (g *Gate) Unblock() {
	for i := range g.readable {
		g.readable[i] = !g.ended[i]
	}
}

// End closes a channel: nothing more comes on it.
func (g *Gate) End(channel int) { g.ended[channel], g.readable[channel] = true, false }

// Ended reports whether a channel was closed.
func (g *Gate) Ended(channel int) bool { return g.ended[channel] }
