package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flott-dev/flott/internal/env"
)

// CheckpointingMode is what checkpoints promise.
type CheckpointingMode = env.CheckpointMode

// The modes of checkpoints.
const (
	// ExactlyOnce: after a failure each element is in the state exactly once. The default.
	ExactlyOnce = env.ExactlyOnce
	// AtLeastOnce: after a failure elements may be in the state twice; no input ever waits for another one's barrier.
	AtLeastOnce = env.AtLeastOnce
)

// ExternalizedCheckpointCleanup says what becomes of the last checkpoint when the job ends without having finished.
type ExternalizedCheckpointCleanup = env.Retention

// What becomes of checkpoints. Without any of these they go with the job.
const (
	// RetainOnCancellation keeps them if the job fails or is cancelled.
	RetainOnCancellation = env.RetainOnCancellation
	// DeleteOnCancellation keeps them if the job fails.
	DeleteOnCancellation = env.RetainOnFailure
)

// CheckpointOption is a setting of EnableCheckpointing.
type CheckpointOption func(*env.Checkpoints)

// WithCheckpointingMode sets what checkpoints promise; the default is ExactlyOnce.
func WithCheckpointingMode(m CheckpointingMode) CheckpointOption {
	return func(c *env.Checkpoints) { c.Mode = m }
}

// CheckpointTimeout gives up checkpoints and savepoints that take longer; the default is 10 minutes, 10 ms the least.
func CheckpointTimeout(d time.Duration) CheckpointOption {
	return func(c *env.Checkpoints) { c.Timeout = d }
}

// MinPauseBetweenCheckpoints sets the least time between the end of a checkpoint and the start of the next; default 0. With
// a pause there is one checkpoint at a time, whatever MaxConcurrentCheckpoints says.
func MinPauseBetweenCheckpoints(d time.Duration) CheckpointOption {
	return func(c *env.Checkpoints) { c.MinPause = d }
}

// MaxConcurrentCheckpoints sets how many checkpoints may be under way at a time; default 1.
func MaxConcurrentCheckpoints(n int) CheckpointOption {
	return func(c *env.Checkpoints) { c.MaxConcurrent = n }
}

// TolerableCheckpointFailureNumber sets how many checkpoints may fail in a row; the next one fails the job. Default 0.
func TolerableCheckpointFailureNumber(n int) CheckpointOption {
	return func(c *env.Checkpoints) { c.TolerableFailures = n }
}

// IncrementalCheckpoints lets checkpoints hold only the state that has changed since the one before, where the state backend
// can tell (all of Flott's do); the default is off. From time to time one holds everything again, so that a restore reads
// little more than the state. A checkpoint names files of earlier ones, so that these stay until none needs them. Savepoints
// are always whole.
func IncrementalCheckpoints(on bool) CheckpointOption {
	return func(c *env.Checkpoints) { c.Incremental = on }
}

// ExternalizedCheckpoints keeps the last checkpoint of a job that did not finish: WithSavepoint can start from its folder.
// The default keeps none. Without SetCheckpointStorage there is nothing to keep, which is among the Warnings.
func ExternalizedCheckpoints(c ExternalizedCheckpointCleanup) CheckpointOption {
	return func(to *env.Checkpoints) { to.Retention = c }
}

// EnableCheckpointing takes a checkpoint of the job's state every interval, at least 10 ms. After a failure the restart
// strategy goes on from the last complete one: state and source positions are what they were then. Sinks with two-phase
// commit commit with checkpoints; the end of a bounded input takes one more. What is in
// an iteration is part of them.
func (e *Env) EnableCheckpointing(interval time.Duration, opts ...CheckpointOption) *Env {
	c := &e.e.Settings.Checkpoints
	c.Enabled, c.Interval = true, interval
	for _, o := range opts {
		o(c)
	}
	return e
}

// SetCheckpointStorage sets the folder in which checkpoints lie, each job in one of its own that is named by its ID: a path, or a
// URL (file:, or one that WithStorage opens). The default keeps them in memory, which survives failures of tasks but not the end
// of the process, and takes 5 MiB of each subtask of an operator (WithMemoryStorageLimit).
func (e *Env) SetCheckpointStorage(dir string) *Env {
	if dir == "" {
		e.report(errors.New("set checkpoint storage: the folder has no name; leave the call out to keep checkpoints in memory"))
		return e
	}
	e.e.Settings.Checkpoints.Dir, e.e.Settings.Checkpoints.Storage = dir, env.StorageByDir
	return e
}

// SavepointOption is a setting of WithSavepoint.
type SavepointOption func(*env.Checkpoints)

// AllowNonRestored lets the job start although the savepoint has state that the program has no operator for: it is dropped.
func AllowNonRestored() SavepointOption {
	return func(c *env.Checkpoints) { c.AllowNonRestored = true }
}

// ClaimSavepoint makes what the job starts from its own: it is removed once the job does not need it any more, as checkpoints
// are.
func ClaimSavepoint() SavepointOption { return func(c *env.Checkpoints) { c.Claim = true } }

// WithSavepoint starts the job from the savepoint, or retained checkpoint, in that folder: a path, or a URL (file:, or one that
// WithStorage opens). State goes to the operators of the same UID; parallelism may differ. It is not changed, and not removed
// but with ClaimSavepoint.
func WithSavepoint(path string, opts ...SavepointOption) Option {
	return func(s *env.Settings) {
		s.Checkpoints.Savepoint = path
		for _, o := range opts {
			o(&s.Checkpoints)
		}
	}
}

// CheckpointHistory is what is remembered of a job's checkpoints and savepoints: counts, the latest of each kind, and the
// last ones with sizes and durations, down to subtasks.
type CheckpointHistory = env.CheckpointHistory

// CheckpointStatistics are the numbers of one checkpoint or savepoint.
type CheckpointStatistics = env.CheckpointStatistics

// CheckpointStatus is how far a checkpoint is.
type CheckpointStatus = env.CheckpointStatus

// The statuses of checkpoints.
const (
	// CheckpointInProgress: it has begun and not ended.
	CheckpointInProgress = env.CheckpointInProgress
	// CheckpointCompleted: it can be restored, or could until it was discarded.
	CheckpointCompleted = env.CheckpointCompleted
	// CheckpointFailed: it was given up.
	CheckpointFailed = env.CheckpointFailed
)

// Checkpoints is the history of the job's checkpoints and savepoints so far.
func (j *Job) Checkpoints() CheckpointHistory { return j.x.Checkpoints() }

// TriggerSavepoint takes a savepoint into a new folder under dir, a path or URL, and gives that folder when it is complete. With
// "" it lies where configuration (execution.checkpointing.savepoint-dir) or SetSavepointStorage says. The job goes on.
// A savepoint is the caller's: the job never removes it, and it may be moved. When ctx ends, the call returns and the
// savepoint may still be completed.
func (j *Job) TriggerSavepoint(ctx context.Context, dir string) (path string, err error) {
	return j.savepoint(ctx, dir, false, false)
}

// StopWithSavepoint takes a savepoint into a new folder under dir and ends the job with it: sources emit nothing after it,
// sinks commit all that is before it, and the job has then finished. With drain the sources send the last watermark first,
// so that all windows and timers fire; it is for jobs that will not go on.
func (j *Job) StopWithSavepoint(ctx context.Context, dir string, drain bool) (path string, err error) {
	return j.savepoint(ctx, dir, drain, true)
}

func (j *Job) savepoint(ctx context.Context, dir string, drain, stop bool) (string, error) {
	location, err := j.x.TakeSavepoint(ctx, dir, drain, stop)
	if err != nil {
		return "", fmt.Errorf("job %q: %w", j.Name(), err)
	}
	return location, nil
}
