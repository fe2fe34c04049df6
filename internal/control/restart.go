// Package control holds the control plane's decisions as pure step machines: what happens after a failure (Restart), when
// snapshots are taken and are complete (CheckpointCoordinator), and where a task takes its part of one (Alignment). Who is
// restored with what is package checkpoint's. It does no I/O, reads no clock and starts nothing: what happened and when are
// arguments, what is to be done are results. The job manager and the tasks own the machines, each its own, on one goroutine.
package control

import (
	"errors"
	"fmt"
	"time"
)

// Restart decides what follows a failure of a job. One job has it for itself.
type Restart interface {
	// Failed takes a failure at now (ms), which never goes back; restart says whether to try again, after delay.
	Failed(now int64) (restart bool, delay time.Duration)
	// Validate joins all that is wrong with its settings.
	Validate() error
}

// NoRestart lets the first failure end the job.
type NoRestart struct{}

// Failed implements Restart.
func (NoRestart) Failed(int64) (bool, time.Duration) { return false, 0 }

// Validate implements Restart.
func (NoRestart) Validate() error { return nil }

// FixedDelay restarts up to Attempts times, Delay after each failure.
type FixedDelay struct {
	Attempts int // Unlimited: for ever
	Delay    time.Duration
	failures int
}

// Failed implements Restart.
func (f *FixedDelay) Failed(int64) (bool, time.Duration) {
	if f.failures < f.Attempts {
		f.failures++
		return true, f.Delay
	}
	return false, f.Delay
}

// Validate implements Restart.
func (f *FixedDelay) Validate() error {
	var errs []error
	if f.Attempts < 0 {
		errs = append(errs, fmt.Errorf("%d attempts of a fixed-delay restart: choose 0 or more", f.Attempts))
	}
	return errors.Join(append(errs, notNegative("delay of a fixed-delay restart", f.Delay))...)
}

// notNegative reports a pause that is.
func notNegative(what string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("the %s, %v, is negative: choose 0 for none", what, d)
	}
	return nil
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

// Validate implements Restart.
func (f *FailureRate) Validate() error {
	var errs []error
	if f.Max < 1 {
		errs = append(errs, fmt.Errorf("%d failures per interval of a failure-rate restart: choose 1 or more", f.Max))
	}
	if f.Interval < time.Millisecond {
		errs = append(errs, fmt.Errorf("the interval of a failure-rate restart, %v, is less than 1ms", f.Interval))
	}
	return errors.Join(append(errs, notNegative("delay of a failure-rate restart", f.Delay))...)
}

// ExponentialDelay restarts after longer and longer pauses: Initial after the first failure, then Factor times as long after
// each further one, up to Max. When nothing has failed for Reset since the last restart it starts over. A failure that comes
// while a restart is waited for is part of the one before: what is down then comes back at the same time.
type ExponentialDelay struct {
	Initial, Max, Reset time.Duration
	Factor              float64 // at least 1
	// Jitter is the share, from 0 to 1, by which pauses are longer or shorter at random, so that jobs that have failed together
	// don't all come back together. They stay from Initial to Max.
	Jitter float64
	// Random gives numbers in [0, 1) for it; nil: pauses don't vary.
	Random func() float64
	// Attempts is how many restarts may follow one on the other before it starts over: the failure after them ends the job.
	// 0 or Unlimited: no end.
	Attempts int

	delay    time.Duration // without jitter
	attempts int           // since it started over
	next     int64         // ms, of the last restart
}

// Failed implements Restart.
func (e *ExponentialDelay) Failed(now int64) (bool, time.Duration) {
	if e.attempts > 0 && now < e.next {
		return true, time.Duration(e.next-now) * time.Millisecond
	}
	if e.attempts == 0 || now-e.next >= e.Reset.Milliseconds() {
		e.delay, e.attempts = e.Initial, 0
	} else {
		e.delay = time.Duration(min(float64(e.Max), float64(e.delay)*e.Factor)) // a product may be too long for a Duration
	}
	if e.attempts++; e.Attempts > 0 && e.attempts > e.Attempts {
		e.attempts-- // so it stays
		return false, 0
	}
	delay := e.jittered()
	e.next = now + delay.Milliseconds()
	return true, delay
}

// Validate implements Restart.
func (e *ExponentialDelay) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("an exponential-delay restart: "+format, args...))
	}
	if e.Initial < time.Millisecond {
		wrong("the first pause, %v, is less than 1ms", e.Initial)
	}
	if e.Max < e.Initial {
		wrong("the longest pause, %v, is shorter than the first, %v", e.Max, e.Initial)
	}
	if e.Reset < time.Millisecond {
		wrong("the stretch without a failure after which it starts over, %v, is less than 1ms", e.Reset)
	}
	if !(e.Factor >= 1) { // nor no number at all
		wrong("a factor of %v lets pauses shrink: choose 1 or more", e.Factor)
	}
	if !(e.Jitter >= 0 && e.Jitter <= 1) {
		wrong("a jitter of %v is no share: choose 0 for none, 1 at most", e.Jitter)
	}
	if e.Attempts < 0 {
		wrong("%d attempts: choose 0 for no end", e.Attempts)
	}
	return errors.Join(errs...)
}

// jittered is the next pause.
func (e *ExponentialDelay) jittered() time.Duration {
	if e.Random == nil || e.Jitter == 0 {
		return e.delay
	}
	d := float64(e.delay) * (1 + e.Jitter*(2*e.Random()-1))
	return time.Duration(max(float64(e.Initial), min(d, float64(e.Max))))
}

// DefaultExponentialDelay is the strategy of jobs that take checkpoints and set none, as in Flink since 2.0: after 1 s, then
// 1.5 times as long, up to 1 min, give or take a tenth; an hour without a failure starts over. It never gives up.
func DefaultExponentialDelay() ExponentialDelay {
	return ExponentialDelay{Initial: time.Second, Max: time.Minute, Reset: time.Hour, Factor: 1.5, Jitter: 0.1}
}
