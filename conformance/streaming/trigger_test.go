package streaming_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// triggerSpec is a trigger of a case.
type triggerSpec struct {
	Kind      string             `json:"kind"`
	MaxCount  int64              `json:"max_count"`
	Interval  conformance.Millis `json:"interval_ms"`
	Threshold float64            `json:"threshold"`
	Delta     string             `json:"delta"`
	Nested    *triggerSpec       `json:"nested"`
}

type triggerStep struct {
	OnElement *struct {
		Window json.RawMessage `json:"window"`
		Value  int64           `json:"value"`
	} `json:"on_element"`
	Expect                string              `json:"expect"`
	AdvanceWatermark      *conformance.Millis `json:"advance_watermark"`
	AdvanceProcessingTime *conformance.Millis `json:"advance_processing_time"`
	ExpectOnlyFiring      *struct {
		Window json.RawMessage `json:"window"`
		Result string          `json:"result"`
	} `json:"expect_only_firing"`
	ExpectFirings *struct {
		Window      json.RawMessage `json:"window"`
		EveryResult string          `json:"every_result"`
		AtLeast     int             `json:"at_least"`
	} `json:"expect_firings_for_window"`
	Clear json.RawMessage `json:"clear"`
	Merge *struct {
		Target  json.RawMessage   `json:"target"`
		Sources []json.RawMessage `json:"sources"`
	} `json:"merge"`
	InvokeOnEventTime *struct {
		Time   conformance.Millis `json:"time"`
		Window json.RawMessage    `json:"window"`
	} `json:"invoke_on_event_time"`
	ExpectCounts []struct {
		What   string          `json:"what"`
		Count  int             `json:"count"`
		Window json.RawMessage `json:"window"`
	} `json:"expect_counts"`
	ExpectCanMerge    *bool         `json:"expect_can_merge"`
	NestedReturns     *triggerLines `json:"nested_returns"`
	ExpectNestedCalls *struct {
		OnMerge        *int `json:"on_merge"`
		ClearForWindow *struct {
			Window json.RawMessage `json:"window"`
			Count  int             `json:"count"`
		} `json:"clear_for_window"`
	} `json:"expect_nested_calls"`
}

func TestTriggerVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "trigger", Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{"": runTrigger},
	}
	s.Run(t)
}

func runTrigger(t *testing.T, c conformance.Case) {
	var v struct {
		conformance.Head
		Trigger triggerSpec   `json:"trigger"`
		Steps   []triggerStep `json:"steps"`
	}
	c.Decode(t, &v)
	for name, subject := range triggerSubjects(t, &v.Trigger) {
		t.Run(name, func(t *testing.T) {
			run := triggerRun{triggerBench: newTriggerBench(t), script: &triggerScript{}}
			subject(&run)
			for i := range v.Steps {
				if run.step(&v.Steps[i]); t.Failed() {
					t.Fatalf("at step %d", i)
				}
			}
		})
	}
}

// triggerRun is one run of a case.
type triggerRun struct {
	*triggerBench
	script   *triggerScript
	canMerge bool
	element  func(value int64) (window.TriggerResult, error)
}

// triggerSubjects are the ways to make the trigger of a case: one, or one for each layout of the elements that it keeps.
func triggerSubjects(t *testing.T, s *triggerSpec) map[string]func(*triggerRun) {
	t.Helper()
	if s.Kind == "delta" {
		if s.Delta != "new_value_minus_old_value" {
			t.Fatalf("delta %q is unknown", s.Delta)
		}
		return map[string]func(*triggerRun){
			"fixed":   func(run *triggerRun) { deltaSubject(run, s.Threshold, fixedNumber()) },
			"text":    func(run *triggerRun) { deltaSubject(run, s.Threshold, textNumber()) },
			"encoded": func(run *triggerRun) { deltaSubject(run, s.Threshold, encodedNumber()) },
		}
	}
	return map[string]func(*triggerRun){"one layout": func(run *triggerRun) {
		trigger := s.trigger(t, run.script)
		f := trigger.New(process.NewRuntime(run))
		run.f, run.canMerge = f, trigger.CanMerge()
		run.element = func(int64) (window.TriggerResult, error) { return f.OnElement(run.ctx, math.MinInt64) }
	}}
}

func deltaSubject[V any](run *triggerRun, threshold float64, as asNumber[V]) {
	trigger := window.DeltaTrigger(threshold, func(old, new V) float64 { return float64(as.from(new) - as.from(old)) })
	f := trigger.New(process.NewRuntime(run))
	run.f, run.canMerge = f, trigger.CanMerge()
	run.element = func(value int64) (window.TriggerResult, error) {
		x := as.to(value)
		return f.OnElement(run.ctx, &x, math.MinInt64)
	}
}

// trigger makes a trigger that does not look at elements.
func (s *triggerSpec) trigger(t *testing.T, script *triggerScript) window.Trigger {
	t.Helper()
	interval := time.Duration(s.Interval) * time.Millisecond
	switch s.Kind {
	case "event_time":
		return window.EventTimeTrigger()
	case "processing_time":
		return window.ProcessingTimeTrigger()
	case "count":
		return window.CountTrigger(s.MaxCount)
	case "continuous_event_time":
		return window.ContinuousEventTimeTrigger(interval)
	case "continuous_processing_time":
		return window.ContinuousProcessingTimeTrigger(interval)
	case "purging":
		return window.PurgingTrigger(s.Nested.trigger(t, script))
	case "scripted":
		return script
	}
	t.Fatalf("trigger %q is unknown", s.Kind)
	return nil
}

func (r *triggerRun) step(s *triggerStep) {
	t := r.t
	t.Helper()
	switch {
	case s.OnElement != nil:
		r.enter(timeWindow(t, s.OnElement.Window))
		got, err := r.element(s.OnElement.Value)
		r.ended(err)
		r.same("element", got.String(), s.Expect)
	case s.AdvanceWatermark != nil:
		r.firings(r.advance(process.EventTime, int64(*s.AdvanceWatermark)), s)
	case s.AdvanceProcessingTime != nil:
		r.firings(r.advance(process.ProcessingTime, int64(*s.AdvanceProcessingTime)), s)
	case s.Clear != nil:
		r.clear(timeWindow(t, s.Clear))
	case s.Merge != nil:
		var sources []window.Time
		for _, w := range s.Merge.Sources {
			sources = append(sources, timeWindow(t, w))
		}
		r.merge(timeWindow(t, s.Merge.Target), sources)
	case s.InvokeOnEventTime != nil:
		r.fire(process.EventTime, windowTimer{int64(s.InvokeOnEventTime.Time), timeWindow(t, s.InvokeOnEventTime.Window)})
	case s.NestedReturns != nil:
		r.script.lines = *s.NestedReturns
	case s.ExpectCanMerge != nil:
		r.same("can merge", r.canMerge, *s.ExpectCanMerge)
	case s.ExpectCounts != nil:
		r.counts(s)
	default:
		t.Fatalf("the step is unknown")
	}
	r.nestedCalls(s)
}

func (r *triggerRun) same(what string, got, want any) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// firings compares what timers gave.
func (r *triggerRun) firings(got []triggerFiring, s *triggerStep) {
	r.t.Helper()
	if e := s.ExpectOnlyFiring; e != nil {
		if len(got) != 1 || got[0].w != timeWindow(r.t, e.Window) || got[0].result.String() != e.Result {
			r.t.Errorf("firings %v, want %s of %s", got, e.Result, e.Window)
		}
	}
	e := s.ExpectFirings
	if e == nil {
		return
	}
	n := 0
	for _, f := range got {
		if f.w == timeWindow(r.t, e.Window) {
			n++
			r.same("firing of "+string(e.Window), f.result.String(), e.EveryResult)
		}
	}
	if n < e.AtLeast {
		r.t.Errorf("%d firings of %s, want %d or more", n, e.Window, e.AtLeast)
	}
}

func (r *triggerRun) counts(s *triggerStep) {
	r.t.Helper()
	for _, c := range s.ExpectCounts {
		of := func(window.Time) bool { return true }
		if c.Window != nil {
			want := timeWindow(r.t, c.Window)
			of = func(w window.Time) bool { return w == want }
		}
		var got int
		switch c.What {
		case "state_entries":
			got = r.entries(of)
		case "event_time_timers":
			got = r.timerCount(process.EventTime, of)
		case "processing_time_timers":
			got = r.timerCount(process.ProcessingTime, of)
		default:
			r.t.Fatalf("count of %q is unknown", c.What)
		}
		r.same(c.What+" "+string(c.Window), got, c.Count)
	}
}

func (r *triggerRun) nestedCalls(s *triggerStep) {
	r.t.Helper()
	e := s.ExpectNestedCalls
	if e == nil {
		return
	}
	if e.OnMerge != nil {
		r.same("calls of on-merge", r.script.merges, *e.OnMerge)
	}
	if c := e.ClearForWindow; c != nil {
		r.same("calls of clear", r.script.clears[timeWindow(r.t, c.Window)], c.Count)
	}
}

// triggerLines are what a scripted trigger answers and registers.
type triggerLines struct {
	OnElement                     string               `json:"on_element"`
	OnEventTime                   string               `json:"on_event_time"`
	OnProcessingTime              string               `json:"on_processing_time"`
	RegistersEventTimeTimers      []conformance.Millis `json:"registers_event_time_timers"`
	RegistersProcessingTimeTimers []conformance.Millis `json:"registers_processing_time_timers"`
}

// triggerScript is a trigger that does what it is told and counts calls.
type triggerScript struct {
	lines  triggerLines
	merges int
	clears map[window.Time]int
}

func (s *triggerScript) New(*process.Runtime) window.TriggerFunction { return s }
func (s *triggerScript) CanMerge() bool                              { return true }

// say gives the result of a word; no word is CONTINUE.
func say(word string) (window.TriggerResult, error) {
	for _, r := range []window.TriggerResult{window.Fire, window.Purge, window.FireAndPurge} {
		if r.String() == word {
			return r, nil
		}
	}
	return window.Continue, nil
}

func (s *triggerScript) OnElement(ctx *window.TriggerContext, _ int64) (window.TriggerResult, error) {
	for _, at := range s.lines.RegistersEventTimeTimers {
		ctx.RegisterEventTimeTimer(int64(at))
	}
	for _, at := range s.lines.RegistersProcessingTimeTimers {
		ctx.RegisterProcessingTimeTimer(int64(at))
	}
	return say(s.lines.OnElement)
}

func (s *triggerScript) OnEventTime(*window.TriggerContext, int64) (window.TriggerResult, error) {
	return say(s.lines.OnEventTime)
}

func (s *triggerScript) OnProcessingTime(*window.TriggerContext, int64) (window.TriggerResult, error) {
	return say(s.lines.OnProcessingTime)
}

func (s *triggerScript) OnMerge(*window.MergeContext) error {
	s.merges++
	return nil
}

func (s *triggerScript) Clear(ctx *window.TriggerContext) error {
	if s.clears == nil {
		s.clears = map[window.Time]int{}
	}
	s.clears[ctx.Window[window.Time]()]++
	return nil
}
