package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/clock"
)

// stage is a simulation whose subtasks write down what they do.
type stage struct {
	*Simulation
	log []string
}

func newStage(seed uint64) *stage { return &stage{Simulation: NewSimulation(seed, clock.NewManual(0))} }

// add puts a subtask on stage.
func (s *stage) add(body func(w Waiter)) Waiter {
	w := s.NewWaiter()
	s.Start(w, func() { body(w) })
	return w
}

func (s *stage) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...)+fmt.Sprint(" at ", s.Clock.Millis()))
}

// wants runs the simulation and compares what was written.
func (s *stage) wants(t *testing.T, want ...string) {
	t.Helper()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.log, want) {
		t.Errorf("got %q, want %q", s.log, want)
	}
}

func TestSimulatedTimeMovesToTheNextDeadlineWhenAllWait(t *testing.T) {
	s := newStage(1)
	for _, at := range []int64{30, 10, 20} {
		s.add(func(w Waiter) {
			w.Wait(Idle, at)
			s.note("%d", at)
			w.Wait(Idle, at+25)
			s.note("%d", at+25)
		})
	}
	s.wants(t, "10 at 10", "20 at 20", "30 at 30", "35 at 35", "45 at 45", "55 at 55")
}

func TestSimulatedTimeStandsWhileAnybodyWorks(t *testing.T) {
	for seed := range uint64(20) {
		s := newStage(seed)
		s.add(func(w Waiter) {
			w.Wait(Idle, 5)
			s.note("timer")
		})
		s.add(func(w Waiter) {
			for range 10 {
				w.Yield(0)
			}
			s.note("worked")
		})
		s.wants(t, "worked at 0", "timer at 5")
	}
}

func TestDeadlineThatIsOverDoesNotWait(t *testing.T) {
	s := newStage(1)
	s.Clock.Set(100)
	s.add(func(w Waiter) {
		w.Wait(Idle, 100)
		s.note("now")
		w.Wait(Idle, 7)
		s.note("past")
	})
	s.wants(t, "now at 100", "past at 100")
}

func TestWakeBeforeWaitEndsItOnce(t *testing.T) {
	s := newStage(1)
	s.add(func(w Waiter) {
		w.Wake()
		w.Wake()
		w.Wait(Idle, 10)
		s.note("woken")
		w.Wait(Idle, 10)
		s.note("deadline")
	})
	s.wants(t, "woken at 0", "deadline at 10")
}

func TestWakeEndsAWaitBeforeItsDeadline(t *testing.T) {
	for seed := range uint64(20) {
		s := newStage(seed)
		sleeper := s.add(func(w Waiter) {
			w.Wait(Idle, 10)
			s.note("woken")
			w.Wait(Idle, 20)
			s.note("deadline")
		})
		s.add(func(w Waiter) {
			w.Wait(Idle, 5)
			sleeper.Wake()
		})
		s.wants(t, "woken at 5", "deadline at 20")
	}
}

// A wake-up that comes before the subtask has begun, or while it yields, is meant for its next wait.
func TestWakeBeforeTheStartOrDuringAYieldIsKept(t *testing.T) {
	s := newStage(1)
	early := s.add(func(w Waiter) {
		w.Wait(Idle, Forever)
		s.note("early")
	})
	early.Wake()
	for seed := range uint64(20) {
		s := newStage(seed)
		var yielding bool
		a := s.add(func(w Waiter) {
			yielding = true
			w.Yield(0)
			w.Wait(Idle, Forever)
			s.note("woken")
		})
		s.add(func(w Waiter) {
			for !yielding {
				w.Yield(0)
			}
			a.Wake()
		})
		s.wants(t, "woken at 0")
	}
	s.wants(t, "early at 0")
}

func TestSubtasksThatAllWaitForeverAreADeadlock(t *testing.T) {
	for name, others := range map[string]func(s *stage){
		"alone":                  func(*stage) {},
		"another waits":          func(s *stage) { s.add(func(w Waiter) { w.Wait(Backpressured, Forever) }) },
		"another has ended":      func(s *stage) { s.add(func(Waiter) {}) },
		"another had a deadline": func(s *stage) { s.add(func(w Waiter) { w.Wait(Idle, 9) }) },
		"another never starts":   func(s *stage) { s.NewWaiter() },
	} {
		s := newStage(1)
		stuck := true
		w := s.add(func(w Waiter) {
			for stuck {
				w.Wait(Idle, Forever)
			}
		})
		others(s)
		if err := s.Run(); !errors.Is(err, ErrDeadlock) {
			t.Errorf("%s: got %v, want a deadlock", name, err)
		}
		for _, c := range s.tasks {
			c.Wake()
		}
		stuck = false
		w.Wake()
		if err := s.Run(); err != nil {
			t.Errorf("%s: somebody woke them, and still: %v", name, err)
		}
	}
}

func TestWaiterWithoutASubtaskIsNotWaitedFor(t *testing.T) {
	s := newStage(1)
	s.NewWaiter()
	s.add(func(Waiter) { s.note("ran") })
	s.NewWaiter()
	s.wants(t, "ran at 0")
	if s.Trace() != "1 " {
		t.Errorf("trace %q", s.Trace())
	}
	if err := newStage(1).Run(); err != nil {
		t.Errorf("an empty simulation: %v", err)
	}
}

// The seed alone decides who goes on, and every order comes up.
func TestSeedDecidesTheOrder(t *testing.T) {
	run := func(seed uint64) (order, trace string) {
		s := newStage(seed)
		for i := range 3 {
			s.add(func(w Waiter) {
				w.Yield(0)
				order += fmt.Sprint(i)
			})
		}
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		return order, s.Trace()
	}
	orders := map[string]bool{}
	for seed := range uint64(100) {
		order, trace := run(seed)
		again, same := run(seed)
		if order != again || trace != same {
			t.Fatalf("seed %d gave %s (%s), then %s (%s)", seed, order, trace, again, same)
		}
		if got := len(strings.Fields(trace)); got != 6 {
			t.Errorf("seed %d: %d steps in %q, want two for each subtask", seed, got, trace)
		}
		orders[order] = true
	}
	if len(orders) != 6 {
		t.Errorf("100 seeds gave the orders %v, want all six", orders)
	}
}
