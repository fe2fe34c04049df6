package windows

import (
	"fmt"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

// LateDropped is the metric that counts late elements that go nowhere.
const LateDropped = "numLateRecordsDropped"

// Late is where an operator's late elements go: to a side output, or nowhere, counted.
type Late struct {
	rt      *operator.Runtime
	tag     string              // "": they are dropped and counted
	side    *process.SideBuffer // nil: nobody reads it
	dropped int64               // since the last Count
}

// Open prepares for late elements of type in, for the side output tag; "" drops and counts them.
func (l *Late) Open(rt *operator.Runtime, sides *operator.Sides, tag string, in *frame.Type) error {
	l.rt, l.tag = rt, tag
	operator.Count(rt, LateDropped, 0)
	if tag == "" {
		return nil
	}
	l.side = sides.Buffer(tag)
	if b := l.side; b != nil && !b.Column.Type.Same(in) {
		return fmt.Errorf("send late elements of type %s to side output %q: it is read as %s", in.Name, tag, b.Column.Type.Name)
	}
	return nil
}

// Reject sends element i of a run to the side output with its own timestamp, or drops it.
func (l *Late) Reject(r *frame.Run, i int) error {
	b := l.side
	if b == nil {
		if l.tag == "" {
			l.dropped++
		}
		return nil
	}
	if b.Column.Room() == 0 {
		if b.Err == nil {
			b.Err = b.Flush()
		}
		b.Column.Reset()
	}
	b.Column.Append(r, i, i+1)
	return b.Err
}

// Count tells the metric what was dropped since the last call.
func (l *Late) Count() {
	if l.dropped != 0 {
		operator.Count(l.rt, LateDropped, l.dropped)
		l.dropped = 0
	}
}
