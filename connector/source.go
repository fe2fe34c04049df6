// Package connector is the contract of sources and sinks: splits, enumerators and readers on one side, writers and
// committers on the other. Connectors implement it, the engine calls it; the package holds no connector itself.
package connector

import (
	"context"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
)

// Status is a reader's answer to Poll.
type Status uint8

const (
	// More: elements were emitted or more are at hand; Poll is called again soon.
	More Status = iota
	// Nothing: no element now. Poll is called again after Wake.
	Nothing
	// Done: the reader has read all its splits and was told that no more come.
	Done
)

// Source is what can be read: a description, shared by all subtasks, without mutable state. S is the split: the unit of
// work that is handed to readers and remembered in checkpoints; it must be encodable (see serde).
type Source[T, S any] interface {
	// Bounded reports whether the source ends by itself.
	Bounded() bool
	// Enumerator opens the job's one enumerator. restored holds its last snapshot, nil at a fresh start.
	Enumerator(ctx EnumeratorContext[S], restored []byte) (Enumerator[S], error)
	// Reader opens the reader of one subtask.
	Reader(ctx ReaderContext) (Reader[T, S], error)
}

// EnumeratorContext is the enumerator's way to the readers. Its methods may be called from the enumerator's methods
// only, except Do.
type EnumeratorContext[S any] interface {
	// Context ends with the job.
	Context() context.Context
	// Parallelism is the number of readers.
	Parallelism() int
	// Assign hands splits to a subtask's reader.
	Assign(subtask int, splits ...S)
	// NoMoreSplits tells a reader that it has got all its splits.
	NoMoreSplits(subtask int)
	// Do runs work on a goroutine of its own and then done on the enumerator's; any goroutine may call it. every > 0
	// repeats it with that pause in ms until the job ends.
	Do(every int64, work func(ctx context.Context) error, done func(err error))
}

// Enumerator finds splits and hands them out. It runs once per job; its methods are never called concurrently.
type Enumerator[S any] interface {
	// Start is called first.
	Start() error
	// Request is called when a subtask's reader has nothing to read.
	Request(subtask int) error
	// AddBack returns the splits of a failed reader that no checkpoint covers.
	AddBack(subtask int, splits []S) error
	// Snapshot is the enumerator's state for a checkpoint.
	Snapshot(checkpoint int64) ([]byte, error)
	// Close releases everything; called once.
	Close() error
}

// ReaderContext is what a reader gets from its subtask.
type ReaderContext interface {
	// Context ends when the task is cancelled or fails.
	Context() context.Context
	// Subtask is the subtask's number, from 0.
	Subtask() int
	// Parallelism is the number of readers.
	Parallelism() int
	// Wake makes the engine call Poll again; any goroutine may call it.
	Wake()
	// Go starts a goroutine that the task waits for at its end.
	Go(f func())
	// RequestSplit asks the enumerator for work.
	RequestSplit()
	// Counter adds to a metric of the source, by name.
	Counter(name string, n int64)
}

// Reader reads the splits of one subtask. All methods are called on the subtask's goroutine.
type Reader[T, S any] interface {
	// Poll emits at most out.Room() elements and returns without waiting for outside data (files are read directly;
	// what can wait for long, like a socket, is read on a goroutine started with Go).
	Poll(out *Output[T]) (Status, error)
	// AddSplits gives the reader more to do.
	AddSplits(splits []S) error
	// NoMoreSplits says that no more splits come.
	NoMoreSplits()
	// Snapshot returns the unfinished splits with their positions.
	Snapshot(checkpoint int64) ([]S, error)
	// Committed says that a checkpoint is complete.
	Committed(checkpoint int64) error
	// Close releases everything; called once.
	Close() error
}

// Output takes the elements of one Poll.
type Output[T any] struct {
	col   *frame.Column
	marks func(frame.Mark) error
	limit int
	err   error

	splits func(name string, over bool) error // nil: the driver makes no difference
	split  string                             // what is emitted belongs to it
	named  bool
}

// NewOutput is for drivers and test harnesses: elements go to col, marks to the function, after what is in col.
func NewOutput[T any](col *frame.Column, marks func(frame.Mark) error) *Output[T] {
	return &Output[T]{col: col, marks: marks, limit: col.Cap()}
}

// Room is the number of elements that may still be emitted in this Poll.
func (o *Output[T]) Room() int { return min(o.col.Cap(), o.limit) - o.col.Len() }

// Limit is for drivers: the number of elements that may wait in the output, so that slow chains get short runs.
func (o *Output[T]) Limit(n int) { o.limit = n }

// Emit emits v without a timestamp. There must be room.
func (o *Output[T]) Emit(v T) { frame.Add(o.col, v, frame.NoTime) }

// EmitAt emits v with a timestamp in ms since 1970. There must be room.
func (o *Output[T]) EmitAt(v T, ms int64) { frame.Add(o.col, v, ms) }

// EmitSlice emits the first elements of xs without timestamps, as many as there is room for, and returns how many. They
// are copied at once: where a reader has elements at hand as a slice, this is several times as fast as Emit for each.
func (o *Output[T]) EmitSlice(xs []T) int {
	n := min(len(xs), o.Room())
	run := frame.Run{Type: o.col.Type, P: unsafe.Pointer(unsafe.SliceData(xs)), N: n}
	o.col.Append(&run, 0, n)
	return n
}

// Split says that what is emitted from now on, also in later Polls, belongs to the split of that name: elements, watermarks
// and idleness. Event time is then kept for each split: the reader's watermark is the least of its splits', idle ones left
// out, and a strategy in the source (FromSourceWithWatermarks) makes watermarks for each on its own. A split holds the
// others back from when it is named first until EndSplit. A reader that never calls Split has one watermark for all it
// reads; one that reads its splits one after the other, each to its end, needs no other. Change splits seldom, not for
// each element.
func (o *Output[T]) Split(name string) {
	if o.named && o.split == name {
		return
	}
	o.split, o.named = name, true
	o.tell(name, false)
}

// EndSplit says that a split is over: it holds nobody back any more. If it was the one that elements belong to, Split
// comes before the next one.
func (o *Output[T]) EndSplit(name string) {
	if o.named && o.split == name {
		o.split, o.named = "", false
	}
	o.tell(name, true)
}

// OnSplit is for drivers: f is told the split to which what follows belongs, and that a split is over.
func (o *Output[T]) OnSplit(f func(name string, over bool) error) { o.splits = f }

func (o *Output[T]) tell(name string, over bool) {
	if o.err == nil && o.splits != nil {
		o.err = o.splits(name, over)
	}
}

// Watermark says that no element with a timestamp <= ms follows.
func (o *Output[T]) Watermark(ms int64) {
	o.mark(frame.Mark{Kind: frame.Watermark, Value: ms})
}

// Idle says that there may be no element for long; the next element ends it.
func (o *Output[T]) Idle() { o.mark(frame.Mark{Kind: frame.Idle}) }

func (o *Output[T]) mark(m frame.Mark) {
	if o.err == nil {
		o.err = o.marks(m)
	}
}

// Err is the first error of what was emitted, for drivers.
func (o *Output[T]) Err() error { return o.err }
