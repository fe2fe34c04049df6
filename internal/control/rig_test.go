package control

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// rig is a coordinator whose tasks are named by their vertex, and a runtime that does at once what it wants.
type rig struct {
	t         *testing.T
	c         *CheckpointCoordinator
	at        Instant
	timers    map[Timer]int64
	prepared  []int64
	triggered []TriggerTasks
	complete  []int64
	aborted   []NotifyAborted
	discards  []Discard
	failures  []error
	ended     []Ended
	restores  []Restore
	stores    []Store
	holdStore bool
	holdReady bool
}

// line is a job of a source, a map and a sink, with two subtasks each, as all of the tests here use it.
func line() []CheckpointVertex {
	all := Acknowledges | Notified
	return []CheckpointVertex{
		{Name: "source", Parallelism: 2, Roles: Triggered | all},
		{Name: "map", Parallelism: 2, Roles: all, Inputs: []CheckpointInput{{From: 0, Peers: [][]int{{0}, {1}}}}},
		{Name: "sink", Parallelism: 2, Roles: all, Inputs: []CheckpointInput{{From: 1}}},
	}
}

func newRig(t *testing.T, change func(cfg *CheckpointConfig)) *rig {
	t.Helper()
	cfg := DefaultCheckpointConfig()
	cfg.Interval = 100 * time.Millisecond
	if change != nil {
		change(&cfg)
	}
	c, err := NewCheckpointCoordinator("job", cfg, line())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, c: c, at: Instant{Wall: 5000}, timers: map[Timer]int64{}}
	r.run(0)
	return r
}

// run lets all tasks run in an attempt.
func (r *rig) run(attempt int) {
	r.t.Helper()
	for _, id := range tasks() {
		r.step(TaskChanged{Task: TaskRef{id, attempt}, State: TaskRunning})
	}
}

// tasks are those of line.
func tasks() []TaskID { return []TaskID{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}} }

func (r *rig) step(e Event) {
	r.t.Helper()
	for _, a := range slices.Clone(r.c.Step(r.at, e)) {
		switch a := a.(type) {
		case Prepare:
			r.prepared = append(r.prepared, a.Checkpoint)
			if !r.holdReady {
				r.step(Prepared{Checkpoint: a.Checkpoint, Location: fmt.Sprintf("chk-%d", a.Checkpoint)})
			}
		case TriggerTasks:
			r.triggered = append(r.triggered, a)
		case SetTimer:
			r.timers[a.Timer] = a.At
		case CancelTimer:
			delete(r.timers, a.Timer)
		case Store:
			r.stores = append(r.stores, a)
			if !r.holdStore {
				r.step(Stored{Checkpoint: a.Checkpoint.ID, Size: 100 * a.Checkpoint.ID})
			}
		case NotifyComplete:
			r.complete = append(r.complete, a.Checkpoint)
		case NotifyAborted:
			r.aborted = append(r.aborted, a)
		case Discard:
			r.discards = append(r.discards, a)
		case FailJob:
			r.failures = append(r.failures, a.Err)
		case Restore:
			r.restores = append(r.restores, a)
		case Ended:
			r.ended = append(r.ended, a)
		}
	}
}

// trigger asks for a snapshot and gives its id.
func (r *rig) trigger(kind SnapshotKind) int64 {
	r.t.Helper()
	before := len(r.prepared)
	r.step(Trigger{Request: 1, Kind: kind})
	if len(r.prepared) == before {
		return 0
	}
	return r.prepared[before]
}

// ack acknowledges for tasks of attempt 0 with a handle each, "<checkpoint>/<vertex>/<subtask>".
func (r *rig) ack(checkpoint int64, ids ...TaskID) {
	r.t.Helper()
	for _, id := range ids {
		r.step(Acknowledged{Job: "job", Task: TaskRef{TaskID: id}, Checkpoint: checkpoint, New: []Handle{handleOf(checkpoint, id)}})
	}
}

func handleOf(checkpoint int64, id TaskID) Handle {
	return Handle(fmt.Sprintf("%d/%v", checkpoint, id))
}

// take takes a snapshot with all parts.
func (r *rig) take(kind SnapshotKind) int64 {
	r.t.Helper()
	id := r.trigger(kind)
	r.ack(id, tasks()...)
	return id
}

// pass lets time pass, with the timers that become due.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	until := r.at.Mono + d.Nanoseconds()
	for {
		var next Timer
		at := until + 1
		for timer, t := range r.timers {
			if t < at {
				next, at = timer, t
			}
		}
		if at > until {
			break
		}
		delete(r.timers, next)
		r.set(at)
		r.step(TimerFired{next})
	}
	r.set(until)
}

func (r *rig) set(mono int64) {
	mono = max(mono, r.at.Mono)
	r.at = Instant{Wall: r.at.Wall + (mono-r.at.Mono)/1e6, Mono: mono}
}

func (r *rig) discarded() (handles []Handle) {
	for _, d := range r.discards {
		handles = append(handles, d.Handles...)
	}
	return handles
}

func (r *rig) completed() (ids []int64) {
	for _, c := range r.c.Completed() {
		ids = append(ids, c.ID)
	}
	return ids
}

// why is why the last request ended.
func (r *rig) why() FailureReason {
	r.t.Helper()
	if len(r.ended) == 0 {
		r.t.Fatal("nothing has ended")
	}
	var err *CheckpointError
	if errors.As(r.ended[len(r.ended)-1].Err, &err) {
		return err.Reason
	}
	return ReasonNone
}

func want[V any](t *testing.T, what string, got, want V) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}
