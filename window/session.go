package window

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/watermark"
)

// SessionAssigner is what Session and SessionProcessingTime make. It is immutable.
type SessionAssigner struct {
	gap    int64
	domain process.Domain
}

// Session makes windows of event time that end when nothing has come for a key for gap: each element opens a window of gap,
// and windows of a key that overlap or touch merge, so that elements exactly gap apart are in one session. A gap of less
// than 1 ms is an error of the job, an element without a timestamp one of the task. The default trigger is
// EventTimeTrigger. Flink: EventTimeSessionWindows.withGap.
func Session(gap time.Duration) SessionAssigner {
	return SessionAssigner{millis(gap), process.EventTime}
}

// SessionProcessingTime is Session by the wall clock of the task when the element arrives there; timestamps don't matter.
// The default trigger is ProcessingTimeTrigger. Flink: ProcessingTimeSessionWindows.withGap.
func SessionProcessingTime(gap time.Duration) SessionAssigner {
	return SessionAssigner{millis(gap), process.ProcessingTime}
}

// Assign implements Assigner.
func (a SessionAssigner) Assign(dst []Time, ts, now int64) ([]Time, error) {
	if a.gap <= 0 {
		return dst, a.Check()
	}
	return appendSession(dst, a.domain, a.gap, ts, now)
}

// Domain implements Assigner.
func (a SessionAssigner) Domain() process.Domain { return a.domain }

// DefaultTrigger implements Assigner.
func (a SessionAssigner) DefaultTrigger() Trigger { return triggerOf(a.domain) }

// Merge implements Merger.
func (SessionAssigner) Merge(windows []Time, merged func(result Time, sources []Time)) {
	mergeSessions(windows, merged)
}

// Gap implements Sessional.
func (a SessionAssigner) Gap() int64 { return a.gap }

// Check says what is wrong with the gap.
func (a SessionAssigner) Check() error { return checkLength("session windows", "gap", a.gap) }

// String is the assigner as it was written.
func (a SessionAssigner) String() string { return written("Session", a.domain, 0, said(a.gap)) }

// DynamicSessionAssigner is what SessionBy and its kin make. It is immutable.
type DynamicSessionAssigner[T any] struct {
	gap    func(*T) int64
	domain process.Domain
}

// SessionBy is Session with a gap for each element: an element opens a window of gap(x), truncated to ms, from its
// timestamp on. Less than 1 ms is an error of the task. Flink: EventTimeSessionWindows.withDynamicGap.
func SessionBy[T any](gap func(T) time.Duration) DynamicSessionAssigner[T] {
	return DynamicSessionAssigner[T]{gapOf(gap), process.EventTime}
}

// SessionByPtr is SessionBy without copying the element; gap may not change or keep it.
func SessionByPtr[T any](gap func(*T) time.Duration) DynamicSessionAssigner[T] {
	return DynamicSessionAssigner[T]{gapOfPtr(gap), process.EventTime}
}

// SessionProcessingTimeBy is SessionBy by the wall clock of the task. Flink: ProcessingTimeSessionWindows.withDynamicGap.
func SessionProcessingTimeBy[T any](gap func(T) time.Duration) DynamicSessionAssigner[T] {
	return DynamicSessionAssigner[T]{gapOf(gap), process.ProcessingTime}
}

// SessionProcessingTimeByPtr is SessionProcessingTimeBy without copying the element; gap may not change or keep it.
func SessionProcessingTimeByPtr[T any](gap func(*T) time.Duration) DynamicSessionAssigner[T] {
	return DynamicSessionAssigner[T]{gapOfPtr(gap), process.ProcessingTime}
}

func gapOf[T any](gap func(T) time.Duration) func(*T) int64 {
	if gap == nil {
		return nil
	}
	return func(x *T) int64 { return gap(*x).Milliseconds() }
}

func gapOfPtr[T any](gap func(*T) time.Duration) func(*T) int64 {
	if gap == nil {
		return nil
	}
	return func(x *T) int64 { return gap(x).Milliseconds() }
}

// AssignElement implements ElementAssigner.
func (a DynamicSessionAssigner[T]) AssignElement(dst []Time, x *T, ts, now int64) ([]Time, error) {
	if a.gap == nil {
		return dst, a.Check()
	}
	return appendSession(dst, a.domain, a.gap(x), ts, now)
}

// Domain implements ElementAssigner.
func (a DynamicSessionAssigner[T]) Domain() process.Domain { return a.domain }

// DefaultTrigger implements ElementAssigner.
func (a DynamicSessionAssigner[T]) DefaultTrigger() Trigger { return triggerOf(a.domain) }

// Merge implements Merger.
func (DynamicSessionAssigner[T]) Merge(windows []Time, merged func(result Time, sources []Time)) {
	mergeSessions(windows, merged)
}

// GapOf implements ElementSessional.
func (a DynamicSessionAssigner[T]) GapOf(x *T) int64 { return a.gap(x) }

// Check says that the function is missing.
func (a DynamicSessionAssigner[T]) Check() error {
	if a.gap == nil {
		return errors.New("make session windows: the function that gives the gap is nil")
	}
	return nil
}

// String says that the gap depends on the element.
func (a DynamicSessionAssigner[T]) String() string {
	if a.domain == process.ProcessingTime {
		return "SessionProcessingTimeBy(func)"
	}
	return "SessionBy(func)"
}

// appendSession appends the window that an element opens.
func appendSession(dst []Time, d process.Domain, gap, ts, now int64) ([]Time, error) {
	ts, err := timeOf(d, ts, now)
	if err != nil {
		return dst, err
	}
	if gap <= 0 {
		return dst, fmt.Errorf("open a session for an element: its gap is %s; it must be at least 1ms", said(gap))
	}
	return append(dst, Time{ts, watermark.Add(ts, gap)}), nil
}

// mergeSessions merges windows that overlap or touch: Merger's Merge of session windows. It copies windows only if they
// are not in order of their starts.
func mergeSessions(windows []Time, merged func(result Time, sources []Time)) {
	if !slices.IsSortedFunc(windows, byStart) {
		windows = slices.Clone(windows)
		slices.SortFunc(windows, byStart)
	}
	for i := 0; i < len(windows); {
		result, j := windows[i], i+1
		for j < len(windows) && result.Intersects(windows[j]) {
			result = result.Cover(windows[j])
			j++
		}
		if j > i+1 {
			merged(result, windows[i:j:j])
		}
		i = j
	}
}

func byStart(a, b Time) int { return cmp.Compare(a.Start, b.Start) }
