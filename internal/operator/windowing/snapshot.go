package windowing

import (
	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
)

// forgetsName is the list of a snapshot that has an item if the trigger has taken cleanup timers back.
const forgetsName = windows.ForgetsList

// Snapshot implements operator.Snapshotter: contents, windows that merge and what belongs to trigger and function are tables
// of the store, and timers are tables beside them.
func (e *engine) Snapshot(s *operator.Snapshot) error {
	if err := e.rt.SnapshotFunctions(s); err != nil {
		return err
	}
	if e.forgets {
		s.Lists = append(s.Lists, checkpoint.List{Name: forgetsName, Mode: checkpoint.Union, Items: [][]byte{{1}}})
	}
	return e.keys.Snapshot(s)
}

// CheckpointCompleted implements operator.CheckpointListener.
func (e *engine) CheckpointCompleted(id int64) error { return e.tell(id, e.rt.FunctionsCompleted) }

// CheckpointAborted implements operator.CheckpointListener.
func (e *engine) CheckpointAborted(id int64) error { return e.tell(id, e.rt.FunctionsAborted) }

// tell lets the functions hear of a checkpoint; what they emit then goes on.
func (e *engine) tell(id int64, tell func(int64) error) error {
	if err := tell(id); err != nil {
		return err
	}
	return e.user.flush()
}

// restore takes from a snapshot what is no table.
func (e *engine) restore(r *operator.Restored) {
	l := r.List(forgetsName)
	e.forgets = l != nil && len(l.Items) > 0
}
