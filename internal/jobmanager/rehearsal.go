package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/taskmanager"
)

// Rehearsal is a job that takes checkpoints in a simulation: the real keeper, attempts and tasks, each a coroutine.
type Rehearsal struct {
	ID        string
	Job       *taskmanager.Job
	Options   taskmanager.Options // without threads and clock
	Restarts  Restarts
	Snapshots CheckpointOptions
	// Coordinators makes those of these vertices for an attempt; fail takes what goes wrong in them.
	Coordinators func(vertices []*plan.ExecutionVertex, fail func(error)) (RehearsedCoordinators, error)

	ctx     context.Context
	sim     *host.Simulation
	clock   clock.Clock
	waiter  host.Waiter
	mailbox *host.Mailbox
	keeper  *Keeper
	machine *control.Failover
	regions []*region
	runs    []*rehearsedRun      // by region: the present attempt
	restore *taskmanager.Restore // what first attempts begin with
}

// rehearsedRun is one attempt of a region.
type rehearsedRun struct {
	r       *Rehearsal
	region  *region
	number  int
	coords  RehearsedCoordinators
	attempt *taskmanager.Attempt // nil: it has not begun
	left    int                  // tasks that have not ended
	told    error                // why it is to end; nil: it goes on
	failure error                // the first that is no mere consequence
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
	r.ctx, r.sim, r.clock, r.waiter = ctx, sim, &workingClock{Manual: sim.Clock}, sim.NewWaiter()
	r.mailbox = host.NewMailbox(r.waiter)
	r.Options.Threads, r.Options.Clock, r.Options.NoGoroutines = sim, r.clock, true
	r.regions = regionsOf(r.Job.Graph, r.Restarts.Full)
	r.machine, r.runs = control.NewFailover(r.Restarts.Strategy, len(r.regions)), make([]*rehearsedRun, len(r.regions))
	waiter := sim.NewWaiter()
	var err error
	r.keeper, err = NewKeeper(r.ID, r.Job, r.regions, r.Snapshots, r.clock, waiter, func(f func()) { f() })
	if err != nil {
		return err
	}
	r.keeper.failed = func(err error) {
		r.post(func() { r.do(r.machine.FailedAll(r.clock.Millis(), err)) })
	}
	r.keeper.stopped = func() { r.post(r.machine.Stopped) }
	sim.Start(waiter, r.keeper.Run)
	sim.Start(r.waiter, func() {
		r.supervise()
		end := control.JobFinished
		if r.machine.Err() != nil {
			end = control.JobFailed
		}
		r.keeper.End(end)
	})
	if err := sim.Run(); err != nil { // nobody can go on: what was opened is closed
		r.do(r.machine.Cancel(err))
		return errors.Join(err, sim.Run())
	}
	return r.machine.Err()
}

func (r *Rehearsal) post(f func()) {
	r.mailbox.Post(func() error {
		f()
		return nil
	})
}

// supervise does what a supervisor does.
func (r *Rehearsal) supervise() {
	r.keeper.restart(nil, 0, nil, func(s *taskmanager.Restore, err error) {
		r.post(func() {
			r.restore = s
			r.do(r.machine.Start())
			if err != nil {
				r.do(r.machine.Cancel(err))
			}
		})
	})
	for r.machine.Phase() != control.JobOver {
		letters := r.mailbox.Take()
		for _, letter := range letters {
			_ = letter() // these letters do not fail
		}
		if r.machine.Next() <= r.clock.Millis() {
			r.do(r.machine.Due(r.clock.Millis()))
		} else if len(letters) == 0 {
			r.waiter.Wait(host.Idle, r.machine.Next())
		}
	}
}

// do does what the machine wants.
func (r *Rehearsal) do(actions []control.FailoverAction) {
	for _, a := range slices.Clone(actions) { // what can't begin asks the machine again
		switch a := a.(type) {
		case control.StartRegion:
			r.start(a)
		case control.StopRegion:
			run := r.runs[a.Region]
			r.keeper.failing(a.Region, a.Err)
			run.told = a.Err
			if run.attempt != nil {
				run.attempt.Cancel()
			}
		}
	}
}

func (r *Rehearsal) start(a control.StartRegion) {
	run := &rehearsedRun{r: r, region: r.regions[a.Region], number: a.Attempt}
	r.runs[a.Region] = run
	if a.Attempt == 0 {
		run.deploy(r.restore)
		return
	}
	r.keeper.restart(run.region, a.Attempt, a.Cause, func(s *taskmanager.Restore, err error) {
		r.post(func() {
			if run.failure = err; err != nil || run.told != nil {
				run.over()
				return
			}
			run.deploy(s)
		})
	})
}

// deploy starts the attempt's tasks.
func (n *rehearsedRun) deploy(restore *taskmanager.Restore) {
	r := n.r
	if n.coords, n.failure = r.Coordinators(n.region.vertices, func(err error) { r.post(func() { n.fail(err) }) }); n.failure != nil {
		n.over()
		return
	}
	opt := r.Options
	opt.Restore, opt.Vertices = restore, n.region.vertices
	kept := newRun(n.region.index, n.coords)
	opt.Checkpoints = r.keeper.options(kept)
	a, err := taskmanager.Deploy(r.ctx, r.Job, n.number, opt, n.coords.FromSubtask, func(e taskmanager.Ended) {
		r.post(func() { n.ended(e) })
	})
	if err != nil {
		n.failure = errors.Join(err, n.coords.Close())
		n.over()
		return
	}
	n.attempt, n.left = a, len(a.Tasks)
	r.keeper.started(kept, a)
	r.machine.Deployed(n.region.index, n.number)
	var m *checkpoint.Manifest
	if restore != nil {
		m = restore.Manifest
	}
	n.fail(n.coords.Start(a, m))
}

// ended takes the end of a task.
func (n *rehearsedRun) ended(e taskmanager.Ended) {
	n.left--
	n.r.keeper.taskEnded(n.number, e)
	n.fail(e.Err)
	if n.left > 0 {
		return
	}
	if n.failure == nil {
		n.r.machine.Finished(n.region.index, n.number)
	}
	n.attempt.Wait()
	if err := n.coords.Close(); n.failure == nil {
		n.failure = err
	}
	n.over()
}

// over tells the end of the attempt.
func (n *rehearsedRun) over() {
	err := n.failure
	if err != nil {
		err = fmt.Errorf("attempt %d: %w", n.number, err)
	}
	n.r.do(n.r.machine.Over(n.r.clock.Millis(), n.region.index, n.number, err, false))
}

// fail takes what goes wrong. A cancelled task follows from another failure, which may be told later.
func (n *rehearsedRun) fail(err error) {
	if err == nil {
		return
	}
	if n.failure == nil || errors.Is(n.failure, exchange.ErrCancelled) {
		n.failure = err
	}
	n.r.do(n.r.machine.Failed(n.r.clock.Millis(), n.region.index, n.number, fmt.Errorf("attempt %d: %w", n.number, err)))
}
