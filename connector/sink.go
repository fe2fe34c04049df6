package connector

import "context"

// Sink is what can be written: a description, shared by all subtasks, without mutable state.
type Sink[T any] interface {
	// Writer opens the writer of one subtask.
	Writer(ctx WriterContext) (Writer[T], error)
}

// WriterContext is what a writer gets from its subtask.
type WriterContext interface {
	// Context ends when the task is cancelled or fails.
	Context() context.Context
	// Subtask is the subtask's number, from 0.
	Subtask() int
	// Parallelism is the number of subtasks.
	Parallelism() int
	// Attempt is 0 at first, one more after each restart.
	Attempt() int
	// Counter adds to a metric of the sink, by name.
	Counter(name string, n int64)
}

// ElementContext tells about the element at hand.
type ElementContext struct {
	Timestamp      int64 // ms; math.MinInt64: none
	Watermark      int64 // ms
	ProcessingTime int64 // ms
}

// Writer writes the elements of one subtask, on the subtask's goroutine. Waiting in Write is what backpressure is.
type Writer[T any] interface {
	// Write takes one element.
	Write(x T, at ElementContext) error
	// Flush makes everything written so far visible (at-least-once) or ready to commit: at each checkpoint and at the
	// end of the input.
	Flush(endOfInput bool) error
	// Close releases everything; called once, in success, failure and cancellation.
	Close() error
}

// RunWriter is implemented by writers that take many elements at once.
type RunWriter[T any] interface {
	// WriteRun takes elements with their timestamps (nil: none has one); it keeps neither slice. An *ElementError says which of
	// them can't be written.
	WriteRun(xs []T, times []int64) error
}

// ElementError is an error of one of the elements given to WriteRun: the failure of the task names it.
type ElementError struct {
	Index int   // of the element in the run
	Err   error // what is wrong with it
}

// Error is the cause's text: who knows the element names it.
func (e *ElementError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *ElementError) Unwrap() error { return e.Err }

// CommittingSink is a Sink with two-phase commit: what a writer prepared before a checkpoint is committed when the
// checkpoint is complete, again after a restore (so commits are idempotent). C is the committable; it must be encodable.
type CommittingSink[T, C any] interface {
	Sink[T]
	// Committer opens the committer of one subtask.
	Committer(ctx WriterContext) (Committer[C], error)
}

// CommittingWriter is the writer of a CommittingSink.
type CommittingWriter[T, C any] interface {
	Writer[T]
	// Prepare is called after Flush: it returns what must be committed for everything written so far.
	Prepare() ([]C, error)
}

// Committer makes prepared data visible.
type Committer[C any] interface {
	// Commit commits; committing something that is committed already is success. An error that wraps ErrRetry keeps
	// the committables for another try.
	Commit(ctx context.Context, committables []C) error
	// Close releases everything; called once.
	Close() error
}

// StatefulSink is a Sink whose writers have state of their own, such as files that are begun and not finished: it is part
// of checkpoints, and a job that is restored opens its writers with it.
type StatefulSink[T any] interface {
	Sink[T]
	// RestoreWriter is called instead of Writer where the job begins with a snapshot that holds state of the sink. States
	// are those of all subtasks that had state in it, in the order of their numbers; every new subtask gets them all, as
	// the parallelism may be another one and as writers may have to know of each other (names they must not use again).
	RestoreWriter(ctx WriterContext, checkpoint int64, states []WriterState) (Writer[T], error)
}

// WriterState is what a writer returned from Snapshot.
type WriterState struct {
	// Subtask is the number that the writer's subtask had.
	Subtask int
	// Mine says that the writer that is opened goes on with this state: of the writers of the new subtasks, exactly one is
	// told so, the one with the old number where there is one.
	Mine bool
	// State is what Snapshot returned.
	State []byte
}

// StatefulWriter is implemented by the writers of a StatefulSink.
type StatefulWriter interface {
	// Snapshot returns the state of this moment for a checkpoint. It comes after Flush and, in a committing sink, after
	// Prepare: what was prepared is kept by the engine, committed when this checkpoint or a later one is complete, and no
	// part of the state. It is called for checkpoints after the end of the input, too. The engine keeps the bytes.
	Snapshot(checkpoint int64) ([]byte, error)
}

// TimedContext is a WriterContext that knows the time: the engine's do. Writers that need it where there is no element, as
// in Flush, ask for it.
type TimedContext interface {
	WriterContext
	// Now is the processing time in ms, as the subtask sees it.
	Now() int64
}

// RestoredContext is a WriterContext that knows how its job began: the engine's do. Writers whose targets must not be there at
// a fresh start ask for it.
type RestoredContext interface {
	WriterContext
	// Restored says that the job goes on from a snapshot, a savepoint or a checkpoint, of a job that had this sink (by its
	// UID): what lies at the target is its own. That may be the work of another process, at another parallelism.
	Restored() bool
}

// TimedWriter is implemented by writers that have work at times at which no element comes, such as closing what has become
// old.
type TimedWriter interface {
	// OnTime does what is due at a processing time, in ms, and returns when it wants to be called next; a time that is not
	// later means: not before the next Flush. It is called soon after the writer was opened and after each Flush, and at the
	// time that it returned last, on the subtask's goroutine, between elements. After the end of the input it is not
	// called. Elements wait while it works, so it does much work in portions. An error fails the task.
	OnTime(now int64) (next int64, err error)
}

// Claiming is implemented by sinks that would spoil what another sink of the same job writes to the same place.
type Claiming interface {
	// Claim says in words what the sink has for itself; two sinks of a job with the same answer are a mistake. "" is nothing.
	Claim() string
}
