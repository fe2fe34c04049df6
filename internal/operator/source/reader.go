package source

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// The events between a reader and its enumerator: a kind byte, then, for splits, their number and encodings.
const (
	eventSplits  byte = 1 // coordinator -> subtask
	eventNoMore  byte = 2 // coordinator -> subtask
	eventRequest byte = 3 // subtask -> coordinator
)

// reader drives a connector's Reader.
type reader[T, S any] struct {
	head
	src    connector.Source[T, S]
	split  *serde.Handle
	reader connector.Reader[T, S]
	col    *frame.Column
	out    *connector.Output[T]
	sides  *operator.Sides
	attach func(reader any, out *process.Context) error
	idle   bool
	splits splits
}

// Reader returns the driver of a split reader. split is the handle of S.
func Reader[T, S any](typ *frame.Type, split *serde.Handle, src connector.Source[T, S]) operator.Operator {
	return ReaderWithSides(typ, split, src, nil, nil)
}

// ReaderWithSides is Reader for a source with side outputs, of which sides are those that somebody reads: attach, called
// if there are any, tells the connector's reader where to emit them.
func ReaderWithSides[T, S any](typ *frame.Type, split *serde.Handle, src connector.Source[T, S], sides map[string]*frame.Type, attach func(reader any, out *process.Context) error) operator.Operator {
	s := &reader[T, S]{head: head{Out: operator.NewOutput(typ)}, src: src, split: split, sides: operator.NewSides(sides)}
	if len(sides) > 0 {
		s.attach = attach
	}
	return s
}

func (s *reader[T, S]) Output(tag string) *operator.Output {
	if tag == "" {
		return &s.Out
	}
	return s.sides.Output(tag)
}

func (s *reader[T, S]) Open(rt *operator.Runtime) (err error) {
	if err = s.head.Open(rt); err != nil {
		return err
	}
	s.col = frame.NewColumn(s.Out.Type, s.Out.Type.FrameLen(frame.Bytes))
	s.out = connector.NewOutput[T](s.col, s.mark)
	s.out.OnSplit(s.onSplit)
	if s.reader, err = s.src.Reader(readerContext{rt}); err != nil {
		return fmt.Errorf("open the reader: %w", err)
	}
	if err := s.restore(rt); err != nil {
		return err
	}
	s.sides.Open(rt)
	if s.attach != nil {
		if err := s.attach(s.reader, process.NewContext(operator.NewServices(rt, s.sides))); err != nil {
			return fmt.Errorf("read side outputs of the source: %w", err)
		}
	}
	rt.ToCoordinator([]byte{eventRequest})
	return nil
}

// splitsName is the list of a snapshot with the splits that readers have not finished, with their positions.
const splitsName = "source/splits"

// restore gives the reader its splits of the snapshot. It asks for more like every reader, so that it hears when there are
// none.
func (s *reader[T, S]) restore(rt *operator.Runtime) error {
	l := rt.Restored.List(splitsName)
	if l == nil || len(l.Items) == 0 {
		return nil
	}
	read, err := operator.Decoder(s.split, l.Schema)
	if err != nil {
		return fmt.Errorf("restore the splits of a source: %w", err)
	}
	splits := make([]S, len(l.Items))
	for i, item := range l.Items {
		if err := read(item, unsafe.Pointer(&splits[i])); err != nil {
			return fmt.Errorf("restore split %d of a source: %w", i, err)
		}
	}
	return s.reader.AddSplits(splits)
}

// Snapshot implements operator.Snapshotter.
func (s *reader[T, S]) Snapshot(o *operator.Snapshot) error {
	splits, err := s.reader.Snapshot(o.ID)
	if err != nil {
		return fmt.Errorf("snapshot the reader: %w", err)
	}
	l := checkpoint.List{Name: splitsName, Schema: s.split.Schema()}
	for i := range splits {
		item, err := s.split.Append(nil, unsafe.Pointer(&splits[i]))
		if err != nil {
			return fmt.Errorf("snapshot a split: %w", err)
		}
		l.Items = append(l.Items, item)
	}
	o.Lists = append(o.Lists, l)
	return nil
}

// CheckpointCompleted implements operator.CheckpointListener.
func (s *reader[T, S]) CheckpointCompleted(id int64) error {
	if err := s.reader.Committed(id); err != nil {
		return fmt.Errorf("tell the reader that checkpoint %d is complete: %w", id, err)
	}
	return nil
}

// CheckpointAborted implements operator.CheckpointListener: the positions are in the next one.
func (s *reader[T, S]) CheckpointAborted(int64) error { return nil }

func (s *reader[T, S]) Close() error {
	if s.reader == nil {
		return nil
	}
	return s.reader.Close()
}

func (s *reader[T, S]) Poll() (operator.Status, error) {
	s.out.Limit(s.rt.RunLen)
	status, err := s.reader.Poll(s.out)
	if err == nil {
		err = s.out.Err()
	}
	if e := s.flush(); err == nil {
		err = e
	}
	if e := s.sides.Flush(); err == nil {
		err = e
	}
	if err != nil {
		return operator.Done, err
	}
	return operator.Status(status), nil
}

// Finish implements operator.Finisher: the side outputs end with the main one.
func (s *reader[T, S]) Finish() error {
	if err := s.sides.Mark(frame.Mark{Kind: frame.Watermark, Value: frame.MaxWatermark}); err != nil {
		return err
	}
	return s.sides.Mark(frame.Mark{Kind: frame.End})
}

func (s *reader[T, S]) flush() error {
	if s.col.Len() == 0 {
		return nil
	}
	if err := s.wake(); err != nil {
		return err
	}
	s.run = s.col.Run()
	err := s.Out.Push(&s.run)
	s.col.Reset()
	return err
}

// wake ends idleness before elements.
func (s *reader[T, S]) wake() error {
	active := frame.Mark{Kind: frame.Active}
	switch {
	case s.splits.combined():
		return s.splits.step(active, s.all)
	case s.idle:
		s.idle = false
		return s.all(active)
	}
	return nil
}

// onSplit takes the word of the reader that what follows belongs to a split, or that one is over.
func (s *reader[T, S]) onSplit(name string, over bool) error {
	if err := s.flush(); err != nil {
		return err
	}
	return s.splits.tell(name, over, &s.Out, s.all)
}

// SplitsTo implements splitter.
func (s *reader[T, S]) SplitsTo(f func(name string, over bool) error) { s.splits.to = f }

// HeldSplit implements operator.SplitHolder.
func (s *reader[T, S]) HeldSplit() string { return s.splits.held.Read() }

// mark sends a mark of the reader after the elements before it.
func (s *reader[T, S]) mark(m frame.Mark) error {
	if err := s.flush(); err != nil {
		return err
	}
	if s.splits.combined() {
		return s.splits.step(m, s.all)
	}
	if m.Kind == frame.Idle {
		if s.idle {
			return nil
		}
		s.idle = true
	}
	return s.all(m)
}

// all sends a mark to the side outputs and the main one.
func (s *reader[T, S]) all(m frame.Mark) error {
	if err := s.sides.Flush(); err != nil {
		return err
	}
	if err := s.sides.Mark(m); err != nil {
		return err
	}
	return s.Out.Mark(m)
}

// HandleEvent implements operator.EventReceiver.
func (s *reader[T, S]) HandleEvent(event []byte) error {
	switch eventKind(event) {
	case eventNoMore:
		s.reader.NoMoreSplits()
		return nil
	case eventSplits:
		splits, err := decodeSplits[S](s.split, event[1:])
		if err != nil {
			return err
		}
		return s.reader.AddSplits(splits)
	}
	return fmt.Errorf("handle an event of the enumerator: unknown kind %d", eventKind(event))
}

// eventKind is the first byte of an event, 0 if there is none.
func eventKind(event []byte) byte {
	if len(event) == 0 {
		return 0
	}
	return event[0]
}

func encodeSplits[S any](h *serde.Handle, splits []S) ([]byte, error) {
	event := binary.AppendUvarint([]byte{eventSplits}, uint64(len(splits)))
	var err error
	for i := range splits {
		if event, err = h.Append(event, unsafe.Pointer(&splits[i])); err != nil {
			return nil, fmt.Errorf("encode a split: %w", err)
		}
	}
	return event, nil
}

func decodeSplits[S any](h *serde.Handle, b []byte) ([]S, error) {
	n, used := binary.Uvarint(b)
	// A split takes a byte at least, unless there is nothing in it.
	if used <= 0 || h.Size > 0 && n > uint64(len(b)) || n > math.MaxInt32 {
		return nil, fmt.Errorf("decode splits: count %d in %d bytes", n, len(b))
	}
	b = b[used:]
	splits := make([]S, n)
	for i := range splits {
		used, err := h.Read(b, unsafe.Pointer(&splits[i]))
		if err != nil {
			return nil, fmt.Errorf("decode split %d: %w", i, err)
		}
		b = b[used:]
	}
	if len(b) != 0 {
		return nil, fmt.Errorf("decode %d splits: %d bytes are left", n, len(b))
	}
	return splits, nil
}

// readerContext is a Runtime as connectors see it.
type readerContext struct{ rt *operator.Runtime }

func (c readerContext) Context() context.Context     { return c.rt.Ctx }
func (c readerContext) Subtask() int                 { return c.rt.Subtask }
func (c readerContext) Parallelism() int             { return c.rt.Parallelism }
func (c readerContext) Wake()                        { c.rt.Waiter.Wake() }
func (c readerContext) Go(f func())                  { c.rt.Spawn.Go(f) }
func (c readerContext) RequestSplit()                { c.rt.ToCoordinator([]byte{eventRequest}) }
func (c readerContext) Counter(name string, n int64) { operator.Count(c.rt, name, n) }
