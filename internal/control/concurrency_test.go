package control

import (
	"fmt"
	"testing"
	"time"
)

// A task that is told of each checkpoint at once, while the barriers need longer than an interval to come to it, gives up each
// for the next: beside a source that has sent its end, tasks are told so. Some checkpoints must be completed all the same.
func TestCheckpointsThatOvertakeEachOtherGoOnOneAtATime(t *testing.T) {
	for limit, least := range map[int]int{1: 30, 2: 15, 3: 10, Unlimited: 10} {
		r := newRig(t, func(cfg *CheckpointConfig) { cfg.Interval, cfg.MaxConcurrent = 10*time.Millisecond, limit })
		overtakenTask := newOvertaken(r)
		r.step(StartScheduler{})
		for range 1000 {
			r.pass(time.Millisecond)
			overtakenTask.pass()
		}
		if n := len(r.complete); n < least {
			t.Errorf("%d at a time: %d checkpoints of %d are complete after a second, want %d at least", limit, n, len(r.triggered), least)
		}
		if limit > 1 && overtakenTask.givenUp == 0 {
			t.Errorf("%d at a time: none was overtaken: the test tests nothing", limit)
		}
	}
}

// overtaken is a sink in the job of a rig, whose other tasks answer at once. It learns of a checkpoint when it is triggered,
// and its barrier comes barrierDelay later.
type overtaken struct {
	r         *rig
	alignment Alignment
	seen      int // of the rig's triggers
	aborted   int // of the rig's aborts
	barriers  []TriggerTasks
	at        []int64
	givenUp   int
}

const barrierDelay = 25 * time.Millisecond

func newOvertaken(r *rig) *overtaken {
	return &overtaken{r: r, alignment: NewAlignment(AlignmentOptions{Channels: 1})}
}

// pass does what is due.
func (o *overtaken) pass() {
	now := o.r.at.Mono
	for ; o.seen < len(o.r.triggered); o.seen++ {
		trigger := o.r.triggered[o.seen]
		o.barriers, o.at = append(o.barriers, trigger), append(o.at, now+barrierDelay.Nanoseconds())
		o.r.ack(trigger.Barrier.ID, tasks()[:5]...)
		o.act(o.alignment.Trigger(trigger.Barrier, now))
	}
	for ; o.aborted < len(o.r.aborted); o.aborted++ {
		abort := o.r.aborted[o.aborted]
		o.act(o.alignment.Abort(abort.Checkpoint, abort.Reason, now))
	}
	for len(o.at) > 0 && o.at[0] <= now {
		b := o.barriers[0].Barrier
		o.barriers, o.at = o.barriers[1:], o.at[1:]
		o.act(o.alignment.Barrier(0, b, now))
	}
}

func (o *overtaken) act(actions []BarrierAction) {
	last := tasks()[5]
	for _, a := range append([]BarrierAction(nil), actions...) {
		switch a.Do {
		case TakeSnapshot:
			o.r.ack(a.Barrier.ID, last)
		case AbortCheckpoint:
			o.givenUp++
			o.r.step(Declined{Job: "job", Task: TaskRef{TaskID: last}, Checkpoint: a.Barrier.ID, Reason: a.Reason})
		}
	}
}

func TestAfterAnOvertakenCheckpointTheyGrowMoreAgain(t *testing.T) {
	r := newRig(t, func(cfg *CheckpointConfig) { cfg.MaxConcurrent = 3 })
	overtake := func(id int64) {
		r.step(Declined{Job: "job", Task: TaskRef{TaskID: TaskID{2, 1}}, Checkpoint: id, Reason: ReasonDeclinedSubsumed})
	}
	for range 5 {
		r.trigger(Checkpoint)
	}
	want(t, "begun", r.prepared, []int64{1, 2, 3})
	overtake(2)
	want(t, "begun beside one that may have been overtaken", r.prepared, []int64{1, 2, 3})
	r.step(Declined{Job: "job", Task: TaskRef{TaskID: TaskID{2, 1}}, Checkpoint: 3, Reason: ReasonDeclinedNotReady})
	want(t, "begun when the newest has ended", r.prepared, []int64{1, 2, 3, 4}) // though 1 is pending
	want(t, "pending", r.c.Pending(), []int64{1, 4})
	r.ack(4, tasks()...)
	want(t, "begun when one is complete", r.prepared, []int64{1, 2, 3, 4, 5})
	r.trigger(Checkpoint)
	r.trigger(Checkpoint)
	want(t, "two at a time", r.c.Pending(), []int64{5, 6})
	r.ack(5, tasks()...)
	r.trigger(Checkpoint)
	want(t, "three at a time", r.c.Pending(), []int64{6, 7, 8})
	r.trigger(Checkpoint)
	want(t, "no more than configured", fmt.Sprint(r.c.Pending()), "[6 7 8]")
}
