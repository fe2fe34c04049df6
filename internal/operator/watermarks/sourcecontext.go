package watermarks

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/watermark"
)

// never is the time of a clock that is not set.
const never = frame.MaxWatermark

// SourceContext is what a function source emits through: it marks the source idle after a time without emission and
// active again, and either passes on the source's own timestamps and watermarks (manual) or makes them from the clock
// (ingestion time). It is a pure step machine: each call says which marks must be sent; all times are ms of processing
// time and never go back. It belongs to one goroutine.
type SourceContext struct {
	interval  int64 // ingestion time: between watermarks; 0: manual
	timeout   int64 // idle timeout; -1: never idle
	ticks     int64 // when the next watermark is made
	idleCheck int64 // when idleness is looked at
	fail      bool  // nothing was emitted since idleness was last looked at
	idle      bool
	emitted   int64 // latest watermark
	following int64 // ingestion time: a watermark is made once the clock is past it
	last      int64 // time of the last element, NoTime before the first
}

// Emission are marks to send, in order.
type Emission struct {
	marks [2]frame.Mark
	n     int
}

// Marks lends the marks.
func (e *Emission) Marks() []frame.Mark { return e.marks[:e.n] }

func (e *Emission) add(kind frame.MarkKind, value int64) {
	e.marks[e.n] = frame.Mark{Kind: kind, Value: value}
	e.n++
}

// NewManual returns the context of a source that gives timestamps and watermarks itself. idleTimeout in ms, -1: never
// idle.
func NewManual(now, idleTimeout int64) *SourceContext { return newContext(now, 0, idleTimeout) }

// NewIngestion returns the context of a source whose elements get the clock's time: every interval ms it says the
// watermark of the clock, rounded down to whole intervals so that machines agree; not while the source is idle.
func NewIngestion(now, interval, idleTimeout int64) *SourceContext {
	return newContext(now, interval, idleTimeout)
}

func newContext(now, interval, idleTimeout int64) *SourceContext {
	c := &SourceContext{
		interval: interval, timeout: idleTimeout,
		ticks: never, idleCheck: never,
		emitted: frame.MinWatermark, last: frame.NoTime,
	}
	if interval > 0 {
		c.ticks = watermark.Add(now, interval)
	}
	c.checkLater(now)
	return c
}

// IsIdle reports whether the source is idle.
func (c *SourceContext) IsIdle() bool { return c.idle }

// Watermark is the latest watermark.
func (c *SourceContext) Watermark() int64 { return c.emitted }

// Next is the time at which Advance must be called; ok is false if there is none.
func (c *SourceContext) Next() (at int64, ok bool) {
	at = min(c.ticks, c.idleCheck)
	return at, at != never
}

// Element takes an element with the source's timestamp (frame.NoTime: none) and returns the timestamp that it gets. The
// marks of before go ahead of it, those of after follow it.
func (c *SourceContext) Element(now, ts int64) (stamp int64, before, after Emission) {
	c.wake(now, &before)
	if c.interval == 0 {
		return ts, before, after
	}
	c.last = now
	c.follow(now, &after)
	return now, before, after
}

// Emit takes a watermark of the source. With ingestion time only frame.MaxWatermark counts; others do not even make the
// source active.
func (c *SourceContext) Emit(now, ms int64) Emission {
	var e Emission
	if c.interval != 0 {
		if ms != frame.MaxWatermark {
			return e
		}
		c.ticks = never
	}
	c.wake(now, &e)
	c.emit(ms, &e)
	return e
}

// Idle takes the source's word that it has nothing for now; its next element or watermark ends that.
func (c *SourceContext) Idle() Emission {
	var e Emission
	c.sleep(&e)
	return e
}

// Advance takes the clock's time: what was due comes, in time order.
func (c *SourceContext) Advance(now int64) Emission {
	var e Emission
	if c.idleCheck <= now && c.idleCheck < c.ticks {
		c.check(now, &e)
	}
	if c.ticks <= now {
		c.tick(now, &e)
	}
	if c.idleCheck <= now {
		c.check(now, &e)
	}
	return e
}

// Stop ends all clocks: the source is over.
func (c *SourceContext) Stop() { c.ticks, c.idleCheck = never, never }

// check looks at idleness.
func (c *SourceContext) check(now int64, e *Emission) {
	c.idleCheck = never
	if c.fail {
		c.sleep(e)
		return
	}
	c.checkLater(now)
}

// tick makes a watermark of the clock, and finds an idle source sooner than check would.
func (c *SourceContext) tick(now int64, e *Emission) {
	c.ticks = watermark.Add(now, c.interval)
	switch {
	case c.idle:
	case c.timeout != -1 && c.last != frame.NoTime && now-c.last > c.timeout:
		c.sleep(e)
	default:
		c.follow(now, e)
	}
}

func (c *SourceContext) follow(now int64, e *Emission) {
	if now > c.following {
		at := now - now%c.interval // following is never negative: before 1970 there are no watermarks
		c.following = watermark.Add(at, c.interval)
		c.emit(at, e)
	}
}

// wake is called for each emission of the source.
func (c *SourceContext) wake(now int64, e *Emission) {
	if c.idle {
		c.idle = false
		e.add(frame.Active, 0)
	}
	if c.idleCheck != never {
		c.fail = false
		return
	}
	c.checkLater(now)
}

func (c *SourceContext) sleep(e *Emission) {
	c.idleCheck = never
	if !c.idle {
		c.idle = true
		e.add(frame.Idle, 0)
	}
}

func (c *SourceContext) checkLater(now int64) {
	if c.timeout != -1 {
		c.fail = true
		c.idleCheck = watermark.Add(now, c.timeout)
	}
}

func (c *SourceContext) emit(ms int64, e *Emission) {
	if ms > c.emitted {
		c.emitted = ms
		e.add(frame.Watermark, ms)
	}
}
