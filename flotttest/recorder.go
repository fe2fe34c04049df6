package flotttest

import (
	"fmt"

	"github.com/flott-dev/flott/internal/frame"
)

// Recorder is what came out of an operator, in order.
type Recorder[R any] struct {
	typ    *frame.Type
	events []Event[R]
	before func() // brings in what is still under way
}

func newRecorder[R any](c *Control, typ *frame.Type) *Recorder[R] {
	r := &Recorder[R]{typ: typ, before: func() {}}
	if c != nil {
		r.before = func() {
			if c.dead == nil && !c.closed {
				c.t.Helper()
				c.check(c.guard(func() error { return nil }))
			}
		}
	}
	return r
}

// Output is everything that came out since the start or the last Clear.
func (r *Recorder[R]) Output() []Event[R] {
	r.before()
	return r.events
}

// Clear forgets what came out so far.
func (r *Recorder[R]) Clear() {
	r.before()
	r.events = nil
}

// Elements are the elements that came out since the last Clear.
func (r *Recorder[R]) Elements() []Element[R] {
	var out []Element[R]
	for _, e := range r.Output() {
		if e.Kind == IsElement {
			out = append(out, e.Element)
		}
	}
	return out
}

// Values are the elements that came out since the last Clear, without timestamps.
func (r *Recorder[R]) Values() []R {
	var out []R
	for _, e := range r.Elements() {
		out = append(out, e.Value)
	}
	return out
}

// Watermarks are the watermarks that came out since the last Clear, in ms since 1970.
func (r *Recorder[R]) Watermarks() []int64 {
	var out []int64
	for _, e := range r.Output() {
		if e.Kind == IsWatermark {
			out = append(out, e.Watermark)
		}
	}
	return out
}

// Expect compares what came out since the last Clear with events in their text form, value@time, value, "watermark t",
// "idle", "active" or "end", and clears it.
func (r *Recorder[R]) Expect(t interface {
	Helper()
	Errorf(format string, args ...any)
}, want ...string,
) {
	t.Helper()
	var got []string
	for _, e := range r.Output() {
		got = append(got, e.String())
	}
	if diff := difference(got, want); diff != "" {
		t.Errorf("the output differs (- wanted, + came):\n%s", diff)
	}
	r.Clear()
}

// link is the recorder as the consumer of an output.
type link[R any] struct{ *Recorder[R] }

// Type implements operator.Input.
func (l link[R]) Type() *frame.Type { return l.typ }

// Push implements operator.Input.
func (l link[R]) Push(r *frame.Run) error {
	for i, v := range frame.Values[R](r) {
		l.events = append(l.events, Event[R]{Kind: IsElement, Element: Element[R]{v, r.Time(i)}})
	}
	return nil
}

// Mark implements operator.Input.
func (l link[R]) Mark(m frame.Mark) error {
	e := Event[R]{Watermark: m.Value}
	switch m.Kind {
	case frame.Watermark:
		e.Kind = IsWatermark
	case frame.Idle:
		e.Kind = IsIdle
	case frame.Active:
		e.Kind = IsActive
	case frame.End:
		e.Kind = IsEnd
	case frame.Barrier:
		return nil
	default:
		return fmt.Errorf("record a %v", m.Kind)
	}
	l.events = append(l.events, e)
	return nil
}
