package window_test

import (
	"math"
	"testing"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

func TestCountTriggerFiresWithEachNthElementOfAWindow(t *testing.T) {
	p, element := play(t, window.CountTrigger(3))
	a, b := span(0, 10), span(10, 20)
	for i, want := range []window.TriggerResult{goOn, goOn, fire, goOn, goOn, fire} {
		if i == 1 {
			expect(t, "another window", element(b, none), goOn)
		}
		if got := element(a, none); got != want {
			t.Errorf("element %d: %v, want %v", i, got, want)
		}
	}
	expect(t, "kept after a firing", p.keeps(a), nothing)
	expect(t, "kept", p.keeps(b), stateNothing)
	expect(t, "event time", p.call(process.EventTime, b, 19), goOn)
	expect(t, "processing time", p.call(process.ProcessingTime, b, 19), goOn)
	p.clear(b)
	expect(t, "kept after clear", p.keeps(b), nothing)
	expect(t, "after clear", element(b, none), goOn)
}

func TestCountTriggerOfOneFiresWithEachElement(t *testing.T) {
	p, element := play(t, window.CountTrigger(1))
	for range 3 {
		expect(t, "element", element(span(0, 10), none), fire)
	}
	expect(t, "kept", p.keeps(span(0, 10)), nothing)
}

func TestCountTriggerAddsTheCountsOfMergedWindows(t *testing.T) {
	for name, c := range map[string]struct {
		n      int64
		counts []int // of the windows that merge
		left   int   // elements that it takes to fire
	}{
		"fewer":             {5, []int{2, 1}, 2},
		"as many":           {3, []int{2, 1}, 1},
		"more":              {3, []int{2, 2}, 1},
		"nothing":           {2, []int{0, 0}, 2},
		"after a firing":    {2, []int{2, 1}, 1},
		"many":              {10, []int{3, 0, 4, 2}, 1},
		"one that was cold": {4, []int{0, 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p, element := play(t, window.CountTrigger(c.n))
			var sources []window.Time
			for i, n := range c.counts {
				w := span(int64(i)*10, int64(i)*10+10)
				sources = append(sources, w)
				for range n {
					element(w, none)
				}
			}
			target := span(0, 100)
			p.merge(target, sources...)
			for _, w := range sources {
				expect(t, "kept of a merged window", p.keeps(w), nothing)
			}
			for i := 1; i < c.left; i++ {
				expect(t, "element", element(target, none), goOn)
			}
			expect(t, "last element", element(target, none), fire)
		})
	}
}

func TestCountsBeyond32BitsAreKept(t *testing.T) {
	expect(t, "name", window.CountTrigger(math.MaxInt64).(interface{ String() string }).String(), "CountTrigger(9223372036854775807)")
	checked(t, window.CountTrigger(math.MaxInt64))
}
