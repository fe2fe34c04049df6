package control

import (
	"fmt"
	"time"
)

// Instant is one reading of a clock: the wall clock dates what people see, the monotonic one measures.
type Instant struct {
	Wall int64 // ms since 1970
	Mono int64 // ns
}

// Event is what a CheckpointCoordinator takes: one of the types of this file.
type Event interface{ event() }

// Trigger asks for a snapshot. Savepoints are taken at once, checkpoints when MaxConcurrent allows. Its Ended tells what
// became of it.
type Trigger struct {
	Request int64 // the caller's number of it; 0 is for periodic checkpoints
	Kind    SnapshotKind
	Target  string // where a savepoint is to lie, as the user said; "" for the default
	Full    bool   // build on no earlier checkpoint; savepoints never do
	Final   bool   // all that is left to do is to commit with it: it is taken whatever AfterTasksFinish says
}

// Prepared follows a Prepare that worked.
type Prepared struct {
	Checkpoint int64
	Location   string
	Handles    []Handle // what was stored for it already: the state of coordinators of sources
	Payload    []byte
}

// PrepareFailed follows a Prepare that did not work.
type PrepareFailed struct {
	Checkpoint int64
	Err        error
}

// Acknowledged is a task's word that its part of a snapshot is stored.
type Acknowledged struct {
	Job        string
	Task       TaskRef
	Checkpoint int64
	New        []Handle // written for this checkpoint
	Reused     []Handle // of completed checkpoints of which the task was notified, or that it was restored from
	Payload    []byte
	Metrics    TaskMetrics
}

// TaskMetrics are a task's numbers for one checkpoint. Negative ones are taken as 0.
type TaskMetrics struct {
	CheckpointedSize int64         // bytes written for this checkpoint
	StateSize        int64         // bytes of the whole state
	Processed        int64         // bytes processed during the alignment
	Persisted        int64         // bytes of data in flight that are part of the snapshot
	Alignment        time.Duration // from the first to the last barrier
	StartDelay       time.Duration // from the trigger to the first barrier; follows from FirstBarrier if that is known
	FirstBarrier     int64         // when it came, ns by the coordinator's monotonic clock; 0: unknown
	Sync, Async      time.Duration // the part of the work during which the task stood still, and the rest
	Unaligned        bool
}

// Declined is a task's word that it can't take its part.
type Declined struct {
	Job        string
	Task       TaskRef
	Checkpoint int64
	Reason     FailureReason // ReasonNone is taken as ReasonDeclined
	Err        error
}

// TimerFired: the time of a SetTimer has come.
type TimerFired struct{ Timer Timer }

// Stored follows a Store that worked: the manifest is durable, and recovery would find it.
type Stored struct {
	Checkpoint int64
	Location   string // "" if it is the one that was prepared
	Size       int64  // of the manifest, in bytes
}

// StoreFailed follows a Store that did not work: recovery would not find the checkpoint.
type StoreFailed struct {
	Checkpoint int64
	Err        error
	// GivenUp: it was given up for a restart that waited for it, which is no failure that counts.
	GivenUp bool
}

// TaskChanged tells a task's new state. States of attempts before the present one are ignored. A task's Acknowledged and
// Declined come before its TaskFinished.
type TaskChanged struct {
	Task  TaskRef
	State TaskState
}

// StartScheduler starts periodic checkpoints, the first after an interval.
type StartScheduler struct{}

// StopScheduler stops periodic checkpoints; those that are pending go on.
type StopScheduler struct{}

// AbortPending aborts all checkpoints that are not being stored, and all requests.
type AbortPending struct {
	Reason FailureReason
	Err    error
}

// Restarting: tasks have ended, and are about to be started as another attempt (the first one, too). It is answered by a
// Restore, after which they are deployed. Pending checkpoints are aborted.
type Restarting struct {
	Attempt int
	Tasks   []TaskID // nil: all
	Err     error
	// Required: there must be a snapshot to restore.
	Required bool
}

// Recovered gives a coordinator snapshots that were taken before its time, from the oldest: those that a lost coordinator of
// the job had completed, or, as Foreign, the one that the user wants to start from.
type Recovered struct {
	Completed []*CompletedCheckpoint
	// NextID is the least id that no earlier coordinator may have used; 0: what follows those of Completed.
	NextID int64
}

// ShutDown: the job has ended. Only what is being stored is waited for.
type ShutDown struct{ End JobEnd }

func (Trigger) event()        {}
func (Prepared) event()       {}
func (PrepareFailed) event()  {}
func (Acknowledged) event()   {}
func (Declined) event()       {}
func (TimerFired) event()     {}
func (Stored) event()         {}
func (StoreFailed) event()    {}
func (TaskChanged) event()    {}
func (StartScheduler) event() {}
func (StopScheduler) event()  {}
func (AbortPending) event()   {}
func (Restarting) event()     {}
func (Recovered) event()      {}
func (ShutDown) event()       {}

// CheckpointError says why a snapshot was not taken.
type CheckpointError struct {
	Checkpoint int64 // 0: it had no id yet
	Kind       SnapshotKind
	Reason     FailureReason
	Err        error // more about it; may be nil
}

// Error implements error.
func (e *CheckpointError) Error() string {
	s := "take a checkpoint"
	if e.Kind != Checkpoint {
		s = "take a savepoint"
	}
	if e.Checkpoint != 0 {
		s += fmt.Sprintf(" (id %d)", e.Checkpoint)
	}
	s += ": " + e.Reason.Text()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the error behind it.
func (e *CheckpointError) Unwrap() error { return e.Err }
