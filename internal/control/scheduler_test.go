package control

import (
	"testing"
	"time"
)

// The end of periodic checkpoints ends the one that is being prepared, and none that somebody has asked for.
func TestTheEndOfTheSchedulerEndsWhatItHasBegun(t *testing.T) {
	r := newRig(t, nil)
	r.holdReady = true
	r.step(StartScheduler{})
	r.pass(100 * time.Millisecond)
	want(t, "begun", r.c.Pending(), []int64{1})
	r.step(StopScheduler{})
	want(t, "pending", r.c.Pending(), []int64{})
	want(t, "reason", r.why(), ReasonSchedulerShutdown)

	r = newRig(t, nil)
	r.holdReady = true
	r.step(StartScheduler{})
	id := r.trigger(Checkpoint)
	r.step(StopScheduler{})
	want(t, "pending", r.c.Pending(), []int64{id})
	r.step(Prepared{Checkpoint: id, Location: "chk"})
	r.step(StopScheduler{})
	r.ack(id, tasks()...)
	want(t, "completed", r.completed(), []int64{id})

	r = newRig(t, nil) // one that is under way goes on as well
	r.step(StartScheduler{})
	r.pass(100 * time.Millisecond)
	r.step(StopScheduler{})
	r.ack(1, tasks()...)
	want(t, "completed", r.completed(), []int64{1})
}
