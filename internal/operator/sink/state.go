package sink

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/operator"
)

// The lists of a snapshot.
const (
	// writerName has the state of each subtask's writer; every new subtask sees them all.
	writerName = "sink/writer"
	// committablesName has what is prepared and not committed.
	committablesName = "sink/committables"
)

// Snapshot implements operator.Snapshotter: what was written becomes visible or ready to commit, and the writer's own state
// is kept.
func (o *writer[T]) Snapshot(s *operator.Snapshot) error {
	if err := o.flush(); err != nil {
		return err
	}
	return o.keep(s)
}

// flush ends what belongs to a snapshot. After the end of the input there is nothing more to flush.
func (o *writer[T]) flush() error {
	if o.ended {
		return nil
	}
	if err := o.w.Flush(false); err != nil {
		return fmt.Errorf("flush for a checkpoint: %w", err)
	}
	o.alarm.set(o.rt.Now)
	return nil
}

// keep adds the state of the writer, if it has some.
func (o *writer[T]) keep(s *operator.Snapshot) error {
	w, ok := o.w.(connector.StatefulWriter)
	if !ok {
		return nil
	}
	state, err := w.Snapshot(s.ID)
	if err != nil {
		return fmt.Errorf("snapshot the writer: %w", err)
	}
	b := binary.AppendUvarint(nil, uint64(o.rt.Subtask))
	b = append(b, state...)
	s.Lists = append(s.Lists, checkpoint.List{Name: writerName, Mode: checkpoint.Union, Items: [][]byte{b}})
	return nil
}

// open opens the writer, with the states of the snapshot if there are any and the sink has use for them.
func (o *writer[T]) open() (connector.Writer[T], error) {
	ctx := writerContext{o.rt}
	l := o.rt.Restored.List(writerName)
	if l == nil || len(l.Items) == 0 {
		return o.sink.Writer(ctx)
	}
	s, ok := o.sink.(connector.StatefulSink[T])
	if !ok {
		return nil, fmt.Errorf("the snapshot has state of the sink's writers, and a %T takes none", o.sink)
	}
	var states []connector.WriterState
	for _, item := range l.Items {
		state, err := decodeWriterState(item, o.rt)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return s.RestoreWriter(ctx, o.rt.Restored.Checkpoint, states)
}

// decodeWriterState reads an item. Subtasks keep what was theirs, and share what was of others that are no more.
func decodeWriterState(b []byte, rt *operator.Runtime) (s connector.WriterState, err error) {
	subtask, n := binary.Uvarint(b)
	if n <= 0 || subtask > 1<<20 {
		return s, errors.New("restore the state of a writer: the item is malformed")
	}
	return connector.WriterState{Subtask: int(subtask), Mine: int(subtask)%rt.Parallelism == rt.Subtask, State: b[n:]}, nil
}
