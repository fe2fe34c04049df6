package process

import (
	"github.com/flott-dev/flott/internal/frame"
)

// Collector takes what a function emits. The element belongs to the stream from then on: whoever emits a slice, map or
// pointer does not change what is behind it. A Collector is used during the call that it was passed to, only.
type Collector[R any] struct {
	col   *frame.Column
	time  int64
	flush func() error
	err   error
}

// NewCollector is for drivers and test harnesses: the collector fills col and calls flush when it is full.
func NewCollector[R any](col *frame.Column, flush func() error) *Collector[R] {
	return &Collector[R]{col: col, time: frame.NoTime, flush: flush}
}

// Collect emits v with the timestamp of the element (or event-time timer) at hand.
func (c *Collector[R]) Collect(v R) {
	if c.col.Room() == 0 {
		c.makeRoom()
	}
	frame.Add(c.col, v, c.time)
}

func (c *Collector[R]) makeRoom() {
	if c.err == nil {
		c.err = c.flush()
	}
	c.col.Reset()
}

// SetTime is for drivers: the timestamp (ms) of what is emitted from now on.
func (c *Collector[R]) SetTime(ms int64) { c.time = ms }

// Flush is for drivers: it pushes what was collected and returns the first error of any push.
func (c *Collector[R]) Flush() error {
	if c.col.Len() != 0 {
		c.makeRoom()
	}
	return c.err
}
