package control

import (
	"errors"
	"fmt"
)

// checkpointTasks knows the tasks of a job, by number: vertices in order, then subtasks.
type checkpointTasks struct {
	vertices []CheckpointVertex
	after    [][]int // by vertex: those that it feeds
	first    []int   // by vertex: the number of its first task
	finished []int   // by vertex: how many of its tasks have
	all      []checkpointTask
}

type checkpointTask struct {
	TaskRef
	roles Role
	state TaskState
}

func newCheckpointTasks(vertices []CheckpointVertex) checkpointTasks {
	t := checkpointTasks{vertices: vertices, after: make([][]int, len(vertices)), finished: make([]int, len(vertices))}
	for v := range vertices {
		t.first = append(t.first, len(t.all))
		for s := range vertices[v].Parallelism {
			t.all = append(t.all, checkpointTask{TaskRef: TaskRef{TaskID: TaskID{v, s}}, roles: vertices[v].Roles})
		}
		for _, in := range vertices[v].Inputs {
			t.after[in.From] = append(t.after[in.From], v)
		}
	}
	return t
}

// number finds a task; -1 if the job has no such task.
func (t *checkpointTasks) number(id TaskID) int {
	if id.Vertex < 0 || id.Vertex >= len(t.vertices) || id.Subtask < 0 || id.Subtask >= t.vertices[id.Vertex].Parallelism {
		return -1
	}
	return t.first[id.Vertex] + id.Subtask
}

// of are the tasks of a vertex.
func (t *checkpointTasks) of(vertex int) []checkpointTask {
	return t.all[t.first[vertex]:][:t.vertices[vertex].Parallelism]
}

// name is how people call a task.
func (t *checkpointTasks) name(id TaskID) string {
	v := &t.vertices[id.Vertex]
	return fmt.Sprintf("subtask %d of %d of %q", id.Subtask+1, v.Parallelism, v.Name)
}

// set notes a task's execution and state.
func (t *checkpointTasks) set(number, attempt int, state TaskState) {
	p := &t.all[number]
	if p.state == TaskFinished {
		t.finished[p.Vertex]--
	}
	if state == TaskFinished {
		t.finished[p.Vertex]++
	}
	p.Attempt, p.state = attempt, state
}

// restart begins another attempt of tasks, or of all if ids is nil.
func (t *checkpointTasks) restart(ids []TaskID, attempt int) {
	if ids == nil {
		for i := range t.all {
			t.set(i, attempt, TaskCreated)
		}
	}
	for _, id := range ids {
		if n := t.number(id); n >= 0 {
			t.set(n, attempt, TaskCreated)
		}
	}
}

// running are the executions with the role that run.
func (t *checkpointTasks) running(role Role) []TaskRef {
	var out []TaskRef
	for i := range t.all {
		if p := &t.all[i]; p.roles&role != 0 && p.state == TaskRunning {
			out = append(out, p.TaskRef)
		}
	}
	return out
}

// ErrTaskFinished is why a job takes no snapshots any more that takes none after tasks have finished.
var ErrTaskFinished = errors.New("has finished, and no snapshot is taken after that: set execution.checkpointing.checkpoints-after-tasks-finish to true, the default, to have them taken up to the end")

// ready reports why a snapshot can't be taken, naming a task that must take part and can't. afterFinish lets tasks have
// finished, as long as one has not.
func (t *checkpointTasks) ready(afterFinish bool) error {
	left := false
	for i := range t.all {
		p := &t.all[i]
		switch {
		case p.roles&(Triggered|Acknowledges) == 0 || p.state == TaskFinished && afterFinish:
		case p.state == TaskFinished:
			return fmt.Errorf("%s %w", t.name(p.TaskID), ErrTaskFinished)
		case p.state != TaskRunning:
			return fmt.Errorf("%s is %v", t.name(p.TaskID), p.state)
		default:
			left = true
		}
	}
	if !left {
		return errors.New("all tasks have finished")
	}
	return nil
}

// trigger makes the parts of a snapshot, once ready allows it, and says who is to be triggered by the coordinator: the
// tasks of sources, and those that have nothing unfinished upstream, in place of their sources.
func (t *checkpointTasks) trigger(p *pendingCheckpoint) (triggered []TaskRef) {
	p.parts = make([]taskPart, len(t.all))
	for i := range t.all {
		task, part := &t.all[i], &p.parts[i]
		part.attempt = task.Attempt
		if task.roles&Acknowledges != 0 {
			part.status = partOwed
			p.owed++
			if task.state == TaskFinished {
				p.give(i, TaskSnapshot{Task: task.TaskID, Finished: true})
			}
		}
		if task.state == TaskRunning && (task.roles&Triggered != 0 || t.inputsFinished(task.TaskID)) {
			part.triggered = true
			triggered = append(triggered, task.TaskRef)
		}
	}
	return triggered
}

// orphans are the tasks fed by this one that owe their part of the snapshot and have nothing unfinished upstream any more:
// no barrier may ever come to them. Each is named once.
func (t *checkpointTasks) orphans(p *pendingCheckpoint, finished TaskID) (triggered []TaskRef) {
	for _, v := range t.after[finished.Vertex] {
		tasks := t.of(v)
		for i := range tasks {
			task, part := &tasks[i], &p.parts[t.first[v]+i]
			if part.status == partOwed && !part.triggered && t.inputsFinished(task.TaskID) {
				part.triggered = true
				triggered = append(triggered, task.TaskRef)
			}
		}
	}
	return triggered
}

// inputsFinished reports whether all tasks that feed this one have finished; false for those of sources.
func (t *checkpointTasks) inputsFinished(id TaskID) bool {
	inputs := t.vertices[id.Vertex].Inputs
	for i := range inputs {
		in := &inputs[i]
		switch {
		case t.finished[in.From] == t.vertices[in.From].Parallelism:
			continue
		case in.Peers == nil:
			return false
		}
		for _, up := range in.Peers[id.Subtask] {
			if t.of(in.From)[up].state != TaskFinished {
				return false
			}
		}
	}
	return len(inputs) > 0
}
