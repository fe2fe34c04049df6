package window_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

func TestOnTimeAloneIsTheEventTimeTrigger(t *testing.T) {
	p, element := play(t, window.OnTime())
	w := span(0, 10)
	expect(t, "element", element(w, 3), goOn)
	expect(t, "second element", element(w, 3), goOn)
	expect(t, "before the end", p.advance(8), "")
	expect(t, "at the end", p.advance(9), "FIRE [0,10) at 9")
	expect(t, "kept", p.keeps(w), nothing)
	expect(t, "late element", element(w, 3), fire)
	expect(t, "cleanup", p.call(process.EventTime, w, 29), goOn)
	p.clear(w)
	expect(t, "cleared", p.keeps(w), nothing)
}

func TestOnTimeFiresEarlyOnTimeAndLate(t *testing.T) {
	p, element := play(t, window.OnTime().Early(window.CountTrigger(2)).Late(window.CountTrigger(3)))
	w := span(0, 10)
	for i, want := range []window.TriggerResult{goOn, fire, goOn, fire, goOn} {
		if got := element(w, 1); got != want {
			t.Errorf("early element %d: %v, want %v", i, got, want)
		}
	}
	expect(t, "kept early", p.keeps(w), "state 2, event [9], processing []")
	expect(t, "on time", p.advance(9), "FIRE [0,10) at 9")
	expect(t, "kept on time", p.keeps(w), nothing)
	for i, want := range []window.TriggerResult{goOn, goOn, fire, goOn} {
		if got := element(w, 1); got != want {
			t.Errorf("late element %d: %v, want %v", i, got, want)
		}
	}
	expect(t, "kept late", p.keeps(w), "state 2, event [], processing []")
	expect(t, "cleanup", p.call(process.EventTime, w, 29), goOn)
	p.clear(w)
	expect(t, "cleared", p.keeps(w), nothing)
}

// The window is a week behind the clock: it shows what it has every 5 s of real time, and the watermark ends that.
func TestB015OnTimeFiresEarlyByTheClockUntilTheWatermarkPasses(t *testing.T) {
	const week = 7 * 24 * 3600 * 1000
	p, element := play(t, window.OnTime().Early(window.ContinuousProcessingTimeTrigger(5*time.Second)))
	day := span(0, week/7)
	p.pass(week + 1)
	expect(t, "element", element(day, 1), goOn)
	for i := range int64(3) {
		at := week + 5000*(i+1)
		expect(t, "up to the multiple", p.pass(at), "")
		expect(t, "past the multiple", p.pass(at+1), "FIRE [0,86400000) at "+strconv.FormatInt(at, 10))
	}
	expect(t, "the watermark", p.advance(week/7-1), "FIRE [0,86400000) at 86399999")
	expect(t, "kept", p.keeps(day), nothing)
	expect(t, "an hour later", p.pass(week+3600_000), "")
}

// Timers of the early trigger that the watermark passes together with the end are too late to be early.
func TestOnTimeDoesNotFireEarlyOnceTheWatermarkHasReachedTheEnd(t *testing.T) {
	p, element := play(t, window.OnTime().Early(window.ContinuousEventTimeTrigger(10*ms)))
	w := span(0, 100)
	element(w, 1)
	expect(t, "before the end", p.advance(25), "FIRE [0,100) at 10, FIRE [0,100) at 20")
	expect(t, "beyond the end", p.advance(1000), "FIRE [0,100) at 99")
	expect(t, "kept", p.keeps(w), nothing)

	p, element = play(t, window.OnTime().Early(window.ContinuousProcessingTimeTrigger(10*ms)))
	element(w, 1)
	p.watermark = 99 // its timers are yet to fire
	expect(t, "the clock comes between", p.pass(11), "")
	expect(t, "an element comes between", element(w, 1), goOn)
	expect(t, "on time", p.advance(99), "FIRE [0,100) at 99")
}

func TestOnTimeHasNoFiringOnTimeForAWindowThatBeginsLate(t *testing.T) {
	p, element := play(t, window.OnTime().Early(window.CountTrigger(1)).Late(window.CountTrigger(2)))
	w := span(0, 10)
	p.advance(9)
	expect(t, "first", element(w, 1), goOn)
	expect(t, "kept", p.keeps(w), "state 2, event [], processing []")
	expect(t, "second", element(w, 1), fire)
	expect(t, "a timer at the end", p.call(process.EventTime, w, 9), goOn)
}

func TestOnTimePassesTimersToTheTriggerOfTheTime(t *testing.T) {
	timeout := window.ProcessingTimeoutTrigger(window.CountTrigger(100), 50*ms, false, true)
	p, element := play(t, window.OnTime().Early(timeout).Late(timeout))
	w := span(0, 10)
	element(w, 1)
	expect(t, "early timeout", p.pass(51), "FIRE [0,10) at 50")
	element(w, 1)
	expect(t, "on time", p.advance(9), "FIRE [0,10) at 9")
	expect(t, "the time of the early timeout", p.pass(102), "")
	expect(t, "cleanup without late elements", p.call(process.EventTime, w, 29), goOn)
	element(w, 1)
	expect(t, "late timeout", p.pass(153), "FIRE [0,10) at 152")
	expect(t, "cleanup after late elements", p.call(process.EventTime, w, 29), fire)
	p.clear(w)
	expect(t, "cleared", p.keeps(w), nothing)
}

func TestOnTimePurgesAsAWholeOrInParts(t *testing.T) {
	w := span(0, 10)
	count := window.CountTrigger(2)
	for name, c := range map[string]struct {
		trigger window.Trigger
		early   window.TriggerResult
		onTime  string
		late    window.TriggerResult
	}{
		"not at all": {window.OnTime().Early(count).Late(count), fire, "FIRE [0,10) at 9", fire},
		"as a whole": {window.PurgingTrigger(window.OnTime().Early(count).Late(count)), firePurging, "FIRE_AND_PURGE [0,10) at 9", firePurging},
		"early":      {window.OnTime().Early(window.PurgingTrigger(count)).Late(count), firePurging, "FIRE [0,10) at 9", fire},
		"late":       {window.OnTime().Early(count).Late(window.PurgingTrigger(count)), fire, "FIRE [0,10) at 9", firePurging},
	} {
		t.Run(name, func(t *testing.T) {
			p, element := play(t, c.trigger)
			element(w, 1)
			expect(t, "early", element(w, 1), c.early)
			expect(t, "on time", p.advance(9), c.onTime)
			element(w, 1)
			expect(t, "late", element(w, 1), c.late)
		})
	}
}

func TestOnTimeMerges(t *testing.T) {
	trigger := window.OnTime().Early(window.CountTrigger(3)).Late(window.CountTrigger(3))
	a, b, both := span(0, 10), span(5, 15), span(0, 15)
	t.Run("early windows", func(t *testing.T) {
		p, element := play(t, trigger)
		element(a, 1)
		element(b, 6)
		p.merge(both, a, b)
		expect(t, "first", p.keeps(a), nothing)
		expect(t, "merged", p.keeps(both), "state 2, event [14], processing []")
		expect(t, "third", element(both, 7), fire)
		expect(t, "the end", p.advance(14), "FIRE [0,15) at 14")
	})
	t.Run("a window that was on time becomes early again", func(t *testing.T) {
		p, element := play(t, trigger)
		element(a, 1)
		p.advance(9)
		element(a, 1)
		element(a, 1)
		p.merge(both, a)
		expect(t, "merged", p.keeps(both), "state 1, event [14], processing []")
		expect(t, "first early one", element(both, 7), goOn)
		expect(t, "second early one", element(both, 7), goOn)
		expect(t, "third early one", element(both, 7), fire)
		expect(t, "the end", p.advance(14), "FIRE [0,15) at 14")
	})
	t.Run("late windows", func(t *testing.T) {
		p, element := play(t, trigger)
		element(a, 1)
		p.advance(20)
		element(a, 1)
		element(a, 1)
		p.merge(both, a)
		expect(t, "merged", p.keeps(both), stateNothing)
		expect(t, "third late one", element(both, 7), fire)
		p.clear(both)
		expect(t, "cleared", p.keeps(both), nothing)
	})
}

func TestOnTimeMergesIfBothTriggersDo(t *testing.T) {
	can, cannot := window.NeverTrigger(), alone{window.NeverTrigger()}
	for _, c := range []struct {
		early, late window.Trigger
		want        bool
	}{{can, can, true}, {can, cannot, false}, {cannot, can, false}} {
		expect(t, "merges", window.OnTime().Early(c.early).Late(c.late).CanMerge(), c.want)
	}
}

// alone is a trigger that can't merge.
type alone struct{ window.Trigger }

func (alone) CanMerge() bool { return false }

func TestOnTimeOfAnEndlessWindowFiresAtTheEndOfTheInput(t *testing.T) {
	p, element := play(t, window.OnTime().Early(window.ContinuousEventTimeTrigger(ms)))
	w := span(0, math.MaxInt64)
	element(w, 1)
	expect(t, "the end", p.advance(math.MaxInt64), "FIRE [0,9223372036854775807) at 9223372036854775806")
}

func TestTriggersInsideTriggersKeepTheirStateApart(t *testing.T) {
	count := window.CountTrigger(9)
	timeout := window.ProcessingTimeoutTrigger(count, 50*ms, false, true)
	inner := window.OnTime().Early(timeout).Late(count)
	p, _ := play(t, window.OnTime().Early(inner).Late(window.PurgingTrigger(inner)))
	expect(t, "tables", len(p.names), 9)
}
