package jobmanager

import (
	"context"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/taskmanager"
)

// keep starts the keeper of the job's snapshots, if it takes any.
func (j *Job) keep(opt *CheckpointOptions) error {
	if opt == nil {
		close(j.kept)
		return nil
	}
	// A thread of its own: it waits for disks aside, and for nobody's tasks.
	waiter := host.NewParker(j.opt.Clock)
	k, err := NewKeeper(j.ID, j.job, j.regions, *opt, j.opt.Clock, waiter, func(f func()) { go f() })
	if err != nil {
		if opt.Released != nil {
			opt.Released()
		}
		close(j.kept)
		return err
	}
	k.failed, k.stopped = j.super.failedAll, j.super.stopped
	j.keeper = k
	go func() {
		defer close(j.kept)
		k.Run()
	}()
	return nil
}

// endKeeping waits for what is being stored.
func (j *Job) endKeeping(status Status) {
	if j.keeper == nil {
		return
	}
	end := map[Status]control.JobEnd{
		Finished: control.JobFinished, Canceled: control.JobCanceled, Failed: control.JobFailed,
	}[status]
	j.keeper.End(end)
	<-j.kept
	// A storage that was left may still write: the folder stays locked as long as this process lives.
	if released := j.keeper.opt.Released; released != nil && !j.keeper.left {
		released()
	}
}

// errStopped is the answer to who asks what to begin with and is then told not to begin.
var errStopped = errors.New("the attempt was ended before it began")

// begin is what an attempt of a region begins with; of all regions if r is nil.
func (j *Job) begin(ctx context.Context, r *region, number int, cause error, stops <-chan error) (*taskmanager.Restore, error) {
	if j.keeper == nil {
		return nil, nil
	}
	type answer struct {
		restore *taskmanager.Restore
		err     error
	}
	answers := make(chan answer, 1)
	j.keeper.restart(r, number, cause, func(r *taskmanager.Restore, err error) { answers <- answer{r, err} })
	select {
	case a := <-answers:
		return a.restore, a.err
	case err := <-stops:
		return nil, fmt.Errorf("%w: %w", errStopped, err)
	case <-ctx.Done():
		return nil, canceled(ctx)
	}
}

// errNoSnapshots is the answer to requests for savepoints of a job that can't take any.
var errNoSnapshots = errors.New("take a savepoint: the job takes no snapshots")

// Savepoint takes a savepoint into a new folder under dir and returns that folder. One that stops the job is complete when
// the job has ended.
func (j *Job) Savepoint(ctx context.Context, dir string, kind control.SnapshotKind) (string, error) {
	k := j.keeper
	if k == nil {
		return "", errNoSnapshots
	}
	location, err := k.Savepoint(ctx, dir, kind, j.kept)
	if err != nil || !kind.Stops() {
		return location, err
	}
	<-j.done
	return location, j.err
}

// Checkpoints is the history of the job's snapshots; empty for a job that takes none.
func (j *Job) Checkpoints() control.CheckpointOverview {
	k := j.keeper
	if k == nil {
		return control.CheckpointOverview{}
	}
	return k.Overview(j.kept)
}
