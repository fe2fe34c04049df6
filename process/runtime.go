// Package process is what user code that needs more than a plain function holds at run time: processors with state,
// timers and side outputs, their contexts, accumulators and life cycle. It is driven by the engine on the subtask's one
// goroutine; nothing of it may be used from another goroutine unless said otherwise.
package process

import (
	"context"

	"github.com/flott-dev/flott/state"
)

// Host is the engine's side of a Runtime. User code never implements it.
type Host interface {
	state.Binder
	// Info tells where the subtask stands.
	Info() Info
	// Context ends when the task is cancelled or fails.
	Context() context.Context
	// Accumulator returns the subtask's accumulator of that name, made by fresh the first time.
	Accumulator(name string, fresh func() Accumulator) Accumulator
	// Metric returns the subtask's metric of that name in the operator's group, made by fresh the first time.
	Metric(name string, fresh func() Metric) Metric
	// CachedFile is the local path of a file registered with the environment.
	CachedFile(name string) (string, error)
	// GlobalParameter is a job parameter set on the environment.
	GlobalParameter(name string) (string, bool)
	// Report records a mistake of the user's constructor; the task fails with it before the first element, or soon if the
	// constructor has returned.
	Report(err error)
	// Post leaves work for the subtask's goroutine; any goroutine may call it.
	Post(f func() error)
	// Go starts a goroutine that the task waits for.
	Go(f func())
}

// Info is where a subtask stands in its job.
type Info struct {
	JobName        string // as given to Execute
	TaskName       string // the operator's name
	UID            string // the operator's stable identity
	Subtask        int    // from 0
	Parallelism    int    // the operator's number of subtasks
	MaxParallelism int    // the operator's number of key groups
	Attempt        int    // 0 at first, +1 for each restart
}

// Runtime is what a processor's constructor gets: it declares state, accumulators and metrics, and tells where the
// subtask stands. A Runtime belongs to one operator of one subtask.
type Runtime struct{ Host }

// NewRuntime wraps the engine's side.
func NewRuntime(h Host) *Runtime { return &Runtime{Host: h} }
