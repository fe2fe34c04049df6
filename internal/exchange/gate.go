package exchange

import "github.com/flott-dev/flott/internal/frame"

// Gate is the reading side of a task: all channels of all inputs, read in turn so that none starves.
type Gate struct {
	channels []*Channel
	open     []bool // false once the channel has ended
	next     int
}

// NewGate returns a gate over the channels.
func NewGate(channels []*Channel) *Gate {
	g := &Gate{channels: channels, open: make([]bool, len(channels))}
	for i := range g.open {
		g.open[i] = true
	}
	return g
}

// Poll takes the next frame and says on which channel it came; nil if all are empty.
func (g *Gate) Poll() (f *frame.Frame, channel int) {
	for range g.channels {
		c := g.next
		if g.next++; g.next == len(g.channels) {
			g.next = 0
		}
		if !g.open[c] {
			continue
		}
		if f = g.channels[c].Poll(); f != nil {
			return f, c
		}
	}
	return nil, -1
}

// Return gives a frame of that channel back.
func (g *Gate) Return(f *frame.Frame, channel int) { g.channels[channel].Return(f) }

// End closes a channel: nothing more comes on it.
func (g *Gate) End(channel int) { g.open[channel] = false }

// Ended reports whether a channel was closed.
func (g *Gate) Ended(channel int) bool { return !g.open[channel] }
