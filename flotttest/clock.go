package flotttest

import (
	"sync"
	"time"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/stream"
)

// Clock is a clock that moves only when told to: the processing time of a job whose environment was made WithClock. Its
// methods may be called from any goroutine. Restart delays and time limits of the job itself still follow the machine's
// clock.
type Clock struct {
	time    *clock.Manual
	mu      sync.Mutex
	waiters []host.Waiter
}

// NewClock returns a clock that stands at ms since 1970.
func NewClock(ms int64) *Clock { return &Clock{time: clock.NewManual(ms)} }

// Millis is the time in ms since 1970.
func (c *Clock) Millis() int64 { return c.time.Millis() }

// Nanos is the time as the engine reads it for durations.
func (c *Clock) Nanos() int64 { return c.time.Nanos() }

// Now is the time.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.time.Millis()) }

// Set moves the clock to ms since 1970; timers that are due fire soon afterwards, on the goroutines of their subtasks.
func (c *Clock) Set(ms int64) {
	c.time.Set(ms)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiters {
		w.Wake()
	}
}

// Advance moves the clock on.
func (c *Clock) Advance(d time.Duration) { c.Set(c.Millis() + d.Milliseconds()) }

// WithClock makes c the processing time of the environment's jobs.
func WithClock(c *Clock) stream.Option {
	return func(s *env.Settings) { s.Clock, s.Threads = c, clockThreads{c} }
}

// clockThreads gives each subtask a waiting point that the clock wakes.
type clockThreads struct{ c *Clock }

// NewWaiter implements host.Threads.
func (t clockThreads) NewWaiter() host.Waiter {
	w := &clockWaiter{host.NewParker(t.c.time), t.c}
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.c.waiters = append(t.c.waiters, w)
	return w
}

// Start implements host.Threads.
func (clockThreads) Start(_ host.Waiter, body func()) { go body() }

// clockWaiter waits for deadlines of the clock: Set wakes it, so a deadline that has not come needs no timer.
type clockWaiter struct {
	*host.Parker
	c *Clock
}

// Wait implements host.Waiter.
func (w *clockWaiter) Wait(reason host.Reason, deadline int64) {
	if deadline != host.Forever && deadline <= w.c.Millis() {
		return
	}
	w.Parker.Wait(reason, host.Forever)
}
