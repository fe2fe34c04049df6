// Package jobmanager runs one job: it deploys attempts, runs the coordinators of sources, decides by the restart
// strategy what follows a failure, and keeps what the client asks for (status, accumulators, metrics). It knows the task
// managers by what package taskmanager offers and never touches an element.
package jobmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/taskmanager"
)

// Status is the state of a job, in Flink's words.
type Status string

// The states of a job.
const (
	Created    Status = "CREATED"
	Running    Status = "RUNNING"
	Failing    Status = "FAILING"
	Failed     Status = "FAILED"
	Cancelling Status = "CANCELLING"
	Canceled   Status = "CANCELED"
	Restarting Status = "RESTARTING"
	Finished   Status = "FINISHED"
)

// CancelTimeout is how long user code may ignore its context after a cancel or failure.
const CancelTimeout = 30 * time.Second

// ErrCanceled is a cancelled job's error.
var ErrCanceled = errors.New("job was cancelled")

// Job is a submitted job. Its methods may be called from any goroutine.
type Job struct {
	ID       string
	job      *taskmanager.Job
	opt      taskmanager.Options
	restarts Restarts
	regions  []*region
	super    *supervisor
	keeper   *Keeper       // nil: the job takes no snapshots
	unkept   error         // why there is no keeper, though there should be
	kept     chan struct{} // closed when nobody runs the keeper any more
	before   []Snapshot    // what it may go on from

	mu       sync.Mutex
	status   Status
	attempts []*taskmanager.Attempt // by region: the present one, or the last; nil before the first
	begins   []time.Time            // of these
	start    time.Time
	end      time.Time
	record   Record
	repeats  repeats
	err      error
	done     chan struct{}
	cancel   context.CancelFunc
}

// Submit starts a job. It runs until it has finished, failed for good, ctx ends or Cancel is called. snapshots is nil for a
// job that takes none.
func Submit(ctx context.Context, id string, job *taskmanager.Job, opt taskmanager.Options, restarts Restarts, snapshots *CheckpointOptions) *Job {
	ctx, cancel := context.WithCancel(ctx)
	j := &Job{
		ID: id, job: job, opt: opt, restarts: restarts, regions: regionsOf(job.Graph, restarts.Full),
		start: time.Now(), done: make(chan struct{}), cancel: cancel,
	}
	j.attempts, j.begins = make([]*taskmanager.Attempt, len(j.regions)), make([]time.Time, len(j.regions))
	j.super = newSupervisor(ctx, j)
	j.enter(Created)
	j.kept = make(chan struct{})
	if snapshots != nil {
		j.before = snapshots.Completed
	}
	j.unkept = j.keep(snapshots)
	go j.run(ctx)
	return j
}

// Status is the job's present state.
func (j *Job) Status() Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.status
}

// Cancel ends the job; Wait tells when.
func (j *Job) Cancel() {
	j.mu.Lock()
	if j.end.IsZero() {
		j.enter(Cancelling)
	}
	j.mu.Unlock()
	j.cancel()
}

// Done is closed when the job has ended.
func (j *Job) Done() <-chan struct{} { return j.done }

// Err is why the job ended: nil if it finished. Only after Done.
func (j *Job) Err() error { return j.err }

// Duration is the job's net run time so far.
func (j *Job) Duration() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.end.IsZero() {
		return time.Since(j.start)
	}
	return j.end.Sub(j.start)
}

// Tasks are the present executions of all tasks, in the order of the plan; nil before the first. Those of a region that is
// about to be restarted are its last ones.
func (j *Job) Tasks() []*taskmanager.Subtask {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []*taskmanager.Subtask
	for _, a := range j.attempts {
		if a != nil {
			all = append(all, a.Tasks...)
		}
	}
	slices.SortStableFunc(all, func(a, b *taskmanager.Subtask) int { return cmp.Compare(a.Vertex.Index, b.Vertex.Index) })
	return all
}

// Age is for how long one of Tasks has been there.
func (j *Job) Age(s *taskmanager.Subtask) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, r := range j.regions {
		if !slices.ContainsFunc(r.vertices, func(v *plan.ExecutionVertex) bool { return v.Vertex == s.Vertex }) {
			continue
		}
		if j.end.IsZero() {
			return time.Since(j.begins[i])
		}
		return j.end.Sub(j.begins[i])
	}
	return 0
}

// deployed notes the new attempt of a region.
func (j *Job) deployed(r *region, a *taskmanager.Attempt) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.attempts[r.index], j.begins[r.index] = a, time.Now()
	j.begun(r)
}

func (j *Job) run(ctx context.Context) {
	defer j.cancel()
	err := j.unkept
	if err == nil {
		err = j.prepare()
	}
	if err == nil {
		j.super.restore, err = j.begin(ctx, nil, 0, nil, nil)
	}
	if err == nil {
		err = j.gaveUp(j.super.run())
	} else if !errors.Is(err, ErrCanceled) {
		j.failed(0, err)
	}
	status := Finished
	if err != nil {
		status = Failed
		if ctx.Err() != nil && errors.Is(err, ErrCanceled) {
			status = Canceled
		}
	}
	j.endKeeping(status)
	j.mu.Lock()
	j.enter(status)
	j.err, j.end = err, time.Now()
	j.mu.Unlock()
	close(j.done)
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// gaveUp makes the error that the job ends with one that tells of its restarts, if it has failed for good after some.
func (j *Job) gaveUp(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var stuck *StuckError
	if err == nil || j.record.Restarts == 0 || errors.Is(err, ErrCanceled) || errors.As(err, &stuck) {
		return err
	}
	r := &j.repeats
	e := &GaveUpError{Restarts: j.record.Restarts, Same: r.times, OtherRecord: r.other, Last: err}
	if !strings.Contains(r.record, "...") { // else not all of it is known
		e.SameRecord = r.records
	}
	return e
}

// prepare lets sinks look at their targets before anything is written, but for those whose job goes on: what is there is
// theirs. A target that is not fit is no reason for a restart.
func (j *Job) prepare() error {
	for _, v := range j.job.Graph.Vertices {
		for _, n := range v.Nodes {
			id := n.ID.String()
			if n.Node.Prepare == nil || slices.ContainsFunc(j.before, func(s Snapshot) bool { return s.Manifest.Operator(id) != nil }) {
				continue
			}
			if err := n.Node.Prepare(v.Parallelism); err != nil {
				return fmt.Errorf("prepare operator %q: %w", n.Node.Name, err)
			}
		}
	}
	return nil
}

func canceled(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrCanceled, context.Cause(ctx))
}

// isCancellation reports whether a task ended well or because it was told to: user code that gives up with its context's
// error counts as cancelled once the job is being ended.
func isCancellation(err error, ending bool) bool {
	return err == nil || errors.Is(err, exchange.ErrCancelled) || ending && errors.Is(err, context.Canceled)
}

// StuckError is what Execute returns when user code ignored the end of its context.
type StuckError struct {
	After time.Duration
	Tasks []string // the subtasks that have not ended: chain of operators and number
	Cause error    // why the job was being ended; nil at a good end
	Stack []byte   // of all goroutines
}

// Error names what was waited for.
func (e *StuckError) Error() string {
	why := "the end of all tasks"
	if e.Cause != nil {
		why = e.Cause.Error()
	}
	return fmt.Sprintf("user code ignored the end of its context for %v in %s, after: %s\n%s",
		e.After, strings.Join(e.Tasks, ", "), why, e.Stack)
}

// Unwrap is why the job was being ended.
func (e *StuckError) Unwrap() error { return e.Cause }

// unfinished names the subtasks that are not over.
func unfinished(a *taskmanager.Attempt, over map[[2]int]bool) []string {
	var names []string
	for _, s := range a.Tasks {
		if !over[[2]int{s.Vertex.Index, s.Index}] {
			names = append(names, fmt.Sprintf("%q subtask %d", s.Vertex.Name, s.Index+1))
		}
	}
	return names
}

func allStacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}
