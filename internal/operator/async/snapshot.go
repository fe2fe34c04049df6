package async

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
)

// The lists of a snapshot.
const (
	// elementsName has the elements under way, in the order in which they came.
	elementsName = "async/elements"
	// marksName has the marks between them, an item for each subtask. With another parallelism they mean nothing, as the
	// elements of several old subtasks come together: the task's word of where event time was is enough then.
	marksName = "async/marks"
)

// waiting is an element or a mark of a snapshot that waits for room in the queue.
type waiting struct {
	element []byte // nil for a mark
	time    int64
	mark    frame.Mark
}

// elementSchema describes an element under way.
func elementSchema(of *frame.Type) (*serde.Schema, error) {
	time, err := serde.Of[int64]()
	if err != nil {
		return nil, err
	}
	return &serde.Schema{Kind: serde.Struct, Fields: []serde.Field{
		{Name: "Time", Schema: time.Schema()}, {Name: "Element", Schema: of.Handle.Schema()},
	}}, nil
}

// Snapshot implements operator.Snapshotter: what is under way will come again before anything else.
func (o *driver) Snapshot(s *operator.Snapshot) error {
	schema, err := elementSchema(o.In)
	if err != nil {
		return fmt.Errorf("snapshot the elements under way: %w", err)
	}
	l := checkpoint.List{Name: elementsName, Schema: schema}
	marks := binary.AppendUvarint(nil, uint64(o.RT.Subtask))
	marks = binary.AppendUvarint(marks, uint64(o.RT.Parallelism))
	mark := func(m frame.Mark) {
		marks = append(binary.AppendUvarint(marks, uint64(len(l.Items))), byte(m.Kind))
		marks = binary.AppendVarint(marks, m.Value)
	}
	err = o.queue.Each(func(e *Entry) error {
		if e.Call == nil {
			mark(e.Mark)
			return nil
		}
		r := e.Call.Lend()
		item, err := o.In.Handle.Append(binary.LittleEndian.AppendUint64(nil, uint64(r.Time(0))), r.At(0))
		l.Items = append(l.Items, item)
		return err
	})
	if err != nil {
		return fmt.Errorf("snapshot the elements under way: %w", err)
	}
	for i := range o.backlog {
		if w := &o.backlog[i]; w.element == nil {
			mark(w.mark)
		} else {
			item := binary.LittleEndian.AppendUint64(nil, uint64(w.time))
			l.Items = append(l.Items, append(item, w.element...))
		}
	}
	s.Lists = append(s.Lists, l, checkpoint.List{Name: marksName, Mode: checkpoint.Union, Items: [][]byte{marks}})
	return nil
}

// restore makes what was under way the backlog, and begins with it.
func (o *driver) restore(rt *operator.Runtime) error {
	l := rt.Restored.List(elementsName)
	if l == nil {
		return nil
	}
	marks, err := o.marksOf(rt)
	if err != nil {
		return err
	}
	if o.read, err = o.reader(l.Schema); err != nil {
		return fmt.Errorf("restore the elements under way: %w", err)
	}
	for i, item := range l.Items {
		for len(marks) > 0 && marks[0].before <= i {
			o.backlog = append(o.backlog, waiting{mark: marks[0].mark})
			marks = marks[1:]
		}
		if len(item) < 8 {
			return fmt.Errorf("restore the elements under way: an item of %d bytes", len(item))
		}
		o.backlog = append(o.backlog, waiting{element: item[8:], time: int64(binary.LittleEndian.Uint64(item))})
	}
	for _, m := range marks {
		o.backlog = append(o.backlog, waiting{mark: m.mark})
	}
	_, err = o.refill()
	return err
}

// reader is the way from elements of a snapshot to those of the program.
func (o *driver) reader(old *serde.Schema) (func([]byte, unsafe.Pointer) error, error) {
	if old == nil {
		return operator.Decoder(o.In.Handle, nil)
	}
	if old.Kind != serde.Struct || len(old.Fields) != 2 {
		return nil, fmt.Errorf("the snapshot has %s, not a time and an element", old)
	}
	return operator.Decoder(o.In.Handle, old.Fields[1].Schema)
}

// placed is a mark before the element of that number.
type placed struct {
	before int
	mark   frame.Mark
}

var errMarks = errors.New("restore the marks under way: the item is malformed")

// marksOf are the marks of the subtask, if there are as many subtasks as before.
func (o *driver) marksOf(rt *operator.Runtime) ([]placed, error) {
	l := rt.Restored.List(marksName)
	if l == nil {
		return nil, nil
	}
	for _, item := range l.Items {
		subtask, parallelism, marks, err := decodeMarks(item)
		if err != nil {
			return nil, err
		}
		if parallelism == rt.Parallelism && subtask == rt.Subtask {
			return marks, nil
		}
	}
	return nil, nil
}

func decodeMarks(b []byte) (subtask, parallelism int, marks []placed, err error) {
	number := func() int {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<31 {
			err, b = errMarks, nil
			return 0
		}
		b = b[n:]
		return int(v)
	}
	subtask, parallelism = number(), number()
	for err == nil && len(b) > 0 {
		m := placed{before: number()}
		if len(b) == 0 {
			return 0, 0, nil, errMarks
		}
		m.mark.Kind, b = frame.MarkKind(b[0]), b[1:]
		v, n := binary.Varint(b)
		if n <= 0 {
			return 0, 0, nil, errMarks
		}
		m.mark.Value, b = v, b[n:]
		marks = append(marks, m)
	}
	return subtask, parallelism, marks, err
}

// refill moves as much of the backlog into the queue as there is room for; more is false if that was nothing.
func (o *driver) refill() (more bool, err error) {
	for len(o.backlog) > 0 && !o.queue.Full() {
		w := o.backlog[0]
		o.backlog = o.backlog[1:]
		more = true
		if w.element == nil {
			o.queue.TryPut(&Entry{Mark: w.mark})
			continue
		}
		if err := o.again(w.element, w.time); err != nil {
			return more, fmt.Errorf("restore an element under way: %w", err)
		}
	}
	return more, nil
}
