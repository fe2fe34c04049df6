package source

import "testing"

func TestPaceKeepsTheRate(t *testing.T) {
	for _, rate := range []float64{0.5, 1, 3, 7.5, 250, 1000, 12345} {
		p := pace{perMilli: rate / 1000, start: 100}
		total := int64(0)
		for now := int64(100); now <= 10_100; now++ {
			n := p.due(now)
			p.sent += float64(n)
			total += n
			if next := p.next(); n > 0 && (next < now || p.due(next) < 1) {
				t.Fatalf("rate %v at %d: the next element is said to be due at %d", rate, now, next)
			}
		}
		if want := int64(rate*10) + 1; total < want-1 || total > want+1 {
			t.Errorf("rate %v: %d elements in 10 s", rate, total)
		}
	}
}

func TestPaceForgoesWhatAStallHeldUp(t *testing.T) {
	p := pace{perMilli: 0.1, start: 0} // 100 per second
	if n := p.due(0); n != 1 {
		t.Errorf("%d elements due at the start", n)
	}
	p.sent++
	n := p.due(3_600_000)
	if n != 100 {
		t.Errorf("%d elements due after an hour's stall, want one second's worth", n)
	}
	p.sent += float64(n)
	if n := p.due(3_600_000); n != 0 {
		t.Errorf("%d more at once", n)
	}
	if n := p.due(3_600_100); n < 9 || n > 11 {
		t.Errorf("%d elements in the 100 ms after the stall", n)
	}
}

// A clock that is set back by an hour does not stop a source for one.
func TestPaceGoesOnWhenTheClockIsSetBack(t *testing.T) {
	p := pace{perMilli: 0.1, start: 5_000_000}
	for _, c := range []struct {
		now, due int64
		back     bool
	}{{5_000_000, 1, false}, {5_000_010, 1, false}, {1_400_010, 0, true}, {1_400_019, 0, false}, {1_400_020, 1, false}, {1_400_000, 0, true}, {1_400_010, 1, false}} {
		if back := p.setBack(c.now); back != c.back {
			t.Errorf("at %d the clock was set back: %v, want %v", c.now, back, c.back)
		}
		due := p.due(c.now)
		if due != c.due {
			t.Errorf("at %d %d are due, want %d", c.now, due, c.due)
		}
		p.sent += float64(due)
	}
	if next := p.next(); next != 1_400_020 {
		t.Errorf("the next one is due at %d, want %d", next, 1_400_020)
	}
}
