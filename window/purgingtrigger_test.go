package window_test

import (
	"testing"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

func TestPurgingTriggerPurgesWhenTheOtherOneFires(t *testing.T) {
	p, element := play(t, window.PurgingTrigger(window.CountTrigger(2)))
	w := span(0, 10)
	expect(t, "first", element(w, none), goOn)
	expect(t, "second", element(w, none), firePurging)
	expect(t, "third", element(w, none), goOn)
	expect(t, "kept", p.keeps(w), stateNothing)
	p.merge(span(0, 20), w)
	expect(t, "after a merge", element(span(0, 20), none), firePurging)
	element(w, none)
	p.clear(w)
	expect(t, "cleared", p.keeps(w), nothing)
}

func TestPurgingTriggerPassesTimeOn(t *testing.T) {
	p, element := play(t, window.PurgingTrigger(window.EventTimeTrigger()))
	w := span(0, 10)
	expect(t, "element", element(w, 1), goOn)
	expect(t, "at the end", p.advance(9), "FIRE_AND_PURGE [0,10) at 9")
	expect(t, "late element", element(w, 1), firePurging)
	expect(t, "cleanup", p.call(process.EventTime, w, 20), goOn)

	p, element = play(t, window.PurgingTrigger(window.ProcessingTimeTrigger()))
	element(w, none)
	expect(t, "the clock", p.pass(10), "FIRE_AND_PURGE [0,10) at 9")
}

// answering is a trigger that answers as it is told.
type answering struct{ say window.TriggerResult }

func (a *answering) New(*process.Runtime) window.TriggerFunction { return a }
func (*answering) CanMerge() bool                                { return true }

func (a *answering) OnElement(*window.TriggerContext, int64) (window.TriggerResult, error) {
	return a.say, nil
}

func (a *answering) OnEventTime(*window.TriggerContext, int64) (window.TriggerResult, error) {
	return a.say, nil
}

func (a *answering) OnProcessingTime(*window.TriggerContext, int64) (window.TriggerResult, error) {
	return a.say, nil
}

func (*answering) Clear(*window.TriggerContext) error { return nil }

func TestPurgingTriggerChangesOnlyFirings(t *testing.T) {
	nested := &answering{}
	p, element := play(t, window.PurgingTrigger(nested))
	w := span(0, 10)
	for _, c := range [][2]window.TriggerResult{
		{window.Continue, window.Continue},
		{window.Fire, window.FireAndPurge},
		{window.Purge, window.Purge},
		{window.FireAndPurge, window.FireAndPurge},
	} {
		nested.say = c[0]
		expect(t, "element, "+c[0].String(), element(w, 1), c[1])
		expect(t, "event time, "+c[0].String(), p.call(process.EventTime, w, 1), c[1])
		expect(t, "processing time, "+c[0].String(), p.call(process.ProcessingTime, w, 1), c[1])
	}
}

func TestPurgingTriggerNamesAFunctionThatCannotMerge(t *testing.T) {
	p, _ := play(t, window.PurgingTrigger(&answering{}))
	p.enter(span(0, 10))
	if err := p.f.(window.Merging).OnMerge(p.merges); err == nil {
		t.Error("a function without OnMerge was merged")
	}
}

func TestPurgingTriggerByPurgesWhenAnElementFires(t *testing.T) {
	p, element := playBy(t, window.PurgingTriggerBy(window.DeltaTrigger(2, difference)))
	w := span(0, 10)
	expect(t, "first", element(w, 1), goOn)
	expect(t, "second", element(w, 9), firePurging)
	expect(t, "event time", p.call(process.EventTime, w, 9), goOn)
	p.clear(w)
	expect(t, "cleared", p.keeps(w), nothing)
}
