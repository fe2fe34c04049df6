package streaming_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/control"
)

// coordinatorRules are tests of the family's prose rules. What Flink calls the id counter and the master hooks is the
// preparation of a checkpoint here.
func coordinatorRules() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"rule/periodic_ids_and_timestamps":         rulePeriodicIDsAndTimestamps,
		"rule/stopped_scheduler_rejects_periodic":  ruleStoppedSchedulerRejectsPeriodic,
		"rule/trigger_requests_are_queued":         ruleTriggerRequestsAreQueued,
		"rule/queued_requests_survive_failure":     ruleQueuedRequestsSurviveFailure,
		"rule/expiry_during_initialisation":        ruleExpiryDuringInitialisation,
		"rule/initialisation_failure":              ruleInitialisationFailure,
		"rule/master_hook_failure":                 ruleInitialisationFailure,
		"rule/cancel_during_trigger":               ruleCancelDuringTrigger,
		"rule/decline_reported_to_failure_manager": ruleDeclineFailsTheJob,
		"rule/store_failure_discards_state":        ruleStoreFailureDiscardsState,
		"rule/retention_policy_propagates":         ruleRetentionPolicyPropagates,
		"rule/forced_cannot_be_subsumed":           func(t *testing.T) { ruleCannotBeSubsumed(t, control.Savepoint) },
		"rule/sync_savepoint_cannot_be_subsumed":   func(t *testing.T) { ruleCannotBeSubsumed(t, control.StopSavepoint) },
		"rule/abort_discards_state":                ruleAbortDiscardsState,
		"rule/completion_future":                   ruleEveryRequestEnds,
		"rule/failover_aborts_all_pending":         ruleFailoverAbortsAllPending,
	}
}

// concurrentConfig has periodic checkpoints every 10 ms, as many at a time as come.
func concurrentConfig() control.CheckpointConfig {
	cfg := control.DefaultCheckpointConfig()
	cfg.Interval, cfg.MaxConcurrent = 10*time.Millisecond, control.Unlimited
	return cfg
}

func rulePeriodicIDsAndTimestamps(t *testing.T) {
	b := newCheckpointBench(t, concurrentConfig(), "a")
	start := b.at.Wall
	b.step(control.StartScheduler{})
	var last control.TriggerTasks
	see := func(ticks int) {
		for range ticks {
			at, ok := b.timers[control.Timer{}]
			if !ok {
				t.Fatal("the timer is not set")
			}
			delete(b.timers, control.Timer{})
			b.at = control.Instant{Wall: b.at.Wall - 3, Mono: at} // the wall clock goes back
			triggers := actionsOf[control.TriggerTasks](b.step(control.TimerFired{}))
			if len(triggers) != 1 {
				t.Fatalf("a tick triggers %v", triggers)
			}
			if now := triggers[0]; now.Barrier.ID <= last.Barrier.ID || now.Timestamp < last.Timestamp || now.Timestamp < start-3 {
				t.Errorf("checkpoint %d of %d follows %d of %d", now.Barrier.ID, now.Timestamp, last.Barrier.ID, last.Timestamp)
			}
			last = triggers[0]
		}
	}
	see(5)
	b.step(control.StopScheduler{})
	if _, set := b.timers[control.Timer{}]; set {
		t.Error("the timer of a stopped scheduler is set")
	}
	before := b.messages
	b.step(control.TimerFired{}) // was under way
	equal(t, "trigger messages while stopped", b.messages, before)
	b.step(control.StartScheduler{})
	see(1)
}

func ruleStoppedSchedulerRejectsPeriodic(t *testing.T) {
	b := newCheckpointBench(t, concurrentConfig(), "a")
	b.step(control.TimerFired{})
	equal(t, "reason", b.reason(), control.ReasonSchedulerShutdown)
	equal(t, "pending", len(b.c.Pending()), 0)
	equal(t, "id", b.trigger(control.Checkpoint), int64(1))
}

func ruleTriggerRequestsAreQueued(t *testing.T) {
	b := newCheckpointBench(t, concurrentConfig(), "a")
	b.holdPrepare = true
	b.trigger(control.Checkpoint)
	equal(t, "id of a queued request", b.trigger(control.Checkpoint), 0)
	b.step(control.Prepared{Checkpoint: 1})
	equal(t, "told of 1", len(b.triggered[1]), 1)
	equal(t, "prepared next", b.prepares[len(b.prepares)-1].Checkpoint, int64(2))
	b.step(control.Prepared{Checkpoint: 2})
	equal(t, "told of 2", len(b.triggered[2]), 1)
}

func ruleQueuedRequestsSurviveFailure(t *testing.T) {
	b := newCheckpointBench(t, concurrentConfig(), "a")
	b.holdPrepare = true
	for range 3 {
		b.trigger(control.Checkpoint)
	}
	b.step(control.PrepareFailed{Checkpoint: 1, Err: errors.New("no id")})
	equal(t, "reason", b.reason(), control.ReasonTriggerFailure)
	b.step(control.Prepared{Checkpoint: 2})
	b.step(control.Prepared{Checkpoint: 3})
	equal(t, "told", len(b.triggered[2])+len(b.triggered[3]), 2)
	equal(t, "pending", len(b.c.Pending()), 2)
}

func ruleExpiryDuringInitialisation(t *testing.T) {
	b := newCheckpointBench(t, concurrentConfig(), "a")
	b.holdPrepare = true
	id := b.trigger(control.Checkpoint)
	b.fire(control.Timer{Kind: control.TimeoutTimer, Checkpoint: id})
	equal(t, "reason", b.reason(), control.ReasonExpired)
	b.step(control.Prepared{Checkpoint: id, Handles: []control.Handle{"hook"}}) // comes late
	equal(t, "trigger messages", b.messages, 0)
	if !slices.Equal(b.discarded, []control.Handle{"hook"}) {
		t.Errorf("discarded are %q", b.discarded)
	}
}

func ruleInitialisationFailure(t *testing.T) {
	b := newCheckpointBench(t, concurrentConfig(), "a")
	b.holdPrepare = true
	b.trigger(control.Checkpoint)
	b.step(control.PrepareFailed{Checkpoint: 1, Err: errors.New("the hook fails")})
	equal(t, "reason", b.reason(), control.ReasonTriggerFailure)
	equal(t, "trigger messages", b.messages, 0)
	b.holdPrepare = false
	equal(t, "id", b.trigger(control.Checkpoint), 2)
	equal(t, "told of 2", len(b.triggered[2]), 1)
}

func ruleCancelDuringTrigger(t *testing.T) {
	b := newCheckpointBench(t, concurrentConfig(), "a")
	b.holdPrepare = true
	b.step(control.StartScheduler{})
	b.tick()
	equal(t, "pending", len(b.c.Pending()), 1)
	b.step(control.StopScheduler{})
	equal(t, "reason", b.reason(), control.ReasonSchedulerShutdown)
	b.step(control.Prepared{Checkpoint: 1})
	equal(t, "trigger messages", b.messages, 0)
}

func ruleDeclineFailsTheJob(t *testing.T) {
	b := newCheckpointBench(t, concurrentConfig(), "a", "b")
	id := b.trigger(control.Checkpoint)
	b.ack("a", id)
	failures := actionsOf[control.FailJob](b.step(control.Declined{Job: "job", Task: b.task("b"), Checkpoint: id, Err: errStorage}))
	if len(failures) != 1 || !errors.Is(failures[0].Err, errStorage) {
		t.Errorf("a decline answers %v", failures)
	}
}

func ruleStoreFailureDiscardsState(t *testing.T) {
	b := newCheckpointBench(t, concurrentConfig(), "a", "b")
	b.failStore = errStorage
	id := b.trigger(control.Checkpoint)
	for _, task := range []string{"a", "b"} {
		b.step(control.Acknowledged{
			Job: "job", Task: b.task(task), Checkpoint: id,
			New: []control.Handle{control.Handle(task + "/managed"), control.Handle(task + "/raw"), control.Handle(task + "/keyed")},
		})
	}
	equal(t, "reason", b.reason(), control.ReasonFinalizeFailure)
	want := []control.Handle{"a/managed", "a/raw", "a/keyed", "b/managed", "b/raw", "b/keyed"}
	if !slices.Equal(b.discarded, want) {
		t.Errorf("discarded are %q, want %q", b.discarded, want)
	}
	if len(b.c.Pending())+len(b.completed()) != 0 {
		t.Errorf("pending %v, completed %v", b.c.Pending(), b.completed())
	}
}

func ruleRetentionPolicyPropagates(t *testing.T) {
	cfg := concurrentConfig()
	cfg.Retention = control.RetainOnFailure
	b := newCheckpointBench(t, cfg, "a")
	b.ack("a", b.trigger(control.Checkpoint))
	equal(t, "retention", b.c.Completed()[0].Retention, control.RetainOnFailure)
}

// ruleCannotBeSubsumed: an attempt to do so can't be made from outside; completing a newer checkpoint is what would.
func ruleCannotBeSubsumed(t *testing.T, kind control.SnapshotKind) {
	b := newCheckpointBench(t, concurrentConfig(), "a", "b")
	older, newer := b.trigger(control.Checkpoint), b.trigger(control.Checkpoint)
	b.ack("a", newer)
	b.ack("b", newer)
	equal(t, "reason of a checkpoint", b.reason(), control.ReasonSubsumed)
	equal(t, "subsumed", b.ended[len(b.ended)-1].Checkpoint, older)

	savepoint := b.trigger(kind)
	b.ack("a", savepoint)
	newer = b.trigger(control.Checkpoint)
	if kind.Stops() {
		equal(t, "id of a checkpoint during a stop", newer, 0)
	} else {
		b.ack("a", newer)
		b.ack("b", newer)
		equal(t, "completed", b.completed()[0], newer)
	}
	if !slices.Equal(b.c.Pending(), []int64{savepoint}) {
		t.Fatalf("pending are %v, want the savepoint %d", b.c.Pending(), savepoint)
	}
	b.ack("b", savepoint)
	if !slices.ContainsFunc(b.ended, func(e control.Ended) bool { return e.Checkpoint == savepoint && e.Err == nil }) {
		t.Errorf("the savepoint is not complete: %+v", b.ended)
	}
}

func ruleAbortDiscardsState(t *testing.T) {
	for reason, end := range map[control.FailureReason]func(b *checkpointBench, id int64){
		control.ReasonDeclined: func(b *checkpointBench, id int64) { b.decline("b", id) },
		control.ReasonExpired: func(b *checkpointBench, id int64) {
			b.fire(control.Timer{Kind: control.TimeoutTimer, Checkpoint: id})
		},
		control.ReasonTaskFailure: func(b *checkpointBench, _ int64) { b.state("b", control.TaskFailed) },
		control.ReasonSubsumed: func(b *checkpointBench, _ int64) {
			newer := b.trigger(control.Checkpoint)
			b.ack("a", newer)
			b.ack("b", newer)
		},
	} {
		b := newCheckpointBench(t, concurrentConfig(), "a", "b")
		id := b.trigger(control.Checkpoint)
		b.ack("a", id)
		end(b, id)
		equal(t, "reason", b.reason(), reason)
		end(b, id) // aborts nothing more
		if !slices.Equal(b.discarded[:1], []control.Handle{"1/a"}) || slices.Contains(b.discarded[1:], "1/a") {
			t.Errorf("%v: discarded are %q", reason, b.discarded)
		}
	}
}

func ruleEveryRequestEnds(t *testing.T) {
	for name, end := range map[string]func(b *checkpointBench, id int64){
		"declined": func(b *checkpointBench, id int64) { b.decline("b", id) },
		"expired": func(b *checkpointBench, id int64) {
			b.fire(control.Timer{Kind: control.TimeoutTimer, Checkpoint: id})
		},
		"finalised": func(b *checkpointBench, id int64) { b.ack("b", id) },
	} {
		b := newCheckpointBench(t, concurrentConfig(), "a", "b")
		id := b.trigger(control.Checkpoint)
		stores := len(actionsOf[control.Store](b.step(control.Acknowledged{Job: "job", Task: b.task("a"), Checkpoint: id})))
		equal(t, "stored with a part missing", stores, 0)
		equal(t, "ended", len(b.ended), 0)
		end(b, id)
		if len(b.ended) != 1 || b.ended[0].Request != 1 || (b.ended[0].Err == nil) != (name == "finalised") {
			t.Errorf("%s: ended are %+v", name, b.ended)
		}
	}
}

func ruleFailoverAbortsAllPending(t *testing.T) {
	cfg := concurrentConfig()
	cfg.MaxConcurrent = 2
	b := newCheckpointBench(t, cfg, "a", "b")
	b.step(control.StartScheduler{})
	for range 3 {
		b.tick()
	}
	equal(t, "pending", len(b.c.Pending()), 2)
	b.step(control.AbortPending{Reason: control.ReasonRegionFailover})
	equal(t, "pending", len(b.c.Pending()), 0)
	equal(t, "reason", b.reason(), control.ReasonRegionFailover)
	equal(t, "failures of the job", len(b.failures), 0)
	b.tick()
	equal(t, "pending", len(b.c.Pending()), 1)
}
