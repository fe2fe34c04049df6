// Package jobmanager runs one job: it deploys attempts, runs the coordinators of sources, decides by the restart
// strategy what follows a failure, and keeps what the client asks for (status, accumulators, metrics). It knows the task
// managers by what package taskmanager offers and never touches an element.
package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/exchange"
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
	ID      string
	job     *taskmanager.Job
	opt     taskmanager.Options
	restart control.Restart
	keeper  *Keeper       // nil: the job takes no snapshots
	unkept  error         // why there is no keeper, though there should be
	kept    chan struct{} // closed when nobody runs the keeper any more

	mu      sync.Mutex
	status  Status
	attempt *taskmanager.Attempt
	start   time.Time
	end     time.Time
	record  Record
	err     error
	done    chan struct{}
	cancel  context.CancelFunc
}

// Submit starts a job. It runs until it has finished, failed for good, ctx ends or Cancel is called. snapshots is nil for a
// job that takes none.
func Submit(ctx context.Context, id string, job *taskmanager.Job, opt taskmanager.Options, restart control.Restart, snapshots *CheckpointOptions) *Job {
	ctx, cancel := context.WithCancel(ctx)
	j := &Job{ID: id, job: job, opt: opt, restart: restart, start: time.Now(), done: make(chan struct{}), cancel: cancel}
	j.enter(Created)
	j.kept = make(chan struct{})
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

// Attempt is the present attempt; nil before the first.
func (j *Job) Attempt() *taskmanager.Attempt {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.attempt
}

func (j *Job) run(ctx context.Context) {
	defer j.cancel()
	err := j.unkept
	if err == nil {
		err = j.prepare()
	}
	if err == nil {
		err = j.runAttempts(ctx)
	} else {
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

// runAttempts runs attempts as long as the restart strategy wants.
func (j *Job) runAttempts(ctx context.Context) error {
	var cause error
	for number := 0; ; number++ {
		restore, err := j.begin(number, cause)
		if err == nil {
			err = j.runAttempt(ctx, number, restore)
		}
		cause = err
		if err != nil && !errors.Is(err, ErrCanceled) {
			j.failed(number, err)
		}
		var stuck *StuckError
		if err == nil || ctx.Err() != nil || errors.As(err, &stuck) {
			return err
		}
		again, delay := j.restart.Failed(j.opt.Clock.Millis())
		if !again {
			return err
		}
		j.restarting()
		if !pause(ctx, delay) {
			return fmt.Errorf("%w, before a restart after: %w", canceled(ctx), err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// prepare lets sinks look at their targets before anything is written. A target that is not fit is no reason for a restart.
func (j *Job) prepare() error {
	for _, v := range j.job.Graph.Vertices {
		for _, n := range v.Nodes {
			if n.Node.Prepare == nil {
				continue
			}
			if err := n.Node.Prepare(v.Parallelism); err != nil {
				return fmt.Errorf("prepare operator %q: %w", n.Node.Name, err)
			}
		}
	}
	return nil
}

// runAttempt runs all tasks once. The first failure cancels the others and is the attempt's error.
func (j *Job) runAttempt(ctx context.Context, number int, restore *taskmanager.Restore) error {
	n := 0
	for _, v := range j.job.Graph.Vertices {
		n += len(v.Subtasks)
	}
	ended := make(chan taskmanager.Ended, n)
	coords := newCoordinators(ctx, j.job.Graph)
	opt := j.opt
	if opt.Restore = restore; restore != nil {
		coords.restore(restore.Manifest)
	}
	var r *attemptRun
	if j.keeper != nil {
		r = newRun(coords, coords.giveUp)
		opt.Checkpoints = j.keeper.options(r)
	}
	attempt, err := taskmanager.Deploy(ctx, j.job, number, opt, coords.fromSubtask, func(e taskmanager.Ended) { ended <- e })
	if err != nil {
		coords.cancel()
		return err
	}
	j.mu.Lock()
	j.attempt = attempt
	j.begun()
	if j.status != Cancelling {
		j.enter(Running)
	}
	j.mu.Unlock()
	coords.start(attempt)
	if j.keeper != nil {
		j.keeper.started(r, attempt)
	}
	err = j.watch(ctx, attempt, coords, ended, n)
	coords.cancel()
	var stuck *StuckError
	if errors.As(err, &stuck) {
		return err
	}
	return j.settle(attempt, coords, err)
}

// watch waits for n tasks to end.
func (j *Job) watch(ctx context.Context, attempt *taskmanager.Attempt, coords *coordinators, ended <-chan taskmanager.Ended, n int) error {
	var first error
	done := ctx.Done()
	failed := coords.failed
	var limit <-chan time.Time
	over := map[[2]int]bool{}
	cut := false // a task ended before its input did
	stop := func(err error) {
		if first == nil {
			first = err
		}
		if limit == nil {
			limit = time.After(CancelTimeout)
		}
		attempt.Cancel()
	}
	for n > 0 {
		select {
		case e := <-ended:
			n--
			over[[2]int{e.Vertex, e.Subtask}] = true
			if j.keeper != nil {
				j.keeper.taskEnded(attempt.Number, e)
			}
			cut = cut || e.Err != nil
			told := isCancellation(e.Err, first != nil || ctx.Err() != nil)
			j.taskEnded(e, told)
			if !told {
				j.failing()
				stop(e.Err)
			}
		case err := <-failed:
			failed = nil
			j.failing()
			stop(err)
		case <-done:
			done = nil
			stop(canceled(ctx))
		case <-limit:
			return &StuckError{After: CancelTimeout, Tasks: unfinished(attempt, over), Cause: first, Stack: allStacks()}
		}
	}
	if first == nil && cut { // all tasks noticed the cancellation before this loop did
		first = canceled(ctx)
	}
	return first
}

// settle waits for the goroutines that the tasks have started (function sources, async calls) and for the coordinators.
// What went wrong with these last, or while they were closed, is the attempt's error if there is no other.
func (j *Job) settle(attempt *taskmanager.Attempt, coords *coordinators, first error) error {
	limit := time.After(CancelTimeout)
	for _, part := range []struct {
		wait func()
		name func() []string
	}{
		{attempt.Wait, func() []string { return []string{"a goroutine of a source or async function"} }},
		{coords.group.Wait, coords.unfinished},
	} {
		settled := make(chan struct{})
		go func() {
			part.wait()
			close(settled)
		}()
		select {
		case <-settled:
		case <-limit:
			return &StuckError{After: CancelTimeout, Tasks: part.name(), Cause: first, Stack: allStacks()}
		}
	}
	if first != nil {
		return first
	}
	select {
	case err := <-coords.failed:
		return err
	default:
		return nil
	}
}

func canceled(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrCanceled, context.Cause(ctx))
}

// isCancellation reports whether a task ended well or because it was told to: user code that gives up with its context's
// error counts as cancelled once the job is being ended.
func isCancellation(err error, ending bool) bool {
	return err == nil || errors.Is(err, exchange.ErrCancelled) || ending && errors.Is(err, context.Canceled)
}

func (j *Job) restarting() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.status != Cancelling {
		j.enter(Restarting)
	}
}

func (j *Job) failing() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.status == Running {
		j.enter(Failing)
	}
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
