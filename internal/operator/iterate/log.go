package iterate

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
)

// feedbackList is the list of a head's snapshot that holds what was in the loop: docs/formats/snapshot.md describes its items.
const feedbackList = "feedback"

// log gathers what comes back before the barrier of a snapshot does: it was emitted before the barrier, and the snapshots of
// the body lie behind it.
type log struct {
	to      *operator.Snapshot
	barrier int64
	memory  *host.Memory // nil: without limit
	items   [][]byte
	bytes   int64 // of the items, of the process's budget
	err     error // there was no memory: the log is given up when the barrier returns
}

// kept is a frame that is to be fed back: of the snapshot that the job goes on from, or one that came while the job was
// being stopped.
type kept struct {
	frame *frame.Frame
	bytes int64 // of the process's budget
}

// Snapshot implements operator.Snapshotter: the loop is logged from now until the barrier returns.
func (h *head) Snapshot(s *operator.Snapshot) error {
	if h.phase == over {
		return nil
	}
	l := &log{to: s, barrier: h.barrier, memory: h.RT.Memory}
	if err := l.add(h.typ, &h.run); err != nil {
		return err
	}
	for _, k := range h.replay {
		r := k.frame.Run()
		if err := l.add(h.typ, &r); err != nil {
			return err
		}
	}
	s.Held = true
	if s.Stops {
		h.halted = s.ID
	}
	h.logs = append(h.logs, l)
	return nil
}

// log notes what has come back.
func (h *head) log(r *frame.Run) error {
	for _, l := range h.logs {
		if err := l.add(h.typ, r); err != nil {
			return err
		}
	}
	return nil
}

func (l *log) add(t *frame.Type, r *frame.Run) error {
	if r.N == 0 || l.err != nil {
		return nil
	}
	f := frame.New(t, r.N)
	f.Append(r, 0, r.N)
	schema := t.Schema().String()
	b := append(binary.AppendUvarint(nil, uint64(len(schema))), schema...)
	b, err := f.Encode(b)
	if err != nil {
		return fmt.Errorf("log feedback: %w", err)
	}
	if err := l.memory.Reserve(int64(len(b))); err != nil {
		l.drop(fmt.Errorf("log feedback: %w", err))
		return nil
	}
	l.bytes += int64(len(b))
	l.items = append(l.items, b)
	return nil
}

// drop gives the log up; err, which may be nil, is why.
func (l *log) drop(err error) {
	l.memory.Release(l.bytes)
	l.items, l.bytes, l.err = nil, 0, err
}

// closeLog takes a barrier that is back. The logs of older ones are of checkpoints that were given up.
func (h *head) closeLog(barrier int64) {
	for i, l := range h.logs {
		if l.barrier == barrier {
			h.logs = append(h.logs[:0], h.logs[i+1:]...)
			if l.err != nil {
				l.to.Fail(l.err)
				return
			}
			l.to.Lists = append(l.to.Lists, checkpoint.List{Name: feedbackList, Items: l.items})
			l.to.Charge(l.memory, l.bytes)
			l.to.Complete()
			return
		}
	}
}

// CheckpointCompleted implements operator.CheckpointListener.
func (h *head) CheckpointCompleted(int64) error { return nil }

// CheckpointAborted implements operator.CheckpointListener: nothing is logged for it any more.
func (h *head) CheckpointAborted(id int64) error {
	if h.halted <= id {
		h.halted = 0
	}
	for len(h.logs) > 0 && h.logs[0].to.ID <= id {
		h.logs[0].drop(nil)
		h.logs = h.logs[1:]
	}
	return nil
}

// restore reads what was in the loop.
func (h *head) restore() error {
	list := h.RT.Restored.List(feedbackList)
	if list == nil {
		return nil
	}
	for _, item := range list.Items {
		n, used := binary.Uvarint(item)
		if used <= 0 || n > uint64(len(item)-used) {
			return errors.New("restore feedback: an item is malformed")
		}
		var reader *serde.Reader
		if schema := string(item[used : used+int(n)]); schema != h.typ.Schema().String() {
			old, err := serde.ParseSchema(schema)
			if err != nil {
				return fmt.Errorf("restore feedback: %w", err)
			}
			if reader, err = h.typ.Reader(old); err != nil {
				return fmt.Errorf("restore feedback: %w", err)
			}
		}
		f, err := frame.Decode(h.typ, reader, item[used+int(n):])
		if err != nil {
			return fmt.Errorf("restore feedback: %w", err)
		}
		k := kept{f, h.frameBytes(f)}
		if err := h.RT.Memory.Reserve(k.bytes); err != nil {
			return fmt.Errorf("restore feedback: %w", err)
		}
		h.replay = append(h.replay, k)
	}
	return nil
}

// frameBytes is what a frame takes at least.
func (h *head) frameBytes(f *frame.Frame) int64 { return int64(f.Cap()) * int64(h.typ.Size+8) }

// again begins to emit the next frame that was in the loop. What was logged of it was logged when the snapshot was taken.
func (h *head) again() error {
	k := h.replay[0]
	h.replay = h.replay[1:]
	h.RT.Memory.Release(k.bytes) // it is at work, as a frame of the lane would be
	h.run = k.frame.Run()
	return h.beginRun(h.run.N)
}

// gather takes what comes back after a savepoint that stops the job, whose tasks take nothing any more: it is logged, and kept
// for the case that the savepoint is given up. That is the case when there is no memory to keep it.
func (h *head) gather() (operator.Status, error) {
	it, ok := h.lane.take()
	switch {
	case !ok:
		return operator.Nothing, nil
	case it.barrier != 0:
		h.closeLog(it.barrier)
		return operator.More, nil
	case it.frame == nil && it.seg == nil:
		h.returned(it.probe)
		return operator.More, nil
	}
	r, err := h.read(&it)
	if err != nil {
		return operator.More, err
	}
	if err := h.log(&r); err != nil {
		return operator.More, err
	}
	f := frame.New(h.typ, r.N)
	f.Append(&r, 0, r.N)
	k := kept{f, h.frameBytes(f)}
	if err := h.RT.Memory.Reserve(k.bytes); err != nil {
		k.bytes, h.halted = 0, 0
		for _, l := range h.logs {
			l.drop(fmt.Errorf("keep feedback: %w", err))
		}
	}
	h.replay = append(h.replay, k)
	return operator.More, h.lane.done(&it)
}

// read is the elements of an item: where they lie, or in memory that is used again.
func (h *head) read(it *item) (r frame.Run, err error) {
	if it.frame != nil {
		return it.frame.Run(), nil
	}
	col := frame.NewColumn(h.typ, h.typ.FrameLen(frame.Bytes))
	r, h.bytes, h.times, err = h.lane.spool.read(it, col, h.bytes, h.times)
	return r, err
}
