package task

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/process"
)

// chooser is a saver that chooses its input.
type chooser struct {
	*saver
	next func() process.InputSelection
}

func (*chooser) Selects() bool { return true }

func (c *chooser) Selection() process.InputSelection { return c.next() }

// choosers is a bench of one chooser named a, whose task may be asked for savepoints.
func choosers(t *testing.T, channels ...int) (*bench, *chooser) {
	c := &chooser{saver: &saver{echo: newEcho(t, "a", len(channels))}}
	b := newBench(t, channels, c)
	c.b = b
	b.checkpoint()
	b.dep.Checkpoints.Final = false
	return b, c
}

func (c *chooser) always(s process.InputSelection) {
	c.next = func() process.InputSelection { return s }
}

// ended reports whether the end of an input has come.
func (c *chooser) ended(input int) bool {
	for _, l := range c.b.log {
		if l == fmt.Sprintf("a %d: end", input) {
			return true
		}
	}
	return false
}

// Where several inputs are selected and have something, they are read in turn, an element or a mark at a time.
func TestSelectedInputsAreReadInTurn(t *testing.T) {
	b, c := choosers(t, 1, 1)
	c.always(process.SelectAll)
	b.send(0, 1, 2, 3, mark(frame.End))
	b.send(1, 10, watermark(5), 11, mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wants("a 0: [1]", "a 1: [10]", "a 0: [2]", "a 1: watermark 5", "a 0: [3]", "a 1: [11]", "a 0: end", "a 1: end")
	if n := b.task.rts[0].In.Load(); n != 5 {
		t.Errorf("%d elements were counted", n)
	}
}

// The channels of one input take turns by frames.
func TestChannelsOfASelectedInputAreReadInTurn(t *testing.T) {
	b, c := choosers(t, 2, 1)
	c.next = func() process.InputSelection {
		if c.ended(0) {
			return process.SelectSecond
		}
		return process.SelectFirst
	}
	b.send(2, 20, mark(frame.End))
	b.send(0, 1, 2)
	b.send(0, 3, mark(frame.End))
	b.send(1, 10, 11)
	err := b.run(func() {
		b.note("waits")
		b.send(1, 12, mark(frame.End))
	})
	if err != nil {
		t.Fatal(err)
	}
	b.wants("a 0: [1]", "a 0: [2]", "a 0: [10]", "a 0: [11]", "a 0: [3]", "waits", "a 0: [12]", "a 0: end", "a 1: [20]", "a 1: end")
}

// The head is asked before each element: it may turn away from a frame in the middle, whose rest waits, marks included.
func TestFramesOfInputsThatAreNotSelectedWait(t *testing.T) {
	b, c := choosers(t, 1, 1)
	c.next = func() process.InputSelection {
		switch len(b.log) {
		case 1, 2:
			return process.SelectSecond
		case 0, 3, 4, 5:
			return process.SelectFirst
		}
		return process.SelectAll
	}
	b.send(0, 1, watermark(3), 2, 3)
	b.send(1, 10, 11)
	err := b.run(
		func() { b.send(0, mark(frame.End)) },
		func() { b.send(1, mark(frame.End)) },
	)
	if err != nil {
		t.Fatal(err)
	}
	b.wants("a 0: [1]", "a 1: [10]", "a 1: [11]", "a 0: watermark 3", "a 0: [2]", "a 0: [3]", "a 0: end", "a 1: end")
	for i, channel := range b.in {
		if channel.Fresh() == nil {
			t.Errorf("the first frame of channel %d did not come back", i)
		}
	}
}

// What is on an input that is not selected wakes the task in vain, and is read once it is selected.
func TestUnselectedInputsAreNotRead(t *testing.T) {
	b, c := choosers(t, 1, 1)
	c.next = func() process.InputSelection {
		if c.ended(1) {
			return process.SelectFirst
		}
		return process.SelectSecond
	}
	b.send(0, 1, mark(frame.End))
	err := b.run(
		func() { b.note("still") },
		func() { b.send(1, mark(frame.End)) },
	)
	if err != nil {
		t.Fatal(err)
	}
	b.wants("still", "a 1: end", "a 0: [1]", "a 0: end")
}

// A selection by which nothing would ever be read is an error of the operator.
func TestSelectionsWithoutProgressFail(t *testing.T) {
	for _, c := range []struct {
		selection process.InputSelection
		want      string
	}{
		{process.SelectFirst, "selects input 1 only, which has ended"},
		{0, "selects no input"},
		{1 << 5, "selects no input"},
	} {
		b, chooser := choosers(t, 1, 1)
		chooser.always(c.selection)
		b.send(0, 1, mark(frame.End))
		b.send(1, 2)
		var named *Error
		if err := b.run(); !errors.As(err, &named) || named.Operator != "op0" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("selection %d: error %v, want %q", c.selection, err, c.want)
		}
	}
}

// Between two elements a task without room downstream stops, if it may look at barriers meanwhile.
func TestSelectingTasksWaitForRoom(t *testing.T) {
	b, c := choosers(t, 1, 1)
	b.dep.Checkpoints.Unaligned = true
	c.always(process.SelectAll)
	out := b.edge(0, "", graph.Forward, 0, 1)[0]
	for range 7 {
		out.Offer(b.frame(0))
	}
	b.send(0, 1, 2, mark(frame.End))
	b.send(1, 10, mark(frame.End))
	err := b.run(func() {
		b.wants("a 0: [1]")
		received(out)
	})
	if err != nil {
		t.Fatal(err)
	}
	b.wants("a 0: [1]", "a 1: [10]", "a 0: [2]", "a 1: end", "a 0: end")
}

// A job that takes checkpoints can't have such an operator; it says so before the first element.
func TestSelectingTasksRefuseCheckpoints(t *testing.T) {
	b, c := choosers(t, 1, 1)
	b.dep.Checkpoints.Final = true
	c.always(process.SelectAll)
	b.send(0, 1)
	var named *Error
	if err := b.run(); !errors.Is(err, SelectingError{}) || !errors.As(err, &named) || named.Operator != "op0" {
		t.Errorf("error %v", err)
	}
	b.wants()
}

// A savepoint that reaches such a task is declined, in either mode, with the reason; the stream goes on.
func TestSelectingTasksDeclineSavepoints(t *testing.T) {
	for _, mode := range []control.CheckpointMode{control.ExactlyOnce, control.AtLeastOnce} {
		b, c := choosers(t, 1, 1)
		b.dep.Checkpoints.Mode = mode
		b.dep.Checkpoints.Declined = func(id int64, _ control.FailureReason, err error) {
			b.note("declined %d: %v", id, errors.Is(err, SelectingError{}))
		}
		c.always(process.SelectAll)
		savepoint := control.Barrier{ID: 7, Kind: control.Savepoint}
		b.send(0, savepoint.Mark())
		b.send(0, 1, mark(frame.End))
		b.send(1, savepoint.Mark())
		b.mailbox.Post(b.build().Trigger(control.Barrier{ID: 6, Kind: control.Savepoint}))
		err := b.run(func() { b.send(1, 2, mark(frame.End)) })
		if err != nil {
			t.Fatal(mode, err)
		}
		b.wants("declined 6: true", "declined 7: true", "a 0: cancel barrier", "a 0: [1]", "a 0: end", "a 1: [2]", "a 1: end")
	}
}
