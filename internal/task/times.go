package task

import (
	"sync/atomic"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/host"
)

// Times splits a subtask's life into waiting for input, waiting for room downstream, and the rest: work. All in
// nanoseconds; readable from any goroutine.
type Times struct {
	Idle          atomic.Int64
	Backpressured atomic.Int64
}

// timedWaiter measures waits. The clock is read only around a wait.
type timedWaiter struct {
	host.Waiter
	clock clock.Clock
	times *Times
}

func (w *timedWaiter) Wait(reason host.Reason, deadline int64) {
	start := w.clock.Nanos()
	w.Waiter.Wait(reason, deadline)
	d := w.clock.Nanos() - start
	if reason == host.Backpressured {
		w.times.Backpressured.Add(d)
	} else {
		w.times.Idle.Add(d)
	}
}
