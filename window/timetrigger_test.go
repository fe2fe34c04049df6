package window_test

import (
	"math"
	"testing"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// span is a window.
func span(start, end int64) window.Time { return window.Time{Start: start, End: end} }

const none = int64(math.MinInt64) // the timestamp of elements without one

const (
	goOn         = window.Continue
	fire         = window.Fire
	firePurging  = window.FireAndPurge
	nothing      = "state 0, event [], processing []"
	stateNothing = "state 1, event [], processing []"
)

func TestEventTimeTriggerFiresAtTheEndAndForLateElements(t *testing.T) {
	p, element := play(t, window.EventTimeTrigger())
	w := span(0, 10)
	expect(t, "element", element(w, 3), goOn)
	expect(t, "second element", element(w, 4), goOn)
	expect(t, "kept", p.keeps(w), "state 0, event [9], processing []")
	expect(t, "before the end", p.advance(8), "")
	expect(t, "the clock", p.pass(100), "")
	expect(t, "at the end", p.advance(9), "FIRE [0,10) at 9")
	expect(t, "late element", element(w, 5), fire)
	expect(t, "kept after the end", p.keeps(w), nothing)
	expect(t, "cleanup", p.call(process.EventTime, w, 29), goOn)
}

func TestEventTimeTriggerOfTheEndlessWindowFiresAtTheEndOfTime(t *testing.T) {
	p, element := play(t, window.EventTimeTrigger())
	w := span(0, math.MaxInt64)
	expect(t, "element", element(w, 3), goOn)
	expect(t, "any time", p.advance(math.MaxInt64-2), "")
	expect(t, "the end", p.advance(math.MaxInt64), "FIRE [0,9223372036854775807) at 9223372036854775806")
}

func TestEventTimeTriggerMerges(t *testing.T) {
	for name, c := range map[string]struct {
		watermark int64
		want      string
	}{
		"the end is to come": {5, "state 0, event [14], processing []"},
		"the end is over":    {14, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			p, element := play(t, window.EventTimeTrigger())
			element(span(0, 10), 0)
			element(span(5, 15), 5)
			p.advance(c.watermark)
			p.merge(span(0, 15), span(0, 10), span(5, 15))
			expect(t, "merged", p.keeps(span(0, 15)), c.want)
			expect(t, "first", p.keeps(span(0, 10)), nothing)
			expect(t, "second", p.keeps(span(5, 15)), nothing)
		})
	}
}

// A timer of the window's last ms must not fire while elements of that ms can still come.
func TestB013ProcessingTimeTriggerFiresOnceTheLastMillisecondIsOver(t *testing.T) {
	p, element := play(t, window.ProcessingTimeTrigger())
	first, second := span(0, 1000), span(1000, 2000)
	p.pass(999)
	expect(t, "element in the last ms", element(first, none), goOn)
	expect(t, "the last ms", p.pass(999), "")
	expect(t, "another in the last ms", element(first, none), goOn)
	expect(t, "the next ms", p.pass(1000), "FIRE [0,1000) at 999")
	expect(t, "element of the next window", element(second, none), goOn)
	expect(t, "its last ms", p.pass(1999), "")
	expect(t, "its end", p.pass(2000), "FIRE [1000,2000) at 1999")
}

func TestProcessingTimeTriggerIgnoresOtherTimes(t *testing.T) {
	p, element := play(t, window.ProcessingTimeTrigger())
	w := span(0, 10)
	element(w, 3)
	expect(t, "watermark", p.advance(100), "")
	expect(t, "event time", p.call(process.EventTime, w, 9), goOn)
	expect(t, "another timer", p.call(process.ProcessingTime, w, 8), goOn)
	p.clear(w)
	expect(t, "cleared", p.keeps(w), nothing)
}

func TestProcessingTimeTriggerMerges(t *testing.T) {
	for name, c := range map[string]struct {
		now  int64
		want string
	}{
		"the end is to come": {5, "state 0, event [], processing [14]"},
		"the end is over":    {20, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			p, element := play(t, window.ProcessingTimeTrigger())
			element(span(0, 10), none)
			element(span(5, 15), none)
			p.pass(c.now)
			p.merge(span(0, 15), span(0, 10), span(5, 15))
			expect(t, "merged", p.keeps(span(0, 15)), c.want)
			expect(t, "first", p.keeps(span(0, 10)), nothing)
		})
	}
}

func TestNeverTriggerNeverFires(t *testing.T) {
	p, element := play(t, window.NeverTrigger())
	w := span(0, 10)
	expect(t, "element", element(w, 3), goOn)
	expect(t, "kept", p.keeps(w), nothing)
	p.merge(span(0, 20), w)
	p.watermark = math.MaxInt64
	expect(t, "late element", element(w, 3), goOn)
	expect(t, "cleanup", p.call(process.EventTime, w, 9), goOn)
	expect(t, "cleanup by the clock", p.call(process.ProcessingTime, w, 9), goOn)
}
