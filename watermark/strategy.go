// Package watermark says how event time is found in a stream: where an element's timestamp comes from and which
// watermarks follow from the timestamps. A Strategy is a description, handed to AssignTimestampsAndWatermarks or to a
// source; the engine runs one copy of it per subtask. The package computes nothing itself and never waits.
//
//	watermark.BoundedOutOfOrderness(5*time.Second, Reading.Time).WithIdleness(time.Minute)
//
// A watermark of t says that no element with a timestamp <= t follows. Timestamps are milliseconds since 1970 in UTC;
// times are truncated to whole milliseconds (downwards), and times that do not fit are held at the ends of int64.
// Arithmetic on timestamps saturates: an absurd timestamp may make others late, it never wraps around. An element of
// the largest timestamp does not end the stream: no built-in rule gives the watermark math.MaxInt64, which means that.
package watermark

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Strategy is a timestamp assigner with a watermark generator and, if wished, idleness and alignment. It is an immutable
// value: every With method returns a changed copy. The zero Strategy keeps the timestamps that elements have and makes
// no watermarks.
type Strategy[T any] struct{ spec Spec[T] }

// Kind is the way watermarks come about.
type Kind uint8

const (
	// None makes no watermarks.
	None Kind = iota
	// Bounded follows the highest timestamp at a fixed distance.
	Bounded
	// PerElement asks a function after each element.
	PerElement
	// Custom asks a Generator.
	Custom
)

// Spec is what a Strategy describes, for the engine's drivers. At most one of Millis, Pointer, Assign and AssignPointer
// is set; without any, elements keep their timestamps.
type Spec[T any] struct {
	// Millis takes the timestamp (ms) out of the element.
	Millis func(x T) int64
	// Pointer is Millis without a copy of the element.
	Pointer func(x *T) int64
	// Assign sees the timestamp that the element has so far as well, math.MinInt64 if none.
	Assign func(x T, record int64) int64
	// AssignPointer is Assign without a copy of the element.
	AssignPointer func(x *T, record int64) int64

	// Kind says which of the following fields make the watermarks.
	Kind Kind
	// Distance is how far (ms) a Bounded watermark stays behind the highest timestamp.
	Distance int64
	// Ascending: the timestamps of a Bounded strategy should not fall; Violation is what happens if they do.
	Ascending bool
	// Violation has a meaning with Ascending only.
	Violation Violation
	// PerElement is the function of that kind.
	PerElement func(x *T, ms int64) (watermark int64, ok bool)
	// Generator makes the generator of one subtask, for Custom.
	Generator func() Generator[T]

	// Idleness is the time (ms) without an element after which a subtask is idle; 0: never.
	Idleness int64
	// Alignment is the group of sources that wait for each other.
	Alignment Alignment
}

// Alignment is a group of sources that wait for each other. Without a Group there is none.
type Alignment struct {
	Group    string // its name in the job
	MaxDrift int64  // how far (ms) a source may be ahead of the slowest
	Interval int64  // ms between two comparisons
}

// Violation is what happens when the timestamps of an ascending strategy fall.
type Violation uint8

const (
	// LogViolations writes a warning at the 1st, 2nd, 4th, 8th ... fall of a subtask. It is the default.
	LogViolations Violation = iota
	// IgnoreViolations does nothing: the element keeps its timestamp and may be late.
	IgnoreViolations
	// FailOnViolation fails the task with an error that names both timestamps.
	FailOnViolation
)

// ForMonotonousTimestamps is for timestamps that never fall within a subtask (a parallel source reads one file,
// partition or queue each): watermark = highest timestamp - 1. Without a timestamp assigner (see WithTimestamps), elements keep
// the timestamps that their source gave them.
func ForMonotonousTimestamps[T any]() Strategy[T] {
	return Strategy[T]{Spec[T]{Kind: Bounded, Distance: 1, Ascending: true}}
}

// Ascending is ForMonotonousTimestamps with timestamps taken out of the elements.
func Ascending[T any](at func(T) time.Time) Strategy[T] {
	return ForMonotonousTimestamps[T]().WithTimestamps(at)
}

// ForBoundedOutOfOrderness is for timestamps that come at most d late: watermark = highest timestamp - d - 1. d is
// truncated to milliseconds; a negative one is an error. Without a timestamp assigner, elements keep the timestamps
// that their source gave them.
func ForBoundedOutOfOrderness[T any](d time.Duration) Strategy[T] {
	return Strategy[T]{Spec[T]{Kind: Bounded, Distance: distance(d, 1)}}
}

// BoundedOutOfOrderness is ForBoundedOutOfOrderness with timestamps taken out of the elements.
func BoundedOutOfOrderness[T any](d time.Duration, at func(T) time.Time) Strategy[T] {
	return ForBoundedOutOfOrderness[T](d).WithTimestamps(at)
}

// BoundedOutOfOrdernessTimestampExtractor is Flink's older rule of that name: watermark = highest timestamp - d, one
// millisecond ahead of BoundedOutOfOrderness. (An element as late as d allows is then late by the letter, but the windows
// that it belongs to may still be open.)
func BoundedOutOfOrdernessTimestampExtractor[T any](d time.Duration, at func(T) time.Time) Strategy[T] {
	s := Strategy[T]{Spec[T]{Kind: Bounded, Distance: distance(d, 0)}}
	return s.WithTimestamps(at)
}

// AscendingTimestampExtractor is Flink's older name of Ascending; the rule is the same: highest timestamp - 1.
func AscendingTimestampExtractor[T any](at func(T) time.Time) Strategy[T] { return Ascending(at) }

// Punctuated asks f after each element, with the element's timestamp in ms, for a watermark (ok = false: none). A
// watermark that does not grow is dropped. The watermark follows its element at once, before the next one.
func Punctuated[T any](f func(x T, ms int64) (watermark int64, ok bool)) Strategy[T] {
	s := Strategy[T]{Spec[T]{Kind: PerElement}}
	if f != nil {
		s.spec.PerElement = func(x *T, ms int64) (int64, bool) { return f(*x, ms) }
	}
	return s
}

// PunctuatedPtr is Punctuated without copying the element; f may not change or keep it.
func PunctuatedPtr[T any](f func(x *T, ms int64) (watermark int64, ok bool)) Strategy[T] {
	return Strategy[T]{Spec[T]{Kind: PerElement, PerElement: f}}
}

// Periodic uses a generator of the user's own; fresh makes one for each subtask. Flink: forGenerator.
func Periodic[T any](fresh func() Generator[T]) Strategy[T] {
	return Strategy[T]{Spec[T]{Kind: Custom, Generator: fresh}}
}

// NoWatermarks makes no watermarks: for processing-time jobs, which may still want timestamps. Watermarks from upstream
// are swallowed, as with every strategy; event time stands still until the end of the input.
func NoWatermarks[T any]() Strategy[T] { return Strategy[T]{} }

// WithTimestamps takes the timestamp out of the element. The zero time.Time is a timestamp like any other (year 1).
func (s Strategy[T]) WithTimestamps(at func(T) time.Time) Strategy[T] {
	return s.WithMillis(func(x T) int64 { return Millis(at(x)) })
}

// WithTimestampsPtr is WithTimestamps without copying the element: faster for structs of more than four words. at may
// not change or keep the element.
func (s Strategy[T]) WithTimestampsPtr(at func(*T) time.Time) Strategy[T] {
	return s.WithMillisPtr(func(x *T) int64 { return Millis(at(x)) })
}

// WithMillis takes the timestamp, in ms since 1970, out of the element.
func (s Strategy[T]) WithMillis(at func(T) int64) Strategy[T] {
	s.clearAssigner()
	s.spec.Millis = at
	return s
}

// WithMillisPtr is WithMillis without copying the element: the fastest form. at may not change or keep the element.
func (s Strategy[T]) WithMillisPtr(at func(*T) int64) Strategy[T] {
	s.clearAssigner()
	s.spec.Pointer = at
	return s
}

// WithTimestampAssigner gives the assigner the timestamp that the element has so far, in ms, math.MinInt64 if none:
// what its source (a Kafka record's, say) or an earlier strategy set.
func (s Strategy[T]) WithTimestampAssigner(at func(x T, record int64) int64) Strategy[T] {
	s.clearAssigner()
	s.spec.Assign = at
	return s
}

// WithTimestampAssignerPtr is WithTimestampAssigner without copying the element; at may not change or keep it.
func (s Strategy[T]) WithTimestampAssignerPtr(at func(x *T, record int64) int64) Strategy[T] {
	s.clearAssigner()
	s.spec.AssignPointer = at
	return s
}

func (s *Strategy[T]) clearAssigner() {
	s.spec.Millis, s.spec.Pointer, s.spec.Assign, s.spec.AssignPointer = nil, nil, nil, nil
}

// WithIdleness marks a subtask idle once it had no element for d (processing time, at least 1 ms): it no longer holds
// back the watermark of operators downstream. Its next element ends that. Default: never. Without it, one silent
// subtask or partition keeps all event-time windows behind it open.
func (s Strategy[T]) WithIdleness(d time.Duration) Strategy[T] {
	s.spec.Idleness = d.Milliseconds()
	if s.spec.Idleness == 0 {
		s.spec.Idleness = -1 // Err tells it from "never"
	}
	return s
}

// WithAlignment makes the sources of a group wait for each other: one that is more than maxDrift ahead of the slowest
// is paused until the others have come closer. Watermarks are compared every updateInterval; 0 means one second. It
// has an effect in sources only. Idle subtasks are not waited for.
func (s Strategy[T]) WithAlignment(group string, maxDrift, updateInterval time.Duration) Strategy[T] {
	if updateInterval == 0 {
		updateInterval = time.Second
	}
	s.spec.Alignment = Alignment{Group: group, MaxDrift: maxDrift.Milliseconds(), Interval: updateInterval.Milliseconds()}
	if group == "" {
		s.spec.Alignment.MaxDrift = -1
	}
	return s
}

// OnViolation says what happens when the timestamps of ForMonotonousTimestamps or Ascending fall; it has no meaning for
// other strategies. Default: LogViolations.
func (s Strategy[T]) OnViolation(v Violation) Strategy[T] {
	s.spec.Violation = v
	return s
}

// Spec is what the strategy describes, for drivers.
func (s Strategy[T]) Spec() Spec[T] { return s.spec }

// Err is the first mistake in the strategy, nil if there is none. The environment reports it with the place of the call.
func (s Strategy[T]) Err() error {
	p := &s.spec
	switch {
	case p.Kind == Bounded && p.Distance < 0:
		return fmt.Errorf("watermark: out-of-orderness of %d ms is negative", p.Distance)
	case p.Kind == PerElement && p.PerElement == nil:
		return errors.New("watermark: punctuated strategy without a function")
	case p.Kind == Custom && p.Generator == nil:
		return errors.New("watermark: periodic strategy without a generator")
	case p.Idleness < 0:
		return errors.New("watermark: idleness must be at least 1 ms")
	case p.Alignment.MaxDrift < 0 && p.Alignment.Group == "":
		return errors.New("watermark: alignment without a group name")
	case p.Alignment.MaxDrift < 0:
		return fmt.Errorf("watermark: drift of alignment group %q is negative", p.Alignment.Group)
	case p.Alignment.Group != "" && p.Alignment.Interval < 1:
		return fmt.Errorf("watermark: update interval of alignment group %q must be at least 1 ms", p.Alignment.Group)
	case p.Violation > FailOnViolation:
		return fmt.Errorf("watermark: unknown way %d to handle violations", p.Violation)
	}
	return nil
}

// distance is d in ms and some more, negative if d is.
func distance(d time.Duration, more int64) int64 {
	if d < 0 {
		return min(d.Milliseconds(), -1)
	}
	return d.Milliseconds() + more
}

// Millis is t in whole milliseconds since 1970, rounded down, held at the ends of int64.
func Millis(t time.Time) int64 {
	switch s := t.Unix(); {
	case s > math.MaxInt64/1000-1:
		return math.MaxInt64
	case s < math.MinInt64/1000+1:
		return math.MinInt64
	}
	return t.UnixMilli()
}

// Add is a + b, held at the ends of int64.
func Add(a, b int64) int64 {
	sum := a + b
	switch {
	case b > 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	}
	return sum
}
