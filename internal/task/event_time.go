package task

import (
	"sync/atomic"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator/valve"
)

// EventTime is what others see of the event time of one input: a copy of its valve, renewed at each watermark and each
// word about idleness, before what follows from it is handed on. It may be read from any goroutine; what is read of two
// channels may be of two moments.
type EventTime struct {
	watermark atomic.Int64
	idle      atomic.Bool
	channels  []channelTime
}

// channelTime is one channel's part.
type channelTime struct {
	watermark atomic.Int64
	manner    atomic.Uint32
}

// The manners of a channel; otherwise it is active and holds the watermark at its own.
const (
	idleChannel uint32 = 1 + iota
	behindChannel
)

func newEventTime(channels int) *EventTime {
	e := &EventTime{channels: make([]channelTime, channels)}
	e.watermark.Store(frame.MinWatermark)
	for i := range e.channels {
		e.channels[i].watermark.Store(frame.MinWatermark)
	}
	return e
}

// note copies what a step of the valve has changed: the channel and the whole.
func (e *EventTime) note(v *valve.Valve, channel int) {
	c, s := &e.channels[channel], v.Channel(channel)
	c.watermark.Store(s.Watermark)
	switch {
	case s.Idle:
		c.manner.Store(idleChannel)
	case s.Behind:
		c.manner.Store(behindChannel)
	default:
		c.manner.Store(0)
	}
	e.watermark.Store(v.Out())
	e.idle.Store(v.IsIdle())
}

// Watermark is the input's watermark, frame.MinWatermark before the first.
func (e *EventTime) Watermark() int64 { return e.watermark.Load() }

// Idle reports whether all channels that have not finished are idle.
func (e *EventTime) Idle() bool { return e.idle.Load() }

// Channels is the number of channels.
func (e *EventTime) Channels() int { return len(e.channels) }

// Channel is the state of a channel.
func (e *EventTime) Channel(channel int) valve.Channel {
	c := &e.channels[channel]
	manner := c.manner.Load()
	return valve.Channel{Watermark: c.watermark.Load(), Idle: manner == idleChannel, Behind: manner == behindChannel}
}

// Held is the channel that holds the watermark back: the active one that is furthest behind, the first of several. A
// channel that has resumed behind holds it only if there is no other: the watermark rises when the most advanced of those
// has caught up. -1 if there is none.
func (e *EventTime) Held() int {
	held, behind := -1, -1
	var at, most int64
	for i := range e.channels {
		switch c := e.Channel(i); {
		case c.Idle || c.Watermark == frame.MaxWatermark:
		case c.Behind:
			if behind < 0 || c.Watermark > most {
				behind, most = i, c.Watermark
			}
		case held < 0 || c.Watermark < at:
			held, at = i, c.Watermark
		}
	}
	if held < 0 {
		return behind
	}
	return held
}
