package source

import (
	"fmt"

	"github.com/flott-dev/flott/internal/operator"
)

// stamped is a source with the operator of its watermarks in it: one operator to the outside, so that a source that is
// ahead of its alignment group can be kept from reading.
type stamped struct {
	operator.Source
	marks    operator.Operator
	paused   func(now int64) bool // nil: never
	interval int64                // ms until a paused source asks again
	rt       *operator.Runtime
	asking   *operator.Callback
}

// Stamped puts marks, an operator with one input and one output, behind the source src. While paused answers true the
// source is not read; it is asked again every interval ms.
func Stamped(src, marks operator.Operator, paused func(now int64) bool, interval int64) operator.Operator {
	return &stamped{Source: src.(operator.Source), marks: marks, paused: paused, interval: max(interval, 1)}
}

// Output implements operator.Operator.
func (s *stamped) Output(tag string) *operator.Output {
	if tag == "" {
		return s.marks.Output("")
	}
	return s.Source.Output(tag)
}

// Open implements operator.Operator.
func (s *stamped) Open(rt *operator.Runtime) error {
	s.rt = rt
	if err := s.Source.Output("").Connect(s.marks.Inputs()[0], rt); err != nil {
		return fmt.Errorf("put watermarks behind a source: %w", err)
	}
	if m, ok := s.marks.(interface {
		Split(name string, over bool) error
	}); ok {
		if src, ok := s.Source.(splitter); ok {
			src.SplitsTo(m.Split)
		}
	}
	if err := s.marks.Open(rt); err != nil {
		return err
	}
	return s.Source.Open(rt)
}

// HeldSplit implements operator.SplitHolder.
func (s *stamped) HeldSplit() string {
	for _, part := range []any{s.marks, s.Source} {
		if h, ok := part.(operator.SplitHolder); ok {
			if name := h.HeldSplit(); name != "" {
				return name
			}
		}
	}
	return ""
}

// Close implements operator.Operator.
func (s *stamped) Close() error {
	err := s.Source.Close()
	if e := s.marks.Close(); err == nil {
		err = e
	}
	return err
}

// Poll implements operator.Source.
func (s *stamped) Poll() (operator.Status, error) {
	if s.paused != nil && s.paused(s.rt.Now) {
		if s.asking == nil {
			s.asking = s.rt.Timers.Schedule(s.rt.Now+s.interval-1, s.ask)
		}
		return operator.Nothing, nil
	}
	return s.Source.Poll()
}

// ask only ends the task's wait: it polls again.
func (s *stamped) ask(int64) error {
	s.asking = nil
	return nil
}

// Finish implements operator.Finisher: what the source still emits at its end comes before the last watermark.
func (s *stamped) Finish() error {
	if f, ok := s.Source.(operator.Finisher); ok {
		if err := f.Finish(); err != nil {
			return err
		}
	}
	if f, ok := s.marks.(operator.Finisher); ok {
		return f.Finish()
	}
	return nil
}

// Snapshot implements operator.Snapshotter: watermarks begin anew after a restore.
func (s *stamped) Snapshot(o *operator.Snapshot) error {
	if src, ok := s.Source.(operator.Snapshotter); ok {
		return src.Snapshot(o)
	}
	return nil
}

// CheckpointCompleted implements operator.CheckpointListener.
func (s *stamped) CheckpointCompleted(id int64) error {
	if l, ok := s.Source.(operator.CheckpointListener); ok {
		return l.CheckpointCompleted(id)
	}
	return nil
}

// CheckpointAborted implements operator.CheckpointListener.
func (s *stamped) CheckpointAborted(id int64) error {
	if l, ok := s.Source.(operator.CheckpointListener); ok {
		return l.CheckpointAborted(id)
	}
	return nil
}

// HandleEvent implements operator.EventReceiver.
func (s *stamped) HandleEvent(event []byte) error {
	if r, ok := s.Source.(operator.EventReceiver); ok {
		return r.HandleEvent(event)
	}
	return fmt.Errorf("hand over an event: the source takes none")
}
