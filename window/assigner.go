package window

import "github.com/flott-dev/flott/process"

// Assigner says which windows an element belongs to by its time. If it also has Check() error, building the job reports
// what that returns, with the line that used the assigner.
type Assigner[W Window] interface {
	// Assign appends the windows of an element to dst and returns it. ts is the element's timestamp, math.MinInt64 if it
	// has none (an event-time assigner answers with ErrNoTimestamp), now the task's processing time. Windows that it
	// returns are distinct. An error fails the task.
	Assign(dst []W, ts, now int64) ([]W, error)
	// Domain is the time that the windows are windows of: it says which clock cleans them up.
	Domain() process.Domain
	// DefaultTrigger is the trigger of windows without one of their own.
	DefaultTrigger() Trigger
}

// ElementAssigner is an Assigner that looks at the element.
type ElementAssigner[T any, W Window] interface {
	// AssignElement is Assigner's Assign. x must not be kept or changed.
	AssignElement(dst []W, x *T, ts, now int64) ([]W, error)
	// Domain is Assigner's.
	Domain() process.Domain
	// DefaultTrigger is Assigner's.
	DefaultTrigger() Trigger
}

// Merger is implemented by assigners whose windows merge (sessions), whether they look at elements or not.
type Merger[W Window] interface {
	// Merge is given all windows of one key, distinct and in no particular order, and calls merged once for each group of
	// two or more of them that become one window. Groups have no window in common; sources must not be kept.
	Merge(windows []W, merged func(result W, sources []W))
}

// Grid describes windows that lie at the same times for all keys. Either Slide is set: a window of Size ms starts at each
// time that is Offset modulo Slide. Or Period is: windows of unequal length follow each other without gaps.
type Grid struct {
	Size, Slide, Offset int64
	// Period gives the window that ts belongs to.
	Period func(ts int64) Time
}

// Gridded is implemented by assigners of windows that lie on a grid. The engine may then keep what overlapping windows
// share once, in slices, as long as nobody can tell the difference; Assign gives the same windows.
type Gridded interface {
	Grid() Grid
}

// Sessional is implemented by assigners of session windows whose gap is the same for all elements, as long as the windows
// are those of Time and merge as sessions do: the engine may then keep them in a way of its own.
type Sessional interface {
	// Gap is the length in ms of the window that each element opens.
	Gap() int64
}

// ElementSessional is Sessional for a gap that depends on the element.
type ElementSessional[T any] interface {
	// GapOf is the length in ms of the window that x opens, <= 0 is an error of the element.
	GapOf(x *T) int64
}
