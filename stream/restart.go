package stream

import (
	"time"

	"github.com/flott-dev/flott/internal/env"
)

// RestartStrategy says what follows a failed attempt of a job. A restarted job goes on from its latest checkpoint; without
// one it reads its sources from the beginning.
type RestartStrategy struct{ open env.Restart }

// NoRestart lets the first failure end the job: the default.
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
// longest; a stretch of reset without a failure starts over.
func ExponentialDelayRestart(initial, longest, reset time.Duration, factor float64) RestartStrategy {
	return RestartStrategy{env.ExponentialDelay(initial, longest, reset, factor)}
}

// SetRestartStrategy sets what follows a failed attempt; the default is NoRestart.
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
	e.e.Settings.FullRestart = f == FailoverFull
	return e
}
