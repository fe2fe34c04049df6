// Package clock is the time that the engine sees: injected everywhere, real in production, hand-driven in tests and in
// the simulation. It holds no timers; waiting with a deadline is package host's.
package clock

import (
	"sync/atomic"
	"time"
)

// Clock tells the time. Implementations are safe for concurrent use.
type Clock interface {
	// Millis is the wall clock in milliseconds since 1970 (processing time).
	Millis() int64
	// Nanos is a monotonic reading in nanoseconds, for durations only.
	Nanos() int64
}

// System is the machine's clock.
type System struct{ start time.Time }

// NewSystem returns the machine's clock.
func NewSystem() *System { return &System{start: time.Now()} }

// Millis implements Clock.
func (s *System) Millis() int64 { return time.Now().UnixMilli() }

// Nanos implements Clock.
func (s *System) Nanos() int64 { return int64(time.Since(s.start)) }

// Manual is a clock that moves only when told to.
type Manual struct{ ms atomic.Int64 }

// NewManual returns a clock that stands at ms.
func NewManual(ms int64) *Manual {
	m := &Manual{}
	m.ms.Store(ms)
	return m
}

// Millis implements Clock.
func (m *Manual) Millis() int64 { return m.ms.Load() }

// Nanos implements Clock.
func (m *Manual) Nanos() int64 { return m.ms.Load() * int64(time.Millisecond) }

// Set moves the clock to ms, forwards or backwards.
func (m *Manual) Set(ms int64) { m.ms.Store(ms) }
