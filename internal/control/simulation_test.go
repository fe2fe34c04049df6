package control

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCheckpointsOfAJobInTrouble runs a coordinator with six tasks, which really align barriers, through delays, lost
// messages, declined and unstorable checkpoints, crashes and finished sources, and checks after every step what must always
// hold.
func TestCheckpointsOfAJobInTrouble(t *testing.T) {
	totals := map[string]int{}
	for seed := uint64(1); seed <= 150; seed++ {
		w := newWorld(t, seed)
		w.run()
		if t.Failed() {
			t.Fatalf("seed %d, configuration %+v", seed, w.cfg)
		}
		for what, n := range w.counts {
			totals[what] += n
		}
	}
	for _, what := range []string{
		"completed", "savepoints", "expired", "declined", "declined_subsumed", "subsumed", "finalize_failure", "trigger_failure",
		"job_failure", "restored", "stale answers", "reused", "discarded", "with finished tasks", "triggered in place of sources",
		"unaligned", "two at a time", "FailJob", "stopped",
	} {
		if totals[what] < 10 {
			t.Errorf("%q happened %d times: the simulation tests little", what, totals[what])
		}
	}
}

const simMilli = int64(time.Millisecond)

// world is the job and its surroundings.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	cfg    CheckpointConfig
	c      *CheckpointCoordinator
	now    int64 // ns
	queue  []happening
	number int
	timers map[Timer]int // number of the happening that fires it
	tasks  map[TaskID]*simTask
	// attempt counts executions of the job; down says that one has ended and the next has not begun.
	attempt int
	down    bool
	over    bool

	disk      map[Handle]bool // what is stored; false: was discarded
	lost      map[Handle]bool // nobody was told of it
	owned     []*CompletedCheckpoint
	restoring *CompletedCheckpoint
	triggered map[int64]int // the attempt that was current when a checkpoint was triggered
	lastEnd   int64
	lastID    int64
	lastTime  int64
	requests  int64
	answers   map[int64]int
	counts    map[string]int
}

// happening is something that happens at a time.
type happening struct {
	at     int64
	number int
	do     func()
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	cfg := DefaultCheckpointConfig()
	cfg.Interval = time.Duration(20+rng.IntN(80)) * time.Millisecond
	cfg.Timeout = 400 * time.Millisecond
	cfg.Retained, cfg.TolerableFailures = 1+rng.IntN(3), rng.IntN(6)
	cfg.MaxConcurrent = 1 + rng.IntN(3)
	if rng.IntN(3) == 0 {
		cfg.MinPause = time.Duration(rng.IntN(100)) * time.Millisecond
	}
	if rng.IntN(3) == 0 {
		cfg.Unaligned, cfg.MaxConcurrent, cfg.AlignedTimeout = true, 1, time.Duration(rng.IntN(30))*time.Millisecond
	}
	c, err := NewCheckpointCoordinator("job", cfg, line())
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, rng: rng, cfg: cfg, c: c, timers: map[Timer]int{}, tasks: map[TaskID]*simTask{}, disk: map[Handle]bool{},
		lost: map[Handle]bool{}, triggered: map[int64]int{}, answers: map[int64]int{}, counts: map[string]int{}, attempt: -1, down: true,
		lastEnd: -1 << 60,
	}
}

func (w *world) after(delay int64, do func()) int {
	w.number++
	w.queue = append(w.queue, happening{w.now + delay, w.number, do})
	return w.number
}

// soon is a random delay; a few are long.
func (w *world) soon() int64 {
	if w.rng.IntN(40) == 0 {
		return int64(w.rng.IntN(300)) * simMilli
	}
	return int64(w.rng.IntN(12_000)) * simMilli / 1000
}

// run lets five seconds pass, ends the job and waits until nothing is under way any more.
func (w *world) run() {
	w.step(StartScheduler{})
	w.crash()
	w.after(5_000*simMilli, func() {
		w.over = true
		for _, task := range w.tasks {
			task.alive = false
		}
		w.step(ShutDown{JobFinished})
	})
	w.after(w.soon(), w.disturb)
	for len(w.queue) > 0 && !w.t.Failed() {
		i := 0
		for k := range w.queue {
			if q := &w.queue[k]; q.at < w.queue[i].at || q.at == w.queue[i].at && q.number < w.queue[i].number {
				i = k
			}
		}
		next := w.queue[i]
		w.queue = slices.Delete(w.queue, i, i+1)
		w.now = next.at
		next.do()
	}
	w.checkEnd()
}

// disturb asks for snapshots, breaks the job or ends a source, again and again.
func (w *world) disturb() {
	if w.over {
		return
	}
	w.after(int64(w.rng.IntN(120))*simMilli, w.disturb)
	switch n := w.rng.IntN(60); {
	case n < 8:
		w.crash()
	case n < 18:
		w.ask(Savepoint)
	case n < 24:
		w.ask(Checkpoint)
	case n == 24:
		w.ask([]SnapshotKind{StopSavepoint, DrainSavepoint}[w.rng.IntN(2)])
	case n < 28:
		if task := w.tasks[TaskID{0, w.rng.IntN(2)}]; task != nil && task.running() {
			task.inputEnded()
		}
	}
}

func (w *world) ask(kind SnapshotKind) {
	w.requests++
	w.step(Trigger{Request: w.requests, Kind: kind})
}

// crash ends all tasks; the job manager starts them again.
func (w *world) crash() {
	if w.down && w.attempt >= 0 {
		return
	}
	w.down = true
	for _, task := range w.tasks {
		task.alive = false
	}
	w.after(w.soon(), func() {
		if !w.over {
			w.attempt++
			w.step(Restarting{Attempt: w.attempt})
		}
	})
}

// step hands an event over, checks and acts.
func (w *world) step(e Event) {
	if ack, ok := e.(Acknowledged); ok && ack.Task.Attempt != w.attempt {
		w.counts["stale answers"]++
	}
	actions := slices.Clone(w.c.Step(Instant{Wall: w.now/simMilli + int64(w.rng.IntN(50)), Mono: w.now}, e))
	for _, a := range actions {
		w.act(a)
	}
	w.check()
}

func (w *world) act(a Action) {
	switch a := a.(type) {
	case Prepare:
		w.prepare(a)
	case TriggerTasks:
		w.triggered[a.Barrier.ID] = w.attempt
		for _, ref := range a.Tasks {
			if ref.Vertex > 0 {
				w.counts["triggered in place of sources"]++
			}
			w.tell(ref, func(task *simTask) { task.trigger(a.Barrier) })
		}
	case SetTimer:
		w.timers[a.Timer] = w.after(a.At-w.now, nil)
		number := w.timers[a.Timer]
		w.queue[len(w.queue)-1].do = func() {
			if w.timers[a.Timer] == number {
				delete(w.timers, a.Timer)
				w.step(TimerFired{a.Timer})
			}
		}
	case CancelTimer:
		delete(w.timers, a.Timer)
	case Store:
		w.store(a.Checkpoint)
	case NotifyComplete:
		for _, ref := range a.Tasks {
			w.tell(ref, func(task *simTask) { task.notified(a.Checkpoint, a.Kind) })
		}
	case NotifyAborted:
		for _, ref := range a.Tasks {
			w.tell(ref, func(task *simTask) { task.act(task.alignment.Abort(a.Checkpoint, a.Reason, w.now)) })
		}
	case Discard:
		w.counts["discarded"] += len(a.Handles)
		for _, h := range a.Handles {
			w.disk[h] = false
		}
	case FailJob:
		w.counts["FailJob"]++
		w.after(0, w.crash)
	case Restore:
		w.restore(a)
	case Ended:
		w.ended(a)
	}
}

// prepare checks that the checkpoint may begin, and prepares it.
func (w *world) prepare(a Prepare) {
	if a.Checkpoint <= w.lastID {
		w.t.Errorf("checkpoint %d begins after %d", a.Checkpoint, w.lastID)
	}
	w.lastID = a.Checkpoint
	pending := len(w.c.Pending())
	if a.Kind == Checkpoint && pending > w.cfg.concurrent() {
		w.t.Errorf("checkpoint %d makes %d pending ones", a.Checkpoint, pending)
	}
	if a.Kind == Checkpoint && pending > 1 {
		w.counts["two at a time"]++
	}
	if w.c.find(a.Checkpoint).periodic && w.now-w.lastEnd < w.cfg.MinPause.Nanoseconds() {
		w.t.Errorf("checkpoint %d begins %v after the end of another, the pause is %v", a.Checkpoint, time.Duration(w.now-w.lastEnd), w.cfg.MinPause)
	}
	h := Handle(fmt.Sprintf("%d/prepared", a.Checkpoint))
	switch w.rng.IntN(40) {
	case 0:
		w.after(w.soon(), func() { w.step(PrepareFailed{Checkpoint: a.Checkpoint, Err: errors.New("no place")}) })
	case 1: // is never heard of again
	default:
		w.after(w.soon(), func() {
			w.disk[h] = true
			w.step(Prepared{Checkpoint: a.Checkpoint, Handles: []Handle{h}})
		})
	}
}

// store checks that a snapshot has all its parts, of the right execution, and stores it.
func (w *world) store(done *CompletedCheckpoint) {
	var ids []TaskID
	for _, part := range done.Tasks {
		ids = append(ids, part.Task)
		mark := fmt.Sprintf("%d/%v/%d/", done.ID, part.Task, w.triggered[done.ID])
		switch task := w.tasks[part.Task]; {
		case part.Finished && !task.finished:
			w.t.Errorf("checkpoint %d has %v as finished", done.ID, part.Task)
		case part.Finished:
			w.counts["with finished tasks"]++
		case len(part.New) == 0 || !strings.HasPrefix(string(part.New[0]), mark):
			w.t.Errorf("checkpoint %d, triggered in attempt %d, has the part %+v", done.ID, w.triggered[done.ID], part)
		}
	}
	if !slices.Equal(ids, tasks()) {
		w.t.Errorf("checkpoint %d has the parts of %v", done.ID, ids)
	}
	fails := w.rng.IntN(15) == 0
	w.after(w.soon(), func() {
		if fails {
			w.step(StoreFailed{Checkpoint: done.ID, Err: errors.New("no space left")})
			return
		}
		if done.Kind != Checkpoint {
			w.owned = append(w.owned, done)
			w.counts["savepoints"]++
		}
		w.step(Stored{Checkpoint: done.ID})
	})
}

// tell sends a message to an execution of a task; a few get lost.
func (w *world) tell(ref TaskRef, message func(*simTask)) {
	task := w.tasks[ref.TaskID]
	if ref.Attempt != w.attempt || w.rng.IntN(60) == 0 {
		return
	}
	w.after(w.soon(), func() {
		if task.running() {
			message(task)
		}
	})
}

// restore starts all tasks with what a snapshot has of them.
func (w *world) restore(a Restore) {
	w.restoring = a.Checkpoint
	if a.Checkpoint != nil {
		w.counts["restored"]++
	}
	w.down = false
	for _, id := range tasks() {
		task := newSimTask(w, id, a.Attempt)
		w.tasks[id] = task
		if a.Checkpoint == nil {
			continue
		}
		part := a.Checkpoint.Tasks[slices.IndexFunc(a.Checkpoint.Tasks, func(p TaskSnapshot) bool { return p.Task == id })]
		task.baseID, task.base, task.finished = a.Checkpoint.ID, slices.Concat(part.New, part.Reused), part.Finished
		if a.Checkpoint.Kind != Checkpoint {
			task.base = nil // a user's: nothing may be reused
		}
	}
	for _, id := range tasks() {
		task := w.tasks[id]
		w.after(w.soon(), func() {
			if !task.alive {
				return
			}
			task.started = true
			if !task.finished {
				w.step(TaskChanged{Task: task.ref(), State: TaskRunning})
				return
			}
			task.alive = false
			w.step(TaskChanged{Task: task.ref(), State: TaskFinished})
			task.send(func(to *simTask, channel int) { to.act(to.alignment.End(channel, w.now)); to.mayFinish() })
		})
	}
}

func (w *world) ended(e Ended) {
	if e.Request != 0 {
		w.answers[e.Request]++
	}
	if e.Checkpoint != 0 {
		w.lastEnd = w.now
	}
	if e.Err == nil {
		w.counts["completed"]++
		if e.Kind.Stops() {
			w.counts["stopped"]++
		}
		return
	}
	w.counts[e.Err.(*CheckpointError).Reason.String()]++
}

// check compares what is stored with what is referred to.
func (w *world) check() {
	if len(w.c.Completed()) > w.cfg.Retained+1 {
		w.t.Errorf("%d snapshots are retained, want %d at most", len(w.c.Completed()), w.cfg.Retained)
	}
	running := true
	for _, task := range w.tasks {
		running = running && (task.started || !task.alive)
	}
	if w.restoring != nil && (running || w.over) {
		w.restoring = nil
	}
	for _, done := range slices.Concat(w.c.Completed(), w.owned, []*CompletedCheckpoint{w.restoring}) {
		if done == nil {
			continue
		}
		for h := range handlesOf(done) {
			if !w.disk[h] {
				w.t.Errorf("%s of checkpoint %d was discarded", h, done.ID)
			}
		}
	}
	if len(w.c.Completed()) > 0 && w.c.timestamp < w.lastTime {
		w.t.Error("timestamps go back")
	}
	w.lastTime = w.c.timestamp
}

func handlesOf(done *CompletedCheckpoint) map[Handle]bool {
	all := map[Handle]bool{}
	for _, part := range append([]TaskSnapshot{done.Prepared}, done.Tasks...) {
		for _, h := range slices.Concat(part.New, part.Reused) {
			all[h] = true
		}
	}
	return all
}

// checkEnd looks for what was left behind.
func (w *world) checkEnd() {
	keep := maps.Clone(w.lost)
	for _, done := range w.owned {
		maps.Copy(keep, handlesOf(done))
	}
	for h, stored := range w.disk {
		if stored && !keep[h] {
			w.t.Errorf("%s was left behind", h)
		}
	}
	for r := int64(1); r <= w.requests; r++ {
		if w.answers[r] != 1 {
			w.t.Errorf("request %d was answered %d times", r, w.answers[r])
		}
	}
	if len(w.timers)+len(w.c.Pending()) > 0 {
		w.t.Errorf("timers %v and checkpoints %v are left", w.timers, w.c.Pending())
	}
	for h, ref := range w.c.refs {
		if keep[h] {
			continue
		}
		w.t.Errorf("%s is still referred to: %+v", h, ref)
	}
	o := w.c.Overview()
	if o.Counts.InProgress != 0 || o.Counts.Triggered != o.Counts.Completed+o.Counts.Failed || len(o.History) > w.cfg.History {
		t := o.Counts
		w.t.Errorf("%d checkpoints in the history, counts %+v", len(o.History), t)
	}
}
