package source

import (
	"errors"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/valve"
)

// splitter is a source whose reader tells its splits apart.
type splitter interface {
	// SplitsTo makes f take what the reader says of its splits, before Open: its watermarks are made behind it.
	SplitsTo(f func(name string, over bool) error)
}

// splits combines the watermarks that a reader gives for its splits, unless they are made behind it.
type splits struct {
	to    func(name string, over bool) error // nil: they are combined here
	valve *valve.Splits                      // nil: the reader has named none
	at    int                                // the split at hand, -1 between splits
	held  operator.HeldSplit
}

// combined reports whether marks of the reader are those of splits.
func (s *splits) combined() bool { return s.valve != nil }

// tell takes the word that what follows belongs to a split, or that one is over. out has sent what came before the first.
func (s *splits) tell(name string, over bool, out *operator.Output, send func(frame.Mark) error) error {
	if s.to != nil {
		return s.to(name, over)
	}
	if s.valve == nil {
		s.valve, s.at = valve.NewSplits(out.EventTime.Load(), out.Idle.Load()), -1
	}
	n, ok := s.valve.Find(name)
	var a valve.Actions
	switch {
	case over && !ok:
		return nil
	case over:
		if a = s.valve.Remove(n); s.at == n {
			s.at = -1
		}
	case ok:
		s.at = n
		return nil
	default:
		s.at, a = s.valve.Add(name)
	}
	return s.act(a, send)
}

// step takes a mark of the split at hand.
func (s *splits) step(m frame.Mark, send func(frame.Mark) error) error {
	switch {
	case s.at < 0:
		return errors.New("read of no split: the last one is over, and no other was named")
	case m.Kind == frame.Watermark && m.Value == frame.MaxWatermark:
		return nil // it is over when the reader says so
	}
	return s.act(s.valve.Step(s.at, m), send)
}

func (s *splits) act(a valve.Actions, send func(frame.Mark) error) error {
	s.held.Note(s.valve.Held())
	for _, m := range a.Marks() {
		if err := send(m); err != nil {
			return err
		}
	}
	return nil
}
