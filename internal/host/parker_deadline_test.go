package host

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/internal/clock"
)

// parked calls Wait in a bubble and says how long it took.
func parked(p *Parker, deadline int64) time.Duration {
	start := time.Now()
	p.Wait(Idle, deadline)
	return time.Since(start)
}

func TestParkerWaitsUntilItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewSystem()
		p := NewParker(c)
		for range 3 { // the timer is used again
			if d := parked(p, c.Millis()+50); d != 50*time.Millisecond {
				t.Errorf("waited %v, want 50ms", d)
			}
		}
		for _, past := range []int64{0, -1, -1000, math.MinInt64 + 1 - c.Millis()} {
			if d := parked(p, c.Millis()+past); d != 0 {
				t.Errorf("waited %v for a deadline %d ms from now", d, past)
			}
		}
	})
}

func TestWakeBeforeParkingIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewSystem()
		p := NewParker(c)
		p.Wake()
		p.Wake()
		if d := parked(p, Forever); d != 0 {
			t.Errorf("waited %v after a wake-up", d)
		}
		if d := parked(p, c.Millis()+5); d != 5*time.Millisecond {
			t.Errorf("waited %v: one wake-up ended two waits", d)
		}
	})
}

func TestWakeEndsParkingBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewSystem()
		p := NewParker(c)
		for _, deadline := range []int64{c.Millis() + 1000, Forever, Forever - 1} {
			time.AfterFunc(10*time.Millisecond, p.Wake)
			if d := parked(p, deadline); d != 10*time.Millisecond {
				t.Errorf("waited %v until %d, want 10ms", d, deadline)
			}
		}
		// Neither the stopped timer nor the wake-up is left over.
		if d := parked(p, c.Millis()+2000); d != 2*time.Second {
			t.Errorf("waited %v, want 2s", d)
		}
	})
}

// A deadline further away than a time.Duration can say must not become one in the past: the subtask would spin.
func TestFarDeadlineParks(t *testing.T) {
	for _, deadline := range []int64{Forever, Forever - 1, Forever / 2, math.MaxInt64 / int64(time.Millisecond), 1 << 53} {
		synctest.Test(t, func(t *testing.T) {
			p := NewParker(clock.NewManual(0))
			waits := 0
			go func() {
				p.Wait(Idle, deadline)
				waits++
			}()
			time.Sleep(1000 * time.Hour)
			synctest.Wait()
			if waits != 0 {
				t.Errorf("a wait until %d ended after less than 1000 hours", deadline)
			}
			p.Wake()
			synctest.Wait()
			if waits != 1 {
				t.Errorf("a wake-up did not end the wait until %d", deadline)
			}
		})
	}
}

func TestGoroutinesRunSubtasksAtParkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var threads Threads = Goroutines{Clock: clock.NewSystem()}
		w := threads.NewWaiter()
		ran := false
		threads.Start(w, func() {
			w.Yield(0) // no scheduling point: nothing happens
			w.Wait(Idle, Forever)
			ran = true
		})
		synctest.Wait()
		if ran {
			t.Fatal("the subtask did not wait")
		}
		w.Wake()
		synctest.Wait()
		if !ran {
			t.Error("the subtask was not woken")
		}
	})
}
