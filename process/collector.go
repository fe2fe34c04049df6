package process

import (
	"github.com/flott-dev/flott/internal/frame"
)

// Collector takes what a function emits. The element belongs to the stream from then on: whoever emits a slice, map or
// pointer does not change what is behind it. A Collector is used during the call that it was passed to, only.
type Collector[R any] struct {
	values []R     // the column's memory
	times  []int64 // the column's timestamps, one per value
	n      int
	time   int64
	timed  bool // some element since the last flush may have a timestamp
	col    *frame.Column
	flush  func() error
	err    error
}

// NewCollector is for drivers and test harnesses: the collector fills the empty column col and calls flush when it is
// full.
func NewCollector[R any](col *frame.Column, flush func() error) *Collector[R] {
	c := &Collector[R]{col: col, time: frame.NoTime, flush: flush}
	c.values, c.times = frame.Whole[R](col)
	return c
}

// Collect emits v with the timestamp of the element (or event-time timer) at hand. It is small enough to be inlined into
// user code.
func (c *Collector[R]) Collect(v R) {
	if c.n == len(c.values) {
		c.makeRoom()
	}
	c.values[c.n] = v
	c.times[c.n] = c.time
	c.n++
}

// makeRoom pushes what was collected.
//
//go:noinline
func (c *Collector[R]) makeRoom() {
	c.col.Filled(c.n, c.timed)
	if c.err == nil {
		c.err = c.flush()
	}
	c.col.Reset()
	c.n, c.timed = 0, c.time != frame.NoTime
}

// SetTime is for drivers: the timestamp (ms) of what is emitted from now on.
func (c *Collector[R]) SetTime(ms int64) {
	c.time = ms
	c.timed = c.timed || ms != frame.NoTime
}

// Flush is for drivers: it pushes what was collected and returns the first error of any push.
func (c *Collector[R]) Flush() error {
	if c.n != 0 {
		c.makeRoom()
	}
	return c.err
}
