package sink

import (
	"fmt"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/operator"
)

// alarm calls a writer that has work at times at which no element comes.
type alarm struct {
	w    connector.TimedWriter // nil: it has none
	rt   *operator.Runtime
	ring func(at int64) error
	next *operator.Callback // nil: not before the next Flush
}

// open begins with a call at once, if the writer wants to be called at all.
func (a *alarm) open(w any, rt *operator.Runtime) {
	var ok bool
	if a.w, ok = w.(connector.TimedWriter); !ok {
		return
	}
	a.rt, a.ring = rt, a.due
	a.set(rt.Now)
}

// set lets the writer be called once it is at (ms), and not at the time that was set before.
func (a *alarm) set(at int64) {
	if a.w == nil {
		return
	}
	a.end()
	a.next = a.rt.Timers.Schedule(at-1, a.ring) // callbacks run when their millisecond is over
}

// end takes the next call back.
func (a *alarm) end() {
	if a.next != nil {
		a.rt.Timers.Cancel(a.next)
		a.next = nil
	}
}

func (a *alarm) due(int64) error {
	a.next = nil
	next, err := a.w.OnTime(a.rt.Now)
	if err != nil {
		return fmt.Errorf("do the work of a writer that is due: %w", err)
	}
	if next > a.rt.Now {
		a.set(next)
	}
	return nil
}
