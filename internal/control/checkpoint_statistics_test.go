package control

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestHistoryIsBoundedAndCountsEverything(t *testing.T) {
	r := newRig(t, func(cfg *CheckpointConfig) { cfg.History, cfg.TolerableFailures, cfg.MaxConcurrent = 3, 99, 2 })
	for i := range 5 {
		id := r.trigger(Checkpoint)
		r.pass(time.Duration(10*(i+1)) * time.Millisecond)
		for _, task := range tasks() {
			r.step(Acknowledged{Job: "job", Task: TaskRef{TaskID: task}, Checkpoint: id, Metrics: TaskMetrics{StateSize: int64(i), Unaligned: i == 4}})
		}
	}
	savepoint := r.take(Savepoint)
	failed := r.trigger(Checkpoint)
	r.step(Declined{Job: "job", Task: TaskRef{TaskID: TaskID{1, 1}}, Checkpoint: failed, Err: errors.New("no room")})
	running := r.trigger(Checkpoint)
	r.ack(running, TaskID{0, 1})
	o := r.c.Overview()
	want(t, "counts", o.Counts, CheckpointCounts{Triggered: 8, InProgress: 1, Completed: 6, Failed: 1})
	var ids []int64
	for _, s := range o.History {
		ids = append(ids, s.ID)
	}
	want(t, "history", ids, []int64{running, failed, savepoint, 5})
	want(t, "latest", fmt.Sprint(o.LatestCompleted.ID, o.LatestSavepoint.ID, o.LatestFailed.ID, o.LatestRestored), "6 6 7 <nil>")
	if o.LatestFailed.Reason != ReasonDeclined || !strings.Contains(o.LatestFailed.Failure, "no room") || o.LatestFailed.Status != CheckpointFailed {
		t.Errorf("failed: %+v", o.LatestFailed)
	}
	if s := o.History[0]; s.Acknowledged != 1 || !s.Vertices[0].Subtasks[1].Acknowledged || s.Status != CheckpointInProgress {
		t.Errorf("in progress: %+v", s)
	}
	if o.LatestCompleted.MetadataSize != 600 || o.LatestFailed.MetadataSize != 0 {
		t.Errorf("metadata of %d and %d bytes", o.LatestCompleted.MetadataSize, o.LatestFailed.MetadataSize)
	}
	if s := o.History[3]; s.Duration != 50*time.Millisecond || s.StateSize != 24 || !s.Unaligned || s.Discarded || s.Location != "chk-5" {
		t.Errorf("checkpoint 5: %+v", s)
	}
	d := o.Summary.Duration
	want(t, "durations", fmt.Sprint(d.Count, d.Min, d.Max, d.Mean, d.P50, d.P99), "6 0 50 25 20 50")

	o.History[0].Vertices[0].Subtasks[0].Acknowledged = true // the receiver's own
	want(t, "acknowledged", r.c.Overview().History[0].Vertices[0].Subtasks[0].Acknowledged, false)

	r.step(Restarting{Attempt: 1})
	want(t, "restored", r.c.Overview().LatestRestored.ID, savepoint)
}

func TestHistoryKnowsWhatWasDiscarded(t *testing.T) {
	r := newRig(t, nil)
	for range 3 {
		r.take(Checkpoint)
	}
	var gone []int64
	for _, s := range r.c.Overview().History {
		if s.Discarded {
			gone = append(gone, s.ID)
		}
	}
	want(t, "discarded", gone, []int64{2, 1})
	r.step(ShutDown{JobFailed})
	want(t, "the latest is discarded", r.c.Overview().LatestCompleted.Discarded, true)
}
