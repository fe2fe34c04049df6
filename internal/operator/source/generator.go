package source

import (
	"math"
	"slices"

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
	rest    []stretch // arithmetic progressions: the next number and the step
	pace    pace
	waiting *operator.Callback
	at      int64 // the number that f is called with, while it is
	calling bool
}

// Generator returns the driver of a source of f(0) ... f(n-1); n < 0 is without end, rate is in elements per second of
// all subtasks together, 0: unbounded.
func Generator[T any](typ *frame.Type, n int64, f func(i int64) T, rate float64) operator.Operator {
	return &generator[T]{head: head{Out: operator.NewOutput(typ)}, f: f, n: n, rate: rate}
}

// Open implements operator.Operator.
func (s *generator[T]) Open(rt *operator.Runtime) error {
	s.col = frame.NewColumn(s.Out.Type, s.Out.Type.FrameLen(frame.Bytes))
	parts, restored, err := restoreStretches(rt, deal)
	if err != nil {
		return err
	}
	if s.rest = parts; !restored {
		s.rest = []stretch{{int64(rt.Subtask), int64(rt.Parallelism)}}
	}
	rt.AtHand = s.atHand
	s.pace = pace{perMilli: s.rate / float64(rt.Parallelism) / 1000, start: rt.Now, seen: rt.Now}
	return s.head.Open(rt)
}

// atHand is operator.Runtime's.
func (s *generator[T]) atHand(*frame.Run) string {
	if !s.calling {
		return ""
	}
	return operator.AtHand(operator.Named("number", s.at))
}

// deal is the i-th of n parts of a progression, whose numbers are dealt out in turn; the first goes to the subtask that had
// them all.
func deal(s stretch, of, i, n int) (stretch, bool) {
	first := int64((i - of%n + n) % n)
	if s.to > math.MaxInt64/int64(n) || first > 0 && s.from > math.MaxInt64-s.to*first {
		return s, false // beyond the last number that there is
	}
	return stretch{s.from + s.to*first, s.to * int64(n)}, true
}

// Snapshot implements operator.Snapshotter.
func (s *generator[T]) Snapshot(o *operator.Snapshot) error {
	snapshotStretches(o, s.rt, s.rest)
	return nil
}

// last is the last number of all.
func (s *generator[T]) last() int64 {
	if s.n < 0 {
		return math.MaxInt64
	}
	return s.n - 1
}

// least is the progression with the least number, and how many numbers it has; nil if all are over.
func (s *generator[T]) least() (p *stretch, n int64) {
	last := s.last()
	s.rest = slices.DeleteFunc(s.rest, func(p stretch) bool { return p.from > last || p.to == 0 })
	if len(s.rest) == 0 {
		return nil, 0
	}
	p = &s.rest[0]
	for i := range s.rest {
		if s.rest[i].from < p.from {
			p = &s.rest[i]
		}
	}
	return p, (last - p.from) / p.to // that and the one at hand
}

// fill writes the next elements, n at most, and says how many there were.
func (s *generator[T]) fill(xs []T) (made int) {
	for made < len(xs) {
		p, more := s.least()
		if p == nil {
			break
		}
		n := int(min(int64(len(xs)-made)-1, more)) + 1
		if len(s.rest) > 1 {
			n = 1 // the next number may be another one's
		}
		s.calling = true
		for i := range n {
			s.at = p.from + int64(i)*p.to
			xs[made+i] = s.f(s.at)
		}
		s.calling = false
		made += n
		if n = n - 1; p.from+int64(n)*p.to > math.MaxInt64-p.to {
			p.to = 0 // that was the last one there is
		} else {
			p.from += int64(n+1) * p.to
		}
	}
	return made
}

// Poll implements operator.Source.
func (s *generator[T]) Poll() (operator.Status, error) {
	if p, _ := s.least(); p == nil {
		return operator.Done, nil
	}
	n := int64(s.col.Cap())
	if s.rate > 0 {
		if s.pace.setBack(s.rt.Now) && s.waiting != nil {
			s.rt.Timers.Cancel(s.waiting) // it is for a time of the clock that is far away now
			s.waiting = nil
		}
		if n = min(n, s.pace.due(s.rt.Now)); n == 0 {
			if s.waiting == nil {
				s.waiting = s.rt.Timers.Schedule(s.pace.next()-1, s.goOn)
			}
			return operator.Nothing, nil
		}
	}
	xs := frame.Fill[T](s.col, int(n))
	made := s.fill(xs)
	s.pace.sent += float64(made)
	s.run = s.col.Run()
	s.run.N = made
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
	seen     int64 // the last now, ms
}

// setBack says whether the clock was set back since it was seen last; what is due is as it was then.
func (p *pace) setBack(now int64) bool {
	back := p.seen - now
	p.seen = now
	if back <= 0 {
		return false
	}
	p.start -= back
	return true
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
