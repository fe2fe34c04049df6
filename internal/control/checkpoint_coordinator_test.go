package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Trap B025: the answer for checkpoint 11 comes when the job has been restarted and restores 10.
func TestLateAcknowledgementOfAFormerAttemptIsDiscarded(t *testing.T) {
	r := newRig(t, nil)
	ten := r.take(Checkpoint)
	eleven := r.trigger(Checkpoint)
	last := TaskID{2, 1}
	r.ack(eleven, tasks()[:5]...)
	r.step(Restarting{Attempt: 1})
	want(t, "restored", r.restores[0].Checkpoint.ID, ten)
	r.discards = nil
	r.step(Acknowledged{
		Job: "job", Task: TaskRef{TaskID: last}, Checkpoint: eleven,
		New: []Handle{handleOf(eleven, last)}, Reused: []Handle{handleOf(ten, last)},
	})
	want(t, "discarded", r.discarded(), []Handle{handleOf(eleven, last)})
	want(t, "completed", r.completed(), []int64{ten})
	want(t, "told complete", r.complete, []int64{ten})

	// An answer of the former execution does not count for a checkpoint of the present one either.
	r.run(1)
	twelve := r.trigger(Checkpoint)
	r.ack(twelve, last)
	want(t, "acknowledged", len(r.c.Acknowledged(twelve)), 0)
	want(t, "discarded", r.discarded(), []Handle{handleOf(eleven, last), handleOf(twelve, last)})
}

// A checkpoint that has all of its parts when the job restarts may be one that recovery finds: it decides what is restored.
func TestRestartWaitsForWhatIsBeingStored(t *testing.T) {
	for name, fails := range map[string]bool{"stored": false, "not stored": true} {
		r := newRig(t, func(cfg *CheckpointConfig) { cfg.TolerableFailures = 9 })
		ten := r.take(Checkpoint)
		r.holdStore = true
		eleven := r.take(Checkpoint)
		r.step(Restarting{Attempt: 1, Tasks: []TaskID{{1, 0}}})
		r.step(Restarting{Attempt: 2, Tasks: []TaskID{{2, 0}}, Required: true})
		want(t, name+": restores", len(r.restores), 0)
		want(t, name+": discards", len(r.discards), 0)
		r.step(TimerFired{Timer{TimeoutTimer, eleven}}) // was under way
		expect := eleven
		if fails {
			r.step(StoreFailed{Checkpoint: eleven, Err: errors.New("disk full")})
			expect = ten
		} else {
			r.step(Stored{Checkpoint: eleven})
		}
		want(t, name+": restores", len(r.restores), 1)
		want(t, name+": restored", r.restores[0].Checkpoint.ID, expect)
		want(t, name+": tasks", r.restores[0].Tasks, []TaskID{{1, 0}, {2, 0}})
		want(t, name+": attempt", r.restores[0].Attempt, 2)
		want(t, name+": completed", r.completed(), []int64{expect})
	}
}

// Trap B027: an attempt that fails since storage is full counts, leaves nothing behind and harms no earlier checkpoint.
func TestFullStorageFailsCheckpointsAndThenTheJob(t *testing.T) {
	full := errors.New("no space left")
	for name, fail := range map[string]func(r *rig, id int64){
		"declined": func(r *rig, id int64) {
			r.ack(id, tasks()[:3]...)
			r.step(Declined{Job: "job", Task: TaskRef{TaskID: TaskID{1, 1}}, Checkpoint: id, Err: full})
		},
		"not stored": func(r *rig, id int64) {
			r.ack(id, tasks()...)
			r.step(StoreFailed{Checkpoint: id, Err: full})
		},
	} {
		r := newRig(t, func(cfg *CheckpointConfig) { cfg.TolerableFailures = 1 })
		good := r.take(Checkpoint)
		r.holdStore = true
		id := r.trigger(Checkpoint)
		fail(r, id)
		want(t, name+": failures", len(r.failures), 0)
		want(t, name+": completed", r.completed(), []int64{good})
		want(t, name+": location", r.discards[0].Location, fmt.Sprintf("chk-%d", id))
		for _, h := range r.discarded() {
			if !strings.HasPrefix(string(h), fmt.Sprint(id)) {
				t.Errorf("%s: %s is discarded", name, h)
			}
		}
		fail(r, r.trigger(Checkpoint))
		if len(r.failures) != 1 || !errors.Is(r.failures[0], full) {
			t.Errorf("%s: the job fails with %v", name, r.failures)
		}
		if text := r.ended[len(r.ended)-1].Err.Error(); !strings.Contains(text, "no space left") || !strings.Contains(text, "id 3") {
			t.Errorf("%s: the error says %q", name, text)
		}
		r.holdStore = false // there is room again
		want(t, name+": afterwards", r.take(Checkpoint), int64(4))
		want(t, name+": completed", r.completed(), []int64{4})
	}
}

// Trap B031: what a savepoint covers was committed, so that recovery goes back to it; an older completion that is told
// later is of an older checkpoint.
func TestRecoveryGoesBackToTheNewestSnapshot(t *testing.T) {
	r := newRig(t, func(cfg *CheckpointConfig) { cfg.MaxConcurrent = 3 })
	r.take(Checkpoint)
	five, six := r.trigger(Savepoint), r.trigger(Savepoint)
	r.ack(six, tasks()...)
	r.ack(five, tasks()...)
	want(t, "told complete", r.complete, []int64{1, six, five})
	r.step(Restarting{Attempt: 1})
	want(t, "restored", r.restores[0].Checkpoint.ID, six)

	r = newRig(t, func(cfg *CheckpointConfig) { cfg.PreferCheckpoint = true })
	r.take(Checkpoint)
	r.take(Savepoint)
	want(t, "completed", r.completed(), []int64{1, 2}) // the checkpoint stays beside the newer savepoint
	r.step(Restarting{Attempt: 1})
	want(t, "restored", r.restores[0].Checkpoint.ID, 1)
}

func TestStartDelayIsFromTheTriggerToTheFirstBarrier(t *testing.T) {
	r := newRig(t, nil)
	r.pass(time.Second)
	id := r.trigger(Checkpoint)
	for i, task := range tasks() {
		first := r.at.Mono + int64(i-1)*int64(time.Millisecond) // the first one has seen it too early: a clock was moved
		r.step(Acknowledged{Job: "job", Task: TaskRef{TaskID: task}, Checkpoint: id, Metrics: TaskMetrics{FirstBarrier: first}})
	}
	v := r.c.Overview().LatestCompleted.Vertices
	want(t, "delays", fmt.Sprint(v[0].Subtasks[0].StartDelay, v[0].Subtasks[1].StartDelay, v[2].Subtasks[1].StartDelay), "0s 0s 4ms")
}

// Trap B030: durations are measured by the monotonic clock.
func TestStatisticsWithstandClockJumps(t *testing.T) {
	for _, jump := range []int64{-3_600_000, 3_600_000} {
		r := newRig(t, func(cfg *CheckpointConfig) { cfg.Timeout = time.Minute })
		id := r.trigger(Checkpoint)
		r.at.Wall += jump
		r.pass(50 * time.Millisecond)
		for _, task := range tasks() {
			r.step(Acknowledged{Job: "job", Task: TaskRef{TaskID: task}, Checkpoint: id, Metrics: TaskMetrics{
				Alignment: -5, StartDelay: -time.Hour, Sync: 3, StateSize: 10, CheckpointedSize: -1,
			}})
		}
		s := r.c.Overview().LatestCompleted
		want(t, "duration", s.Duration, 50*time.Millisecond)
		if s.LatestAck < s.Trigger || s.StateSize != 60 || s.CheckpointedSize != 0 {
			t.Errorf("statistics %+v", s)
		}
		m := s.Vertices[1].Subtasks[1].TaskMetrics
		if m.Alignment != 0 || m.StartDelay != 0 || m.Sync != 3 {
			t.Errorf("metrics %+v", m)
		}
		r.at.Wall -= 2 * jump
		r.take(Checkpoint)
		if last := r.triggered[1].Timestamp; last < r.triggered[0].Timestamp {
			t.Errorf("checkpoint 2 is of %d, checkpoint 1 of %d", last, r.triggered[0].Timestamp)
		}
	}
}

func TestPeriodicCheckpointsKeepTheirGridAndThePause(t *testing.T) {
	r := newRig(t, func(cfg *CheckpointConfig) { cfg.MinPause, cfg.MaxConcurrent = 30*time.Millisecond, 5 })
	r.step(StartScheduler{})
	r.pass(99 * time.Millisecond)
	want(t, "begun", r.prepared, []int64(nil))
	r.pass(time.Millisecond)
	want(t, "begun", r.prepared, []int64{1})
	r.pass(150 * time.Millisecond) // at 250: one was due at 200, but one at a time is pending
	want(t, "begun", r.prepared, []int64{1})
	r.ack(1, tasks()...)
	r.pass(29 * time.Millisecond)
	want(t, "begun in the pause", r.prepared, []int64{1})
	r.pass(time.Millisecond) // at 280
	want(t, "begun after the pause", r.prepared, []int64{1, 2})
	r.step(Declined{Job: "job", Task: TaskRef{TaskID: TaskID{1, 1}}, Checkpoint: 2, Reason: ReasonDeclinedNotReady})
	r.pass(20 * time.Millisecond) // at 300: due again
	want(t, "begun in the pause after a failure", r.prepared, []int64{1, 2})
	r.pass(10 * time.Millisecond)
	want(t, "begun", r.prepared, []int64{1, 2, 3})
	r.ack(3, tasks()...)
	r.pass(89 * time.Millisecond)
	want(t, "begun before the grid", r.prepared, []int64{1, 2, 3})
	r.pass(time.Millisecond) // at 400
	want(t, "begun", r.prepared, []int64{1, 2, 3, 4})
	want(t, "begun by a user in the pause", r.trigger(Checkpoint), 0)
	r.ack(4, tasks()...)
	want(t, "begun when there is room", r.prepared, []int64{1, 2, 3, 4, 5})
}

func TestCheckpointsThatExpireNameWhoIsMissing(t *testing.T) {
	r := newRig(t, func(cfg *CheckpointConfig) { cfg.Timeout = time.Second })
	id := r.trigger(Checkpoint)
	r.ack(id, tasks()[:5]...)
	r.pass(time.Second)
	want(t, "reason", r.why(), ReasonExpired)
	if text := r.ended[0].Err.Error(); !strings.Contains(text, `subtask 2 of 2 of "sink"`) || !strings.Contains(text, "1s") {
		t.Errorf("the error says %q", text)
	}
	want(t, "told aborted", r.aborted[0].Checkpoint, id)
	want(t, "failures of the job", len(r.failures), 1)
	want(t, "timers", len(r.timers), 0)
}

func TestUserRequestsAreBounded(t *testing.T) {
	r := newRig(t, nil)
	r.holdReady = true
	for range MaxQueuedRequests + 1 {
		r.trigger(Checkpoint)
	}
	want(t, "rejected", len(r.ended), 0)
	r.trigger(Checkpoint)
	want(t, "reason", r.why(), ReasonTooManyRequests)
	r.step(Restarting{Attempt: 1})
	want(t, "ended", len(r.ended), MaxQueuedRequests+2)
	r.trigger(Savepoint)
	want(t, "reason", r.why(), ReasonTasksNotRunning)
}

func TestCheckpointsGoOnAfterTasksHaveFinished(t *testing.T) {
	r := newRig(t, nil)
	finish := func(id TaskID) { r.step(TaskChanged{Task: TaskRef{TaskID: id}, State: TaskFinished}) }
	finish(TaskID{0, 0})
	id := r.trigger(Checkpoint)
	want(t, "triggered", r.triggered[0].Tasks, []TaskRef{{TaskID{0, 1}, 0}, {TaskID{1, 0}, 0}}) // the map of the source that has finished
	r.ack(id, TaskID{1, 0}, TaskID{1, 1}, TaskID{2, 0}, TaskID{2, 1})
	want(t, "acknowledged", r.c.Acknowledged(id), []TaskID{{0, 0}, {1, 0}, {1, 1}, {2, 0}, {2, 1}})
	finish(TaskID{0, 1}) // before it was triggered: that is an answer, too, and its map may never see a barrier
	want(t, "completed", r.completed(), []int64{id})
	parts := r.c.Completed()[0].Tasks
	want(t, "parts", len(parts), 6)
	for _, p := range parts {
		want(t, fmt.Sprint(p.Task, " had finished"), p.Finished, p.Task.Vertex == 0)
	}

	id = r.trigger(Checkpoint)
	finish(TaskID{1, 0})
	want(t, "triggered", len(r.triggered), 2) // the sinks have an input that has not finished
	finish(TaskID{1, 1})
	want(t, "triggered in place of the maps", r.triggered[2].Tasks, []TaskRef{{TaskID{2, 0}, 0}, {TaskID{2, 1}, 0}})
	r.ack(id, TaskID{2, 0}, TaskID{2, 1})
	want(t, "completed", r.completed(), []int64{id})
	s := r.c.Overview().LatestCompleted
	want(t, "subtasks", fmt.Sprint(s.Subtasks, s.Acknowledged, s.Vertices[1].Subtasks[0].Finished), "6 6 true")

	finish(TaskID{2, 0})
	finish(TaskID{2, 1})
	r.trigger(Checkpoint)
	want(t, "reason", r.why(), ReasonTasksNotRunning)
}

func TestTasksThatFinishEndCheckpointsIfThatIsConfigured(t *testing.T) {
	r := newRig(t, func(cfg *CheckpointConfig) { cfg.AfterTasksFinish = false })
	id := r.trigger(Checkpoint)
	r.ack(id, TaskID{0, 0})
	r.step(TaskChanged{Task: TaskRef{TaskID: TaskID{0, 0}}, State: TaskFinished})
	want(t, "pending", r.c.Pending(), []int64{id}) // it has given its part
	r.step(TaskChanged{Task: TaskRef{TaskID: TaskID{0, 1}}, State: TaskFinished})
	want(t, "reason", r.why(), ReasonTasksNotRunning)
	want(t, "failures of the job", len(r.failures), 0)
	r.trigger(Checkpoint)
	err := r.ended[len(r.ended)-1].Err
	if text := err.Error(); !errors.Is(err, ErrTaskFinished) || !strings.Contains(text, `subtask 1 of 2 of "source" has finished`) || !strings.Contains(text, "checkpoints-after-tasks-finish to true") {
		t.Errorf("the error says %q", text)
	}
}

// What is left to commit at the end is committed also where no checkpoints are taken after tasks have finished.
func TestLastCheckpointIsTakenWhateverHasFinished(t *testing.T) {
	r := newRig(t, func(cfg *CheckpointConfig) { cfg.AfterTasksFinish = false })
	finish := func(id TaskID) { r.step(TaskChanged{Task: TaskRef{TaskID: id}, State: TaskFinished}) }
	finish(TaskID{0, 0})
	finish(TaskID{0, 1})
	r.step(Trigger{Request: 1, Kind: Checkpoint, Final: true})
	id := r.c.Pending()[0]
	finish(TaskID{1, 0}) // during it
	finish(TaskID{1, 1})
	r.ack(id, TaskID{2, 0}, TaskID{2, 1})
	want(t, "completed", r.completed(), []int64{id})
	r.trigger(Checkpoint)
	want(t, "reason", r.why(), ReasonTasksNotRunning)
}

func TestFailedTasksEndWhatTheyOwe(t *testing.T) {
	r := newRig(t, func(cfg *CheckpointConfig) { cfg.MaxConcurrent = 2 })
	given, owed := r.trigger(Checkpoint), r.trigger(Checkpoint)
	r.ack(given, TaskID{1, 1})
	r.step(TaskChanged{Task: TaskRef{TaskID{1, 1}, -1}, State: TaskFailed}) // of an attempt before
	want(t, "pending", r.c.Pending(), []int64{given, owed})
	r.step(TaskChanged{Task: TaskRef{TaskID: TaskID{1, 1}}, State: TaskFailed})
	want(t, "pending", r.c.Pending(), []int64{given})
	want(t, "reason", r.why(), ReasonTaskFailure)
	r.step(Restarting{Attempt: 1, Tasks: []TaskID{{1, 1}}})
	want(t, "pending", r.c.Pending(), []int64{})
	want(t, "reason", r.why(), ReasonRegionFailover)
	want(t, "restores", r.restores, []Restore{{Attempt: 1, Tasks: []TaskID{{1, 1}}}})
	want(t, "told", len(r.aborted[1].Tasks), 5)
}

func TestStopWithSavepointIsTheLast(t *testing.T) {
	r := newRig(t, func(cfg *CheckpointConfig) { cfg.MaxConcurrent = 5 })
	r.step(StartScheduler{})
	older := r.trigger(Checkpoint)
	stop := r.trigger(StopSavepoint)
	want(t, "barrier", r.triggered[1].Barrier, Barrier{ID: stop, Kind: StopSavepoint, Full: true})
	r.trigger(StopSavepoint)
	want(t, "a second stop", r.why(), ReasonStopping)
	r.pass(250 * time.Millisecond)
	want(t, "begun meanwhile", r.prepared, []int64{older, stop})
	r.ack(stop, tasks()...)
	want(t, "pending", r.c.Pending(), []int64{}) // the older one was subsumed
	want(t, "completed", r.completed(), []int64{stop})
	r.pass(time.Second)
	r.trigger(Savepoint)
	want(t, "reason afterwards", r.why(), ReasonStopping)
	want(t, "begun", r.prepared, []int64{older, stop})
}

func TestFailedStopLetsTheJobGoOnUnlessItWasDrained(t *testing.T) {
	for kind, failures := range map[SnapshotKind]int{Savepoint: 0, StopSavepoint: 0, DrainSavepoint: 1} {
		r := newRig(t, nil)
		r.step(StartScheduler{})
		id := r.trigger(kind)
		r.step(Declined{Job: "job", Task: TaskRef{TaskID: TaskID{1, 1}}, Checkpoint: id})
		want(t, fmt.Sprint(kind, ": failures of the job"), len(r.failures), failures)
		want(t, fmt.Sprint(kind, ": told aborted"), r.aborted[0].Checkpoint, id)
		r.pass(100 * time.Millisecond)
		want(t, fmt.Sprint(kind, ": begun"), r.prepared, []int64{id, id + 1})
	}
	r := newRig(t, nil)
	r.trigger(DrainSavepoint)
	r.step(Restarting{Attempt: 1})
	want(t, "failures of a job that fails already", len(r.failures), 0)
}

func TestSavepointsBeginBeforeWaitingCheckpoints(t *testing.T) {
	r := newRig(t, nil)
	first := r.trigger(Checkpoint)
	want(t, "begun", r.trigger(Checkpoint), 0)
	savepoint := r.trigger(Savepoint)
	want(t, "begun", r.prepared, []int64{first, savepoint})
	r.ack(first, tasks()...)
	want(t, "begun beside a savepoint", r.prepared, []int64{first, savepoint})
	r.ack(savepoint, tasks()...)
	want(t, "begun", r.prepared, []int64{first, savepoint, 3})
}

func TestHandlesStayAsLongAsASnapshotNamesThem(t *testing.T) {
	r := newRig(t, nil)
	one := r.take(Checkpoint)
	a, b := handleOf(one, TaskID{0, 0}), handleOf(one, TaskID{0, 1})
	next := func(reused ...Handle) int64 {
		id := r.trigger(Checkpoint)
		r.step(Acknowledged{Job: "job", Task: TaskRef{TaskID: TaskID{0, 0}}, Checkpoint: id, Reused: reused})
		r.ack(id, tasks()[1:]...)
		return id
	}
	next(a)
	if got := r.discarded(); slices.Contains(got, a) || !slices.Contains(got, b) || len(got) != 5 {
		t.Errorf("discarded are %q, %s is named by a later checkpoint", got, a)
	}
	want(t, "location", r.discards[0].Location, "chk-1")
	next()
	if !slices.Contains(r.discarded(), a) {
		t.Errorf("%s is named by nobody and was not discarded", a)
	}
	r.discards = nil
	bad := next(a) // a task that has not heard of the newer checkpoints
	want(t, "reason", r.ended[len(r.ended)-1].Err.(*CheckpointError).Reason, ReasonReusedDiscarded)
	want(t, "latest it is told of", r.aborted[0].Latest, 3)
	want(t, "discarded", len(r.discarded()), 5) // what the others wrote
	want(t, "failures of the job", len(r.failures), 0)
	want(t, "next", next(), bad+1)
}

func TestSnapshotsOfOthersAreNeverDiscarded(t *testing.T) {
	foreign := &CompletedCheckpoint{ID: 57, Foreign: true, Tasks: []TaskSnapshot{{Task: TaskID{0, 0}, New: []Handle{"theirs", "more"}}}}
	r := newRig(t, nil)
	r.step(Recovered{Completed: []*CompletedCheckpoint{foreign}})
	r.step(Restarting{Attempt: 0, Required: true})
	want(t, "restored", r.restores[0].Checkpoint.ID, 57)
	r.run(0)
	id := r.trigger(Checkpoint)
	want(t, "id", id, 58)
	r.step(Acknowledged{Job: "job", Task: TaskRef{TaskID: TaskID{0, 0}}, Checkpoint: id, Reused: []Handle{"theirs"}})
	r.ack(id, tasks()[1:]...)
	r.take(Checkpoint)
	r.step(ShutDown{JobFinished})
	for _, d := range r.discards {
		if d.Checkpoint == 57 || slices.Contains(d.Handles, "theirs") || slices.Contains(d.Handles, "more") {
			t.Errorf("discarded: %+v", d)
		}
	}
	want(t, "discarded", len(r.discarded()), 11)
}

func TestSavepointsWithstandAcknowledgementsThatComeTwice(t *testing.T) {
	r := newRig(t, nil)
	id := r.trigger(Savepoint)
	r.ack(id, tasks()...)
	r.ack(id, TaskID{0, 0})
	r.take(Savepoint) // takes its place
	r.ack(id, TaskID{0, 1})
	r.step(ShutDown{JobFinished})
	r.ack(id, TaskID{1, 1})
	want(t, "discarded", r.discarded(), []Handle(nil))
}

func TestIDsAreNotUsedAgainAfterRecovery(t *testing.T) {
	r := newRig(t, nil)
	r.step(Recovered{NextID: 12})
	want(t, "id", r.trigger(Checkpoint), 12)
}

func TestCheckpointsOutliveTheirJobByTheirRetention(t *testing.T) {
	kept := func(retention Retention, end JobEnd) bool {
		r := newRig(t, func(cfg *CheckpointConfig) { cfg.Retention = retention })
		savepoint := r.take(Savepoint)
		r.take(Checkpoint)
		r.step(ShutDown{end})
		for _, h := range r.discarded() {
			if strings.HasPrefix(string(h), fmt.Sprint(savepoint)) {
				t.Errorf("%v, end %v: the savepoint's %s is discarded", retention, end, h)
			}
		}
		return len(r.discards) == 0
	}
	for _, c := range []struct {
		retention Retention
		keeps     []JobEnd
	}{
		{NeverRetained, []JobEnd{JobSuspended}},
		{RetainOnFailure, []JobEnd{JobSuspended, JobFailed}},
		{RetainOnCancellation, []JobEnd{JobSuspended, JobFailed, JobCanceled}},
	} {
		for _, end := range []JobEnd{JobFinished, JobCanceled, JobFailed, JobSuspended} {
			want(t, fmt.Sprint(c.retention, ", end ", end, ": kept"), kept(c.retention, end), slices.Contains(c.keeps, end))
		}
	}
}

func TestTheEndOfTheJobWaitsForWhatIsBeingStored(t *testing.T) {
	for _, c := range []struct {
		kind     SnapshotKind
		fails    bool
		discards int
		ended    FailureReason
	}{
		{Checkpoint, false, 6, ReasonNone},
		{Checkpoint, true, 6, ReasonFinalizeFailure},
		{Savepoint, false, 0, ReasonNone},
		{Savepoint, true, 6, ReasonFinalizeFailure},
	} {
		r := newRig(t, nil)
		r.step(StartScheduler{})
		r.holdStore = true
		id := r.take(c.kind)
		pending := r.trigger(Savepoint)
		r.ack(pending, TaskID{0, 0})
		r.step(ShutDown{JobFinished})
		want(t, "reason", r.why(), ReasonCoordinatorShutdown)
		want(t, "discarded", r.discarded(), []Handle{handleOf(pending, TaskID{0, 0})})
		want(t, "timers", len(r.timers), 0)
		r.discards = nil
		r.ack(pending, TaskID{0, 1})
		want(t, "discarded", r.discarded(), []Handle{handleOf(pending, TaskID{0, 1})})
		r.discards = nil
		if c.fails {
			r.step(StoreFailed{Checkpoint: id, Err: errors.New("disk full")})
		} else {
			r.step(Stored{Checkpoint: id})
		}
		want(t, fmt.Sprintf("%+v: discarded", c), len(r.discarded()), c.discards)
		want(t, fmt.Sprintf("%+v: reason", c), r.why(), c.ended)
		r.step(Trigger{Request: 9, Kind: Savepoint})
		want(t, "reason afterwards", r.why(), ReasonCoordinatorShutdown)
		want(t, "failures of a job that has ended", len(r.failures), 0)
	}
}

func TestUnalignedCheckpointsSayWhetherTheyStartSo(t *testing.T) {
	for timeout, unaligned := range map[time.Duration]bool{0: true, time.Second: false} {
		r := newRig(t, func(cfg *CheckpointConfig) { cfg.Unaligned, cfg.AlignedTimeout = true, timeout })
		r.take(Checkpoint)
		r.take(Savepoint)
		want(t, "unaligned checkpoint", r.triggered[0].Barrier.Unaligned, unaligned)
		want(t, "unaligned savepoint", r.triggered[1].Barrier.Unaligned, false)
	}
}

func TestConfigurationsAreRefusedWithAdvice(t *testing.T) {
	for text, change := range map[string]func(cfg *CheckpointConfig){
		"interval: 9ms is less than 10ms: choose":                func(cfg *CheckpointConfig) { cfg.Interval = 9 * time.Millisecond },
		"interval: -1ns is less":                                 func(cfg *CheckpointConfig) { cfg.Interval = -1 },
		"timeout: 0s is less than 10ms":                          func(cfg *CheckpointConfig) { cfg.Timeout = 0 },
		"min-pause: -1ns is negative: choose 0":                  func(cfg *CheckpointConfig) { cfg.MinPause = -1 },
		"max-concurrent-checkpoints: 0 is less than 1: choose 1": func(cfg *CheckpointConfig) { cfg.MaxConcurrent = 0 },
		"tolerable-failed-checkpoints: -1 is negative: choose 0": func(cfg *CheckpointConfig) { cfg.TolerableFailures = -1 },
		"num-retained: 0 is less than 1":                         func(cfg *CheckpointConfig) { cfg.Retained = 0 },
		"web.checkpoints.history: -1 is negative":                func(cfg *CheckpointConfig) { cfg.History = -1 },
		"aligned-checkpoint-timeout: -1s is negative":            func(cfg *CheckpointConfig) { cfg.AlignedTimeout = -time.Second },
		"unaligned.enabled: at-least-once":                       func(cfg *CheckpointConfig) { cfg.Unaligned, cfg.Mode = true, AtLeastOnce },
		"unaligned.enabled: 3 checkpoints at a time can't":       func(cfg *CheckpointConfig) { cfg.Unaligned, cfg.MaxConcurrent = true, 3 },
	} {
		cfg := DefaultCheckpointConfig()
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, text)
		}
		if _, err := NewCheckpointCoordinator("job", cfg, line()); err == nil {
			t.Errorf("a coordinator takes what is wrong: %s", text)
		}
	}
	for name, change := range map[string]func(cfg *CheckpointConfig){
		"defaults":      func(*CheckpointConfig) {},
		"no limit":      func(cfg *CheckpointConfig) { cfg.MaxConcurrent, cfg.TolerableFailures = Unlimited, Unlimited },
		"one by pause":  func(cfg *CheckpointConfig) { cfg.Unaligned, cfg.MaxConcurrent, cfg.MinPause = true, 3, 1 },
		"at least once": func(cfg *CheckpointConfig) { cfg.Mode, cfg.Interval = AtLeastOnce, MinCheckpointTime },
	} {
		cfg := DefaultCheckpointConfig()
		change(&cfg)
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailuresCountOncePerCheckpoint(t *testing.T) {
	f := FailureCount{Tolerable: 2}
	for _, step := range []struct {
		reason FailureReason
		id     int64
		fail   bool
	}{
		{ReasonDeclined, 1, false},
		{ReasonDeclined, 2, false},
		{ReasonDeclined, 2, false}, // once more by another task
		{ReasonTriggerFailure, -1, false},
		{ReasonSubsumed, 3, false},
		{ReasonExpired, 4, true},
		{ReasonFinalizeFailure, 5, false}, // counted anew
		{ReasonTriggerFailure, 6, false},
		{ReasonDeclined, 4, true},
	} {
		if got := f.Failed(step.reason, step.id); got != step.fail {
			t.Errorf("%v of %d: %v, want %v", step.reason, step.id, got, step.fail)
		}
	}
	never := FailureCount{Tolerable: Unlimited}
	for id := range int64(1000) {
		if never.Failed(ReasonDeclined, id) {
			t.Fatalf("failure %d fails the job", id)
		}
	}
}
