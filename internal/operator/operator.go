// Package operator is the contract between a subtask and the operators that it drives: erased operators, links that are
// asserted once when a chain is built, and the few helpers that all drivers share. It owns no thread, queue or clock:
// the task calls operators on its one goroutine and gives them a Runtime. The drivers themselves are in the folders
// below.
package operator

import (
	"github.com/flott-dev/flott/internal/frame"
)

// Input is where elements and marks enter an operator (or an exchange). Calls come from the subtask's goroutine only, in
// stream order.
type Input interface {
	// Type is what the input takes; nil takes everything.
	Type() *frame.Type
	// Push lends a run until it returns. The callee may shorten or overwrite the run's memory unless it is Shared.
	Push(r *frame.Run) error
	// Mark hands over a mark after everything that came before it. For frame.End it is the last call; the operator has
	// emitted all that its end of input makes it emit, and passed End on, when it returns.
	Mark(m frame.Mark) error
}

// Operator is one operator of one subtask. The task calls Connect for each consumer, then Open, then its inputs, then
// Close exactly once if Open was called, in success, failure and cancellation alike.
type Operator interface {
	// Inputs returns the operator's inputs; a source has none.
	Inputs() []Input
	// Output returns the output with this side-output tag, "" for the main one; nil if there is no such output.
	Output(tag string) *Output
	// Open prepares the operator: it may allocate, open state, register timers and call the user's constructor.
	Open(rt *Runtime) error
	// Close releases what Open took; it may not emit.
	Close() error
}

// Status is a source's answer to Poll.
type Status uint8

const (
	// More: call again at once.
	More Status = iota
	// Nothing: no element now; the source wakes the subtask when there is one.
	Nothing
	// Done: the input is over.
	Done
)

// Source is the operator at the head of a source task.
type Source interface {
	Operator
	// Poll emits at most about one frame of elements to its output. It must not block for long: a source that waits
	// for outside data does so on a goroutine of rt.Scope.Spawn and answers Nothing.
	Poll() (Status, error)
}

// Looper is an operator at the head of a task that has work besides its input: the head of an iteration, to which elements
// come back from the tail. Its work goes before the input, and the task ends when the operator says so, not with its
// input: the operator holds back the end that its input hands it and passes End on when it is Done.
type Looper interface {
	Operator
	// Work does a portion of the work, a run of Scope.RunLen elements at most. Nothing: there is none now; the operator
	// wakes the subtask when there is. Done: End has been passed on.
	Work() (Status, error)
}

// Finisher is an operator that still emits when its input has ended; drivers call it from Mark(End) before passing
// End on.
type Finisher interface {
	Finish() error
}
