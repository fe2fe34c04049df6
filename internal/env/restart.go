package env

import (
	"time"

	"github.com/flott-dev/flott/internal/control"
)

// Restart makes the restart strategy of one job.
type Restart func() control.Restart

// NoRestart lets the first failure end the job.
func NoRestart() Restart { return func() control.Restart { return control.NoRestart{} } }

// FixedDelay restarts up to attempts times.
func FixedDelay(attempts int, delay time.Duration) Restart {
	return func() control.Restart { return &control.FixedDelay{Attempts: attempts, Delay: delay} }
}

// FailureRate restarts while no more than most failures lie within interval.
func FailureRate(most int, interval, delay time.Duration) Restart {
	return func() control.Restart { return &control.FailureRate{Max: most, Interval: interval, Delay: delay} }
}

// ExponentialDelay restarts for ever, after longer and longer pauses.
func ExponentialDelay(initial, longest, reset time.Duration, factor float64) Restart {
	return func() control.Restart {
		return &control.ExponentialDelay{Initial: initial, Max: longest, Reset: reset, Factor: factor}
	}
}
