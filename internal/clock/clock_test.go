package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSystemClockFollowsTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock = NewSystem()
		if c.Millis() != time.Now().UnixMilli() || c.Nanos() != 0 {
			t.Errorf("reads %d ms and %d ns at the start", c.Millis(), c.Nanos())
		}
		time.Sleep(1500 * time.Microsecond)
		if c.Millis() != time.Now().UnixMilli() || c.Nanos() != 1_500_000 {
			t.Errorf("reads %d ms and %d ns after 1.5 ms", c.Millis(), c.Nanos())
		}
	})
}

func TestManualClockMovesOnlyWhenTold(t *testing.T) {
	m := NewManual(7)
	var c Clock = m
	for _, ms := range []int64{7, 1000, -5} {
		m.Set(ms)
		if c.Millis() != ms || c.Nanos() != ms*1_000_000 {
			t.Errorf("set to %d ms, reads %d ms and %d ns", ms, c.Millis(), c.Nanos())
		}
	}
}
