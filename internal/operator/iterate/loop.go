// Package iterate holds the two ends of a feedback loop: the head, through which what is fed back enters the loop's body
// again, and the tail, which feeds it back. Subtask i of the one and subtask i of the other are in one process, where the
// lane between them is an unbounded queue, in memory first, then in files: so a tail never waits, and a loop whose body
// adds elements can't block itself. What is fed back goes before new input. The loop ends when nothing is under way any
// more, which Rounds finds out; nothing here reads a clock or starts a goroutine.
package iterate

import (
	"fmt"
	"path"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/vfs"
)

// FeedbackTag is the head's output of what is fed back, in a loop whose feedback is of another type than its input.
const FeedbackTag = "feedback"

// Dropped is the metric, and the accumulator, of elements that were fed back after the loop had ended.
const Dropped = "numFeedbackRecordsDropped"

// Options describe a loop.
type Options struct {
	ID int64 // tells the loops of a job apart; not negative
	// MaxWait ends the loop, once its input has ended, when nothing was fed back for so many ms, whatever is under way;
	// 0: never.
	MaxWait int64
	// Memory is how many bytes each subtask keeps in memory before it writes to files.
	Memory int64
	FS     vfs.FS
	Dir    func() string // of spill files
}

// Loop joins the heads and tails of one loop that run in this process.
type Loop struct {
	Options
	guard host.Guard
	lanes map[place]*lane
}

// place is where a head and a tail meet.
type place struct{ attempt, subtask int }

// NewLoop returns a loop; heads and tails are made from it.
func NewLoop(o Options) *Loop { return &Loop{Options: o, lanes: map[place]*lane{}} }

// lane is the queue from one tail to its head.
type lane struct {
	loop   *Loop
	at     place
	guard  host.Guard
	spool  *spool
	waiter host.Waiter // of the head; nil before it has opened
	users  int         // of head and tail, those that are open
	ended  bool        // the head takes nothing any more
}

// enter is the lane of a subtask; leave must follow.
func (l *Loop) enter(rt *operator.Runtime, feedback *frame.Type) *lane {
	l.guard.Enter()
	defer l.guard.Leave()
	at := place{rt.Attempt, rt.Subtask}
	n := l.lanes[at]
	if n == nil {
		name := fmt.Sprintf("flott-feedback-%s-%d-%d-%d", rt.UID, l.ID, rt.Attempt, rt.Subtask)
		n = &lane{loop: l, at: at, spool: newSpool(feedback, l.Memory, rt.Memory, l.FS, path.Join(l.Dir(), name))}
		l.lanes[at] = n
	}
	n.users++
	return n
}

func (n *lane) leave() {
	n.loop.guard.Enter()
	defer n.loop.guard.Leave()
	if n.users--; n.users == 0 {
		delete(n.loop.lanes, n.at)
	}
}

// listen tells the lane whom to wake.
func (n *lane) listen(w host.Waiter) {
	n.guard.Enter()
	n.waiter = w
	n.guard.Leave()
}

// put feeds a run back; taken is false if the loop has ended.
func (n *lane) put(r *frame.Run) (taken bool, err error) {
	n.guard.Enter()
	defer n.guard.Leave()
	if n.ended {
		return false, nil
	}
	if err := n.spool.add(r); err != nil {
		return true, err
	}
	n.wake()
	return true, nil
}

// mark feeds a probe back.
func (n *lane) mark(probe int64) {
	n.guard.Enter()
	defer n.guard.Leave()
	if !n.ended {
		n.spool.mark(probe)
		n.wake()
	}
}

// barrier feeds a barrier back.
func (n *lane) barrier(value int64) {
	n.guard.Enter()
	defer n.guard.Leave()
	if !n.ended {
		n.spool.append(item{barrier: value})
		n.wake()
	}
}

func (n *lane) wake() {
	if n.waiter != nil {
		n.waiter.Wake()
	}
}

func (n *lane) take() (it item, ok bool) {
	n.guard.Enter()
	defer n.guard.Leave()
	return n.spool.take()
}

// done gives back what a taken item holds.
func (n *lane) done(it *item) error {
	n.guard.Enter()
	defer n.guard.Leave()
	if it.frame != nil {
		n.spool.recycle(it.frame)
		return nil
	}
	return n.spool.done(it)
}

// end closes the lane and returns how many elements it still held.
func (n *lane) end() (dropped int64, err error) {
	n.guard.Enter()
	defer n.guard.Leave()
	if n.ended {
		return 0, nil
	}
	n.ended = true
	return n.spool.close()
}

// probeBits is how many bits of a probe's value are its round; the rest are the loop.
const probeBits = 40

func (l *Loop) probe(round int64) int64 { return l.ID<<probeBits | round }

// own reports whether a probe is of this loop.
func (l *Loop) own(m frame.Mark) bool { return m.Value>>probeBits == l.ID }
