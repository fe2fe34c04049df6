package window_test

import (
	"testing"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

func countOrTimeout(reset, clear bool) window.Trigger {
	return window.ProcessingTimeoutTrigger(window.CountTrigger(3), 50*ms, reset, clear)
}

func TestProcessingTimeoutTriggerFiresByTheNestedTrigger(t *testing.T) {
	p, element := play(t, countOrTimeout(false, true))
	w := span(0, 10)
	expect(t, "first", element(w, none), goOn)
	expect(t, "kept", p.keeps(w), "state 2, event [], processing [50]")
	expect(t, "second", element(w, none), goOn)
	expect(t, "third", element(w, none), fire)
	expect(t, "kept after the firing", p.keeps(w), nothing)
	expect(t, "the time that it had", p.pass(100), "")
}

func TestProcessingTimeoutTriggerTimesOut(t *testing.T) {
	w := span(0, 10)
	for name, c := range map[string]struct {
		reset, clear bool
		due          int64 // an element comes at 0 and at 30
		kept         string
	}{
		"from the first element, starting afresh": {false, true, 50, nothing},
		"from the last element, starting afresh":  {true, true, 80, nothing},
		"from the first element, counting on":     {false, false, 50, "state 2, event [], processing []"},
		"from the last element, counting on":      {true, false, 80, "state 2, event [], processing []"},
	} {
		t.Run(name, func(t *testing.T) {
			p, element := play(t, countOrTimeout(c.reset, c.clear))
			element(w, none)
			p.pass(30)
			element(w, none)
			expect(t, "up to the timeout", p.pass(c.due), "")
			expect(t, "past the timeout", p.pass(c.due+1), map[int64]string{50: "FIRE [0,10) at 50", 80: "FIRE [0,10) at 80"}[c.due])
			expect(t, "kept", p.keeps(w), c.kept)
			if c.clear {
				expect(t, "one more", element(w, none), goOn)
				expect(t, "it times out again", p.pass(c.due+1+50+1) != "", true)
				return
			}
			expect(t, "one more", element(w, none), fire)
			expect(t, "kept then", p.keeps(w), nothing)
		})
	}
}

func TestProcessingTimeoutTriggerThatWasSpentStartsAgainWithANewElement(t *testing.T) {
	w := span(0, 10)
	for reset, want := range map[bool]string{
		true:  "state 2, event [], processing [101]",
		false: "state 2, event [], processing []",
	} {
		p, element := play(t, countOrTimeout(reset, false))
		element(w, none)
		expect(t, "timeout", p.pass(51), "FIRE [0,10) at 50")
		expect(t, "element", element(w, none), goOn)
		expect(t, "kept", p.keeps(w), want)
	}
}

func TestProcessingTimeoutTriggerFiresWithWhatIsLeftAtTheEndOfAWindow(t *testing.T) {
	w := span(0, 10)
	for _, d := range []process.Domain{process.EventTime, process.ProcessingTime} {
		p, element := play(t, countOrTimeout(false, true))
		element(w, none)
		expect(t, "cleanup", p.call(d, w, 9), fire)
		expect(t, "kept", p.keeps(w), nothing)
	}
}

func TestProcessingTimeoutTriggerPurgesAsTheNestedOneDoes(t *testing.T) {
	w := span(0, 10)
	p, element := play(t, window.ProcessingTimeoutTrigger(window.PurgingTrigger(window.CountTrigger(2)), 50*ms, false, true))
	element(w, none)
	expect(t, "timeout", p.pass(51), "FIRE [0,10) at 50")
	element(w, none)
	expect(t, "count", element(w, none), firePurging)

	nested := &answering{window.Purge}
	p, element = play(t, window.ProcessingTimeoutTrigger(nested, 50*ms, false, true))
	expect(t, "element", element(w, none), window.Purge)
	expect(t, "timeout and purge", p.pass(51), "FIRE_AND_PURGE [0,10) at 50")
}

func TestProcessingTimeoutTriggerMerges(t *testing.T) {
	a, b, both := span(0, 10), span(5, 15), span(0, 15)
	p, element := play(t, countOrTimeout(false, true))
	element(a, none)
	p.pass(20)
	element(b, none)
	p.merge(both, b, a)
	expect(t, "first", p.keeps(a), nothing)
	expect(t, "merged", p.keeps(both), "state 2, event [], processing [50]")
	expect(t, "third", element(both, none), fire)
	expect(t, "merged, fired", p.keeps(both), nothing)
}

func TestProcessingTimeoutTriggerMergesSpentTimeouts(t *testing.T) {
	a, b, both := span(0, 10), span(5, 15), span(0, 15)
	for name, c := range map[string]struct {
		pending bool
		want    string
	}{
		"all of them": {false, "state 2, event [], processing []"},
		"one of two":  {true, "state 2, event [], processing [101]"},
	} {
		t.Run(name, func(t *testing.T) {
			p, element := play(t, countOrTimeout(false, false))
			element(a, none)
			p.pass(51)
			if c.pending {
				element(b, none)
			}
			for _, order := range [][]window.Time{{a, b}, {b, a}} {
				p.merged = order
				p.enter(both)
				p.clear(both)
				p.answer(goOn, p.f.(window.Merging).OnMerge(p.merges))
				expect(t, "merged", p.keeps(both), c.want)
			}
		})
	}
}

// The timer at the end may be the one that removes the window: a timeout must not take it away.
func TestProcessingTimeoutTriggerKeepsTheEndOfAWindowThatGoesOn(t *testing.T) {
	w := span(0, 10)
	p, element := play(t, window.ProcessingTimeoutTrigger(window.EventTimeTrigger(), 50*ms, false, true))
	element(w, 1)
	expect(t, "timeout", p.pass(51), "FIRE [0,10) at 50")
	expect(t, "kept", p.keeps(w), "state 0, event [9], processing []")
	element(w, 1)
	expect(t, "at the end", p.advance(9), "FIRE [0,10) at 9")
	expect(t, "kept after it", p.keeps(w), nothing)
	element(span(10, 20), 11)
	p.clear(span(10, 20))
	expect(t, "cleared", p.keeps(span(10, 20)), nothing)
}
