package control

import (
	"errors"
	"fmt"
	"slices"
)

// This file has what happens to a CheckpointCoordinator beside its checkpoints: tasks come and go, the job restarts,
// recovers and ends.

// taskChanged notes a task's state.
func (c *CheckpointCoordinator) taskChanged(e TaskChanged) {
	number := c.tasks.number(e.Task.TaskID)
	if number < 0 || e.Task.Attempt < c.tasks.all[number].Attempt {
		return
	}
	c.tasks.set(number, e.Task.Attempt, e.State)
	for _, p := range slices.Clone(c.pending) {
		if p.phase != collecting {
			continue
		}
		part := &p.parts[number]
		same := part.attempt == e.Task.Attempt
		switch {
		case e.State == TaskFinished && same && c.afterFinish(&p.checkpointRequest):
			c.finishedWithin(p, number)
		case part.status != partOwed || same && e.State == TaskRunning:
		case e.State == TaskFinished:
			c.abort(p, ReasonTasksNotRunning, fmt.Errorf("%s %w", c.tasks.name(e.Task.TaskID), ErrTaskFinished))
		default:
			c.abort(p, ReasonTaskFailure, fmt.Errorf("%s is %v", c.tasks.name(e.Task.TaskID), e.State))
		}
	}
}

// finishedWithin takes the end of a task during a snapshot. If the task has not acknowledged, the barrier did not come to it
// in time: all it has sent lies before the barrier then, and there is nothing left of it to restore.
func (c *CheckpointCoordinator) finishedWithin(p *pendingCheckpoint, number int) {
	id := c.tasks.all[number].TaskID
	if p.parts[number].status == partOwed {
		p.give(number, TaskSnapshot{Task: id, Finished: true})
		c.history.acknowledge(p, id, TaskMetrics{}, true, c.at)
	}
	c.trigger(p, c.tasks.orphans(p, id))
	c.settle(p)
}

// restarting aborts what is pending and restores as soon as it is known what can be restored.
func (c *CheckpointCoordinator) restarting(e Restarting) {
	c.tasks.restart(e.Tasks, e.Attempt)
	reason := ReasonJobFailure
	if e.Tasks != nil {
		reason = ReasonRegionFailover
	}
	if c.restart != nil { // the attempt that waits has failed before it began
		if c.restart.Tasks == nil || e.Tasks == nil {
			e.Tasks = nil
		} else {
			e.Tasks = slices.Concat(c.restart.Tasks, e.Tasks)
		}
		e.Required = e.Required || c.restart.Required
	}
	c.restart, c.stopped = nil, false
	c.abortAll(reason, e.Err)
	c.periodic.restart(c.at.Mono)
	c.restart = &e
	c.restoreIfSettled()
}

// restoreIfSettled answers a Restarting that waits, if nothing is being stored any more.
func (c *CheckpointCoordinator) restoreIfSettled() {
	if c.restart == nil || len(c.pending) > 0 {
		return
	}
	r := Restore{Attempt: c.restart.Attempt, Tasks: c.restart.Tasks, Checkpoint: c.store.Latest(c.cfg.PreferCheckpoint)}
	switch {
	case r.Checkpoint != nil:
		c.history.restore(r.Checkpoint, c.at)
	case c.restart.Required:
		r.Err = errors.New("restore the job: there is no completed checkpoint or savepoint: name one, or start without one")
	}
	c.restart = nil
	c.do(r)
}

// recovered takes snapshots of an earlier coordinator.
func (c *CheckpointCoordinator) recovered(e Recovered) {
	for _, done := range e.Completed {
		c.refs.addSnapshot(&done.Prepared)
		for i := range done.Tasks {
			c.refs.addSnapshot(&done.Tasks[i])
		}
		c.nextID = max(c.nextID, done.ID+1)
		for _, old := range c.store.Add(done) {
			c.dropCompleted(old)
		}
	}
	c.nextID = max(c.nextID, e.NextID)
}

// shutDown ends all but what is being stored.
func (c *CheckpointCoordinator) shutDown(e ShutDown) {
	if c.periodic.stop() {
		c.do(CancelTimer{Timer{Kind: PeriodicTimer}})
	}
	c.restart = nil
	for i := range c.tasks.all {
		if t := &c.tasks.all[i]; t.state == TaskRunning { // nobody is left to be told
			c.tasks.set(i, t.Attempt, TaskFailed)
		}
	}
	c.abortAll(ReasonCoordinatorShutdown, nil)
	c.end = &e.End
	for _, old := range c.store.ShutDown(e.End) {
		c.dropCompleted(old)
	}
}

// afterEnd takes what is still under way when the job has ended.
func (c *CheckpointCoordinator) afterEnd(e Event) {
	switch e := e.(type) {
	case Stored:
		p := c.findIn(e.Checkpoint, storing)
		if p == nil {
			return
		}
		c.stored(e)
		for _, old := range c.store.ShutDown(*c.end) {
			c.dropCompleted(old)
		}
	case StoreFailed:
		if p := c.findIn(e.Checkpoint, storing); p != nil {
			c.abort(p, ReasonFinalizeFailure, e.Err)
		}
	case Prepared:
		c.prepared(e)
	case Acknowledged:
		c.acknowledged(e)
	case Trigger:
		c.reject(checkpointRequest{request: e.Request, kind: e.Kind}, ReasonCoordinatorShutdown, nil)
	}
}

// gave reports whether this execution has given its part already.
func (p *pendingCheckpoint) gave(number, attempt int) bool {
	return p.phase != preparing && p.parts[number].status == partGiven && p.parts[number].attempt == attempt
}

func (p *pendingCheckpoint) timer() Timer { return Timer{Kind: TimeoutTimer, Checkpoint: p.id} }

// ofJob reports whether the failure is part of one of the job, or of its end: it can't fail the job once more.
func (r FailureReason) ofJob() bool {
	switch r {
	case ReasonCoordinatorShutdown, ReasonCoordinatorSuspend, ReasonJobFailure, ReasonRegionFailover, ReasonTaskFailure:
		return true
	}
	return false
}

func orUnknown(err error) error {
	if err == nil {
		return errors.New("it gave no cause")
	}
	return err
}
