package jobmanager

import (
	"context"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/taskmanager"
)

// Rehearsal is a job that takes checkpoints in a simulation: the real keeper, attempts and tasks, each a coroutine.
type Rehearsal struct {
	ID        string
	Job       *taskmanager.Job
	Options   taskmanager.Options // without threads and clock
	Restart   control.Restart
	Snapshots CheckpointOptions
	// Coordinators makes those of an attempt; fail takes what goes wrong in them.
	Coordinators func(fail func(error)) (RehearsedCoordinators, error)

	sim     *host.Simulation
	clock   clock.Clock
	waiter  host.Waiter
	mailbox *host.Mailbox
	keeper  *Keeper
	attempt *taskmanager.Attempt
	left    int   // tasks that have not ended
	failure error // of the attempt, the first that is no mere consequence
	stopped bool  // no more attempts
}

// RehearsedCoordinators are an attempt's coordinators, called at once.
type RehearsedCoordinators interface {
	enumerators
	// Start starts them; m is nil at a fresh start.
	Start(a *taskmanager.Attempt, m *checkpoint.Manifest) error
	// FromSubtask takes an event of an operator.
	FromSubtask(vertex, subtask, node int, event []byte)
	// Close ends them.
	Close() error
}

// workingClock is a simulation's clock that goes on while tasks work, too, so that checkpoints begin in the midst of it.
type workingClock struct {
	*clock.Manual
	reads int
}

// readsPerMilli is how often the clock is read in a ms.
const readsPerMilli = 40

// Millis implements clock.Clock.
func (c *workingClock) Millis() int64 {
	if c.reads++; c.reads%readsPerMilli == 0 {
		c.Set(c.Manual.Millis() + 1)
	}
	return c.Manual.Millis()
}

// Run runs the job to its end on the calling goroutine.
func (r *Rehearsal) Run(ctx context.Context, sim *host.Simulation) error {
	r.sim, r.clock, r.waiter = sim, &workingClock{Manual: sim.Clock}, sim.NewWaiter()
	r.mailbox = host.NewMailbox(r.waiter)
	r.Options.Threads, r.Options.Clock, r.Options.NoGoroutines = sim, r.clock, true
	waiter := sim.NewWaiter()
	var err error
	r.keeper, err = NewKeeper(r.ID, r.Job, r.Snapshots, r.clock, waiter, func(f func()) { f() })
	if err != nil {
		return err
	}
	sim.Start(waiter, r.keeper.Run)
	var result error
	sim.Start(r.waiter, func() {
		result = r.attempts(ctx)
		end := control.JobFinished
		if result != nil {
			end = control.JobFailed
		}
		r.keeper.End(end)
	})
	if err := sim.Run(); err != nil {
		r.stopped = true
		r.fail(err)
		return errors.Join(err, sim.Run())
	}
	return result
}

// await waits for a letter that makes f true.
func (r *Rehearsal) await(f func() bool) {
	for !f() {
		letters := r.mailbox.Take()
		for _, letter := range letters {
			_ = letter() // these letters do not fail
		}
		if len(letters) == 0 {
			r.waiter.Wait(host.Idle, host.Forever)
		}
	}
}

func (r *Rehearsal) post(f func()) {
	r.mailbox.Post(func() error {
		f()
		return nil
	})
}

func (r *Rehearsal) attempts(ctx context.Context) error {
	var cause error
	for number := 0; ; number++ {
		var restore *taskmanager.Restore
		answered := false
		r.keeper.restart(number, cause, func(s *taskmanager.Restore, err error) {
			r.post(func() { restore, cause, answered = s, err, true })
		})
		r.await(func() bool { return answered })
		if cause == nil {
			cause = r.runAttempt(ctx, number, restore)
		}
		if cause == nil || r.stopped {
			return cause
		}
		again, delay := r.Restart.Failed(r.clock.Millis())
		if !again {
			return cause
		}
		for until := r.clock.Millis() + delay.Milliseconds(); r.clock.Millis() < until; {
			r.waiter.Wait(host.Idle, until)
		}
	}
}

func (r *Rehearsal) runAttempt(ctx context.Context, number int, restore *taskmanager.Restore) error {
	r.failure, r.attempt = nil, nil
	coords, err := r.Coordinators(func(err error) { r.post(func() { r.fail(err) }) })
	if err != nil {
		return err
	}
	opt := r.Options
	opt.Restore = restore
	run := newRun(coords, func(err error) { r.post(func() { r.fail(err) }) })
	opt.Checkpoints = r.keeper.options(run)
	a, err := taskmanager.Deploy(ctx, r.Job, number, opt, coords.FromSubtask, func(e taskmanager.Ended) {
		r.post(func() {
			r.left--
			r.keeper.taskEnded(number, e)
			r.fail(e.Err)
		})
	})
	if err != nil {
		return errors.Join(err, coords.Close())
	}
	r.attempt, r.left = a, len(a.Tasks)
	r.keeper.started(run, a)
	var m *checkpoint.Manifest
	if restore != nil {
		m = restore.Manifest
	}
	r.fail(coords.Start(a, m))
	r.await(func() bool { return r.left == 0 })
	a.Wait()
	r.fail(coords.Close())
	if r.failure != nil {
		return fmt.Errorf("attempt %d: %w", number, r.failure)
	}
	return nil
}

// fail ends all tasks. A cancelled task follows from another failure, which may be told later.
func (r *Rehearsal) fail(err error) {
	if err == nil {
		return
	}
	if r.failure == nil || errors.Is(r.failure, exchange.ErrCancelled) {
		r.failure = err
	}
	if r.attempt != nil {
		r.attempt.Cancel()
	}
}
