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

// countedWaiter counts and measures the waits of a task and of all that runs in it. The clock is read only around a wait.
type countedWaiter struct {
	host.Waiter
	clock clock.Clock
	times *Times // nil: they are not measured
	waits uint64
}

func (w *countedWaiter) Wait(reason host.Reason, deadline int64) {
	w.waits++
	if w.times == nil {
		w.Waiter.Wait(reason, deadline)
		return
	}
	start := w.clock.Nanos()
	w.Waiter.Wait(reason, deadline)
	d := w.clock.Nanos() - start
	if reason == host.Backpressured {
		w.times.Backpressured.Add(d)
	} else {
		w.times.Idle.Add(d)
	}
}
