package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/taskmanager"
	"github.com/flott-dev/flott/internal/vfs"
)

// CheckpointOptions say how a job takes snapshots.
type CheckpointOptions struct {
	Config control.CheckpointConfig
	// FS and Dir are where checkpoints lie: the folder is the job's own.
	FS  vfs.FS
	Dir string
	// Incremental lets checkpoints hold what has changed since earlier ones.
	Incremental bool
	// InlineBytes is the size up to which pieces of state go into the manifest; see checkpoint.Writer.
	InlineBytes int
	// Token tells the files that this process writes for the job from those of others, which may still write for it: a few
	// random letters and digits. See checkpoint.Writer.
	Token string
	// SavepointFS is where savepoints lie.
	SavepointFS vfs.FS
	// Completed are the snapshots that the job may go on from, from the oldest.
	Completed []Snapshot
	// Last is a file in FS beside Dir that tells a later process, where checkpoints don't: the savepoint that was taken last,
	// or that the job is over; "": nobody asks. See WriteLast.
	Last string
	// Released is called when nothing more will be written; nil: nobody cares.
	Released func()
}

// Snapshot is one that was taken by an earlier job or process.
type Snapshot struct {
	FS       vfs.FS
	Manifest *checkpoint.Manifest
	// Foreign snapshots are somebody else's: the job never removes them.
	Foreign bool
}

// Keeper keeps the snapshots of one job: it drives the checkpoint coordinator, which decides, and does what it says. All of
// it happens on one thread, which takes letters in order; what waits for disks and enumerators is done aside and answers by
// a letter. It outlives the job's attempts.
type Keeper struct {
	id       string
	job      *taskmanager.Job
	opt      CheckpointOptions
	clock    clock.Clock
	machine  *control.CheckpointCoordinator
	storage  *checkpoint.Storage
	waiter   host.Waiter
	mailbox  *host.Mailbox
	aside    func(func()) // runs a function that may wait
	busy     int          // of these, how many run
	timers   map[control.Timer]int64
	regions  []*region
	runs     []*attemptRun // by region; nil: its tasks do not run
	waiting  []func(control.Restore)
	final    int64 // the request for the last checkpoint; 0: none is under way
	stores   stores
	left     bool // it was left although something has not ended
	asked    map[int64]func(control.Ended)
	number   int64    // of the last request
	early    []func() // requests that wait for the tasks to run
	begun    bool     // it is known what the tasks begin with
	looks    []func() // at the history, which wait for that
	direct   checkpoint.DirectFiles
	discards []func() // removals of snapshots, the first of which is under way
	ended    bool
	warned   bool // that no checkpoints are taken any more

	// failed takes what fails all regions; stopped the word, before any task hears of it, that a savepoint that stops the job is
	// complete. They must not wait.
	failed  func(error)
	stopped func()

	mu    sync.Mutex
	sites map[int64]*site
}

// attemptRun is the attempt of a region that is at work, as the keeper sees it.
type attemptRun struct {
	region     int
	attempt    *taskmanager.Attempt
	enumerate  enumerators
	running    map[control.TaskID]bool
	lingering  map[control.TaskID]bool
	collecting []control.Barrier
}

// enumerators are the coordinators of the sources of one attempt of a region.
type enumerators interface {
	// Hold takes the states of all and holds back what they send from then on. It may wait.
	Hold(checkpoint int64) (map[[2]int][]byte, error)
	// Release sends what was held back since the states were taken for this checkpoint and those before.
	Release(checkpoint int64)
}

// site is where a snapshot lies, or will.
type site struct {
	fs      vfs.FS
	storage *checkpoint.Storage
	folder  string
	states  map[[2]int][]byte // of the coordinators, by vertex and node
	// triggered is when the snapshot was, in ns by the job's clock.
	triggered int64
	manifest  *checkpoint.Manifest
}

// NewKeeper opens the storage and gives the coordinator what the job may go on from. It starts nothing: the caller runs Run
// on the thread of waiter.
func NewKeeper(id string, job *taskmanager.Job, regions []*region, opt CheckpointOptions, c clock.Clock, waiter host.Waiter, aside func(func())) (*Keeper, error) {
	k := &Keeper{
		id: id, job: job, opt: opt, clock: c, waiter: waiter, mailbox: host.NewMailbox(waiter), aside: aside,
		regions: regions, runs: make([]*attemptRun, len(regions)), failed: func(error) {}, stopped: func() {},
		timers: map[control.Timer]int64{}, asked: map[int64]func(control.Ended){}, sites: map[int64]*site{},
	}
	var err error
	if k.machine, err = control.NewCheckpointCoordinator(job.Name, opt.Config, checkpointVertices(job.Graph)); err != nil {
		return nil, err
	}
	if k.storage, err = checkpoint.OpenStorage(fenced{opt.FS, &k.stores}, opt.Dir); err != nil {
		return nil, err
	}
	k.storage.UseDirectFiles(&k.direct)
	var completed []*control.CompletedCheckpoint
	for _, s := range opt.Completed {
		m := s.Manifest
		done := &control.CompletedCheckpoint{ID: m.ID, Timestamp: m.Time, Location: m.Folder, Foreign: s.Foreign, Retention: opt.Config.Retention}
		if m.Kind == checkpoint.Savepoint {
			done.Kind = control.Savepoint
		}
		for _, f := range m.Files() {
			done.Prepared.New = append(done.Prepared.New, control.Handle(f))
		}
		completed = append(completed, done)
		k.sites[m.ID] = &site{fs: s.FS, storage: k.storage, folder: m.Folder, manifest: m}
	}
	if len(completed) > 0 {
		k.step(control.Recovered{Completed: completed})
	}
	return k, nil
}

// Run works until End has been called and all is done, or the checkpoint timeout is over since then: storage that hangs is left
// to itself.
func (k *Keeper) Run() {
	defer k.direct.Close()
	for !k.left && (!k.ended || k.busy > 0) {
		letters := k.mailbox.Take()
		for _, letter := range letters {
			_ = letter() // letters of the keeper do not fail
		}
		k.fire()
		if len(letters) == 0 && !k.left {
			k.waiter.Wait(host.Idle, k.deadline())
		}
	}
	if k.opt.Last == "" && !k.left {
		_ = k.opt.FS.Remove(k.opt.Dir) // fails, as it should, if a checkpoint is retained in it
	}
}

// post leaves a letter.
func (k *Keeper) post(f func()) {
	k.mailbox.Post(func() error {
		f()
		return nil
	})
}

// Tell takes an event from any goroutine.
func (k *Keeper) Tell(e control.Event) { k.post(func() { k.step(e) }) }

func (k *Keeper) instant() control.Instant {
	return control.Instant{Wall: k.clock.Millis(), Mono: k.clock.Nanos()}
}

// step gives the coordinator an event and does what it answers.
func (k *Keeper) step(e control.Event) {
	for _, a := range k.machine.Step(k.instant(), e) {
		k.do(a)
	}
	if e, ok := e.(control.TaskChanged); ok && e.State == control.TaskFinished {
		if r := k.runOf(e.Task); r != nil {
			delete(r.running, e.Task.TaskID)
			delete(r.lingering, e.Task.TaskID)
			k.takeFinal()
		}
	}
}

func (k *Keeper) do(a control.Action) {
	switch a := a.(type) {
	case control.Prepare:
		k.prepare(a)
	case control.TriggerTasks:
		k.trigger(a)
	case control.SetTimer:
		k.timers[a.Timer] = a.At
	case control.CancelTimer:
		delete(k.timers, a.Timer)
	case control.Store:
		k.store(a.Checkpoint)
	case control.NotifyComplete:
		if a.Kind.Stops() {
			k.stopped()
		}
		k.over(a.Checkpoint)
		k.each(a.Tasks, func(s *taskmanager.Subtask) { s.Completed(a.Checkpoint, a.Kind) })
	case control.NotifyAborted:
		k.over(a.Checkpoint)
		k.each(a.Tasks, func(s *taskmanager.Subtask) { s.Aborted(a.Checkpoint, a.Reason) })
	case control.Discard:
		k.discard(a)
	case control.FailJob:
		k.failed(a.Err)
	case control.Restore:
		waiting := k.waiting
		k.waiting = nil
		for _, answer := range waiting { // the coordinator answers all at once that have waited for the same
			answer(a)
		}
	case control.Ended:
		k.answer(a)
	}
}

// each calls f for tasks that run.
func (k *Keeper) each(tasks []control.TaskRef, f func(*taskmanager.Subtask)) {
	for _, ref := range tasks {
		if r := k.runOf(ref); r != nil {
			f(r.attempt.Subtask(ref.TaskID))
		}
	}
}

// runOf is the attempt at work that an execution of a task belongs to; nil if it is none of the present ones.
func (k *Keeper) runOf(ref control.TaskRef) *attemptRun {
	for _, r := range k.runs {
		if r != nil && r.attempt.Number == ref.Attempt && r.attempt.Subtask(ref.TaskID) != nil {
			return r
		}
	}
	return nil
}

// allRun reports whether all regions are at work, or have finished.
func (k *Keeper) allRun() bool { return !slices.Contains(k.runs, nil) }

// deadline is when the first timer is due, in ms.
func (k *Keeper) deadline() int64 {
	if len(k.timers) == 0 {
		return host.Forever
	}
	first := slices.Min(slices.Collect(maps.Values(k.timers)))
	wait := max(0, first-k.clock.Nanos())
	return k.clock.Millis() + (wait+int64(time.Millisecond)-1)/int64(time.Millisecond)
}

// fire tells the coordinator of timers that are due, the oldest first.
func (k *Keeper) fire() {
	for {
		now := k.clock.Nanos()
		due := control.Timer{}
		at, found := now, false
		for t, when := range k.timers {
			if when < at || when == at && (!found || t.Checkpoint < due.Checkpoint) {
				due, at, found = t, when, true
			}
		}
		if !found {
			return
		}
		delete(k.timers, due)
		switch due.Kind {
		case retryKind:
			k.takeFinal()
		case storeKind:
			k.storeDue(due.Checkpoint)
		case leaveKind:
			k.left = k.busy > 0
		default:
			k.step(control.TimerFired{Timer: due})
		}
	}
}

// work runs f aside; what it returns is done on the keeper's thread.
func (k *Keeper) work(f func() func()) {
	k.busy++
	k.aside(func() {
		then := f()
		k.post(func() {
			k.busy--
			if then != nil {
				then()
			}
		})
	})
}

// trigger tells tasks to take their part.
func (k *Keeper) trigger(a control.TriggerTasks) {
	k.each(a.Tasks, func(s *taskmanager.Subtask) { s.Trigger(a.Barrier) })
	for _, r := range k.runs {
		if r == nil {
			continue
		}
		if !slices.ContainsFunc(r.collecting, func(b control.Barrier) bool { return b.ID == a.Barrier.ID }) {
			r.collecting = append(r.collecting, a.Barrier)
		}
		if len(r.lingering) > 0 {
			r.triggerAll(a.Barrier)
		}
	}
}

// triggerAll tells all tasks without a source of a snapshot: behind a task that has sent its end, and lingers, no barrier
// comes. Those to which one comes do not mind.
func (r *attemptRun) triggerAll(b control.Barrier) {
	for _, s := range r.attempt.Tasks {
		if len(s.Vertex.Inputs) > 0 {
			s.Trigger(b)
		}
	}
}

// over forgets a snapshot that is complete or given up.
func (k *Keeper) over(id int64) {
	for _, r := range k.runs {
		if r != nil {
			r.collecting = slices.DeleteFunc(r.collecting, func(b control.Barrier) bool { return b.ID == id })
		}
	}
}

// lingers takes the word that a task has sent everything and waits for a checkpoint to commit. It may be called from any
// goroutine.
func (k *Keeper) lingers(r *attemptRun, id control.TaskID) {
	k.post(func() {
		r.lingering[id] = true
		if k.runs[r.region] != r { // it has not been said that the tasks run, or they are over
			return
		}
		for _, b := range r.collecting {
			r.triggerAll(b)
		}
		k.takeFinal()
	})
}

// retryKind is that of the keeper's own timer: the last checkpoint is taken again if it has failed, after a pause of
// retryPause at most.
const (
	retryKind  control.TimerKind = 255
	retryPause                   = time.Second
)

// takeFinal takes the last checkpoint once all that is left to do is to commit with it.
func (k *Keeper) takeFinal() {
	if k.ended || k.final != 0 || !k.allRun() {
		return
	}
	running, lingering := 0, 0
	for _, r := range k.runs {
		running, lingering = running+len(r.running), lingering+len(r.lingering)
	}
	if lingering == 0 || lingering < running {
		return
	}
	k.final = k.ask(control.Trigger{Kind: control.Checkpoint, Final: true}, func(control.Ended) {
		k.final = 0
		if !k.ended {
			k.timers[control.Timer{Kind: retryKind}] = k.clock.Nanos() + min(k.opt.Config.Interval, retryPause).Nanoseconds() // if it has failed
		}
	})
}

// askWhenAllRun makes a request that needs the tasks.
func (k *Keeper) askWhenAllRun(ask func()) {
	if !k.allRun() && !k.ended {
		k.early = append(k.early, ask)
		return
	}
	ask()
}

// askEarly makes the requests that wait.
func (k *Keeper) askEarly() {
	for _, ask := range k.early {
		ask()
	}
	k.early = nil
}

// ask makes a request; answer is called on the keeper's thread. It gives the request's number.
func (k *Keeper) ask(t control.Trigger, answer func(control.Ended)) int64 {
	k.number++
	n := k.number
	t.Request = n
	k.asked[n] = answer
	k.post(func() { k.step(t) }) // not at once: the coordinator may be at work
	return n
}

func (k *Keeper) answer(e control.Ended) {
	if e.Err != nil {
		k.forget(e.Checkpoint)
		k.warn(e)
	}
	if f := k.asked[e.Request]; f != nil {
		delete(k.asked, e.Request)
		f(e)
	}
}

// warn tells once that no periodic checkpoints are taken any more: nobody gets an answer.
func (k *Keeper) warn(e control.Ended) {
	if k.warned || e.Request != 0 || !errors.Is(e.Err, control.ErrTaskFinished) {
		return
	}
	k.warned = true
	slog.Warn("a job takes no periodic checkpoints any more", "job", k.job.Name, "error", e.Err)
}

// errEnded is the answer to requests that come too late.
var errEnded = errors.New("the job has ended")

// Savepoint takes a savepoint into a new folder under dir, once the tasks run, and returns that folder.
// done is closed when nobody runs the keeper any more.
func (k *Keeper) Savepoint(ctx context.Context, dir string, kind control.SnapshotKind, done <-chan struct{}) (string, error) {
	answers := make(chan control.Ended, 1)
	k.post(func() {
		ask := func() {
			k.ask(control.Trigger{Kind: kind, Target: dir, Full: true}, func(e control.Ended) { answers <- e })
		}
		k.askWhenAllRun(ask)
	})
	select {
	case e := <-answers:
		return e.Location, e.Err
	case <-ctx.Done():
		return "", fmt.Errorf("take a savepoint: %w", context.Cause(ctx))
	case <-done:
		select {
		case e := <-answers:
			return e.Location, e.Err
		default:
			return "", fmt.Errorf("take a savepoint: %w", errEnded)
		}
	}
}
