package task

import (
	"sync/atomic"
	"time"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/host"
)

// Times splits a subtask's life into waiting for input, waiting for room downstream, and the rest: work. All in
// nanoseconds; readable from any goroutine.
type Times struct {
	Idle          atomic.Int64
	Backpressured atomic.Int64
}

// BarrierTimes are those of the barriers of a subtask's checkpoints. They may be read from any goroutine.
type BarrierTimes struct {
	aligning atomic.Bool
	began    atomic.Int64 // ns: the first barrier of the alignment under way
	took     atomic.Int64 // ns, of the last one
	delay    atomic.Int64 // ns
}

// Alignment is how long the alignment under way has taken by now, a reading of the task's clock in ns; if there is none, how long
// the last one took. One that was given up took until then.
func (b *BarrierTimes) Alignment(now int64) time.Duration {
	if b.aligning.Load() {
		return time.Duration(max(0, now-b.began.Load()))
	}
	return time.Duration(b.took.Load())
}

// StartDelay is the time from the trigger of the last checkpoint whose barrier has come to that barrier.
func (b *BarrierTimes) StartDelay() time.Duration { return time.Duration(b.delay.Load()) }

// begin notes the first barrier of an alignment, unless one is under way.
func (b *BarrierTimes) begin(at int64) {
	if !b.aligning.Load() {
		b.began.Store(at)
		b.aligning.Store(true)
	}
}

// end notes how long an alignment took.
func (b *BarrierTimes) end(took int64) {
	b.took.Store(took)
	b.aligning.Store(false)
}

// giveUp notes that an alignment was given up, if one is under way.
func (b *BarrierTimes) giveUp(now int64) {
	if b.aligning.Load() {
		b.end(max(0, now-b.began.Load()))
	}
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
