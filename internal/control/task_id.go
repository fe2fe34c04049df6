package control

import "fmt"

// TaskID names a subtask of a job: the number of its vertex in the job graph and its own in the vertex.
type TaskID struct{ Vertex, Subtask int }

// String gives the numbers as "vertex/subtask", both from 0.
func (t TaskID) String() string { return fmt.Sprintf("%d/%d", t.Vertex, t.Subtask) }

// TaskRef is one execution of a subtask.
type TaskRef struct {
	TaskID
	Attempt int
}

// TaskState is what a task does, as far as checkpoints are concerned.
type TaskState uint8

const (
	// TaskCreated: it does not run yet, or restores.
	TaskCreated TaskState = iota
	// TaskRunning: it has restored and works.
	TaskRunning
	// TaskFinished: it has worked off all of its input, sent all of its output, and answered every barrier that came to it.
	// One whose last results wait for a checkpoint has not finished.
	TaskFinished
	// TaskFailed: it will be started anew, or the job ends.
	TaskFailed
)

// String gives the state's name.
func (s TaskState) String() string {
	return [...]string{"created", "running", "finished", "failed"}[s]
}

// Role is what the tasks of a vertex have to do with a checkpoint.
type Role uint8

const (
	// Triggered tasks are told by the coordinator: those of sources. Others are told by barriers.
	Triggered Role = 1 << iota
	// Acknowledges: a checkpoint is complete only with the task's part.
	Acknowledges
	// Notified tasks are told of complete and aborted checkpoints.
	Notified
)

// CheckpointVertex is a vertex of a job as its checkpoints see it.
type CheckpointVertex struct {
	Name        string
	Parallelism int
	// Roles is Acknowledges|Notified for all vertices of a job, and Triggered for those of sources.
	Roles  Role
	Inputs []CheckpointInput
}

// CheckpointInput is an edge into a vertex.
type CheckpointInput struct {
	// From is the number of the vertex upstream.
	From int
	// Peers are the subtasks upstream that feed each subtask; nil: all feed all.
	Peers [][]int
}
