package control

import (
	"errors"
	"math"
	"strings"
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
	for _, now := range []int64{0, 1000, 3000, 7000, 72_000} {
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

// What fails while a restart is waited for comes back with it, and counts with it.
func TestExponentialDelayTakesFailuresTogether(t *testing.T) {
	e := &ExponentialDelay{Initial: 10 * time.Second, Max: time.Hour, Reset: time.Hour, Factor: 2, Attempts: 2}
	for _, c := range []struct {
		at    int64
		again bool
		delay time.Duration
	}{
		{0, true, 10 * time.Second},
		{4000, true, 6 * time.Second},
		{9999, true, time.Millisecond},
		{10_000, true, 20 * time.Second},
		{29_999, true, time.Millisecond},
		{30_000, false, 0},
		{30_001, false, 0},
	} {
		if again, delay := e.Failed(c.at); again != c.again || delay != c.delay {
			t.Errorf("a failure at %d ms: %v, %v, want %v, %v", c.at, again, delay, c.again, c.delay)
		}
	}
}

func TestAttemptsOfExponentialDelayCountFromItsReset(t *testing.T) {
	e := &ExponentialDelay{Initial: time.Second, Max: time.Second, Reset: time.Minute, Factor: 1, Attempts: 2}
	for i, c := range []struct {
		at    int64
		again bool
	}{
		{0, true}, {1000, true}, {62_000, true}, {63_000, true}, {64_000, false}, {124_000, true},
	} {
		if again, _ := e.Failed(c.at); again != c.again {
			t.Errorf("failure %d at %d ms: %v", i+1, c.at, again)
		}
	}
}

func TestJitterVariesPausesWithinTheirBounds(t *testing.T) {
	for _, c := range []struct {
		random float64
		want   []time.Duration // of failures at once after each restart
	}{
		{0, []time.Duration{1000, 1000, 2000, 4000, 5000}},
		{0.5, []time.Duration{1000, 2000, 4000, 8000, 10_000}},
		{0.75, []time.Duration{1250, 2500, 5000, 10_000, 10_000}},
	} {
		e := &ExponentialDelay{Initial: time.Second, Max: 10 * time.Second, Reset: time.Hour, Factor: 2, Jitter: 0.5, Random: func() float64 { return c.random }}
		now := int64(0)
		for i, want := range c.want {
			_, d := e.Failed(now)
			if d != want*time.Millisecond {
				t.Errorf("random %v, failure %d: %v, want %v ms", c.random, i+1, d, int64(want))
			}
			now += d.Milliseconds()
		}
	}
}

func TestDefaultStrategyIsFlinks(t *testing.T) {
	e := DefaultExponentialDelay()
	now, delays := int64(0), []time.Duration{}
	for range 13 {
		again, d := e.Failed(now)
		if !again {
			t.Fatal("it gave up")
		}
		delays = append(delays, d)
		now += d.Milliseconds()
	}
	if delays[0] != time.Second || delays[1] != 1500*time.Millisecond || delays[11] != time.Minute || delays[12] != time.Minute {
		t.Errorf("delays %v", delays)
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
		"failures while it waits":     {&ExponentialDelay{Initial: time.Hour, Max: 100 * time.Hour, Reset: time.Minute, Factor: 1e9}, []time.Duration{time.Hour, time.Hour - time.Second, time.Hour - 2*time.Second}},
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

func TestProductsBeyondADurationAreCutToTheLongest(t *testing.T) {
	e := &ExponentialDelay{Initial: time.Hour, Max: 100 * time.Hour, Reset: 1000 * time.Hour, Factor: 1e9}
	e.Failed(0)
	for i, now := range []int64{3_600_000, 101 * 3_600_000} {
		if _, d := e.Failed(now); d != 100*time.Hour {
			t.Errorf("failure %d is followed by a delay of %v", i+2, d)
		}
	}
}

func TestFixedDelayWithoutEnd(t *testing.T) {
	f := &FixedDelay{Attempts: Unlimited}
	for range 1000 {
		if again, _ := f.Failed(0); !again {
			t.Fatal("it gave up")
		}
	}
}

func TestStrategiesThatCannotBeAreRefused(t *testing.T) {
	backoff := func(change func(e *ExponentialDelay)) Restart {
		e := DefaultExponentialDelay()
		change(&e)
		return &e
	}
	for _, c := range []struct {
		r    Restart
		want string // "": nothing is wrong
	}{
		{NoRestart{}, ""},
		{&FixedDelay{}, ""},
		{&FixedDelay{Attempts: Unlimited, Delay: time.Hour}, ""},
		{&FixedDelay{Attempts: -1}, "-1 attempts"},
		{&FixedDelay{Delay: -1}, "delay of a fixed-delay restart, -1ns, is negative"},
		{&FailureRate{Max: 1, Interval: time.Millisecond}, ""},
		{&FailureRate{Interval: time.Second}, "0 failures per interval"},
		{&FailureRate{Max: 1}, "interval of a failure-rate restart, 0s"},
		{&FailureRate{Max: 1, Interval: time.Second, Delay: -1}, "-1ns, is negative"},
		{backoff(func(*ExponentialDelay) {}), ""},
		{backoff(func(e *ExponentialDelay) { e.Factor, e.Max, e.Jitter = 1, e.Initial, 1 }), ""},
		{backoff(func(e *ExponentialDelay) { e.Initial = 0 }), "first pause, 0s"},
		{backoff(func(e *ExponentialDelay) { e.Max = e.Initial - 1 }), "longest pause, 999.999999ms, is shorter than the first, 1s"},
		{backoff(func(e *ExponentialDelay) { e.Reset = 0 }), "starts over, 0s"},
		{backoff(func(e *ExponentialDelay) { e.Factor = 0.9 }), "factor of 0.9"},
		{backoff(func(e *ExponentialDelay) { e.Factor = math.NaN() }), "factor of NaN"},
		{backoff(func(e *ExponentialDelay) { e.Jitter = 1.1 }), "jitter of 1.1"},
		{backoff(func(e *ExponentialDelay) { e.Jitter = math.NaN() }), "jitter of NaN"},
		{backoff(func(e *ExponentialDelay) { e.Attempts = -1 }), "-1 attempts"},
	} {
		err := c.r.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.r, err, c.want)
		}
	}
	err := errors.Join((&FixedDelay{Attempts: -1, Delay: -1}).Validate(), (&FailureRate{Delay: -1}).Validate())
	if n := strings.Count(err.Error(), "\n"); n != 4 {
		t.Errorf("not all is told: %v", err)
	}
}
