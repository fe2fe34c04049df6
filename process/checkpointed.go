package process

import (
	"fmt"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
)

// Checkpointed is implemented by functions and operators that keep a part of their state in fields, a buffer for example: at
// a snapshot they bring it into operator state that their constructor declared with Runtime.OperatorList, and when the
// job is restored the constructor finds it there (Runtime.IsRestored). State that is changed through its handles only is in
// every snapshot without it.
type Checkpointed interface {
	// SnapshotState is called when a snapshot is taken: everything that came before it has been processed, nothing of what
	// comes after it. No key is at hand. An error fails the task.
	SnapshotState(ctx SnapshotContext) error
}

// SnapshotContext tells about the snapshot that is being taken.
type SnapshotContext struct {
	// CheckpointID is the number of the snapshot.
	CheckpointID int64
	// Savepoint says that it is a user's.
	Savepoint bool
}

// CheckpointListener is implemented by functions and operators that act when a checkpoint is complete, all over the job.
type CheckpointListener interface {
	// CheckpointCompleted is called some time after the checkpoint was taken, on the subtask's goroutine. Calls may be
	// left out: one for an id stands for all lower ones.
	CheckpointCompleted(id int64) error
}

// CheckpointAbortListener is implemented by functions and operators that act when a checkpoint was given up.
type CheckpointAbortListener interface {
	// CheckpointAborted is called, if at all, instead of CheckpointCompleted; what belonged to the checkpoint belongs to
	// the next one.
	CheckpointAborted(id int64) error
}

// BoundState is operator state of whatever type, for drivers and test harnesses.
type BoundState struct {
	// Name is unique in the operator.
	Name string
	// Mode says who gets the items at a restore.
	Mode state.Redistribution
	// Schema is that of the items.
	Schema *serde.Schema
	// State gives and takes the items.
	State interface {
		AppendItems(items [][]byte) ([][]byte, error)
		RestoreItems(items [][]byte, old *serde.Schema) error
	}
}

// OperatorStateHost is a Host whose functions can have operator state. User code never implements it.
type OperatorStateHost interface {
	// BindState makes the state part of snapshots and fills it from the one that the job is restored from.
	BindState(s BoundState)
	// Failed takes accesses that have failed; the task fails with the first.
	Failed(err error)
	// IsRestored says whether the operator begins with the state of a snapshot.
	IsRestored() bool
}

// OperatorList opens a list that belongs to the subtask, not to a key; constructors call it. After a restore it has the
// elements that the descriptor's redistribution gives this subtask.
func (rt *Runtime) OperatorList[V any](d *state.OperatorListDescriptor[V]) *state.OperatorList[V] {
	h, ok := rt.Host.(OperatorStateHost)
	switch {
	case !ok:
		rt.Report(fmt.Errorf("open operator state %q: there is none here: constructors of functions and operators have it", d.Name()))
		return d.Open(rt.Report)
	case d.Err() != nil:
		rt.Report(d.Err())
		return d.Open(rt.Report)
	}
	l := d.Open(h.Failed)
	h.BindState(BoundState{Name: d.Name(), Mode: d.Redistribution(), Schema: d.Schema(), State: l})
	return l
}

// IsRestored says whether the operator begins with the state of a snapshot; constructors that fill state themselves at a
// fresh start ask for it.
func (rt *Runtime) IsRestored() bool {
	h, ok := rt.Host.(OperatorStateHost)
	return ok && h.IsRestored()
}
