package control

import (
	"fmt"
	"math"
	"time"

	"github.com/flott-dev/flott/internal/frame"
)

// CheckpointMode is what a checkpoint promises.
type CheckpointMode uint8

const (
	// ExactlyOnce: a channel on which the barrier has come waits for the others, so that no element is in the snapshot and
	// in what follows it.
	ExactlyOnce CheckpointMode = iota
	// AtLeastOnce: no channel waits; elements after the barrier may be in the snapshot as well.
	AtLeastOnce
)

// String is Flink's word for the mode.
func (m CheckpointMode) String() string { return [...]string{"exactly_once", "at_least_once"}[m] }

// NoDeadline is the deadline of an alignment that waits for as long as it takes.
const NoDeadline = math.MaxInt64

// AlignmentOptions say how a task treats barriers.
type AlignmentOptions struct {
	// Channels is the number of channels, over all inputs.
	Channels int
	Mode     CheckpointMode
	// EndAborts: the end of a channel aborts a checkpoint whose barrier has not come on it, as in Flink before checkpoints
	// went on after the end of tasks. Otherwise it stands for the barrier, as nothing follows it.
	EndAborts bool
	// Unaligned lets a checkpoint become unaligned once AlignedTimeout has passed since its first barrier. Savepoints never
	// do. Only for ExactlyOnce.
	Unaligned      bool
	AlignedTimeout time.Duration
	// AlignedOnly, if set, names channels whose data can't be kept in a snapshot (custom partitioners, broadcasts): an
	// unaligned checkpoint waits for their barriers, too.
	AlignedOnly []bool
}

// BarrierVerb is what a task has to do.
type BarrierVerb uint8

const (
	// BeginAlignment: the first barrier has come, others are missing. Deadline says when to call Timeout.
	BeginAlignment BarrierVerb = iota
	// TakeSnapshot: take the operators' snapshot here and pass the barrier on, before anything else is processed. If the
	// action is Unaligned, the barrier overtakes what has not been sent, which belongs to the snapshot, and so does, from now
	// until FinishRecording, all that comes on channels for which Recording is true: it is processed as well. No older
	// checkpoint will be taken any more.
	TakeSnapshot
	// FinishRecording: the last barrier of an unaligned checkpoint has come; what was recorded is complete.
	FinishRecording
	// AbortCheckpoint: give this checkpoint and all older ones up that were not taken, or are still being recorded; tell
	// those downstream by a CancelBarrier, and the coordinator unless it was the one who said so.
	AbortCheckpoint
)

// String gives the verb for traces.
func (v BarrierVerb) String() string {
	return [...]string{"begin alignment", "take snapshot", "finish recording", "abort checkpoint"}[v]
}

// BarrierAction is one thing for the task to do.
type BarrierAction struct {
	Barrier   Barrier // of an AbortCheckpoint that no barrier came of, only the ID
	Took      int64   // of TakeSnapshot and FinishRecording: ns since the first barrier
	Deadline  int64   // of BeginAlignment: ns on the clock of now; NoDeadline if there is none
	Do        BarrierVerb
	Reason    FailureReason // of AbortCheckpoint
	Unaligned bool          // of TakeSnapshot
}

// Alignment turns the barriers of a task's channels into the points at which the task takes its part of a snapshot. It is
// pure: its owner, one goroutine, tells it what comes on channels that are not blocked, and does what it answers. Times
// are readings of one monotonic clock in ns. Actions are lent until the next call. Barriers of one channel come in
// ascending order of their ids; those of checkpoints that are over are ignored.
type Alignment interface {
	// Barrier takes a barrier of a channel.
	Barrier(channel int, b Barrier, now int64) []BarrierAction
	// Cancel takes a channel's word that the barrier of checkpoint id will not come.
	Cancel(channel int, id, now int64) []BarrierAction
	// End takes the end of a channel.
	End(channel int, now int64) []BarrierAction
	// Trigger takes the coordinator's own word for a task all of whose upstream tasks have finished: the checkpoint is
	// taken when every channel has ended, or has brought the barrier after all.
	Trigger(b Barrier, now int64) []BarrierAction
	// Abort gives checkpoint id up, whether its barriers have come or not: the coordinator has aborted it, or the task can't
	// go on aligning.
	Abort(id int64, reason FailureReason, now int64) []BarrierAction
	// Timeout looks whether the deadline has passed. It may be called at any time.
	Timeout(now int64) []BarrierAction
	// Overtakes reports whether a barrier that has come into sight on the channel, behind data that was not read, may be told
	// now as an unaligned one, the data being kept in the snapshot: the snapshot is taken then, if it has not been.
	Overtakes(channel int, b Barrier) bool
	// Blocked reports whether the channel must not be read.
	Blocked(channel int) bool
	// Recording reports whether what comes on the channel belongs to the snapshot of an unaligned checkpoint.
	Recording(channel int) bool
}

// NewAlignment returns the alignment of a task whose channels are all open.
func NewAlignment(o AlignmentOptions) Alignment {
	if o.AlignedOnly != nil && len(o.AlignedOnly) != o.Channels {
		panic(fmt.Sprintf("control: %d channels, of %d is known whether they are aligned", o.Channels, len(o.AlignedOnly)))
	}
	if o.Mode == AtLeastOnce {
		return newBarrierCounter(o)
	}
	return newAligner(o)
}

// StepAlignment takes a barrier, a cancel barrier or an end mark of a channel. It fails on a barrier that can't be read.
func StepAlignment(a Alignment, channel int, m frame.Mark, now int64) ([]BarrierAction, error) {
	switch m.Kind {
	case frame.Barrier:
		b, err := BarrierOf(m.Value)
		if err != nil {
			return nil, err
		}
		return a.Barrier(channel, b, now), nil
	case frame.CancelBarrier:
		return a.Cancel(channel, m.Value, now), nil
	case frame.End:
		return a.End(channel, now), nil
	}
	panic(fmt.Sprintf("control: a %v is no mark of checkpoints", m.Kind))
}

// refusals are checkpoints that were aborted before their barriers came, in the order of their ids.
type refusals []refusal

type refusal struct {
	id     int64
	reason FailureReason
}

// add notes that checkpoint id will not be taken.
func (r *refusals) add(id int64, reason FailureReason) {
	list := *r
	i := len(list)
	for i > 0 && list[i-1].id >= id {
		i--
	}
	if i < len(list) && list[i].id == id {
		return
	}
	list = append(list, refusal{})
	copy(list[i+1:], list[i:])
	list[i] = refusal{id, reason}
	*r = list
}

// take reports whether checkpoint id was refused, and forgets it and all older ones.
func (r *refusals) take(id int64) (reason FailureReason, refused bool) {
	list, n := *r, 0
	for n < len(list) && list[n].id <= id {
		reason, refused = list[n].reason, list[n].id == id
		n++
	}
	*r = append(list[:0], list[n:]...)
	return reason, refused
}
