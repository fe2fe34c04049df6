package stream_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// flaky fails in its first attempts.
type flaky struct {
	attempt  int
	failures int
	attempts *[]int
}

func (f *flaky) ProcessElement(_ *process.Context, x int, out *process.Collector[int]) error {
	if x == 2 {
		*f.attempts = append(*f.attempts, f.attempt)
		if f.attempt < f.failures {
			return errors.New("not yet")
		}
	}
	out.Collect(x)
	return nil
}

func TestJobRestartsAsItsStrategySays(t *testing.T) {
	for _, c := range []struct {
		name     string
		strategy stream.RestartStrategy
		failures int
		attempts []int
		took     time.Duration
		fails    bool
	}{
		{"no restart", stream.NoRestart(), 1, []int{0}, 0, true},
		{"two restarts are enough", stream.FixedDelayRestart(2, time.Minute), 2, []int{0, 1, 2}, 2 * time.Minute, false},
		{"two restarts are not enough", stream.FixedDelayRestart(2, time.Minute), 3, []int{0, 1, 2}, 2 * time.Minute, true},
		{"rate of three", stream.FailureRateRestart(3, 5*time.Minute, time.Second), 9, []int{0, 1, 2, 3}, 3 * time.Second, true},
		{"rate of one a minute", stream.FailureRateRestart(1, time.Second, time.Minute), 4, []int{0, 1, 2, 3, 4}, 4 * time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := stream.NewEnv(stream.WithRestartStrategy(c.strategy)).SetParallelism(1)
				var attempts []int
				env.FromElements(1, 2, 3).Process(func(rt *process.Runtime) *flaky {
					return &flaky{attempt: rt.Info().Attempt, failures: c.failures, attempts: &attempts}
				}).Discard()
				start := time.Now()
				_, err := env.Execute(context.Background(), "flaky")
				if (err != nil) != c.fails {
					t.Errorf("error %v, want one: %v", err, c.fails)
				}
				if !slices.Equal(attempts, c.attempts) || time.Since(start) != c.took {
					t.Errorf("attempts %v in %v, want %v in %v", attempts, time.Since(start), c.attempts, c.took)
				}
			})
		})
	}
}

func TestRestartSettingsThatCannotBeAreMistakes(t *testing.T) {
	for want, r := range map[string]stream.RestartStrategy{
		"-1 attempts of a fixed-delay restart":    stream.FixedDelayRestart(-1, time.Second),
		"0 failures per interval":                 stream.FailureRateRestart(0, time.Minute, time.Second),
		"a factor of 0.5 lets pauses shrink":      stream.ExponentialDelayRestart(time.Second, time.Minute, time.Hour, 0.5),
		"a jitter of 7 is no share":               stream.ExponentialDelayRestart(time.Second, time.Minute, time.Hour, 2, stream.RestartJitter(7)),
		"the longest pause, 1ms, is shorter":      stream.ExponentialDelayRestart(time.Second, time.Millisecond, time.Hour, 2),
		"there is no strategy 9: choose Failover": {},
	} {
		env := stream.NewEnv(stream.WithRestartStrategy(r))
		if strings.Contains(want, "Failover") {
			env.SetFailoverStrategy(9)
		}
		env.FromElements(1).Discard()
		if _, err := env.Execute(context.Background(), "wrong"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
