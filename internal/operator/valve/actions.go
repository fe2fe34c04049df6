package valve

import "github.com/flott-dev/flott/internal/frame"

// Actions are the marks that a step emits, in order. At most three: active, then a watermark, then idle or end.
type Actions struct {
	marks [3]frame.Mark
	n     int
}

// Marks lends the marks in the order in which they must be sent; their positions are 0.
func (a *Actions) Marks() []frame.Mark { return a.marks[:a.n] }

func (a *Actions) add(kind frame.MarkKind, value int64) {
	a.marks[a.n] = frame.Mark{Kind: kind, Value: value}
	a.n++
}
