package jobmanager

import (
	"context"
	"errors"
	"time"

	"github.com/flott-dev/flott/internal/taskmanager"
)

// regionRun is one attempt of a region, on a goroutine of its own.
type regionRun struct {
	super  *supervisor
	job    *Job
	region *region
	number int
	cause  error      // why the attempt before failed
	stops  chan error // it is to end because of this

	told    bool // somebody has asked for its end: what follows is a consequence
	failed  bool // its failure has been told
	coords  *coordinators
	attempt *taskmanager.Attempt
	left    int // tasks that have not ended
	ended   <-chan taskmanager.Ended
}

func newRegionRun(s *supervisor, r *region, number int, cause error) *regionRun {
	return &regionRun{super: s, job: s.job, region: r, number: number, cause: cause, stops: make(chan error, 1)}
}

// stop asks for the end of the attempt.
func (r *regionRun) stop(err error) {
	select {
	case r.stops <- err:
	default: // it has been asked for already
	}
}

// fail tells the attempt's first failure; the supervisor asks for its end.
func (r *regionRun) fail(err error) {
	if r.failed {
		return
	}
	r.failed = true
	r.super.failed(r, err)
}

// run runs the attempt to its end.
func (r *regionRun) run() {
	ctx := r.super.ctx
	restore, err := r.begin(ctx)
	if err == nil {
		err = r.runTasks(ctx, restore)
	}
	var stuck *StuckError
	if err != nil && !r.failed && !r.told && !errors.Is(err, ErrCanceled) {
		r.job.failed(r.number, err)
	}
	r.super.over(r, err, errors.As(err, &stuck))
}

// begin is what the attempt begins with.
func (r *regionRun) begin(ctx context.Context) (*taskmanager.Restore, error) {
	if r.number == 0 {
		return r.super.restore, nil
	}
	restore, err := r.job.begin(ctx, r.region, r.number, r.cause, r.stops)
	r.told = errors.Is(err, errStopped)
	return restore, err
}

// runTasks runs all tasks once. The first failure ends the others and is the attempt's error.
func (r *regionRun) runTasks(ctx context.Context, restore *taskmanager.Restore) error {
	j := r.job
	for _, v := range r.region.vertices {
		r.left += len(v.Subtasks)
	}
	ended := make(chan taskmanager.Ended, r.left)
	r.ended = ended
	r.coords = newCoordinators(ctx, r.region.vertices)
	opt := j.opt
	opt.Vertices = r.region.vertices
	if opt.Restore = restore; restore != nil {
		r.coords.restore(restore)
	}
	var kept *attemptRun
	if j.keeper != nil {
		kept = newRun(r.region.index, r.coords)
		opt.Checkpoints = j.keeper.options(kept)
	}
	attempt, err := taskmanager.Deploy(ctx, j.job, r.number, opt, r.coords.fromSubtask, func(e taskmanager.Ended) { ended <- e })
	if err != nil {
		r.coords.cancel()
		return err
	}
	r.attempt = attempt
	j.deployed(r.region, attempt)
	r.coords.start(attempt)
	if j.keeper != nil {
		j.keeper.started(kept, attempt)
	}
	r.super.deployed(r)
	err = r.watch(ctx)
	if err == nil {
		r.coords.finish()
		r.super.finished(r)
	}
	r.coords.cancel()
	var stuck *StuckError
	if errors.As(err, &stuck) {
		return err
	}
	return r.settle(err)
}

// watch waits for the tasks to end. What they say once they are told to end, or after the first failure, are consequences.
func (r *regionRun) watch(ctx context.Context) error {
	var first error
	done, failed := ctx.Done(), r.coords.failed
	var limit <-chan time.Time
	over := map[[2]int]bool{}
	cut := false // a task ended before its input did
	fail := func(err error) {
		if first == nil {
			first = err
			r.fail(err)
		}
	}
	stop := func(err error) {
		r.told = true
		if first == nil {
			first = err
		}
		if limit == nil {
			limit = time.After(CancelTimeout)
		}
		r.attempt.Cancel()
	}
	for r.left > 0 {
		select {
		case e := <-r.ended:
			r.left--
			over[[2]int{e.Vertex, e.Subtask}] = true
			if r.job.keeper != nil {
				r.job.keeper.taskEnded(r.number, e)
			}
			cut = cut || e.Err != nil
			told := isCancellation(e.Err, first != nil || ctx.Err() != nil)
			r.job.taskEnded(e, told)
			if !told {
				fail(e.Err)
			}
		case err := <-failed:
			failed = nil
			fail(err)
		case err := <-r.stops:
			stop(err)
		case <-done:
			done = nil
			stop(canceled(ctx))
		case <-limit:
			return &StuckError{After: CancelTimeout, Tasks: unfinished(r.attempt, over), Cause: first, Stack: allStacks()}
		}
	}
	if first == nil && cut { // all tasks noticed the cancellation before this loop did
		first = canceled(ctx)
	}
	return first
}

// settle waits for the goroutines that the tasks have started (function sources, async calls) and for the coordinators.
// What went wrong with these last, or while they were closed, is the attempt's error if there is no other.
func (r *regionRun) settle(first error) error {
	limit := time.After(CancelTimeout)
	for _, part := range []struct {
		wait func()
		name func() []string
	}{
		{r.attempt.Wait, func() []string { return []string{"a goroutine of a source or async function"} }},
		{r.coords.group.Wait, r.coords.unfinished},
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
	case err := <-r.coords.failed:
		return err
	default:
		return nil
	}
}
