package host

import (
	"errors"
	"iter"
	"math/rand/v2"
	"strconv"

	"github.com/flott-dev/flott/internal/clock"
)

// ErrDeadlock is Simulation.Run's answer when every subtask waits and no deadline is set.
var ErrDeadlock = errors.New("every subtask waits and nothing can wake one")

// Simulation runs subtasks as coroutines on one goroutine: a seeded scheduler chooses who goes on at every waiting point
// and between runs, and time moves only when everybody waits. The same seed gives the same run.
type Simulation struct {
	Clock *clock.Manual
	rng   *rand.Rand
	tasks []*coroutine
	trace []byte
}

// NewSimulation returns an empty simulation.
func NewSimulation(seed uint64, c *clock.Manual) *Simulation {
	return &Simulation{Clock: c, rng: rand.New(rand.NewPCG(seed, 0))}
}

// coroutine is a subtask and its Waiter.
type coroutine struct {
	sim      *Simulation
	id       int
	next     func() (struct{}, bool)
	stop     func()
	yield    func(struct{}) bool
	waiting  bool
	woken    bool
	deadline int64
	done     bool
}

// NewWaiter implements Threads.
func (s *Simulation) NewWaiter() Waiter {
	c := &coroutine{sim: s, id: len(s.tasks), deadline: Forever}
	s.tasks = append(s.tasks, c)
	return c
}

// Start implements Threads: the subtask runs when Run is called.
func (s *Simulation) Start(w Waiter, body func()) {
	c := w.(*coroutine)
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		body()
	})
}

// Run schedules until every subtask has ended.
func (s *Simulation) Run() error {
	var ready []*coroutine
	for {
		ready = s.ready(ready[:0])
		if len(ready) == 0 {
			if s.ended() {
				return nil
			}
			if !s.advance() {
				return ErrDeadlock
			}
			continue
		}
		c := ready[s.rng.IntN(len(ready))]
		if c.waiting { // a wake-up that comes at any other time is for the next wait
			c.waiting, c.woken, c.deadline = false, false, Forever
		}
		s.trace = append(strconv.AppendInt(s.trace, int64(c.id), 10), ' ')
		if _, more := c.next(); !more {
			c.done = true
		}
	}
}

// Trace is who went on, in order: equal for equal seeds.
func (s *Simulation) Trace() string { return string(s.trace) }

func (s *Simulation) ready(to []*coroutine) []*coroutine {
	for _, c := range s.tasks {
		if !c.done && c.next != nil && (!c.waiting || c.woken || c.deadline <= s.Clock.Millis()) {
			to = append(to, c)
		}
	}
	return to
}

func (s *Simulation) ended() bool {
	for _, c := range s.tasks {
		if !c.done && c.next != nil {
			return false
		}
	}
	return true
}

// advance moves the clock to the first deadline.
func (s *Simulation) advance() bool {
	first := int64(Forever)
	for _, c := range s.tasks {
		if !c.done {
			first = min(first, c.deadline)
		}
	}
	if first == Forever {
		return false
	}
	s.Clock.Set(first)
	return true
}

// Wait implements Waiter.
func (c *coroutine) Wait(_ Reason, deadline int64) {
	if c.woken {
		c.woken = false
		return
	}
	c.waiting, c.deadline = true, deadline
	c.yield(struct{}{})
}

// Yield implements Waiter.
func (c *coroutine) Yield(int64) { c.yield(struct{}{}) }

// Wake implements Waiter.
func (c *coroutine) Wake() { c.woken = true }
