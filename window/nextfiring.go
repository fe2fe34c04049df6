package window

import (
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// nextFiring is when a continuous trigger fires the window at hand next.
type nextFiring struct {
	interval int64
	at       *state.Value[int64]

	earliest int64 // of the windows that merge
	found    bool  // any of them had one
	take     func()
}

// newNextFiring declares the state. If moves is set, a window that is merged into another one loses its state to it.
func newNextFiring(rt *process.Runtime, interval int64, moves bool) *nextFiring {
	n := &nextFiring{interval: interval, at: state.NewValue[int64](rt, "fire-time")}
	n.take = func() {
		at, ok := n.at.Lookup()
		if !ok {
			return
		}
		if !n.found || at < n.earliest {
			n.earliest, n.found = at, true
		}
		if moves {
			n.at.Clear()
		}
	}
	return n
}

// boundary is the first multiple of the interval after ts; for times before 1970 that are no multiple themselves it is the
// second one, as in Flink. ok is false if that is beyond the end of time.
func (n *nextFiring) boundary(ts int64) (at int64, ok bool) {
	start := ts - ts%n.interval
	return start + n.interval, start+n.interval > start
}

// merge makes the earliest firing of the merged windows the next one of the window at hand; ok is false if none of them
// had one.
func (n *nextFiring) merge(ctx *MergeContext) (at int64, ok bool) {
	n.found = false
	ctx.EachMerged(n.take)
	n.take()
	if n.found {
		n.at.Set(n.earliest)
	}
	return n.earliest, n.found
}
