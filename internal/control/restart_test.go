package control

import (
	"testing"
	"time"
)

func answers(r Restart, minutes ...float64) (out []bool) {
	for _, m := range minutes {
		again, _ := r.Failed(int64(m * 60_000))
		out = append(out, again)
	}
	return out
}

// Trap B038: exactly three restarts, the fourth failure inside the interval ends the job; a failure just outside the
// interval does not count.
func TestFailureRateCountsFailuresInsideTheInterval(t *testing.T) {
	rate := func() Restart { return &FailureRate{Max: 3, Interval: 5 * time.Minute} }
	for _, c := range []struct {
		name    string
		minutes []float64
		last    bool
	}{
		{"fourth inside", []float64{0, 1, 2, 3}, false},
		{"first just outside", []float64{0, 1, 2, 5 + 1.0/60_000}, true},
		{"first just inside", []float64{0, 1, 2, 5}, false},
	} {
		got := answers(rate(), c.minutes...)
		if got[3] != c.last || !got[0] || !got[1] || !got[2] {
			t.Errorf("%s: got %v, want three restarts and then %v", c.name, got, c.last)
		}
	}
}

func TestFixedDelayRestartsSoManyTimes(t *testing.T) {
	got := answers(&FixedDelay{Attempts: 2, Delay: time.Second}, 0, 1, 2)
	if !got[0] || !got[1] || got[2] {
		t.Errorf("got %v, want two restarts", got)
	}
}

func TestExponentialDelayGrowsAndStartsOver(t *testing.T) {
	e := &ExponentialDelay{Initial: time.Second, Max: 5 * time.Second, Reset: time.Minute, Factor: 2}
	var got []time.Duration
	for _, now := range []int64{0, 1000, 3000, 7000, 100_000} {
		_, d := e.Failed(now)
		got = append(got, d)
	}
	want := []time.Duration{1, 2, 4, 5, 1}
	for i := range want {
		if got[i] != want[i]*time.Second {
			t.Fatalf("delays %v, want %v s", got, want)
		}
	}
}

func TestDelaysAreThoseOfTheStrategy(t *testing.T) {
	for name, c := range map[string]struct {
		r    Restart
		want []time.Duration // of failures a second apart
	}{
		"none":                        {NoRestart{}, []time.Duration{0, 0}},
		"fixed":                       {&FixedDelay{Attempts: 5, Delay: 3 * time.Second}, []time.Duration{3 * time.Second, 3 * time.Second}},
		"rate":                        {&FailureRate{Max: 5, Interval: time.Minute, Delay: 2 * time.Second}, []time.Duration{2 * time.Second, 2 * time.Second}},
		"exponential":                 {&ExponentialDelay{Initial: 2, Max: 100, Reset: time.Minute, Factor: 1.5}, []time.Duration{2, 3, 4, 6, 9, 13}},
		"a factor of one":             {&ExponentialDelay{Initial: 5, Max: 100, Reset: time.Minute, Factor: 1}, []time.Duration{5, 5, 5}},
		"products beyond a Duration":  {&ExponentialDelay{Initial: time.Hour, Max: 100 * time.Hour, Reset: time.Minute, Factor: 1e9}, []time.Duration{time.Hour, 100 * time.Hour, 100 * time.Hour}},
		"a failure after a calm time": {&ExponentialDelay{Initial: 1, Max: 100, Reset: time.Second, Factor: 10}, []time.Duration{1, 1, 1}},
	} {
		for i, want := range c.want {
			if _, delay := c.r.Failed(int64(i) * 1000); delay != want {
				t.Errorf("%s: failure %d is followed by a delay of %v, want %v", name, i+1, delay, want)
			}
		}
	}
}

func TestExponentialDelayStartsOverExactlyAfterTheCalmStretch(t *testing.T) {
	for calm, want := range map[int64]time.Duration{59_999: 10, 60_000: 1} {
		e := &ExponentialDelay{Initial: 1, Max: 100, Reset: time.Minute, Factor: 10}
		e.Failed(0)
		if again, delay := e.Failed(calm); !again || delay != want {
			t.Errorf("a failure after %d ms: %v, %v, want %v", calm, again, delay, want)
		}
	}
}

func TestNoRestartEndsWithTheFirstFailure(t *testing.T) {
	if again, _ := (NoRestart{}).Failed(0); again {
		t.Error("it restarts")
	}
	if again, _ := (&FixedDelay{}).Failed(0); again {
		t.Error("no attempts are allowed, and it restarts")
	}
}
