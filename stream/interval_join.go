package stream

import (
	"errors"
	"fmt"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/interval"
	"github.com/flott-dev/flott/process"
)

// IntervalJoin is an interval join that is being built: two streams keyed alike, whose elements are paired when they have
// the same key and the right one's timestamp lies within bounds relative to the left one's. Say Between, then what to do
// with a pair: Join, JoinPtr or Process. Methods return a changed copy.
//
// It is an inner join in event time: both streams need timestamps, an element without one fails the task. Each pair is
// joined once, as soon as its second element has come, in no particular order; the result has the larger one of the two
// timestamps, so it is never late. An element is kept until the watermark says that no partner can follow.
type IntervalJoin[A, B, K any] struct {
	c    [2]*core
	keys [2]*operator.Key
	j    intervalSpec
}

// intervalSpec is what was said of a join.
type intervalSpec struct {
	lower, upper           time.Duration
	between                bool
	afterLower, belowUpper bool // a bound is exclusive
	late                   [2]string
}

// IntervalJoin begins a join of the stream, the left one, with another one that has keys of the same type, the right one.
func (s *KeyedStream[T, K]) IntervalJoin[B any](other *KeyedStream[B, K]) *IntervalJoin[T, B, K] {
	return &IntervalJoin[T, B, K]{c: s.c.with(other.c), keys: [2]*operator.Key{s.key, other.key}}
}

// Between sets the bounds: a left element of time t is paired with the right elements of times t+lower ... t+upper, both
// inclusive unless said otherwise. They may be negative and are truncated to ms; a lower bound above the upper one is a
// mistake. Sums with timestamps are held at the ends of time.
func (s *IntervalJoin[A, B, K]) Between(lower, upper time.Duration) *IntervalJoin[A, B, K] {
	return s.with(s.j.bounds(s.c[0].env, lower, upper))
}

// LowerBoundExclusive leaves out the right elements of time t+lower.
func (s *IntervalJoin[A, B, K]) LowerBoundExclusive() *IntervalJoin[A, B, K] {
	j := s.j
	j.afterLower = true
	return s.with(j)
}

// UpperBoundExclusive leaves out the right elements of time t+upper.
func (s *IntervalJoin[A, B, K]) UpperBoundExclusive() *IntervalJoin[A, B, K] {
	j := s.j
	j.belowUpper = true
	return s.with(j)
}

// SideOutputLeftLateData sends late elements of the left stream, those with a timestamp below the watermark of the join,
// to a side output of the result, with their own timestamps. Default: they are dropped, and counted by the operator's
// metric numLateRecordsDropped.
func (s *IntervalJoin[A, B, K]) SideOutputLeftLateData(tag process.OutputTag[A]) *IntervalJoin[A, B, K] {
	return s.with(s.j.lateTo(s.c[0].env, 0, tag.Name()))
}

// SideOutputRightLateData is SideOutputLeftLateData for the right stream.
func (s *IntervalJoin[A, B, K]) SideOutputRightLateData(tag process.OutputTag[B]) *IntervalJoin[A, B, K] {
	return s.with(s.j.lateTo(s.c[0].env, 1, tag.Name()))
}

// Join emits f of each pair.
func (s *IntervalJoin[A, B, K]) Join[R any](f func(a A, b B) R) *Stream[R] {
	in, out := inputs(s.c), typeOf[R](s.c[0].env)
	return &Stream[R]{s.j.add(s.c, s.keys, out, func(c interval.Config) operator.Operator {
		return interval.Join(in, out, c, f)
	})}
}

// JoinPtr is Join with a function that takes the elements' addresses, for large elements; f must neither keep the pointers
// nor change the elements.
func (s *IntervalJoin[A, B, K]) JoinPtr[R any](f func(a *A, b *B) R) *Stream[R] {
	in, out := inputs(s.c), typeOf[R](s.c[0].env)
	return &Stream[R]{s.j.add(s.c, s.keys, out, func(c interval.Config) operator.Operator {
		return interval.JoinPtr(in, out, c, f)
	})}
}

// Process runs a join function that construct makes once per subtask: it sees both timestamps, may emit any number of
// elements for a pair, also to side outputs, and may have state per key, which it declares there.
func (s *IntervalJoin[A, B, K]) Process[P process.JoinFunction[A, B, R], R any](construct func(*process.Runtime) P) *Stream[R] {
	in, out := inputs(s.c), typeOf[R](s.c[0].env)
	open := func(rt *process.Runtime) process.JoinFunction[A, B, R] { return construct(rt) }
	return &Stream[R]{s.j.add(s.c, s.keys, out, func(c interval.Config) operator.Operator {
		return interval.Process(in, out, c, open)
	})}
}

func (s *IntervalJoin[A, B, K]) with(j intervalSpec) *IntervalJoin[A, B, K] {
	return &IntervalJoin[A, B, K]{c: s.c, keys: s.keys, j: j}
}

// bounds is the spec with bounds.
func (j intervalSpec) bounds(e *Env, lower, upper time.Duration) intervalSpec {
	if lower > upper {
		e.report(fmt.Errorf("join by an interval between %v and %v: the lower bound is above the upper one", lower, upper))
	}
	j.lower, j.upper, j.between = lower, upper, true
	return j
}

// lateTo is the spec with a side output for late elements of an input.
func (j intervalSpec) lateTo(e *Env, input int, tag string) intervalSpec {
	if tag == "" {
		e.report(errors.New("send late elements to a side output: the tag has no name (make it with NewOutputTag)"))
	}
	j.late[input] = tag
	return j
}

// interval is the interval in ms with both ends inclusive.
func (j intervalSpec) interval() interval.Bounds {
	b := interval.Bounds{Lower: j.lower.Milliseconds(), Upper: j.upper.Milliseconds()}
	if j.afterLower {
		b.Lower++
	}
	if j.belowUpper {
		b.Upper--
	}
	return b
}

// add puts the join into the graph.
func (j intervalSpec) add(c [2]*core, keys [2]*operator.Key, out *frame.Type, open func(interval.Config) operator.Operator) *core {
	e := c[0].env
	if !j.between {
		e.report(errors.New("join by an interval: it has no bounds (set them with Between)"))
	}
	if e.time == ProcessingTime {
		e.report(errors.New("join by an interval: it needs event time, the environment is set to processing time"))
	}
	d := join("Interval Join", c, out, func(n *graph.Node) operator.Operator {
		return open(interval.Config{Bounds: j.interval(), Late: j.late, Keys: keys, Sides: n.Side})
	})
	d.sided().keyed(keys[:]...)
	d.node.NeedsTimestamps = true
	return d
}
