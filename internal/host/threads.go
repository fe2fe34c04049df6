package host

import "github.com/flott-dev/flott/internal/clock"

// Threads runs subtasks: goroutines in production, coroutines in the simulation.
type Threads interface {
	// NewWaiter makes the waiting point of a subtask.
	NewWaiter() Waiter
	// Start runs body as the subtask that waits at w.
	Start(w Waiter, body func())
}

// Goroutines is the Threads of production.
type Goroutines struct {
	Clock clock.Clock
}

// NewWaiter implements Threads.
func (g Goroutines) NewWaiter() Waiter { return NewParker(g.Clock) }

// Start implements Threads.
func (g Goroutines) Start(_ Waiter, body func()) { go body() }
