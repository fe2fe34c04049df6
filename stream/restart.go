package stream

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/internal/env"
)

// RestartStrategy says what follows a failed attempt of a job. A restarted job goes on from its latest checkpoint; without
// one it reads its sources from the beginning. Settings that can't be (a negative delay, a factor below 1) are a mistake of
// the program, which Execute returns.
type RestartStrategy struct{ open env.Restart }

// NoRestart lets the first failure end the job: the default of jobs that take no checkpoints.
func NoRestart() RestartStrategy {
	return RestartStrategy{env.NoRestart()}
}

// FixedDelayRestart tries again up to attempts times, delay after each failure.
func FixedDelayRestart(attempts int, delay time.Duration) RestartStrategy {
	return RestartStrategy{env.FixedDelay(attempts, delay)}
}

// FailureRateRestart tries again, delay after each failure, while no more than maxFailures lie within interval: the
// failure after that ends the job.
func FailureRateRestart(maxFailures int, interval, delay time.Duration) RestartStrategy {
	return RestartStrategy{env.FailureRate(maxFailures, interval, delay)}
}

// ExponentialDelayRestart tries again for ever: after initial, then factor times as long after each failure, at most
// longest; a stretch of reset without a failure since the last restart starts over. What fails while a restart is waited for
// counts with the failure before. The default of jobs that take checkpoints is, as in Flink since 2.0,
// ExponentialDelayRestart(time.Second, time.Minute, time.Hour, 1.5, stream.RestartJitter(0.1)).
func ExponentialDelayRestart(initial, longest, reset time.Duration, factor float64, opts ...BackoffOption) RestartStrategy {
	d := env.ExponentialBackoff{Initial: initial, Max: longest, Reset: reset, Factor: factor}
	for _, o := range opts {
		o(&d)
	}
	return RestartStrategy{env.Backoff(d)}
}

// BackoffOption is a setting of ExponentialDelayRestart.
type BackoffOption func(*env.ExponentialBackoff)

// RestartJitter makes pauses longer or shorter at random by up to this share of them, from 0 to 1, so that jobs that have
// failed together don't all come back together; the default is 0.
func RestartJitter(share float64) BackoffOption {
	return func(d *env.ExponentialBackoff) { d.Jitter = share }
}

// RestartAttempts ends the job with the failure after so many restarts that followed one on the other, without a stretch of
// reset between them; 0, the default, is without end.
func RestartAttempts(most int) BackoffOption {
	return func(d *env.ExponentialBackoff) { d.Attempts = most }
}

// SetRestartStrategy sets what follows a failed attempt; the default is ExponentialDelayRestart for jobs
// that take checkpoints, and NoRestart for others.
func (e *Env) SetRestartStrategy(r RestartStrategy) *Env {
	e.e.Settings.Restart = r.open
	return e
}

// WithRestartStrategy is SetRestartStrategy as an option of NewEnv.
func WithRestartStrategy(r RestartStrategy) Option {
	return func(s *env.Settings) { s.Restart = r.open }
}

// FailoverStrategy says what of a job is restarted after a failure.
type FailoverStrategy uint8

// The failover strategies.
const (
	// FailoverRegion restarts the part of the job that the failure belongs to: all operators that are connected, by streams or
	// by a loop, to the one that failed. Pipelines beside it go on. The default.
	FailoverRegion FailoverStrategy = iota
	// FailoverFull restarts all tasks.
	FailoverFull
)

// SetFailoverStrategy sets what is restarted after a failure; the default is FailoverRegion. Whether and when says the
// RestartStrategy, one for the whole job: the failures of all its parts count together.
func (e *Env) SetFailoverStrategy(f FailoverStrategy) *Env {
	if f > FailoverFull {
		e.report(fmt.Errorf("set the failover strategy: there is no strategy %d: choose FailoverRegion or FailoverFull", f))
		return e
	}
	e.e.Settings.FullRestart = f == FailoverFull
	return e
}
