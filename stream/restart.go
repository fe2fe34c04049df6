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
