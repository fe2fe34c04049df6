package window_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

const ms = time.Millisecond

func TestContinuousEventTimeTriggerFiresAtMultiplesAndAtTheEnd(t *testing.T) {
	p, element := play(t, window.ContinuousEventTimeTrigger(10*ms))
	w := span(0, 35)
	expect(t, "element", element(w, 13), goOn)
	expect(t, "kept", p.keeps(w), "state 1, event [20 34], processing []")
	expect(t, "an earlier element", element(w, 3), goOn)
	expect(t, "kept then", p.keeps(w), "state 1, event [20 34], processing []")
	expect(t, "before a multiple", p.advance(19), "")
	expect(t, "at a multiple", p.advance(20), "FIRE [0,35) at 20")
	expect(t, "kept after it", p.keeps(w), "state 1, event [30 34], processing []")
	expect(t, "beyond the end", p.advance(41), "FIRE [0,35) at 30, FIRE [0,35) at 34, FIRE [0,35) at 40")
	expect(t, "late element", element(w, 3), fire)
	expect(t, "the clock", p.pass(1000), "")
	expect(t, "a timer that was never set", p.call(process.EventTime, w, 45), goOn)
	p.clear(w)
	expect(t, "cleared", p.keeps(w), nothing)
}

func TestContinuousEventTimeTriggerCountsMultiplesFrom1970(t *testing.T) {
	for _, c := range []struct{ ts, want int64 }{
		{0, 10}, {9, 10}, {10, 20}, {-10, 0}, {-20, -10}, {-3, 10}, {-13, 0}, {math.MaxInt64 - 20, math.MaxInt64 - 17},
	} {
		p, element := play(t, window.ContinuousEventTimeTrigger(10*ms))
		element(span(-100, math.MaxInt64), c.ts)
		if got := p.timers[process.EventTime][1].at; got != c.want {
			t.Errorf("after %d it fires first at %d, want %d", c.ts, got, c.want)
		}
	}
}

func TestContinuousEventTimeTriggerFiresForEachMultipleThatTheWatermarkPasses(t *testing.T) {
	p, element := play(t, window.ContinuousEventTimeTrigger(10*ms))
	w := span(0, 1000)
	element(w, 1)
	expect(t, "three multiples", p.advance(35), "FIRE [0,1000) at 10, FIRE [0,1000) at 20, FIRE [0,1000) at 30")
}

func TestContinuousEventTimeTriggerEndsWithTheInput(t *testing.T) {
	p, element := play(t, window.ContinuousEventTimeTrigger(10*ms))
	w := span(0, 35)
	element(w, 13)
	p.watermark = math.MaxInt64
	expect(t, "up to the end of the window", p.fire(process.EventTime, func(at int64) bool { return at <= 34 }),
		"FIRE [0,35) at 20, FIRE [0,35) at 30, FIRE [0,35) at 34")
	p.clear(w)
	expect(t, "after the cleanup", p.advance(math.MaxInt64), "")
}

// There are more multiples before the end of time than anyone can wait for.
func TestContinuousEventTimeTriggerOfAnEndlessWindowFiresOnceAtTheEndOfTheInput(t *testing.T) {
	p, element := play(t, window.ContinuousEventTimeTrigger(10*ms))
	w := span(0, math.MaxInt64)
	element(w, 13)
	expect(t, "a multiple", p.advance(20), "FIRE [0,9223372036854775807) at 20")
	expect(t, "the end", p.advance(math.MaxInt64), "FIRE [0,9223372036854775807) at 9223372036854775806")
	expect(t, "kept", p.keeps(w), nothing)
}

// The first multiple after no time at all lies at the beginning of time: the firings from there on would never end.
func TestContinuousEventTimeTriggerStartsWithTheFirstWatermarkIfElementsHaveNoTimestamp(t *testing.T) {
	p, element := play(t, window.ContinuousEventTimeTrigger(10*ms))
	w := span(0, math.MaxInt64)
	element(w, none)
	expect(t, "first watermark", p.advance(1234), "FIRE [0,9223372036854775807) at -9223372036854775790")
	expect(t, "before a multiple", p.advance(1239), "")
	expect(t, "a multiple", p.advance(1240), "FIRE [0,9223372036854775807) at 1240")
}

func TestContinuousEventTimeTriggerMerges(t *testing.T) {
	p, element := play(t, window.ContinuousEventTimeTrigger(10*ms))
	a, b, both := span(3, 33), span(25, 55), span(3, 55)
	element(a, 3)
	element(b, 25)
	expect(t, "first", p.keeps(a), "state 1, event [10 32], processing []")
	expect(t, "second", p.keeps(b), "state 1, event [30 54], processing []")
	p.merge(both, a, b)
	expect(t, "merged", p.keeps(both), "state 1, event [10], processing []")
	expect(t, "element of the merged window", element(both, 25), goOn)
	expect(t, "merged, with an element", p.keeps(both), "state 1, event [10 54], processing []")
	expect(t, "first multiple", p.advance(10), "FIRE [3,55) at 10")
	expect(t, "second multiple", p.advance(20), "FIRE [3,55) at 20")
	p.clear(both)
	expect(t, "cleared", p.keeps(both), "state 0, event [54], processing []")
}

func TestContinuousTriggersMergeWindowsWithoutState(t *testing.T) {
	for _, trigger := range []window.Trigger{window.ContinuousEventTimeTrigger(ms), window.ContinuousProcessingTimeTrigger(ms)} {
		p, _ := play(t, trigger)
		p.merge(span(0, 15), span(0, 10), span(5, 15))
		expect(t, "merged", p.keeps(span(0, 15)), nothing)
	}
}

func TestContinuousProcessingTimeTriggerFiresAtMultiplesOfTheClock(t *testing.T) {
	p, element := play(t, window.ContinuousProcessingTimeTrigger(10*ms))
	w := span(0, 100)
	p.pass(13)
	expect(t, "element", element(w, none), goOn)
	expect(t, "kept", p.keeps(w), "state 1, event [], processing [20]")
	expect(t, "another element", element(w, none), goOn)
	expect(t, "at the multiple", p.pass(20), "")
	expect(t, "past the multiple", p.pass(21), "FIRE [0,100) at 20")
	expect(t, "nothing has come", p.pass(31), "FIRE [0,100) at 30")
	expect(t, "the watermark", p.advance(1000), "")
	expect(t, "the end of an event-time window", p.call(process.EventTime, w, 99), goOn)
	p.clear(w)
	expect(t, "cleared", p.keeps(w), nothing)
}

func TestContinuousProcessingTimeTriggerFiresAtTheEndOfAWindow(t *testing.T) {
	p, element := play(t, window.ContinuousProcessingTimeTrigger(10*ms))
	w := span(0, 25)
	element(w, none)
	expect(t, "first multiple", p.pass(11), "FIRE [0,25) at 10")
	expect(t, "second multiple", p.pass(21), "FIRE [0,25) at 20")
	expect(t, "the cleanup of a window of processing time", p.call(process.ProcessingTime, w, 24), fire)
	expect(t, "a timer that was never set", p.call(process.ProcessingTime, w, 23), goOn)
}

// A week lies between the window and the clock. What fires next is set by the clock, so that nothing fires in between, and
// a clock that jumps fires once.
func TestB015ContinuousProcessingTimeTriggerFiresOncePerInterval(t *testing.T) {
	const week = 7 * 24 * 3600 * 1000
	p, element := play(t, window.ContinuousProcessingTimeTrigger(5*time.Second))
	day := span(0, week/7)
	p.pass(week + 1)
	expect(t, "element", element(day, 1), goOn)
	expect(t, "kept", p.keeps(day), "state 1, event [], processing [604805000]")
	for i := range int64(3) {
		at := week + 5000*(i+1)
		expect(t, "up to the multiple", p.pass(at), "")
		if got := p.pass(at + 1); got != "FIRE [0,86400000) at "+strconv.FormatInt(at, 10) {
			t.Errorf("past %d: %q", at, got)
		}
	}
	expect(t, "an hour later", p.pass(week+3600_000), "FIRE [0,86400000) at 604820000")
	expect(t, "kept then", p.keeps(day), "state 1, event [], processing [608405000]")
}

// After Flink's merge nothing fires any more: there is state, so that no element sets a timer, and no timer.
func TestContinuousProcessingTimeTriggerGoesOnAfterAMerge(t *testing.T) {
	p, element := play(t, window.ContinuousProcessingTimeTrigger(10*ms))
	a, b, both := span(0, 30), span(20, 50), span(0, 50)
	element(a, none)
	p.pass(11)
	p.pass(15)
	element(b, none)
	expect(t, "first", p.keeps(a), "state 1, event [], processing [20]")
	p.merge(both, a, b)
	expect(t, "of the first", p.keeps(a), nothing)
	expect(t, "of the second", p.keeps(b), nothing)
	expect(t, "element", element(both, none), goOn)
	expect(t, "merged", p.keeps(both), "state 1, event [], processing [20]")
	expect(t, "first multiple", p.pass(21), "FIRE [0,50) at 20")
	expect(t, "second multiple", p.pass(31), "FIRE [0,50) at 30")
}

func TestContinuousTriggersFireFirstWhenTheEarliestMergedWindowWould(t *testing.T) {
	p, element := play(t, window.ContinuousProcessingTimeTrigger(10*ms))
	early, late := span(0, 30), span(20, 50)
	p.pass(25)
	element(late, none)
	p.now = 5 // the clock of a test may be set back
	element(early, none)
	p.merge(span(0, 50), late, early)
	expect(t, "merged", p.keeps(span(0, 50)), "state 1, event [], processing [10]")
}
