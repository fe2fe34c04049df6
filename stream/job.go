package stream

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/internal/env"
)

// ErrCanceled is wrapped by the error of a job that was cancelled.
var ErrCanceled = env.ErrCanceled

// Job is a handle on a submitted job; its methods may be called from any goroutine.
type Job struct{ x *env.Execution }

// ID is the job's identity: 32 hex digits.
func (j *Job) ID() string { return j.x.ID }

// Name is the job's name.
func (j *Job) Name() string { return j.x.Name }

// Status is the job's state in Flink's words: CREATED, RUNNING, FAILING, FAILED, CANCELLING, CANCELED, RESTARTING,
// FINISHED.
func (j *Job) Status() string { return string(j.x.Status()) }

// Cancel ends the job; Wait tells when it has.
func (j *Job) Cancel() { j.x.Cancel() }

// Done is closed when the job has ended.
func (j *Job) Done() <-chan struct{} { return j.x.Done() }

// Wait returns the job's result once it has ended. The error wraps ErrCanceled after a cancel.
func (j *Job) Wait() (*Result, error) {
	<-j.x.Over()
	if err := j.x.Err(); err != nil {
		return nil, fmt.Errorf("execute job %q: %w", j.Name(), err)
	}
	acc, err := j.Accumulators()
	if err != nil {
		return nil, fmt.Errorf("collect the accumulators of job %q: %w", j.Name(), err)
	}
	return &Result{ID: j.ID(), Duration: j.x.Duration(), Accumulators: acc}, nil
}

// Accumulators are the job's accumulators, merged over all subtasks, as they are now.
func (j *Job) Accumulators() (map[string]any, error) { return j.x.Accumulators() }

// Metrics is what the job's operators have done so far.
func (j *Job) Metrics() Metrics { return Metrics(j.x.Metrics()) }

// Metrics are the figures of a running job, operator by operator in the order of the plan.
type Metrics []OperatorMetrics

// OperatorMetrics are the figures of one operator, summed over its subtasks.
type OperatorMetrics = env.OperatorMetrics

// Result is what a job that has finished leaves behind.
type Result struct {
	ID           string         // the job's identity: 32 hex digits
	Duration     time.Duration  // net run time
	Accumulators map[string]any // merged over all subtasks: int64, float64, map[int64]int64 ...
}
