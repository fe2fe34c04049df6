package source

import (
	"math"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// generator calls a function with 0, 1, 2 ..., dealt to the subtasks in turn, at a bounded rate.
type generator[T any] struct {
	head
	f       func(i int64) T
	n       int64   // of all subtasks; < 0: without end
	rate    float64 // elements per second of all subtasks; 0: as fast as the job can take them
	col     *frame.Column
	next    int64
	step    int64
	pace    pace
	waiting *operator.Callback
}

// Generator returns the driver of a source of f(0) ... f(n-1); n < 0 is without end, rate is in elements per second of
// all subtasks together, 0: unbounded.
func Generator[T any](typ *frame.Type, n int64, f func(i int64) T, rate float64) operator.Operator {
	return &generator[T]{head: head{Out: operator.NewOutput(typ)}, f: f, n: n, rate: rate}
}

// Open implements operator.Operator.
func (s *generator[T]) Open(rt *operator.Runtime) error {
	s.col = frame.NewColumn(s.Out.Type, s.Out.Type.FrameLen(frame.Bytes))
	s.next, s.step = int64(rt.Subtask), int64(rt.Parallelism)
	s.pace = pace{perMilli: s.rate / float64(rt.Parallelism) / 1000, start: rt.Now}
	return s.head.Open(rt)
}

// Poll implements operator.Source.
func (s *generator[T]) Poll() (operator.Status, error) {
	last := s.n - 1
	if s.n < 0 {
		last = math.MaxInt64
	}
	if s.next > last {
		return operator.Done, nil
	}
	n := min(int64(s.col.Cap())-1, (last-s.next)/s.step) + 1
	if s.rate > 0 {
		if n = min(n, s.pace.due(s.rt.Now)); n == 0 {
			if s.waiting == nil {
				s.waiting = s.rt.Timers.Schedule(s.pace.next()-1, s.goOn)
			}
			return operator.Nothing, nil
		}
		s.pace.sent += float64(n)
	}
	xs := frame.Fill[T](s.col, int(n))
	for i := range xs {
		xs[i] = s.f(s.next)
		if s.next > math.MaxInt64-s.step {
			s.n, s.next = 0, math.MaxInt64 // that was the last one there is
		} else {
			s.next += s.step
		}
	}
	s.run = s.col.Run()
	if err := s.Out.Push(&s.run); err != nil {
		return operator.Done, err
	}
	s.col.Reset()
	return operator.More, nil
}

// goOn only ends the task's wait: it polls again.
func (s *generator[T]) goOn(int64) error {
	s.waiting = nil
	return nil
}

// pace says how many elements are due: element i is, i/perMilli ms after the start. What a stall has held up is caught up
// for one second's worth, the rest is forgone: the rate is a bound, not a debt.
type pace struct {
	perMilli float64
	start    int64 // ms
	sent     float64
}

func (p *pace) due(now int64) int64 {
	due := math.Floor(float64(now-p.start)*p.perMilli) + 1 - p.sent
	if most := math.Max(1, p.perMilli*1000); due > most {
		p.start, p.sent = now, 1-most // the next element after these is due one step after now
		due = most
	}
	return int64(math.Max(0, due))
}

// next is the first ms at which another element is due.
func (p *pace) next() int64 {
	return p.start + int64(math.Min(math.Ceil(p.sent/p.perMilli), math.MaxInt64/4))
}
