package control

import (
	"fmt"
	"slices"
)

// MaxQueuedRequests is how many requests may wait for their turn.
const MaxQueuedRequests = 1000

// CheckpointCoordinator decides when the snapshots of one job are taken, when they are complete, and what of them may be
// discarded. It is a pure step machine: its owner, one goroutine, hands it events with the time at which they happened and
// does the actions that it answers.
//
// A snapshot is prepared (Prepare), one at a time; collected (TriggerTasks, then a part of every task); stored (Store); and
// then complete. Up to the storing it can be aborted. While it is being stored it can't: only whoever stores it knows
// whether recovery would find it, so that restarts and the end of the job wait.
//
// A part counts only if it comes from the execution of the task that the snapshot was triggered for. What late, unknown
// or former executions send is discarded, except for handles that other snapshots refer to.
type CheckpointCoordinator struct {
	job        string
	cfg        CheckpointConfig
	tasks      checkpointTasks
	store      *CompletedStore
	refs       handleRefs
	failures   FailureCount
	concurrent concurrency
	history    checkpointHistory
	pending    []*pendingCheckpoint // in the order of their ids
	queue      []checkpointRequest  // waiting for their turn
	periodic   periodicTimer
	nextID     int64
	timestamp  int64          // of the last trigger
	restart    *Restarting    // waits for what is being stored
	stopped    bool           // a savepoint that stops the job is complete
	savepoints map[int64]bool // those that are complete: what they name is not the job's any more
	end        *JobEnd        // the job has ended
	at         Instant
	actions    []Action
}

// NewCheckpointCoordinator returns the coordinator of a job. All its tasks are TaskCreated in attempt 0. It fails if the
// configuration is not valid.
func NewCheckpointCoordinator(job string, cfg CheckpointConfig, vertices []CheckpointVertex) (*CheckpointCoordinator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure checkpoints: %w", err)
	}
	store, err := NewCompletedStore(cfg.Retained)
	if err != nil {
		return nil, err
	}
	return &CheckpointCoordinator{
		job: job, cfg: cfg, tasks: newCheckpointTasks(vertices), store: store, refs: handleRefs{}, nextID: 1,
		savepoints: map[int64]bool{},
		failures:   FailureCount{Tolerable: cfg.TolerableFailures},
		concurrent: newConcurrency(cfg.concurrent()),
		history:    checkpointHistory{keep: cfg.History, running: map[int64]*CheckpointStatistics{}},
		periodic:   periodicTimer{interval: cfg.Interval.Nanoseconds(), pause: cfg.MinPause.Nanoseconds()},
	}, nil
}

// Completed are the snapshots that can be restored, in the order of their completion.
func (c *CheckpointCoordinator) Completed() []*CompletedCheckpoint { return c.store.All() }

// Pending are the ids of the snapshots that have begun and have not ended, in order.
func (c *CheckpointCoordinator) Pending() []int64 {
	ids := make([]int64, len(c.pending))
	for i, p := range c.pending {
		ids[i] = p.id
	}
	return ids
}

// Acknowledged are the tasks that have given their part of a pending snapshot, or had finished before it.
func (c *CheckpointCoordinator) Acknowledged(checkpoint int64) []TaskID {
	var ids []TaskID
	if p := c.find(checkpoint); p != nil {
		for i := range p.parts {
			if p.parts[i].status == partGiven {
				ids = append(ids, c.tasks.all[i].TaskID)
			}
		}
	}
	return ids
}

// Overview is what is remembered of the job's snapshots.
func (c *CheckpointCoordinator) Overview() CheckpointOverview { return c.history.overview() }

// Step takes an event. The actions are lent until the next call.
func (c *CheckpointCoordinator) Step(at Instant, e Event) []Action {
	clear(c.actions)
	c.actions, c.at = c.actions[:0], at
	if c.end != nil {
		c.afterEnd(e)
		return c.actions
	}
	switch e := e.(type) {
	case Trigger:
		c.request(e)
	case Prepared:
		c.prepared(e)
	case PrepareFailed:
		if p := c.findIn(e.Checkpoint, preparing); p != nil {
			c.abort(p, ReasonTriggerFailure, e.Err)
		}
	case Acknowledged:
		c.acknowledged(e)
	case Declined:
		c.declined(e)
	case TimerFired:
		c.timer(e.Timer)
	case Stored:
		c.stored(e)
	case StoreFailed:
		if p := c.findIn(e.Checkpoint, storing); p != nil {
			reason := ReasonFinalizeFailure
			if e.GivenUp {
				reason = ReasonJobFailure
			}
			c.abort(p, reason, e.Err)
		}
	case TaskChanged:
		c.taskChanged(e)
	case StartScheduler:
		c.periodic.start(at.Mono)
	case StopScheduler:
		c.stopScheduler()
	case AbortPending:
		c.abortAll(e.Reason, e.Err)
		c.periodic.restart(at.Mono)
	case Restarting:
		c.restarting(e)
	case Recovered:
		c.recovered(e)
	case ShutDown:
		c.shutDown(e)
		return c.actions
	}
	c.proceed()
	return c.actions
}

func (c *CheckpointCoordinator) do(a Action) { c.actions = append(c.actions, a) }

// request queues a trigger.
func (c *CheckpointCoordinator) request(e Trigger) {
	r := checkpointRequest{request: e.Request, kind: e.Kind, target: e.Target, full: e.Full || e.Kind != Checkpoint, final: e.Final}
	switch {
	case c.stopped || c.stopping():
		c.reject(r, ReasonStopping, nil)
	case len(c.queue) >= MaxQueuedRequests:
		c.reject(r, ReasonTooManyRequests, fmt.Errorf("%d wait already", len(c.queue)))
	default:
		c.queue = append(c.queue, r)
	}
}

// reject ends a request that has not begun.
func (c *CheckpointCoordinator) reject(r checkpointRequest, reason FailureReason, err error) {
	c.do(Ended{Request: r.request, Kind: r.kind, Err: &CheckpointError{Kind: r.kind, Reason: reason, Err: err}})
}

// proceed begins what may begin now, and sets the periodic timer.
func (c *CheckpointCoordinator) proceed() {
	for c.mayBegin() {
		r, ok := c.next()
		if !ok {
			break
		}
		c.begin(r)
	}
	if at, set := c.periodic.schedule(c.mayBegin() && !c.concurrent.full(c.pending)); set {
		c.do(SetTimer{Timer: Timer{Kind: PeriodicTimer}, At: at})
	}
}

// mayBegin reports whether a snapshot may begin, as far as others and the job are concerned.
func (c *CheckpointCoordinator) mayBegin() bool {
	return c.restart == nil && !c.stopped && !slices.ContainsFunc(c.pending, func(p *pendingCheckpoint) bool {
		return p.phase == preparing || p.kind.Stops()
	})
}

// next is the request whose turn it is: savepoints before checkpoints, users' before periodic ones.
func (c *CheckpointCoordinator) next() (checkpointRequest, bool) {
	i := slices.IndexFunc(c.queue, func(r checkpointRequest) bool { return r.kind.Forced() })
	if i < 0 && c.concurrent.full(c.pending) {
		return checkpointRequest{}, false
	}
	if i < 0 && len(c.queue) == 0 {
		return checkpointRequest{periodic: true}, c.periodic.take(c.at.Mono)
	}
	i = max(0, i)
	r := c.queue[i]
	c.queue = slices.Delete(c.queue, i, i+1)
	return r, true
}

// begin has a snapshot prepared.
func (c *CheckpointCoordinator) begin(r checkpointRequest) {
	if err := c.tasks.ready(c.afterFinish(&r)); err != nil {
		c.reject(r, ReasonTasksNotRunning, err)
		return
	}
	c.timestamp = max(c.timestamp, c.at.Wall)
	p := &pendingCheckpoint{
		checkpointRequest: r, id: c.nextID, retention: c.cfg.Retention, timestamp: c.timestamp, started: c.at.Mono,
	}
	c.nextID++
	c.pending = append(c.pending, p)
	c.history.begin(p)
	c.do(SetTimer{Timer: p.timer(), At: c.at.Mono + c.cfg.Timeout.Nanoseconds()})
	c.do(Prepare{Checkpoint: p.id, Kind: p.kind, Target: p.target, Full: p.full})
}

// afterFinish reports whether tasks may have finished before a snapshot.
func (c *CheckpointCoordinator) afterFinish(r *checkpointRequest) bool {
	return c.cfg.AfterTasksFinish || r.final
}

// prepared triggers the tasks.
func (c *CheckpointCoordinator) prepared(e Prepared) {
	p := c.findIn(e.Checkpoint, preparing)
	if p == nil { // aborted meanwhile
		c.discard(e.Checkpoint, e.Location, c.refs.unknown(nil, e.Handles))
		return
	}
	p.location = e.Location
	p.prepared = TaskSnapshot{New: e.Handles, Payload: e.Payload}
	c.refs.add(e.Handles)
	if err := c.tasks.ready(c.afterFinish(&p.checkpointRequest)); err != nil {
		c.abort(p, ReasonTasksNotRunning, err)
		return
	}
	p.phase = collecting
	triggered := c.tasks.trigger(p)
	c.history.trigger(p, &c.tasks)
	c.trigger(p, triggered)
	c.settle(p)
}

// trigger tells tasks to take their part, if there are any.
func (c *CheckpointCoordinator) trigger(p *pendingCheckpoint, tasks []TaskRef) {
	if len(tasks) == 0 {
		return
	}
	b := Barrier{ID: p.id, Kind: p.kind, Full: p.full}
	b.Unaligned = p.kind == Checkpoint && c.cfg.Unaligned && c.cfg.AlignedTimeout == 0
	c.do(TriggerTasks{Barrier: b, Timestamp: p.timestamp, Location: p.location, Tasks: tasks})
}

// acknowledged takes a task's part.
func (c *CheckpointCoordinator) acknowledged(e Acknowledged) {
	if e.Job != c.job {
		return // its handles are none of ours
	}
	p, number := c.find(e.Checkpoint), c.tasks.number(e.Task.TaskID)
	if p == nil || number < 0 || !p.owes(number, e.Task.Attempt) {
		cameTwice := p != nil && number >= 0 && p.gave(number, e.Task.Attempt) || c.savepoints[e.Checkpoint]
		if !cameTwice {
			c.discard(e.Checkpoint, "", c.refs.unknown(nil, e.New))
		}
		return
	}
	if h, missing := c.refs.missing(e.Reused); missing {
		c.discard(e.Checkpoint, "", c.refs.unknown(nil, e.New))
		c.abort(p, ReasonReusedDiscarded, fmt.Errorf("%s names %q", c.tasks.name(e.Task.TaskID), h))
		return
	}
	part := TaskSnapshot{Task: e.Task.TaskID, New: e.New, Reused: e.Reused, Payload: e.Payload}
	c.refs.addSnapshot(&part)
	p.give(number, part)
	c.history.acknowledge(p, e.Task.TaskID, e.Metrics, false, c.at)
	c.settle(p)
}

// settle has a snapshot stored that misses nothing.
func (c *CheckpointCoordinator) settle(p *pendingCheckpoint) {
	if p.phase == collecting && p.owed == 0 {
		p.phase = storing
		c.do(CancelTimer{p.timer()})
		c.do(Store{p.completed()})
	}
}

// declined aborts what a task can't take part in.
func (c *CheckpointCoordinator) declined(e Declined) {
	p, number := c.find(e.Checkpoint), c.tasks.number(e.Task.TaskID)
	if e.Job != c.job || p == nil || number < 0 || p.phase != collecting || p.parts[number].attempt != e.Task.Attempt {
		return
	}
	reason := e.Reason
	if reason == ReasonNone {
		reason = ReasonDeclined
	}
	if reason == ReasonDeclinedSubsumed {
		c.concurrent.overtaken(p.id)
	}
	c.abort(p, reason, fmt.Errorf("%s: %w", c.tasks.name(e.Task.TaskID), orUnknown(e.Err)))
}

func (c *CheckpointCoordinator) timer(t Timer) {
	if t.Kind == PeriodicTimer {
		if !c.periodic.fired(c.at.Mono) {
			c.reject(checkpointRequest{periodic: true}, ReasonSchedulerShutdown, nil)
		}
		return
	}
	if p := c.find(t.Checkpoint); p != nil && p.phase != storing {
		c.abort(p, ReasonExpired, fmt.Errorf("after %v; %s", c.cfg.Timeout, c.waitingFor(p)))
	}
}

// waitingFor names what a snapshot waits for.
func (c *CheckpointCoordinator) waitingFor(p *pendingCheckpoint) string {
	if p.phase == preparing {
		return "it was still being prepared"
	}
	for i := range p.parts {
		if p.parts[i].status == partOwed {
			return fmt.Sprintf("%d parts are missing, among them that of %s", p.owed, c.tasks.name(c.tasks.all[i].TaskID))
		}
	}
	return "nothing is missing"
}

// stored completes a snapshot.
func (c *CheckpointCoordinator) stored(e Stored) {
	p := c.findIn(e.Checkpoint, storing)
	if p == nil {
		return
	}
	c.remove(p)
	done := p.completed()
	if e.Location != "" {
		done.Location = e.Location
	}
	c.failures.Succeeded()
	c.concurrent.completed()
	c.periodic.ended(c.at.Mono)
	c.history.complete(done, e.Size)
	c.stopped = c.stopped || done.Kind.Stops()
	if done.Kept() {
		c.savepoints[done.ID] = true
	}
	dropped := c.store.Add(done)
	c.do(NotifyComplete{Checkpoint: done.ID, Kind: done.Kind, Timestamp: done.Timestamp, Tasks: c.tasks.running(Notified)})
	c.do(Ended{Request: p.request, Checkpoint: done.ID, Kind: done.Kind, Location: done.Location})
	for _, older := range slices.Clone(c.pending) {
		if older.id < done.ID && older.phase != storing && !older.kind.Forced() {
			c.abort(older, ReasonSubsumed, fmt.Errorf("by %d", done.ID))
		}
	}
	for _, old := range dropped {
		c.dropCompleted(old)
	}
	if c.stopped {
		c.rejectQueue(ReasonStopping, nil)
	}
	c.restoreIfSettled()
}

// dropCompleted discards what only this snapshot refers to, unless it is somebody's property.
func (c *CheckpointCoordinator) dropCompleted(old *CompletedCheckpoint) {
	gone := c.refs.dropSnapshot(nil, &old.Prepared, old.Kept())
	for i := range old.Tasks {
		gone = c.refs.dropSnapshot(gone, &old.Tasks[i], old.Kept())
	}
	if !old.Kept() {
		c.history.discard(old.ID)
		c.discard(old.ID, old.Location, gone)
	}
}

// abort ends a snapshot that will not be completed.
func (c *CheckpointCoordinator) abort(p *pendingCheckpoint, reason FailureReason, err error) {
	if reason == ReasonSubsumed && p.kind.Forced() {
		panic(fmt.Sprintf("control: savepoint %d was to be subsumed", p.id))
	}
	c.remove(p)
	failed := &CheckpointError{Checkpoint: p.id, Kind: p.kind, Reason: reason, Err: err}
	if p.phase != storing && reason != ReasonExpired {
		c.do(CancelTimer{p.timer()})
	}
	if p.phase != preparing {
		n := NotifyAborted{Checkpoint: p.id, Reason: reason, Tasks: c.tasks.running(Notified)}
		if latest := c.store.Latest(false); latest != nil {
			n.Latest = latest.ID
		}
		c.do(n)
	}
	gone := c.refs.dropSnapshot(nil, &p.prepared, false)
	for i := range p.parts {
		gone = c.refs.dropSnapshot(gone, &p.parts[i].part, false)
	}
	c.discard(p.id, p.location, gone)
	c.do(Ended{Request: p.request, Checkpoint: p.id, Kind: p.kind, Err: failed})
	c.history.fail(p, reason, err, c.at)
	c.periodic.ended(c.at.Mono)
	if c.failsJob(p, reason) {
		c.do(FailJob{failed})
	}
	c.restoreIfSettled()
}

// failsJob counts a failure and reports whether it is one too many. A savepoint's failure is its owner's business; but one
// that was to drain the job has sent its last watermark.
func (c *CheckpointCoordinator) failsJob(p *pendingCheckpoint, reason FailureReason) bool {
	switch {
	case c.end != nil:
		return false
	case p.kind.Forced():
		return p.kind == DrainSavepoint && p.phase != preparing && !reason.ofJob()
	}
	return c.failures.Failed(reason, p.id)
}

// abortAll aborts all that can be aborted, and what waits.
func (c *CheckpointCoordinator) abortAll(reason FailureReason, err error) {
	for _, p := range slices.Clone(c.pending) {
		if p.phase != storing {
			c.abort(p, reason, err)
		}
	}
	c.rejectQueue(reason, err)
}

func (c *CheckpointCoordinator) rejectQueue(reason FailureReason, err error) {
	for _, r := range c.queue {
		c.reject(r, reason, err)
	}
	c.queue = c.queue[:0]
}

// discard asks for bytes to be deleted, if there are any.
func (c *CheckpointCoordinator) discard(checkpoint int64, location string, handles []Handle) {
	if location != "" || len(handles) > 0 {
		c.do(Discard{Checkpoint: checkpoint, Location: location, Handles: handles})
	}
}

// stopScheduler stops periodic checkpoints, also one that is being prepared.
func (c *CheckpointCoordinator) stopScheduler() {
	if c.periodic.stop() {
		c.do(CancelTimer{Timer{Kind: PeriodicTimer}})
	}
	for _, p := range slices.Clone(c.pending) {
		if p.periodic && p.phase == preparing {
			c.abort(p, ReasonSchedulerShutdown, nil)
		}
	}
}

// stopping reports whether a savepoint that ends the job is under way.
func (c *CheckpointCoordinator) stopping() bool {
	return slices.ContainsFunc(c.pending, func(p *pendingCheckpoint) bool { return p.kind.Stops() })
}

func (c *CheckpointCoordinator) find(id int64) *pendingCheckpoint {
	for _, p := range c.pending {
		if p.id == id {
			return p
		}
	}
	return nil
}

func (c *CheckpointCoordinator) findIn(id int64, phase pendingPhase) *pendingCheckpoint {
	if p := c.find(id); p != nil && p.phase == phase {
		return p
	}
	return nil
}

func (c *CheckpointCoordinator) remove(p *pendingCheckpoint) {
	c.pending = slices.DeleteFunc(c.pending, func(o *pendingCheckpoint) bool { return o == p })
}
