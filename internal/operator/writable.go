package operator

import "github.com/flott-dev/flott/internal/frame"

// Writable calls push with the elements of r in memory that may be written in place: r itself, or copies in own (made
// at the first need) if r is shared.
type Writable struct {
	own *frame.Column
	run frame.Run
}

// Each calls push for the run, or for its copies piece by piece.
func (w *Writable) Each(r *frame.Run, push func(*frame.Run) error) error {
	if !r.Shared {
		return push(r)
	}
	if w.own == nil {
		w.own = frame.NewColumn(r.Type, r.Type.FrameLen(frame.Bytes))
	}
	for from := 0; from < r.N; {
		to := min(r.N, from+w.own.Cap())
		w.own.Append(r, from, to)
		w.run = w.own.Run()
		if err := push(&w.run); err != nil {
			return err // and the copies are left for whoever tells at which element it failed
		}
		w.own.Reset()
		from = to
	}
	return nil
}
