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
