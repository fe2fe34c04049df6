package task

import (
	"errors"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// holding is a bench of two savers whose first adds something to its snapshots later: the snapshots that it has begun.
func holding(t *testing.T) (b *bench, begun *[]*operator.Snapshot) {
	t.Helper()
	b, ss := savers(t, 2, 1)
	b.dep.Checkpoints.Dropped = func(id int64) { b.note("dropped %d", id) }
	begun = new([]*operator.Snapshot)
	ss[0].hold = func(s *operator.Snapshot) {
		s.Held = true
		*begun = append(*begun, s)
	}
	return b, begun
}

// A snapshot to which an operator adds something later goes nowhere before it has, and nothing after it is given up.
func TestSnapshotsWaitForWhatOperatorsAddLater(t *testing.T) {
	for name, c := range map[string]struct {
		then func(b *bench, s *operator.Snapshot)
		want string
	}{
		"it is added": {func(_ *bench, s *operator.Snapshot) { s.Complete() }, "took 1: a channels b"},
		"it can't be added": {
			func(_ *bench, s *operator.Snapshot) { s.Fail(errBoom) }, "dropped 1, declined 1: declined",
		},
		"the checkpoint is aborted": {
			func(b *bench, _ *operator.Snapshot) { b.mailbox.Post(b.task.Aborted(1, control.ReasonExpired)) },
			"dropped 1, a aborted 1, b aborted 1",
		},
		"a later one is aborted": {
			func(b *bench, _ *operator.Snapshot) { b.mailbox.Post(b.task.Aborted(2, control.ReasonExpired)) },
			"dropped 1, a aborted 2, b aborted 2",
		},
	} {
		b, begun := holding(t)
		b.build()
		b.send(0, barrier(1))
		err := b.run(
			func() {
				b.log = nil
				c.then(b, (*begun)[0])
			},
			func() { // too late
				(*begun)[0].Complete()
				(*begun)[0].Fail(errBoom)
				b.wants(strings.Split(c.want, ", ")...)
				b.send(0, mark(frame.End))
			},
		)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// stubborn is a saver that fails when it hears of a checkpoint.
type stubborn struct{ *saver }

func (stubborn) CheckpointCompleted(int64) error { return errBoom }
func (stubborn) CheckpointAborted(int64) error   { return errBoom }

// An operator that can't act upon the end of a checkpoint fails the task in its name.
func TestListenersThatFailFailTheTask(t *testing.T) {
	for want, letter := range map[string]func(*Task) func() error{
		"complete checkpoint 3": func(task *Task) func() error { return task.Completed(3, control.Checkpoint) },
		"abort checkpoint 3":    func(task *Task) func() error { return task.Aborted(3, control.ReasonExpired) },
	} {
		first, second := &saver{echo: newEcho(t, "a", 1)}, stubborn{&saver{echo: newEcho(t, "b", 1)}}
		b := newBench(t, []int{1}, first, second)
		first.b, second.b = b, b
		second.index = 1
		b.checkpoint()
		b.build()
		err := b.run(func() { b.mailbox.Post(letter(b.task)) })
		var e *Error
		if !errors.As(err, &e) || e.Operator != "op1" || !errors.Is(err, errBoom) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
