package env

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/jobmanager"
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

// ExponentialBackoff are the pauses of Backoff.
type ExponentialBackoff = control.ExponentialDelay

// ExponentialDelay restarts for ever, after longer and longer pauses, which don't vary.
func ExponentialDelay(initial, longest, reset time.Duration, factor float64) Restart {
	return Backoff(ExponentialBackoff{Initial: initial, Max: longest, Reset: reset, Factor: factor})
}

// Backoff restarts as d says. If its pauses are to vary and it brings no random numbers it gets some.
func Backoff(d ExponentialBackoff) Restart {
	return func() control.Restart {
		d := d
		if d.Jitter > 0 && d.Random == nil {
			d.Random = rand.Float64
		}
		return &d
	}
}

// restart is what follows failures of one job. A job that takes checkpoints is restarted if nothing else is said: with what it
// has kept, nothing is lost.
func (e *Env) restart() jobmanager.Restarts {
	r := jobmanager.Restarts{Strategy: control.NoRestart{}, Full: e.Settings.FullRestart}
	switch {
	case e.Settings.Restart != nil:
		r.Strategy = e.Settings.Restart()
	case e.Settings.Checkpoints.Enabled:
		r.Strategy = Backoff(control.DefaultExponentialDelay())()
	}
	return r
}

// wrongRestart reports settings of the restart strategy that can't be.
func (e *Env) wrongRestart() error {
	if err := e.restart().Strategy.Validate(); err != nil {
		return fmt.Errorf("set the restart strategy: %w", err)
	}
	return nil
}

// rehearsedRestart is restart in a simulation, where what is random comes from its seed.
func (e *Env) rehearsedRestart(seed uint64) jobmanager.Restarts {
	r := e.restart()
	if d, ok := r.Strategy.(*control.ExponentialDelay); ok && d.Random != nil {
		d.Random = rand.New(rand.NewPCG(seed, 7)).Float64
	}
	return r
}
