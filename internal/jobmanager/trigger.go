package jobmanager

import (
	"context"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/control"
)

// errNoCheckpoints is the answer to requests for checkpoints of a job that can't take any.
var errNoCheckpoints = errors.New("trigger a checkpoint: the job takes no snapshots")

// TriggerCheckpoint takes a checkpoint now and returns its number when it is complete. Full says that it is to build on no
// earlier one. When ctx ends, the call returns and the checkpoint may still be completed.
func (j *Job) TriggerCheckpoint(ctx context.Context, full bool) (int64, error) {
	k := j.keeper
	if k == nil {
		return 0, errNoCheckpoints
	}
	answers := make(chan control.Ended, 1)
	k.post(func() {
		ask := func() {
			k.ask(control.Trigger{Kind: control.Checkpoint, Full: full}, func(e control.Ended) { answers <- e })
		}
		k.askWhenAllRun(ask)
	})
	select {
	case e := <-answers:
		return e.Checkpoint, e.Err
	case <-ctx.Done():
		return 0, fmt.Errorf("trigger a checkpoint: %w", context.Cause(ctx))
	case <-j.kept:
		select {
		case e := <-answers:
			return e.Checkpoint, e.Err
		default:
			return 0, fmt.Errorf("trigger a checkpoint: %w", errEnded)
		}
	}
}

// CancelWithSavepoint takes a savepoint into a new folder under dir and cancels the job when it is complete. No periodic
// checkpoint begins after it, so that sinks commit nothing that the savepoint lacks. If the savepoint fails the job goes on.
func (j *Job) CancelWithSavepoint(ctx context.Context, dir string) (string, error) {
	k := j.keeper
	if k == nil {
		return "", errNoSnapshots
	}
	k.Tell(control.StopScheduler{})
	location, err := k.Savepoint(ctx, dir, control.Savepoint, j.kept)
	if err != nil {
		k.Tell(control.StartScheduler{})
		return "", err
	}
	j.Cancel()
	<-j.done
	return location, nil
}
