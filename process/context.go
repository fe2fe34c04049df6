package process

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/internal/frame"
)

// Services is the engine's side of a context. User code never implements it.
type Services interface {
	// ProcessingTime is the subtask's one now, ms.
	ProcessingTime() int64
	// Watermark is the operator's current watermark, ms.
	Watermark() int64
	// Side is the buffer of a side output; nil if nobody reads it.
	Side(tag string) *SideBuffer
	// Register and Delete set and take back a timer of the current key.
	Register(d Domain, at int64)
	Delete(d Domain, at int64)
}

// SideBuffer collects a side output until the driver pushes it. For drivers.
type SideBuffer struct {
	Column *frame.Column // what was emitted and not pushed yet
	Flush  func() error  // pushes the column
	Err    error         // the first error of a push
}

// Add emits v with timestamp ms to the side output; driver-side code and contexts use it.
func addSide[X any](b *SideBuffer, v X, ms int64) {
	if b.Column.Room() == 0 {
		if b.Err == nil {
			b.Err = b.Flush()
		}
		b.Column.Reset()
	}
	frame.Add(b.Column, v, ms)
}

// Context is what a process function sees beside the element. It is valid during the call that it was passed to.
type Context struct {
	services Services
	time     int64
}

// NewContext is for drivers and test harnesses.
func NewContext(s Services) *Context { return &Context{services: s, time: frame.NoTime} }

// SetTime is for drivers: the timestamp (ms) of the element at hand.
func (c *Context) SetTime(ms int64) { c.time = ms }

// Timestamp is the element's event time; ok is false if it has none.
func (c *Context) Timestamp() (t time.Time, ok bool) {
	if c.time == frame.NoTime {
		return time.Time{}, false
	}
	return time.UnixMilli(c.time), true
}

// TimestampMillis is the element's event time in ms since 1970, math.MinInt64 if it has none.
func (c *Context) TimestampMillis() int64 { return c.time }

// Watermark is the operator's current event time in ms: math.MinInt64 before the first watermark.
func (c *Context) Watermark() int64 { return c.services.Watermark() }

// ProcessingTime is the task's wall clock in ms; it is read once per run, not per call.
func (c *Context) ProcessingTime() int64 { return c.services.ProcessingTime() }

// Emit sends x to the side output tag with the timestamp of the element at hand. Nothing happens if the job does not
// read that side output.
func (c *Context) Emit[X any](tag OutputTag[X], x X) {
	c.EmitAt(tag, x, c.time)
}

// EmitAt is Emit with a timestamp of its own (ms; math.MinInt64: none).
func (c *Context) EmitAt[X any](tag OutputTag[X], x X, ms int64) {
	if tag.name == "" {
		panic("emit to a side output: the tag has no name (make it with NewOutputTag)")
	}
	b := c.services.Side(tag.name)
	if b == nil {
		return
	}
	if want := b.Column.Type; !isType[X](want) {
		panic(fmt.Sprintf("emit a %T to side output %q, which is read as %s", x, tag.name, want.Name))
	}
	addSide(b, x, ms)
}
