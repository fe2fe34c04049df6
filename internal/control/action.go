package control

// Action is what a CheckpointCoordinator wants done: one of the types of this file. They are to be done in order; those
// that take long (Prepare, Store, Discard) may go on while others are done, and are answered by events or not at all.
type Action interface{ action() }

// Prepare is what comes before a trigger: note the id where recovery would look for it, make the place for the snapshot,
// snapshot the coordinators of sources and hold back what they send to their readers until the trigger. Prepared or
// PrepareFailed answers it, unless the checkpoint is aborted before.
type Prepare struct {
	Checkpoint int64
	Kind       SnapshotKind
	Target     string
	Full       bool
}

// TriggerTasks tells these tasks to take a snapshot and to send the barrier. A task that is not one of a source takes it by
// Alignment.Trigger: all tasks upstream of it have finished.
type TriggerTasks struct {
	Barrier   Barrier
	Timestamp int64 // ms since 1970; never less than that of an earlier checkpoint
	Location  string
	Tasks     []TaskRef
}

// TimerKind is what a timer is for.
type TimerKind uint8

const (
	// PeriodicTimer starts the next periodic checkpoint. There is one.
	PeriodicTimer TimerKind = iota
	// TimeoutTimer ends a checkpoint that takes too long.
	TimeoutTimer
)

// Timer names a timer.
type Timer struct {
	Kind       TimerKind
	Checkpoint int64 // of a TimeoutTimer
}

// SetTimer asks for a TimerFired at a time of the monotonic clock; a timer that is set already is moved.
type SetTimer struct {
	Timer Timer
	At    int64 // ns
}

// CancelTimer takes a SetTimer back.
type CancelTimer struct{ Timer Timer }

// Store asks for the manifest to be written and for recovery to be pointed at it. Stored or StoreFailed answers it in any
// case: a restart and the end of the job wait for it.
type Store struct{ Checkpoint *CompletedCheckpoint }

// NotifyComplete tells tasks that a checkpoint, and with it every older one, is complete. A task that has heard of a newer
// one ignores it.
type NotifyComplete struct {
	Checkpoint int64
	Kind       SnapshotKind
	Timestamp  int64
	Tasks      []TaskRef
}

// NotifyAborted tells tasks that a checkpoint will not be completed: they end its alignment and throw away what they have
// written for it and not acknowledged.
type NotifyAborted struct {
	Checkpoint int64
	Reason     FailureReason
	Latest     int64 // the last complete one; 0: none
	Tasks      []TaskRef
}

// Discard asks for bytes that nobody refers to to be deleted: first what lies at Location by itself (the manifest and the
// pointer to it), if Location is set, then the handles. It may fail or be lost: what stays is litter, not harm.
type Discard struct {
	Checkpoint int64
	Location   string
	Handles    []Handle
}

// FailJob asks for the job's present attempt to fail with the error.
type FailJob struct{ Err error }

// Restore answers Restarting: the tasks start with the state of the snapshot, or with none if it is nil. Nothing of the
// snapshot is discarded until all of them run.
type Restore struct {
	Attempt    int
	Tasks      []TaskID // nil: all
	Checkpoint *CompletedCheckpoint
	Err        error // a snapshot is required and there is none: nothing is to be started
}

// Ended tells what became of a Trigger, or, with request 0, of a periodic checkpoint.
type Ended struct {
	Request    int64
	Checkpoint int64 // 0: it had no id yet
	Kind       SnapshotKind
	Location   string // of a completed one
	Err        error  // a *CheckpointError; nil: completed
}

func (Prepare) action()        {}
func (TriggerTasks) action()   {}
func (SetTimer) action()       {}
func (CancelTimer) action()    {}
func (Store) action()          {}
func (NotifyComplete) action() {}
func (NotifyAborted) action()  {}
func (Discard) action()        {}
func (FailJob) action()        {}
func (Restore) action()        {}
func (Ended) action()          {}
