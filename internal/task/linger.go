package task

import (
	"encoding/binary"
	"errors"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
)

// finish comes when the input has ended: everything is sent, and the task waits for one more checkpoint if it has
// something to commit with it.
func (t *Task) finish() error {
	if err := t.flush(); err != nil {
		return err
	}
	c := t.checkpoints
	if c == nil {
		return nil
	}
	c.ended = true
	if !t.commits() {
		return nil
	}
	c.Lingers()
	return t.await(func() bool { return c.over })
}

// commits reports whether an operator at an end of the stream commits with checkpoints.
func (t *Task) commits() bool {
	if !t.checkpoints.Final {
		return false
	}
	for i, n := range t.d.Vertex.Nodes {
		if _, ok := t.ops[i].(operator.CheckpointListener); ok && n.Node.Out == nil {
			return true
		}
	}
	return false
}

// halted waits, after the snapshot of a savepoint that stops the job, until the savepoint is complete, which ends the task,
// or given up. Nothing happens meanwhile: it would be neither in the savepoint nor after it.
func (t *Task) halted() (over bool, err error) {
	c := t.checkpoints
	if c == nil || c.halt == 0 || len(c.held) > 0 { // what is to be added to the snapshot comes by the loop
		return false, nil
	}
	if err := t.flush(); err != nil {
		return false, err
	}
	err = t.await(func() bool { return c.over || c.halt == 0 })
	return c.over, err
}

// await opens letters, and nothing else, until over.
func (t *Task) await(over func() bool) error {
	for {
		if t.stopped.Load() {
			return exchange.ErrCancelled
		}
		t.scope.Now = t.d.Clock.Millis()
		for _, letter := range t.d.Mailbox.Take() {
			if err := letter(); err != nil {
				return err
			}
		}
		if over() {
			return nil
		}
		t.waiter.Wait(host.Idle, host.Forever)
	}
}

// endedList is a list of the head operator in snapshots that were taken after the end of the input, which the operators
// have seen then: docs/formats/snapshot.md describes its items.
const endedList = "ended"

func (t *Task) endedState() checkpoint.List {
	item := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(t.d.Subtask)), uint64(t.d.Vertex.Parallelism))
	return checkpoint.List{Name: endedList, Mode: checkpoint.Union, Items: [][]byte{item}}
}

// hadEnded reports whether the operators had seen the end in the snapshot that they begin with. With another parallelism
// those of all old subtasks must have.
func (t *Task) hadEnded() (bool, error) {
	list := t.rts[0].Restored.List(endedList)
	if list == nil {
		return false, nil
	}
	for _, item := range list.Items {
		subtask, n := binary.Uvarint(item)
		if n <= 0 {
			return false, errors.New("restore the end of the input: an item is malformed")
		}
		parallelism, n := binary.Uvarint(item[n:])
		switch {
		case n <= 0:
			return false, errors.New("restore the end of the input: an item is malformed")
		case parallelism != uint64(t.d.Vertex.Parallelism):
			return uint64(len(list.Items)) == parallelism, nil
		case subtask == uint64(t.d.Subtask):
			return true, nil
		}
	}
	return false, nil
}

// runEnded runs a task whose operators had seen the end before the snapshot: they may have something to commit, and
// nothing more to read or to emit.
func (t *Task) runEnded() error {
	if err := t.sendEnd(); err != nil {
		return err
	}
	return t.finish()
}

// runFinished runs a task that had finished before the snapshot that the job goes on from: its operators have done all
// that they had to do.
func (t *Task) runFinished() error {
	if err := t.sendEnd(); err != nil {
		return t.failure(err)
	}
	return nil
}

// sendEnd sends the end to those downstream, past the operators.
func (t *Task) sendEnd() error {
	for _, m := range []frame.Mark{{Kind: frame.Watermark, Value: frame.MaxWatermark}, {Kind: frame.End}} {
		for _, w := range t.writers {
			if err := w.Mark(m); err != nil {
				return err
			}
		}
	}
	return nil
}
