package operator

import (
	"context"
	"sync/atomic"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/statebackend"
)

// Scope is what all operators of one subtask share. Fields are set before Open and constant, except Now, At, Run and what
// is Failed.
type Scope struct {
	// Ctx ends when the task is cancelled or fails; user code that waits gets it.
	Ctx context.Context
	// Now is the task's one processing time in ms, renewed between runs and before timers.
	Now int64
	// At is the operator at work: the links keep it, failures are named by it.
	At *Runtime
	// Failed is the first error that came up a link, FailedAt the operator that was at work then: user code that emits
	// learns of no error, so that the driver may find it when another operator has been at work.
	Failed   error
	FailedAt *Runtime
	// FailedOn is what that operator had at hand, as Record tells it.
	FailedOn string
	// Run is the run that the operator At is at work on; nil: a mark, a timer or a letter. The links keep it, too; drivers
	// that cut or copy a run say so. After a failure Record finds the element in it.
	Run *frame.Run
	// Clock is read by the task only; operators read Now.
	Clock clock.Clock
	// Mailbox brings completions of other goroutines to the subtask.
	Mailbox *host.Mailbox
	// Waiter is the subtask's waiting point.
	Waiter host.Waiter
	// FlushFrames sends what waits in the task's open frames; see Flush. nil: there are none.
	FlushFrames func() error
	// Spawn starts goroutines for user code.
	Spawn *host.Spawner
	// Timers are the subtask's processing-time callbacks.
	Timers *Callbacks
	// Memory is the process's budget; nil: without limit.
	Memory *host.Memory
	// RunLen is how many elements a source should emit in one Poll: it adapts so that the chain needs about a
	// millisecond for them.
	RunLen int
	// FinalCheckpoint says that checkpoints are taken and one more follows the end of the input, with the state that
	// operators have then. Who commits with checkpoints (CheckpointListener) commits with that one, not at the end itself.
	FinalCheckpoint bool

	Subtask, Parallelism, Attempt int
	JobName                       string
	AutoWatermarkInterval         int64 // ms; 0: never ask
}

// fail notes an error that comes up a link.
func (s *Scope) fail(err error) error {
	if s.Failed == nil {
		s.Failed, s.FailedAt, s.FailedOn = err, s.At, s.Record() // now: the memory of what failed is used again
	}
	return err
}

// Flush sends what waits in open frames, except where the buffer timeout says "only when full": operators that wait inside
// of Push call it first, as the task does when its input runs dry. It may wait for room.
func (s *Scope) Flush() error {
	if s.FlushFrames == nil {
		return nil
	}
	return s.FlushFrames()
}

// Runtime is what one operator gets from the subtask that runs it.
type Runtime struct {
	*Scope
	// In counts the elements that came in over all inputs; read by metrics.
	In             atomic.Int64
	Name           string
	UID            string // stable identity, 32 hex digits
	GivenUID       string // what the user has given to be found by; "": nothing
	MaxParallelism int
	// OpenState opens the operator's keyed state; nil on a stream that is not keyed.
	OpenState func(statebackend.Options) (statebackend.Store, error)
	// Seed is the job's hash seed.
	Seed uint64
	// Restored is the state that the operator begins with; nil: it begins afresh.
	Restored *Restored
	// ToCoordinator sends an event to the operator's coordinator; nil without one.
	ToCoordinator func(event []byte)
	// AtHand tells after a failure what the operator was called for, as in "at key 7, element {...}", while it was at work on
	// r (nil: on a mark or timer); "" if it knows no more than r does. Drivers set it in Open; nil: there is nothing to know.
	AtHand func(r *frame.Run) string
	// Host backs the user's process.Runtime.
	Host process.Host

	functions functions
}
