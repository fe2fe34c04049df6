package streaming_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/control"
)

// checkpointBench is a coordinator with a runtime that does at once what it asks for.
type checkpointBench struct {
	t     *testing.T
	c     *control.CheckpointCoordinator
	at    control.Instant
	names []string // of the tasks: each is a vertex of its own

	timers    map[control.Timer]int64
	triggered map[int64][]control.TaskRef
	prepares  []control.Prepare
	discarded []control.Handle
	aborted   []int64
	complete  map[control.TaskID][]int64
	ended     []control.Ended
	failures  []error
	messages  int // to tasks, that tell of a trigger

	// holdPrepare and failStore let the runtime's answer wait, or be no.
	holdPrepare bool
	failStore   error
}

// newCheckpointBench makes a coordinator of tasks that run and have all to do with checkpoints.
func newCheckpointBench(t *testing.T, cfg control.CheckpointConfig, names ...string) *checkpointBench {
	t.Helper()
	var vertices []control.CheckpointVertex
	for _, name := range names {
		vertices = append(vertices, control.CheckpointVertex{
			Name: name, Parallelism: 1, Roles: control.Triggered | control.Acknowledges | control.Notified,
		})
	}
	return newCheckpointBenchOf(t, cfg, vertices)
}

func newCheckpointBenchOf(t *testing.T, cfg control.CheckpointConfig, vertices []control.CheckpointVertex) *checkpointBench {
	t.Helper()
	c, err := control.NewCheckpointCoordinator("job", cfg, vertices)
	if err != nil {
		t.Fatal(err)
	}
	b := &checkpointBench{
		t: t, c: c, at: control.Instant{Wall: 1_000_000}, timers: map[control.Timer]int64{},
		triggered: map[int64][]control.TaskRef{}, complete: map[control.TaskID][]int64{},
	}
	for _, v := range vertices {
		b.names = append(b.names, v.Name)
		b.state(v.Name, control.TaskRunning)
	}
	return b
}

// task is the present execution of a task; one that does not exist for an unknown name.
func (b *checkpointBench) task(name string) control.TaskRef {
	if i := slices.Index(b.names, name); i >= 0 {
		return control.TaskRef{TaskID: control.TaskID{Vertex: i}}
	}
	return control.TaskRef{TaskID: control.TaskID{Vertex: 99}}
}

// step hands over an event and does what the coordinator wants, which may be answered by more events. It returns all
// actions.
func (b *checkpointBench) step(e control.Event) []control.Action {
	b.t.Helper()
	actions := slices.Clone(b.c.Step(b.at, e))
	all := actions
	for _, a := range actions {
		if answer := b.act(a); answer != nil {
			all = append(all, b.step(answer)...)
		}
	}
	return all
}

func (b *checkpointBench) act(a control.Action) control.Event {
	switch a := a.(type) {
	case control.Prepare:
		b.prepares = append(b.prepares, a)
		if !b.holdPrepare {
			return control.Prepared{Checkpoint: a.Checkpoint}
		}
	case control.TriggerTasks:
		b.triggered[a.Barrier.ID] = append(b.triggered[a.Barrier.ID], a.Tasks...)
		b.messages += len(a.Tasks)
	case control.SetTimer:
		b.timers[a.Timer] = a.At
	case control.CancelTimer:
		if _, set := b.timers[a.Timer]; !set {
			b.t.Errorf("timer %+v is cancelled and not set", a.Timer)
		}
		delete(b.timers, a.Timer)
	case control.Store:
		if b.failStore != nil {
			return control.StoreFailed{Checkpoint: a.Checkpoint.ID, Err: b.failStore}
		}
		return control.Stored{Checkpoint: a.Checkpoint.ID, Location: fmt.Sprintf("chk-%d", a.Checkpoint.ID)}
	case control.NotifyComplete:
		for _, task := range a.Tasks {
			b.complete[task.TaskID] = append(b.complete[task.TaskID], a.Checkpoint)
		}
	case control.NotifyAborted:
		b.aborted = append(b.aborted, a.Checkpoint)
	case control.Discard:
		b.discarded = append(b.discarded, a.Handles...)
	case control.FailJob:
		b.failures = append(b.failures, a.Err)
	case control.Ended:
		b.ended = append(b.ended, a)
	}
	return nil
}

// fire moves the clock to a timer's time and fires it; false if it is not set.
func (b *checkpointBench) fire(timer control.Timer) bool {
	b.t.Helper()
	at, set := b.timers[timer]
	if !set {
		return false
	}
	delete(b.timers, timer)
	b.at.Wall += max(0, at-b.at.Mono) / 1e6
	b.at.Mono = max(b.at.Mono, at)
	b.step(control.TimerFired{Timer: timer})
	return true
}

// tick fires the periodic timer.
func (b *checkpointBench) tick() {
	b.t.Helper()
	if !b.fire(control.Timer{Kind: control.PeriodicTimer}) {
		b.t.Fatal("the periodic timer is not set")
	}
}

// trigger asks for a snapshot and gives its id; 0 if it was rejected.
func (b *checkpointBench) trigger(kind control.SnapshotKind) int64 {
	b.t.Helper()
	before := len(b.prepares)
	b.step(control.Trigger{Request: 1, Kind: kind})
	if len(b.prepares) == before {
		return 0
	}
	return b.prepares[len(b.prepares)-1].Checkpoint
}

func (b *checkpointBench) state(name string, s control.TaskState) {
	b.t.Helper()
	b.step(control.TaskChanged{Task: b.task(name), State: s})
}

// ack acknowledges with one handle, "<checkpoint>/<task>".
func (b *checkpointBench) ack(name string, checkpoint int64) {
	b.t.Helper()
	b.step(control.Acknowledged{
		Job: "job", Task: b.task(name), Checkpoint: checkpoint,
		New: []control.Handle{control.Handle(fmt.Sprintf("%d/%s", checkpoint, name))},
	})
}

func (b *checkpointBench) decline(name string, checkpoint int64) {
	b.t.Helper()
	b.step(control.Declined{Job: "job", Task: b.task(name), Checkpoint: checkpoint})
}

// reason is why the last request or checkpoint that ended failed.
func (b *checkpointBench) reason() control.FailureReason {
	b.t.Helper()
	if len(b.ended) == 0 {
		b.t.Fatal("nothing has ended")
	}
	err, ok := b.ended[len(b.ended)-1].Err.(*control.CheckpointError)
	if !ok {
		return control.ReasonNone
	}
	return err.Reason
}

// completed are the ids of the retained snapshots.
func (b *checkpointBench) completed() []int64 {
	var ids []int64
	for _, c := range b.c.Completed() {
		ids = append(ids, c.ID)
	}
	return ids
}

// failed are the snapshots that have begun and were aborted, in order.
func (b *checkpointBench) failed() []int64 {
	var ids []int64
	for _, e := range b.ended {
		if e.Err != nil && e.Checkpoint != 0 {
			ids = append(ids, e.Checkpoint)
		}
	}
	return ids
}

// timeouts counts the timers of pending snapshots.
func (b *checkpointBench) timeouts() int {
	n := 0
	for timer, at := range b.timers {
		if timer.Kind == control.TimeoutTimer && at < math.MaxInt64 {
			n++
		}
	}
	return n
}

// actionsOf are the actions of one type.
func actionsOf[A control.Action](actions []control.Action) []A {
	var out []A
	for _, a := range actions {
		if a, ok := a.(A); ok {
			out = append(out, a)
		}
	}
	return out
}
