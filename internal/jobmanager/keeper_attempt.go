package jobmanager

import (
	"fmt"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/taskmanager"
)

// This file is the keeper's side of attempts: what they begin with, and what happens to their tasks.

// restart asks what the tasks of a region's next attempt begin with, or those of all regions if r is nil; answer is called on
// the keeper's thread, once what is being stored is known to exist or not.
func (k *Keeper) restart(r *region, number int, cause error, answer func(*taskmanager.Restore, error)) {
	k.post(func() {
		var tasks []control.TaskID
		if r != nil && len(k.regions) > 1 {
			tasks = r.tasks()
		}
		for i := range k.runs {
			if r == nil || i == r.index {
				k.runs[i] = nil
			}
		}
		k.waiting = append(k.waiting, func(r control.Restore) {
			if r.Checkpoint == nil || r.Err != nil {
				answer(nil, r.Err)
				return
			}
			p := k.site(r.Checkpoint.ID)
			if p == nil || p.manifest == nil {
				panic(fmt.Sprintf("jobmanager: nobody knows where checkpoint %d lies", r.Checkpoint.ID))
			}
			answer(&taskmanager.Restore{FS: p.fs, Manifest: p.manifest}, nil)
		})
		k.step(control.Restarting{Attempt: number, Tasks: tasks, Err: cause})
		k.hasBegun()
		if len(k.waiting) > 0 {
			k.await()
		}
	})
}

// failing takes the word that an attempt of a region has failed, or is to end, before its tasks are told: what is under way is
// given up, so that what they can't do any more is no failure of a checkpoint, and none begins with them.
func (k *Keeper) failing(region int, cause error) {
	k.post(func() {
		r := k.runs[region]
		if r == nil || k.ended {
			return
		}
		k.runs[region] = nil
		reason := control.ReasonJobFailure
		if len(k.regions) > 1 {
			reason = control.ReasonRegionFailover
		}
		k.step(control.AbortPending{Reason: reason, Err: cause})
		for _, s := range r.attempt.Tasks {
			id := control.TaskID{Vertex: s.Vertex.Index, Subtask: s.Index}
			if r.running[id] {
				k.step(control.TaskChanged{Task: control.TaskRef{TaskID: id, Attempt: r.attempt.Number}, State: control.TaskFailed})
			}
		}
	})
}

// options are what tasks need to take part in snapshots.
func (k *Keeper) options(r *attemptRun) *taskmanager.Checkpoints {
	return &taskmanager.Checkpoints{
		Mode: k.opt.Config.Mode, Unaligned: k.opt.Config.Unaligned, AlignedTimeout: k.opt.Config.AlignedTimeout,
		Incremental: k.opt.Incremental, InlineBytes: k.opt.InlineBytes, Token: k.opt.Token, Direct: &k.direct, Final: k.opt.Config.Interval > 0, Place: k.whereToWrite, Triggered: k.triggered, Tell: k.Tell,
		Lingers: func(vertex, subtask int) { k.lingers(r, control.TaskID{Vertex: vertex, Subtask: subtask}) },
	}
}

// newRun is an attempt of a region that is about to be deployed.
func newRun(region int, e enumerators) *attemptRun {
	return &attemptRun{region: region, enumerate: e, running: map[control.TaskID]bool{}, lingering: map[control.TaskID]bool{}}
}

// started takes the word that the tasks of an attempt run.
func (k *Keeper) started(r *attemptRun, a *taskmanager.Attempt) {
	k.post(func() {
		r.attempt, k.runs[r.region] = a, r
		for _, s := range a.Tasks {
			id := control.TaskID{Vertex: s.Vertex.Index, Subtask: s.Index}
			r.running[id] = true
			k.step(control.TaskChanged{Task: control.TaskRef{TaskID: id, Attempt: a.Number}, State: control.TaskRunning})
		}
		if k.allRun() {
			k.step(control.StartScheduler{})
			k.askEarly()
		}
		k.takeFinal()
	})
}

// taskEnded takes the end of a task, after everything that it has told.
func (k *Keeper) taskEnded(number int, e taskmanager.Ended) {
	state := control.TaskFinished
	if e.Err != nil {
		state = control.TaskFailed
	}
	id := control.TaskID{Vertex: e.Vertex, Subtask: e.Subtask}
	k.Tell(control.TaskChanged{Task: control.TaskRef{TaskID: id, Attempt: number}, State: state})
}

// End ends the keeping: Run returns when what is under way is done.
func (k *Keeper) End(end control.JobEnd) {
	k.post(func() {
		clear(k.runs)
		k.askEarly() // they are refused
		k.hasBegun()
		if k.opt.Last != "" && !k.opt.Config.Retention.Keeps(end) {
			// If it can't be written, a later process does again what comes after the last checkpoint: no more than after a crash.
			_ = WriteLast(k.opt.FS, k.opt.Last, Over)
		}
		k.step(control.ShutDown{End: end})
		k.ended = true
		k.timers[control.Timer{Kind: leaveKind}] = k.clock.Nanos() + k.opt.Config.Timeout.Nanoseconds()
	})
}

// hasBegun lets those look at the history who wait for what the job begins with.
func (k *Keeper) hasBegun() {
	k.begun = true
	for _, look := range k.looks {
		look()
	}
	k.looks = nil
}

// Overview is the history of the job's snapshots. That of a job that goes on from one has it from the start. It may be called
// from any goroutine while Run runs.
func (k *Keeper) Overview(done <-chan struct{}) control.CheckpointOverview {
	answers := make(chan control.CheckpointOverview, 1)
	k.post(func() {
		look := func() { answers <- k.machine.Overview() }
		if !k.begun && len(k.opt.Completed) > 0 {
			k.looks = append(k.looks, look)
			return
		}
		look()
	})
	select {
	case o := <-answers:
		return o
	case <-done: // nobody else uses the coordinator any more
		return k.machine.Overview()
	}
}
