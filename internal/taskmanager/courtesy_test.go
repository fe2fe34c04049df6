package taskmanager

import (
	"errors"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/statebackend"
)

func TestWritersWorkForAPartOfTheTimeTheyWereAway(t *testing.T) {
	for away, want := range map[time.Duration]time.Duration{
		0: leastTurn, leastTurn: leastTurn, time.Millisecond: 750 * time.Microsecond, 4 * time.Millisecond / 3: shortTurn - 1, 2 * time.Millisecond: shortTurn,
		3 * time.Millisecond: shortTurn, 6 * time.Millisecond: 2 * time.Millisecond, time.Second: mostTurn,
	} {
		if got := time.Duration(turn(int64(away))); got != want {
			t.Errorf("away for %v, then works for %v, want %v", away, got, want)
		}
	}
}

func TestWritersDoNotStepBackBeforeItIsTime(t *testing.T) {
	c := &courtesy{clock: clock.NewManual(0)}
	c.yield()
	next := c.next.Load()
	if next != int64(leastTurn) {
		t.Fatalf("steps back again at %d", next)
	}
	c.yield()
	if c.next.Load() != next {
		t.Error("stepped back too early")
	}
}

// looking is a clock that counts who looks at it.
type looking struct {
	*clock.Manual
	n int
}

func (l *looking) Nanos() int64 {
	l.n++
	return l.Manual.Nanos()
}

func TestRowsBetweenWhichAWriterStepsBackAreTheSame(t *testing.T) {
	bad := errors.New("bad")
	all := func(yield func(*statebackend.Row, error) bool) {
		for i := range 3 * turnRows {
			if !yield(&statebackend.Row{Group: i}, nil) {
				return
			}
		}
		yield(nil, bad)
	}
	looks := &looking{Manual: clock.NewManual(0)}
	c := &courtesy{clock: looks}
	n, err := 0, error(nil)
	for r, e := range c.rows(all) {
		if e != nil {
			err = e
		} else if r.Group != n {
			t.Fatalf("row %d is %d", n, r.Group)
		} else {
			n++
		}
	}
	if n != 3*turnRows || err != bad || looks.n != 3+1 { // and one when it has stepped back
		t.Errorf("%d rows and error %v, %d looks at the clock", n, err, looks.n)
	}
	for range c.rows(all) {
		break
	}
	if c.rows(nil) != nil {
		t.Error("a table without rows has got some")
	}
}

func TestBatchesBetweenWhichAWriterStepsBackAreTheSame(t *testing.T) {
	bad := errors.New("bad")
	all := func(yield func(*statebackend.RowBatch, error) bool) {
		for i := range 20 {
			if !yield(&statebackend.RowBatch{Group: i, N: turnRows / 3}, nil) {
				return
			}
		}
		yield(nil, bad)
	}
	c := &courtesy{clock: clock.NewManual(0)}
	n, err := 0, error(nil)
	for b, e := range c.batches(all) {
		if e != nil {
			err = e
		} else if b.Group != n {
			t.Fatalf("batch %d is %d", n, b.Group)
		} else {
			n++
		}
	}
	if n != 20 || err != bad || c.next.Load() == 0 {
		t.Errorf("%d batches and error %v, steps back again at %d", n, err, c.next.Load())
	}
	if c.batches(nil) != nil {
		t.Error("there are batches where there were none")
	}
}
