package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
)

// pendingName is the list of a snapshot that has what a source processor had collected and not yet emitted: an item for
// each frame.
const pendingName = "source/pending"

// processor drives a source function that has state.
type processor struct {
	function
	construct func(rt *operator.Runtime, access *state.CurrentRun) error
	access    state.CurrentRun
	pending   []*frame.Frame // of the snapshot that the subtask begins with
}

// Processor returns the driver of a source processor.
func Processor[T any, P process.SourceProcessor[T]](typ *frame.Type, constructor func(*process.Runtime) P) operator.Operator {
	s := &processor{}
	s.head = head{Out: operator.NewOutput(typ)}
	s.construct = func(rt *operator.Runtime, access *state.CurrentRun) error {
		p, err := operator.Construct(rt, nil, access, constructor)
		if err != nil {
			return err
		}
		s.run = func(ctx context.Context, rt *process.Runtime, feed *host.Feed[*frame.Frame]) error {
			err := p.Run(ctx, process.NewSourceContext[T](rt, feed))
			return errors.Join(err, operator.CloseFunction(p))
		}
		return nil
	}
	return s
}

// Open implements operator.Operator.
func (s *processor) Open(rt *operator.Runtime) error {
	if err := s.construct(rt, &s.access); err != nil {
		return err
	}
	if err := s.restore(rt.Restored.List(pendingName)); err != nil {
		return fmt.Errorf("restore what the source had collected: %w", err)
	}
	return s.function.Open(rt)
}

func (s *processor) restore(l *checkpoint.List) (err error) {
	if l == nil {
		return nil
	}
	var old *serde.Reader
	if l.Schema != nil && l.Schema.String() != s.Out.Type.Schema().String() {
		if old, err = s.Out.Type.Reader(l.Schema); err != nil {
			return err
		}
	}
	for _, item := range l.Items {
		f, err := frame.Decode(s.Out.Type, old, item)
		if err != nil {
			return err
		}
		s.pending = append(s.pending, f)
	}
	return nil
}

// Poll implements operator.Source.
func (s *processor) Poll() (operator.Status, error) {
	if len(s.pending) == 0 {
		return s.function.Poll()
	}
	f := s.pending[0]
	s.pending = s.pending[1:]
	if err := s.send(f); err != nil {
		return operator.Done, err
	}
	return operator.More, nil
}

// Snapshot implements operator.Snapshotter: the state of the function, and what it has collected by then.
func (s *processor) Snapshot(o *operator.Snapshot) error {
	l := checkpoint.List{Name: pendingName, Schema: s.Out.Type.Schema()}
	save := func(f *frame.Frame) error {
		b, err := f.Encode(nil)
		if err != nil {
			return fmt.Errorf("snapshot what the source has collected: %w", err)
		}
		l.Items = append(l.Items, b)
		return nil
	}
	for _, f := range s.pending {
		if err := save(f); err != nil {
			return err
		}
	}
	if err := s.feed.Freeze(func() error { return s.rt.SnapshotFunctions(o) }, save); err != nil {
		return err
	}
	o.Lists = append(o.Lists, l)
	return nil
}

// CheckpointCompleted implements operator.CheckpointListener.
func (s *processor) CheckpointCompleted(id int64) error {
	return s.tell(func() error { return s.rt.FunctionsCompleted(id) })
}

// CheckpointAborted implements operator.CheckpointListener.
func (s *processor) CheckpointAborted(id int64) error {
	return s.tell(func() error { return s.rt.FunctionsAborted(id) })
}

func (s *processor) tell(f func() error) error {
	return s.feed.Freeze(f, func(*frame.Frame) error { return nil })
}
