// Package control holds the control plane's decisions as pure step machines: what happens after a failure (Restart), when
// snapshots are taken and are complete (CheckpointCoordinator), and where a task takes its part of one (Alignment). Who is
// restored with what is package checkpoint's. It does no I/O, reads no clock and starts nothing: what happened and when are
// arguments, what is to be done are results. The job manager and the tasks own the machines, each its own, on one goroutine.
package control

import "time"

// Restart decides what follows a failed attempt.
type Restart interface {
	// Failed takes a failure at now (ms); restart says whether to try again, after delay.
	Failed(now int64) (restart bool, delay time.Duration)
}

// NoRestart lets the first failure end the job.
type NoRestart struct{}

// Failed implements Restart.
func (NoRestart) Failed(int64) (bool, time.Duration) { return false, 0 }

// FixedDelay restarts up to Attempts times, Delay after each failure.
type FixedDelay struct {
	Attempts int
	Delay    time.Duration
	failures int
}

// Failed implements Restart.
func (f *FixedDelay) Failed(int64) (bool, time.Duration) {
	f.failures++
	return f.failures <= f.Attempts, f.Delay
}

// FailureRate restarts while no more than Max failures lie within Interval: the failure after that ends the job.
type FailureRate struct {
	Max      int
	Interval time.Duration
	Delay    time.Duration
	times    []int64
}

// Failed implements Restart.
func (f *FailureRate) Failed(now int64) (bool, time.Duration) {
	oldest := now - f.Interval.Milliseconds()
	kept := f.times[:0]
	for _, t := range f.times {
		if t >= oldest {
			kept = append(kept, t)
		}
	}
	f.times = append(kept, now)
	return len(f.times) <= f.Max, f.Delay
}

// ExponentialDelay restarts for ever, waiting Initial, then Factor times as long after each failure, up to Max; a calm
// stretch of Reset starts over.
type ExponentialDelay struct {
	Initial, Max, Reset time.Duration
	Factor              float64
	delay               time.Duration
	last                int64
}

// Failed implements Restart.
func (e *ExponentialDelay) Failed(now int64) (bool, time.Duration) {
	if e.delay == 0 || now-e.last >= e.Reset.Milliseconds() {
		e.delay = e.Initial
	} else {
		e.delay = time.Duration(min(float64(e.Max), float64(e.delay)*e.Factor)) // a product may be too long for a Duration
	}
	e.last = now
	return true, e.delay
}
