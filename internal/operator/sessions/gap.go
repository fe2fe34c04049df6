package sessions

import (
	"fmt"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// Gap is the length of the window that an element opens, in ms.
type Gap struct {
	// Millis is the gap of all elements, if Of is nil; it must be positive.
	Millis int64
	// Of is the gap of element i of r; <= 0 is an error of the element.
	Of func(r *frame.Run, i int) int64
}

// assigner says which window an element opens: a stretch of the subtask's scratch per run.
type assigner struct {
	gap    Gap
	domain process.Domain
	place  string
	own    []int64 // starts of processing time
	starts []int64 // of the run at hand: its timestamps, or now
	ends   []int64
}

func (a *assigner) open() error {
	if a.gap.Of == nil && a.gap.Millis <= 0 {
		return fmt.Errorf("%s: make session windows: the gap is %d ms; it must be at least 1 ms", a.place, a.gap.Millis)
	}
	a.ends = make([]int64, frame.MaxLen)
	if a.domain == process.ProcessingTime {
		a.own = make([]int64, frame.MaxLen)
	}
	return nil
}

// assign finds the windows of a run's elements.
func (a *assigner) assign(r *frame.Run, now int64) error {
	if err := a.times(r, now); err != nil {
		return err
	}
	ends := a.ends[:r.N]
	if a.gap.Of == nil {
		gap := a.gap.Millis
		for i, start := range a.starts {
			ends[i] = watermark.Add(start, gap)
		}
		return nil
	}
	at := r.Hand()
	for i, start := range a.starts {
		*at = i
		gap := a.gap.Of(r, i)
		if gap <= 0 {
			return fmt.Errorf("%s: open a session for an element: its gap is %d ms; it must be at least 1 ms", a.place, gap)
		}
		ends[i] = watermark.Add(start, gap)
	}
	*at = frame.Passed
	return nil
}

// times finds the times of a run's elements.
func (a *assigner) times(r *frame.Run, now int64) error {
	if a.domain == process.ProcessingTime {
		a.starts = a.own[:r.N]
		for i := range a.starts {
			a.starts[i] = now
		}
		return nil
	}
	missing := r.Times == nil
	if a.starts = r.Times; !missing {
		a.starts = r.Times[:r.N]
	}
	for _, ts := range a.starts {
		missing = missing || ts == frame.NoTime
	}
	if missing {
		return fmt.Errorf("%s: open a session for an element: %w", a.place, window.ErrNoTimestamp)
	}
	return nil
}
