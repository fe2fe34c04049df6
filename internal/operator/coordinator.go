package operator

import "context"

// Coordinator is the part of an operator that runs once per job, beside the job manager: a source's enumerator. Its
// methods are never called concurrently. Events are bytes, so that subtasks may be in other processes.
type Coordinator interface {
	// Start is called first; restored is the last snapshot, nil at a fresh start.
	Start(ctx CoordinatorContext, restored []byte) error
	// Handle takes an event of a subtask.
	Handle(subtask int, event []byte) error
	// Snapshot is the coordinator's state for a checkpoint.
	Snapshot(checkpoint int64) ([]byte, error)
	// Close releases everything; called once.
	Close() error
}

// Reactive is a Coordinator that only reacts to events and never calls Do: it needs no goroutine, so that it can run in a
// simulation.
type Reactive interface {
	Coordinator
	Reactive()
}

// CoordinatorContext is the coordinator's way to its subtasks.
type CoordinatorContext interface {
	// Context ends with the job.
	Context() context.Context
	// Parallelism is the number of subtasks.
	Parallelism() int
	// Send hands an event to a subtask's operator, in order.
	Send(subtask int, event []byte)
	// Do runs work on a goroutine of its own and then done as one of the coordinator's calls; every > 0 repeats it with
	// that pause in ms until the job ends. Any goroutine may call it.
	Do(every int64, work func(context.Context) error, done func(error))
}

// EventReceiver is an operator that hears from its coordinator.
type EventReceiver interface {
	HandleEvent(event []byte) error
}
