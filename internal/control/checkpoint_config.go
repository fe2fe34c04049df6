package control

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Unlimited is a maximum that is never reached.
const Unlimited = math.MaxInt

// MinCheckpointTime is the least interval and the least timeout of checkpoints.
const MinCheckpointTime = 10 * time.Millisecond

// Retention says which checkpoints outlive their job. None outlives a job that has finished, all outlive one that is
// suspended, and savepoints are their owners' in any case.
type Retention uint8

const (
	// NeverRetained: checkpoints go with the job. The default.
	NeverRetained Retention = iota
	// RetainOnFailure keeps them if the job fails.
	RetainOnFailure
	// RetainOnCancellation keeps them if the job fails or is cancelled.
	RetainOnCancellation
)

// String gives the policy's name.
func (r Retention) String() string {
	return [...]string{"never retained", "retained on failure", "retained on cancellation"}[r]
}

// Keeps reports whether a job that ends so leaves its checkpoints behind.
func (r Retention) Keeps(end JobEnd) bool {
	switch end {
	case JobSuspended:
		return true
	case JobFailed:
		return r != NeverRetained
	case JobCanceled:
		return r == RetainOnCancellation
	}
	return false
}

// JobEnd is how a job ended.
type JobEnd uint8

const (
	// JobFinished: all of its input was worked off.
	JobFinished JobEnd = iota
	// JobCanceled: its user ended it.
	JobCanceled
	// JobFailed: it failed for good.
	JobFailed
	// JobSuspended: it has not ended, but goes on elsewhere or later, from its last checkpoint.
	JobSuspended
)

// CheckpointConfig says when and how checkpoints are taken. Start from DefaultCheckpointConfig: the zero value is not
// valid.
type CheckpointConfig struct {
	// Interval is the time from one periodic checkpoint to the next; 0: none are taken but on request. At least
	// MinCheckpointTime otherwise.
	Interval time.Duration
	// Timeout ends a checkpoint or savepoint that has not been completed. Default 10 minutes, at least MinCheckpointTime.
	Timeout time.Duration
	// MinPause is the least time between the end of one checkpoint, however it ended, and the start of the next periodic
	// one. Default 0. A positive pause lets only one be pending at a time, whatever MaxConcurrent says.
	MinPause time.Duration
	// MaxConcurrent is how many snapshots may be pending when a checkpoint starts; Unlimited: as many as come. Default 1.
	// Savepoints count, but don't wait. After a task has given one up for a newer one there are fewer for a while.
	MaxConcurrent int
	// TolerableFailures is how many checkpoints may fail one after the other; the next one fails the job. Default 0.
	TolerableFailures int
	// Mode: default ExactlyOnce.
	Mode CheckpointMode
	// Retained is how many completed checkpoints are kept while the job runs. Default 1.
	Retained int
	// Retention says whether they outlive the job.
	Retention Retention
	// Unaligned lets checkpoints become unaligned once AlignedTimeout has passed since their first barrier at a task; with
	// 0, the default, they are unaligned from the start. Only for ExactlyOnce and one checkpoint at a time. Savepoints stay
	// aligned.
	Unaligned      bool
	AlignedTimeout time.Duration
	// AfterTasksFinish lets checkpoints go on when some tasks have finished. Default true. Without it the last one, with which
	// sinks commit at the end of bounded input, is taken all the same.
	AfterTasksFinish bool
	// PreferCheckpoint recovers from the last checkpoint even if a savepoint is newer. Default false. Sinks have committed
	// what the savepoint covered, so that they commit it once more after such a recovery.
	PreferCheckpoint bool
	// History is how many checkpoints that have ended the statistics remember. Default 10.
	History int
}

// DefaultCheckpointConfig is the configuration of a job that sets nothing: no periodic checkpoints.
func DefaultCheckpointConfig() CheckpointConfig {
	return CheckpointConfig{Timeout: 10 * time.Minute, MaxConcurrent: 1, Retained: 1, AfterTasksFinish: true, History: 10}
}

// FailsOnErrors reports whether the first failed checkpoint fails the job.
func (c *CheckpointConfig) FailsOnErrors() bool { return c.TolerableFailures == 0 }

// concurrent is how many checkpoints may really be pending.
func (c *CheckpointConfig) concurrent() int {
	if c.MinPause > 0 {
		return 1
	}
	return c.MaxConcurrent
}

// Validate joins all that is wrong, naming the configuration key and what to do.
func (c *CheckpointConfig) Validate() error {
	var errs []error
	wrong := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("execution.checkpointing."+key+": "+format, args...))
	}
	if c.Interval != 0 && c.Interval < MinCheckpointTime {
		wrong("interval", "%v is less than %v: choose a longer interval, or none to take no periodic checkpoints", c.Interval, MinCheckpointTime)
	}
	if c.Timeout < MinCheckpointTime {
		wrong("timeout", "%v is less than %v: choose a longer timeout (the default is 10 min)", c.Timeout, MinCheckpointTime)
	}
	if c.MinPause < 0 {
		wrong("min-pause", "%v is negative: choose 0 for no pause", c.MinPause)
	}
	if c.MaxConcurrent < 1 {
		wrong("max-concurrent-checkpoints", "%d is less than 1: choose 1 or more; to take no checkpoints set no interval", c.MaxConcurrent)
	}
	if c.TolerableFailures < 0 {
		wrong("tolerable-failed-checkpoints", "%d is negative: choose 0 to fail the job with the first failed checkpoint, or how many may fail in a row", c.TolerableFailures)
	}
	if c.Retained < 1 {
		wrong("num-retained", "%d is less than 1: at least one completed checkpoint is needed to recover from", c.Retained)
	}
	if c.History < 0 {
		errs = append(errs, fmt.Errorf("web.checkpoints.history: %d is negative: choose 0 to remember none", c.History))
	}
	if c.AlignedTimeout < 0 {
		wrong("aligned-checkpoint-timeout", "%v is negative: choose 0 for checkpoints that are unaligned from the start", c.AlignedTimeout)
	}
	if c.Mode > AtLeastOnce {
		wrong("mode", "there is no mode %d: choose EXACTLY_ONCE or AT_LEAST_ONCE", uint8(c.Mode))
	}
	if c.Retention > RetainOnCancellation {
		wrong("externalized-checkpoint-retention", "there is no retention %d: choose one of its constants", uint8(c.Retention))
	}
	if c.Unaligned && c.Mode == AtLeastOnce {
		wrong("unaligned.enabled", "at-least-once checkpoints are never aligned: choose the mode EXACTLY_ONCE, or leave unaligned checkpoints off")
	}
	if c.Unaligned && c.concurrent() > 1 {
		wrong("unaligned.enabled", "%d checkpoints at a time can't be unaligned: set max-concurrent-checkpoints to 1", c.MaxConcurrent)
	}
	return errors.Join(errs...)
}
