package control

import "fmt"

// FailureReason says why a checkpoint was not taken, or failed. Its String is Flink's word for it.
type FailureReason uint8

// The reasons. Those from ReasonDeclined to ReasonDeclinedInputEnd are given by tasks; the others are the coordinator's own,
// or those of whoever aborts its checkpoints.
const (
	// ReasonNone: nothing failed.
	ReasonNone FailureReason = iota
	// ReasonSchedulerShutdown: a periodic checkpoint while the periodic scheduler is stopped.
	ReasonSchedulerShutdown
	// ReasonTooManyRequests: more requests wait than MaxQueuedRequests.
	ReasonTooManyRequests
	// ReasonTooManyConcurrent: as many checkpoints are pending as may be.
	ReasonTooManyConcurrent
	// ReasonMinPause: the pause since the last checkpoint is not over.
	ReasonMinPause
	// ReasonTasksNotRunning: a task that must take part does not run.
	ReasonTasksNotRunning
	// ReasonStopping: the job is being stopped with a savepoint, or was.
	ReasonStopping
	// ReasonException: an error that has no reason of its own.
	ReasonException
	// ReasonExpired: the timeout was over before all tasks had answered.
	ReasonExpired
	// ReasonSubsumed: a newer checkpoint was completed first.
	ReasonSubsumed
	// ReasonDeclined: a task could not take its part of the snapshot.
	ReasonDeclined
	// ReasonDeclinedNotReady: a task was not ready for checkpoints.
	ReasonDeclinedNotReady
	// ReasonDeclinedNotCheckpointing: a task takes no checkpoints.
	ReasonDeclinedNotCheckpointing
	// ReasonDeclinedSubsumed: a task met the barrier of a newer checkpoint before it had all of this one.
	ReasonDeclinedSubsumed
	// ReasonDeclinedCancelBarrier: a task upstream gave the checkpoint up.
	ReasonDeclinedCancelBarrier
	// ReasonDeclinedAlignmentLimit: a task held back more data during its alignment than it may.
	ReasonDeclinedAlignmentLimit
	// ReasonDeclinedInputEnd: an input ended before its barrier came.
	ReasonDeclinedInputEnd
	// ReasonReusedDiscarded: a task built on an earlier checkpoint that was discarded meanwhile. It hears of a newer one with
	// the abort and builds on that next.
	ReasonReusedDiscarded
	// ReasonCoordinatorShutdown: the job has ended.
	ReasonCoordinatorShutdown
	// ReasonCoordinatorSuspend: checkpoints are suspended, since the job does not run at present.
	ReasonCoordinatorSuspend
	// ReasonJobFailure: the job failed.
	ReasonJobFailure
	// ReasonRegionFailover: some of the tasks are started anew.
	ReasonRegionFailover
	// ReasonTaskFailure: a task failed.
	ReasonTaskFailure
	// ReasonTaskCheckpointFailure: a task failed over its checkpoint.
	ReasonTaskCheckpointFailure
	// ReasonFinalizeFailure: the manifest could not be written.
	ReasonFinalizeFailure
	// ReasonTriggerFailure: the checkpoint could not be prepared; no task has heard of it.
	ReasonTriggerFailure
	reasons // how many there are
)

// reasonWords are Flink's words, with what people read.
var reasonWords = [reasons][2]string{
	ReasonNone:                     {"none", "no failure"},
	ReasonSchedulerShutdown:        {"periodic_scheduler_shutdown", "periodic checkpoints are stopped"},
	ReasonTooManyRequests:          {"too_many_checkpoint_requests", "too many requests are waiting"},
	ReasonTooManyConcurrent:        {"too_many_concurrent_checkpoints", "the maximum number of concurrent checkpoints is reached"},
	ReasonMinPause:                 {"minimum_time_between_checkpoints", "the minimum pause between checkpoints is not over"},
	ReasonTasksNotRunning:          {"not_all_required_tasks_running", "not all tasks that must take part are running"},
	ReasonStopping:                 {"stopping_with_savepoint", "the job is being stopped with a savepoint"},
	ReasonException:                {"exception", "an error occurred"},
	ReasonExpired:                  {"expired", "the checkpoint timeout was over before all tasks had answered"},
	ReasonSubsumed:                 {"subsumed", "a newer checkpoint was completed first"},
	ReasonDeclined:                 {"declined", "a task could not take its part of the snapshot"},
	ReasonDeclinedNotReady:         {"declined_task_not_ready", "a task was not ready for checkpoints"},
	ReasonDeclinedNotCheckpointing: {"declined_task_not_checkpointing", "a task takes no checkpoints"},
	ReasonDeclinedSubsumed:         {"declined_subsumed", "a task met the barrier of a newer checkpoint first"},
	ReasonDeclinedCancelBarrier:    {"declined_on_cancellation_barrier", "a task upstream gave the checkpoint up"},
	ReasonDeclinedAlignmentLimit:   {"declined_alignment_limit_exceeded", "a task held back more data during its alignment than it may"},
	ReasonDeclinedInputEnd:         {"declined_input_end_of_stream", "an input ended before its barrier came"},
	ReasonReusedDiscarded:          {"reused_state_discarded", "a task built on an earlier checkpoint that was discarded meanwhile"},
	ReasonCoordinatorShutdown:      {"coordinator_shutdown", "the job has ended"},
	ReasonCoordinatorSuspend:       {"coordinator_suspend", "checkpoints are suspended"},
	ReasonJobFailure:               {"job_failure", "the job failed"},
	ReasonRegionFailover:           {"job_failover_region", "some tasks are started anew"},
	ReasonTaskFailure:              {"task_failure", "a task failed"},
	ReasonTaskCheckpointFailure:    {"task_checkpoint_failure", "a task failed over its checkpoint"},
	ReasonFinalizeFailure:          {"finalize_failure", "the snapshot's manifest could not be written"},
	ReasonTriggerFailure:           {"trigger_failure", "the checkpoint could not be prepared"},
}

// String is Flink's word for the reason, in lower case and without "checkpoint".
func (r FailureReason) String() string {
	if r >= reasons {
		return fmt.Sprintf("reason %d", uint8(r))
	}
	return reasonWords[r][0]
}

// Text is a clause for people that says what happened.
func (r FailureReason) Text() string {
	if r >= reasons {
		return r.String()
	}
	return reasonWords[r][1]
}

// counts reports whether the failure of checkpoint id is one of those that are tolerated so often and no more. Declined
// always is. What fails the checkpoint without a task's word counts if there was a checkpoint: an attempt that never got an
// id lost nothing. What belongs to a failure of the job is dealt with by the restart strategy.
func (r FailureReason) counts(id int64) bool {
	switch r {
	case ReasonDeclined:
		return true
	case ReasonExpired, ReasonFinalizeFailure, ReasonTriggerFailure:
		return id > 0
	}
	return false
}
