package window_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/window"
)

func TestParametersOfTriggersAndEvictorsAreChecked(t *testing.T) {
	count, bad := window.CountTrigger(3), window.CountTrigger(0)
	ok := func(float64, float64) float64 { return 0 }
	for name, c := range map[string]struct {
		of   any
		want string // a part of the error; "" for none
	}{
		"count":                      {count, ""},
		"count of none":              {bad, "the number of elements is 0; it must be positive"},
		"negative count":             {window.CountTrigger(-1), "the number of elements is -1"},
		"continuous":                 {window.ContinuousEventTimeTrigger(ms), ""},
		"no interval":                {window.ContinuousEventTimeTrigger(0), "continuous event-time trigger: the interval is 0s"},
		"interval too short":         {window.ContinuousEventTimeTrigger(999 * time.Microsecond), "must be at least 1ms"},
		"no interval of the clock":   {window.ContinuousProcessingTimeTrigger(0), "continuous processing-time trigger: the interval is 0s"},
		"negative interval":          {window.ContinuousProcessingTimeTrigger(-time.Hour), "the interval is -1h0m0s"},
		"delta":                      {window.DeltaTrigger(-1, ok), ""},
		"no distance":                {window.DeltaTrigger[int](1, nil), "delta trigger: there is no distance function"},
		"no threshold":               {window.DeltaTrigger(math.NaN(), ok), "the threshold is not a number"},
		"purging":                    {window.PurgingTrigger(count), ""},
		"purging nothing":            {window.PurgingTrigger(nil), "purging trigger: there is no trigger"},
		"purging a mistake":          {window.PurgingTrigger(bad), "make a count trigger: the number"},
		"purging by":                 {window.PurgingTriggerBy(window.DeltaTrigger(1, ok)), ""},
		"purging by nothing":         {window.PurgingTriggerBy[int](nil), "purging trigger: there is no trigger"},
		"purging by a mistake":       {window.PurgingTriggerBy(window.DeltaTrigger[int](1, nil)), "no distance function"},
		"timeout":                    {window.ProcessingTimeoutTrigger(count, ms, false, false), ""},
		"no timeout":                 {window.ProcessingTimeoutTrigger(count, 0, false, false), "the timeout is 0s"},
		"timeout of nothing":         {window.ProcessingTimeoutTrigger(nil, ms, false, false), "there is no trigger"},
		"timeout of a mistake":       {window.ProcessingTimeoutTrigger(bad, ms, false, false), "make a count trigger: the number"},
		"on time":                    {window.OnTime(), ""},
		"on time, all of it":         {window.OnTime().Early(count).Late(count), ""},
		"early nothing":              {window.OnTime().Early(nil), "early trigger: there is no trigger"},
		"late nothing":               {window.OnTime().Late(nil), "late trigger: there is no trigger"},
		"early mistake":              {window.OnTime().Early(bad), "early trigger: make a count trigger"},
		"late mistake":               {window.OnTime().Late(window.PurgingTrigger(bad)), "late trigger: make a purging trigger: make a count trigger"},
		"count evictor":              {window.CountEvictor(1), ""},
		"count evictor of none":      {window.CountEvictor(0).After(), "count evictor: the number of elements is 0"},
		"time evictor":               {window.TimeEvictor(ms), ""},
		"time evictor of none":       {window.TimeEvictor(0), "time evictor: the duration is 0s"},
		"delta evictor":              {window.DeltaEvictor(0, ok), ""},
		"delta evictor, no distance": {window.DeltaEvictor[int](0, nil), "delta evictor: there is no distance function"},
		"delta evictor, NaN":         {window.DeltaEvictor(math.NaN(), ok).After(), "the threshold is not a number"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.of.(interface{ Check() error }).Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error about %q", err, c.want)
			}
		})
	}
}

func TestTriggersSayWhetherTheyMerge(t *testing.T) {
	count := window.CountTrigger(1)
	delta := window.DeltaTrigger(1, difference)
	for want, list := range map[bool][]interface{ CanMerge() bool }{
		true: {
			window.EventTimeTrigger(), window.ProcessingTimeTrigger(), window.NeverTrigger(), count, window.OnTime(),
			window.ContinuousEventTimeTrigger(ms), window.ContinuousProcessingTimeTrigger(ms), window.PurgingTrigger(count),
			window.ProcessingTimeoutTrigger(count, ms, true, true),
		},
		false: {
			delta, window.PurgingTriggerBy(delta), window.PurgingTrigger(alone{count}), window.PurgingTrigger(nil),
			window.ProcessingTimeoutTrigger(alone{count}, ms, true, true), window.OnTime().Early(nil),
		},
	} {
		for _, trigger := range list {
			expect(t, fmt.Sprint(trigger), trigger.CanMerge(), want)
		}
	}
}

func TestTriggersAndEvictorsPrintAsTheyAreWritten(t *testing.T) {
	for want, x := range map[string]any{
		"EventTimeTrigger":                                        window.EventTimeTrigger(),
		"ProcessingTimeTrigger":                                   window.ProcessingTimeTrigger(),
		"NeverTrigger":                                            window.NeverTrigger(),
		"CountTrigger(3)":                                         window.CountTrigger(3),
		"ContinuousEventTimeTrigger(5s)":                          window.ContinuousEventTimeTrigger(5 * time.Second),
		"ContinuousProcessingTimeTrigger(1m0s)":                   window.ContinuousProcessingTimeTrigger(time.Minute),
		"DeltaTrigger(0.5)":                                       window.DeltaTrigger(0.5, difference),
		"PurgingTrigger(CountTrigger(3))":                         window.PurgingTrigger(window.CountTrigger(3)),
		"PurgingTrigger(DeltaTrigger(2))":                         window.PurgingTriggerBy(window.DeltaTrigger(2, difference)),
		"PurgingTrigger(*window_test.answering)":                  window.PurgingTrigger(&answering{}),
		"OnTime()":                                                window.OnTime(),
		"OnTime().Early(CountTrigger(3))":                         window.OnTime().Early(window.CountTrigger(3)),
		"OnTime().Late(NeverTrigger)":                             window.OnTime().Late(window.NeverTrigger()),
		"CountEvictor(3)":                                         window.CountEvictor(3),
		"CountEvictor(3).After()":                                 window.CountEvictor(3).After(),
		"TimeEvictor(1s)":                                         window.TimeEvictor(time.Second),
		"TimeEvictor(1s).After()":                                 window.TimeEvictor(time.Second).After(),
		"DeltaEvictor(2)":                                         window.DeltaEvictor(2, difference),
		"DeltaEvictor(2).After()":                                 window.DeltaEvictor(2, difference).After(),
		"ProcessingTimeoutTrigger(NeverTrigger, 1s, true, false)": window.ProcessingTimeoutTrigger(window.NeverTrigger(), time.Second, true, false),
	} {
		expect(t, "printed", fmt.Sprint(x), want)
	}
}

// A trigger is called for each element.
func TestTriggersDoNotAllocate(t *testing.T) {
	count := window.CountTrigger(3)
	for _, trigger := range []window.Trigger{
		window.EventTimeTrigger(), window.ProcessingTimeTrigger(), count, window.ContinuousEventTimeTrigger(ms),
		window.ContinuousProcessingTimeTrigger(ms), window.PurgingTrigger(count), window.OnTime().Early(count),
		window.ProcessingTimeoutTrigger(count, ms, true, true),
	} {
		t.Run(fmt.Sprint(trigger), func(t *testing.T) {
			p, element := play(t, trigger)
			w := span(0, 1000)
			element(w, 1)
			f := p.f.(window.TriggerFunction)
			if n := testing.AllocsPerRun(100, func() { p.answer(f.OnElement(p.ctx, 1)) }); n != 0 {
				t.Errorf("%v allocations per element", n)
			}
		})
	}
}

func TestTriggersDoNotAllocateForAMerge(t *testing.T) {
	count := window.CountTrigger(100)
	for _, trigger := range []window.Trigger{
		count, window.ContinuousEventTimeTrigger(ms), window.ContinuousProcessingTimeTrigger(ms),
		window.ProcessingTimeoutTrigger(count, ms, true, true), window.OnTime().Early(count),
	} {
		t.Run(fmt.Sprint(trigger), func(t *testing.T) {
			p, element := play(t, trigger)
			element(span(0, 1000), 1)
			m := p.f.(window.Merging)
			looks := &once{services: services{p}}
			ctx := window.NewMergeContext(looks)
			if n := testing.AllocsPerRun(100, func() { p.answer(goOn, m.OnMerge(ctx)) }); n != 0 {
				t.Errorf("%v allocations per merge", n)
			}
			if looks.calls == 0 {
				t.Error("the trigger did not look at merged windows")
			}
		})
	}
}

// once is services whose merged window is the one at hand.
type once struct {
	services
	calls int
}

func (o *once) EachMerged(f func()) {
	o.calls++
	f()
}
