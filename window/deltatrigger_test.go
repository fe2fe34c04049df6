package window_test

import (
	"math"
	"testing"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

func difference(old, new float64) float64 { return new - old }

func TestDeltaTriggerComparesWithTheElementThatFiredLast(t *testing.T) {
	p, element := playBy(t, window.DeltaTrigger(2, difference))
	a, b := span(0, 10), span(10, 20)
	for i, c := range []struct {
		w    window.Time
		x    float64
		want window.TriggerResult
	}{
		{a, 1, goOn},
		{a, 3, goOn},
		{b, 10, goOn},
		{a, 3.1, fire},
		{a, 5.1, goOn},
		{a, 5.2, fire},
		{a, -100, goOn},
		{b, 12, goOn},
		{b, math.NaN(), goOn},
		{b, 13, fire},
	} {
		if got := element(c.w, c.x); got != c.want {
			t.Errorf("element %d, %v: %v, want %v", i, c.x, got, c.want)
		}
	}
	expect(t, "kept", p.keeps(a), stateNothing)
	expect(t, "event time", p.call(process.EventTime, a, 9), goOn)
	expect(t, "processing time", p.call(process.ProcessingTime, a, 9), goOn)
	p.clear(a)
	expect(t, "cleared", p.keeps(a), nothing)
	expect(t, "after clear", element(a, 1000), goOn)
}

type measured struct {
	Name   string
	Values []float64
}

func TestDeltaTriggerKeepsACopyOfAnElementWithPointers(t *testing.T) {
	total := func(m measured) (sum float64) {
		for _, v := range m.Values {
			sum += v
		}
		return sum
	}
	_, element := playBy(t, window.DeltaTrigger(5, func(old, new measured) float64 { return total(new) - total(old) }))
	x := measured{"a", []float64{1, 2}}
	expect(t, "first", element(span(0, 10), x), goOn)
	x.Values[0] = 100 // what the trigger keeps is not this
	expect(t, "second", element(span(0, 10), measured{"b", []float64{9}}), fire)
}
