package valve

import (
	"fmt"

	"github.com/flott-dev/flott/internal/frame"
)

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

// taker takes the marks of its channels or inputs.
type taker interface {
	Watermark(at int, t int64) Actions
	Idle(at int) Actions
	Active(at int) Actions
	End(at int) Actions
}

func step(to taker, at int, m frame.Mark) Actions {
	switch m.Kind {
	case frame.Watermark:
		return to.Watermark(at, m.Value)
	case frame.Idle:
		return to.Idle(at)
	case frame.Active:
		return to.Active(at)
	case frame.End:
		return to.End(at)
	}
	panic(fmt.Sprintf("valve: a %v is not for the valve", m.Kind))
}
