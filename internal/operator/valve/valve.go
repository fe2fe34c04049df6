// Package valve decides which watermark and which idleness come out of several inputs. It is pure: step functions over
// a few flat arrays, no clock, no output, no allocation per step; the task runtime feeds it the marks of its channels
// (Valve) and drivers of operators with several inputs feed it the marks of their inputs (Combined), and both send on
// what a step answers. It never looks at elements.
//
// # Rules of a Valve
//
// The watermark that comes out is the minimum over the active aligned channels and never goes back. A channel that
// resumes behind what came out is active, but not aligned: it holds nobody back until it has caught up. When the last
// active channel goes idle, the maximum over all channels is flushed first, so that the outcome does not depend on the
// order in which the channels fell silent; then the valve is idle. A channel that resumes is announced (active) before
// any watermark that it releases.
//
// A channel whose watermark is frame.MaxWatermark has said all that it will ever say: it counts neither as active nor
// as idle. Only when every channel has said so does frame.MaxWatermark come out; a finished channel beside an idle one
// would otherwise make the idle one's later elements late (FLINK-38477). An end without that watermark (a job stopped
// with a savepoint) releases nothing, since no timer may fire any more.
//
// # Rules of a Combined
//
// One operator's inputs are combined by the minimum over the inputs that are not idle (FLINK-18934): an input that is
// idle does not hold back the other. An input that resumes behind holds the operator's watermark where it is until it
// has caught up: unlike a channel it is not left out meanwhile, because both inputs' elements meet in one state. When
// all are idle, the maximum is flushed, as in a Valve. Flink before 1.14 took the minimum over all inputs, idle ones
// included, and flushed nothing; the vector task/two_input/watermark_and_status records that, in open contradiction to
// the later rule (an input at 6 stays at 5 because the idle other one stopped there). The later rule is the default;
// HoldIdle selects the earlier one.
package valve

import (
	"github.com/flott-dev/flott/internal/frame"
)

// Channel is what a valve remembers of one channel: what a checkpoint keeps and a restore gives back.
type Channel struct {
	Watermark int64 // highest so far; frame.MinWatermark before the first, frame.MaxWatermark after the last
	Idle      bool
	Behind    bool // resumed behind the watermark that came out and has not caught up
}

// Merge is the state of one channel that stands for two old ones after a restore: the smaller watermark, idle only if
// both are. A channel that has finished leaves the other as it is.
func Merge(a, b Channel) Channel {
	switch {
	case a.Watermark == frame.MaxWatermark:
		return b
	case b.Watermark == frame.MaxWatermark:
		return a
	}
	return Channel{
		Watermark: min(a.Watermark, b.Watermark),
		Idle:      a.Idle && b.Idle,
		Behind:    a.Behind && b.Behind,
	}
}

// Valve combines the channels of one input. It belongs to one goroutine.
type Valve struct {
	channels []channel
	aligned  heap // active aligned channels, the one with the lowest watermark first
	out      int64
	live     int // channels that have not finished
	silent   int // live channels that are idle
	ended    int
	idle     bool
}

type channel struct {
	watermark int64 // highest but frame.MaxWatermark
	at        int32 // position in aligned, -1 if not in it
	idle      bool
	finished  bool // said frame.MaxWatermark
	ended     bool
}

// New returns a valve whose channels are active and aligned at frame.MinWatermark.
func New(channels int) *Valve {
	v := &Valve{
		channels: make([]channel, channels),
		aligned:  make(heap, 0, channels),
		out:      frame.MinWatermark,
		live:     channels,
	}
	for i := range v.channels {
		v.channels[i].watermark = frame.MinWatermark
		v.align(i)
	}
	return v
}

// Step takes a watermark, idleness or end mark of a channel. Other kinds are not the valve's.
func (v *Valve) Step(ch int, m frame.Mark) Actions { return step(v, ch, m) }

// Watermark takes a channel's watermark. One of an idle channel is ignored (the sender says active first), except
// frame.MaxWatermark.
func (v *Valve) Watermark(ch int, t int64) Actions {
	var a Actions
	c := &v.channels[ch]
	if t == frame.MaxWatermark {
		v.finish(ch, &a)
		return a
	}
	if c.idle || c.finished || t <= c.watermark {
		return a
	}
	c.watermark = t
	switch {
	case c.at >= 0:
		v.aligned.down(v.channels, int(c.at))
	case t >= v.out:
		v.align(ch)
	default:
		return a
	}
	v.advance(&a)
	return a
}

// Idle takes a channel's word that it has nothing for now.
func (v *Valve) Idle(ch int) Actions {
	var a Actions
	c := &v.channels[ch]
	if c.idle || c.finished {
		return a
	}
	c.idle = true
	v.silent++
	v.leave(ch)
	v.settle(&a)
	return a
}

// Active takes a channel's word that it has elements again.
func (v *Valve) Active(ch int) Actions {
	var a Actions
	c := &v.channels[ch]
	if !c.idle || c.finished {
		return a
	}
	c.idle = false
	v.silent--
	if v.idle {
		v.idle = false
		a.add(frame.Active, 0)
	}
	if c.watermark >= v.out {
		v.align(ch)
		v.advance(&a)
	}
	return a
}

// End takes the end of a channel; the end of the last one ends the input.
func (v *Valve) End(ch int) Actions {
	var a Actions
	c := &v.channels[ch]
	if c.ended {
		return a
	}
	c.ended = true
	v.ended++
	if v.ended == len(v.channels) {
		a.add(frame.End, 0)
	}
	return a
}

// Out is the watermark that came out last, frame.MinWatermark before the first.
func (v *Valve) Out() int64 { return v.out }

// IsIdle reports whether every live channel is idle.
func (v *Valve) IsIdle() bool { return v.idle }

// Channels is the number of channels.
func (v *Valve) Channels() int { return len(v.channels) }

// Channel is the state of a channel.
func (v *Valve) Channel(ch int) Channel {
	c := &v.channels[ch]
	if c.finished {
		return Channel{Watermark: frame.MaxWatermark}
	}
	return Channel{Watermark: c.watermark, Idle: c.idle, Behind: !c.idle && c.at < 0}
}

// Restore gives a fresh valve the state of its channels and answers what must be sent before the first element.
func (v *Valve) Restore(states []Channel) Actions {
	var a Actions
	for ch, s := range states {
		c := &v.channels[ch]
		switch {
		case s.Watermark == frame.MaxWatermark:
			c.finished = true
			v.live--
			v.leave(ch)
			continue
		case s.Idle:
			c.idle = true
			v.silent++
		}
		v.leave(ch)
		c.watermark = s.Watermark
		if !s.Idle && !s.Behind {
			v.align(ch)
		}
	}
	v.settle(&a)
	return a
}

// finish takes a channel out of the reckoning.
func (v *Valve) finish(ch int, a *Actions) {
	c := &v.channels[ch]
	if c.finished {
		return
	}
	if c.idle {
		c.idle = false
		v.silent--
	}
	c.finished = true
	v.live--
	v.leave(ch)
	v.settle(a)
}

// settle emits what follows from a channel having left the active ones.
func (v *Valve) settle(a *Actions) {
	switch {
	case v.live == 0:
		if v.idle {
			v.idle = false
			a.add(frame.Active, 0)
		}
		v.emit(frame.MaxWatermark, a)
	case v.silent < v.live:
		v.advance(a)
	case !v.idle:
		v.idle = true
		v.flush(a)
		a.add(frame.Idle, 0)
	}
}

// advance emits the minimum over the active aligned channels if it has grown.
func (v *Valve) advance(a *Actions) {
	if len(v.aligned) != 0 {
		v.emit(v.channels[v.aligned[0]].watermark, a)
	}
}

// flush emits the maximum over all channels, finished ones with their last real watermark.
func (v *Valve) flush(a *Actions) {
	most := v.out
	for i := range v.channels {
		most = max(most, v.channels[i].watermark)
	}
	v.emit(most, a)
}

func (v *Valve) emit(t int64, a *Actions) {
	if t > v.out {
		v.out = t
		a.add(frame.Watermark, t)
	}
}

func (v *Valve) align(ch int) {
	v.channels[ch].at = int32(len(v.aligned))
	v.aligned = append(v.aligned, int32(ch))
	v.aligned.up(v.channels, len(v.aligned)-1)
}

func (v *Valve) leave(ch int) {
	c := &v.channels[ch]
	if c.at < 0 {
		return
	}
	i, last := int(c.at), len(v.aligned)-1
	v.aligned.swap(v.channels, i, last)
	v.aligned = v.aligned[:last]
	c.at = -1
	if i < last {
		v.aligned.down(v.channels, i)
		v.aligned.up(v.channels, i)
	}
}
