// Package host is what a subtask gets from the process it runs in: the one point where it may wait, the way to be woken,
// a mailbox, and the right to start a goroutine on behalf of user code. Everything above (frames, operators, exchange,
// tasks) is free of channels, locks and clocks because they are here. Production uses Parker; the simulation runs the
// same subtasks as coroutines under a seeded scheduler.
package host

import "math"

// Reason says why a subtask waits; task metrics split time by it.
type Reason uint8

const (
	// Idle: no input, no timer due.
	Idle Reason = iota
	// Backpressured: no room downstream.
	Backpressured
)

// Forever is the deadline that never comes.
const Forever = math.MaxInt64

// Waiter is the injected point at which a subtask waits. Wait and Yield are called by the subtask only, Wake by anyone.
type Waiter interface {
	// Wait returns once Wake was called since the last return of Wait, or the clock reached deadline (ms), or for no
	// reason: the caller looks again at what it waits for.
	Wait(reason Reason, deadline int64)
	// Yield is called between runs, with the subtask's time in ms: a point at which others may go on.
	Yield(now int64)
	// Wake ends the present or next Wait.
	Wake()
}
