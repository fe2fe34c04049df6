package operator

import (
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/process"
)

// stopwatch is a host that measures latency.
type stopwatch struct {
	process.Host
	markers []frame.Mark
}

func (s *stopwatch) RecordLatency(m frame.Mark) { s.markers = append(s.markers, m) }

func TestLatencyIsRecordedWhereMarkersCome(t *testing.T) {
	o, owner, rts, ks := tee(t, 2)
	own, first := &stopwatch{}, &stopwatch{}
	owner.Host, rts[0].Host = own, first // the second consumer's host measures nothing
	exchange := &taker{typ: ks[0].typ, scope: ks[0].scope}
	if err := o.Connect(exchange, nil); err != nil {
		t.Fatal(err)
	}
	o.Bind(owner)
	marker := frame.Mark{Kind: frame.LatencyMarker, Value: 5, From: 3}
	for _, m := range []frame.Mark{marker, {Kind: frame.Watermark, Value: 7}} {
		if err := o.Mark(m); err != nil {
			t.Fatal(err)
		}
	}
	if len(first.markers) != 1 || first.markers[0] != marker {
		t.Errorf("the consumer recorded %v", first.markers)
	}
	if len(own.markers) != 0 {
		t.Errorf("the emitter recorded %v for its exchange", own.markers)
	}
	if len(exchange.marks) != 2 || len(ks[1].marks) != 2 {
		t.Errorf("marks went to %v and %v", exchange.marks, ks[1].marks)
	}
}

func TestOutputRemembersIdleness(t *testing.T) {
	o, owner, _, _ := tee(t, 1)
	for _, c := range []struct {
		kind frame.MarkKind
		idle bool
	}{{frame.Watermark, false}, {frame.Idle, true}, {frame.Barrier, true}, {frame.Watermark, true}, {frame.Active, false}} {
		if err := o.Mark(frame.Mark{Kind: c.kind, Value: 5}); err != nil {
			t.Fatal(err)
		}
		if o.Idle.Load() != c.idle {
			t.Errorf("after %v idle: %v", c.kind, o.Idle.Load())
		}
	}
	if owner.At != owner {
		t.Error("after a mark the emitter is not at work again")
	}
}

func TestHeldSplitIsReadAsItWasNoted(t *testing.T) {
	var h HeldSplit
	for _, name := range []string{"", "a", "a", "b", ""} {
		h.Note(name)
		if got := h.Read(); got != name {
			t.Errorf("%q was noted, %q is read", name, got)
		}
	}
}
