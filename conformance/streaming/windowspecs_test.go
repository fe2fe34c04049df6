package streaming_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/operator/windowing"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// What the vectors say of assigners, triggers and evictors: sections 2, 4 and 5 of their README.

type windowAssignerSpec struct {
	Kind    string          `json:"kind"`
	Size    int64           `json:"size_ms"`
	Slide   int64           `json:"slide_ms"`
	Offset  int64           `json:"offset_ms"`
	Gap     int64           `json:"gap_ms"`
	PointIf *int64          `json:"point_if_value_equals"`
	Gaps    []windowGapRule `json:"gap_rules"`
}

// windowGapRule is the gap of the elements that it matches.
type windowGapRule struct {
	Key   json.RawMessage `json:"key"`
	Value *int64          `json:"value"`
	Gap   int64           `json:"gap_ms"`
}

type windowTriggerSpec struct {
	Kind      string             `json:"kind"`
	MaxCount  int64              `json:"max_count"`
	Interval  int64              `json:"interval_ms"`
	Threshold float64            `json:"threshold"`
	Cleanup   int64              `json:"cleanup_ms"`
	Delta     string             `json:"delta"`
	Nested    *windowTriggerSpec `json:"nested"`
}

type windowEvictorSpec struct {
	Kind      string  `json:"kind"`
	When      string  `json:"when"`
	MaxCount  int64   `json:"max_count"`
	Window    int64   `json:"window_ms"`
	Threshold float64 `json:"threshold"`
	Delta     string  `json:"delta"`
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// timeWindows is the definition of a case's assigner.
func timeWindows[T any](t *testing.T, v *windowCase, l layoutOf[windowRecord, T]) (d windowing.Definition[T, window.Time]) {
	t.Helper()
	a := &v.Assigner
	gap := func(x T) time.Duration { return millis(a.gapOf(l.to(x))) }
	switch a.Kind {
	case "tumbling_event_time":
		d.Assigner = window.Tumbling(millis(a.Size)).Offset(millis(a.Offset))
	case "tumbling_processing_time":
		d.Assigner = window.TumblingProcessingTime(millis(a.Size)).Offset(millis(a.Offset))
	case "sliding_event_time":
		d.Assigner = window.Sliding(millis(a.Size), millis(a.Slide)).Offset(millis(a.Offset))
	case "sliding_processing_time":
		d.Assigner = window.SlidingProcessingTime(millis(a.Size), millis(a.Slide)).Offset(millis(a.Offset))
	case "session_event_time":
		d.Assigner = window.Session(millis(a.Gap))
	case "session_processing_time":
		d.Assigner = window.SessionProcessingTime(millis(a.Gap))
	case "dynamic_session_event_time":
		d.ElementAssigner = window.SessionBy(gap)
	case "dynamic_session_processing_time":
		d.ElementAssigner = window.SessionProcessingTimeBy(gap)
	case "point_session_event_time":
		d.ElementAssigner = pointSessions[T]{window.Session(millis(a.Gap)), a, l}
	default:
		t.Fatalf("assigner %q is unknown", a.Kind)
	}
	return d
}

// gapOf is the gap of the first rule that matches.
func (a *windowAssignerSpec) gapOf(r windowRecord) int64 {
	for _, rule := range a.Gaps {
		if len(rule.Key) != 0 && conformance.Canonical(rule.Key) != conformance.Canonical([]byte(r.Key)) {
			continue
		}
		if rule.Value == nil || *rule.Value == r.Value {
			return rule.Gap
		}
	}
	return a.Gap
}

// pointSessions are sessions in which an element of one value has an empty window.
type pointSessions[T any] struct {
	window.SessionAssigner
	spec   *windowAssignerSpec
	layout layoutOf[windowRecord, T]
}

func (p pointSessions[T]) AssignElement(dst []window.Time, x *T, ts, now int64) ([]window.Time, error) {
	if p.spec.PointIf != nil && p.layout.to(*x).Value == *p.spec.PointIf {
		return append(dst, window.Time{Start: ts, End: ts}), nil
	}
	return p.Assign(dst, ts, now)
}

// withTriggerAndEvictor adds the trigger and the evictor of a case.
func withTriggerAndEvictor[T any, W window.Window](t *testing.T, v *windowCase, l layoutOf[windowRecord, T], d windowing.Definition[T, W]) windowing.Definition[T, W] {
	t.Helper()
	if d.Trigger = v.Trigger.trigger(); d.Trigger == nil {
		if d.ElementTrigger = elementTrigger(&v.Trigger, l); d.ElementTrigger == nil {
			t.Fatalf("trigger %q is unknown", v.Trigger.Kind)
		}
	}
	e := v.Evictor
	if e == nil {
		return d
	}
	if e.When != "before" && e.When != "after" {
		t.Fatalf("an evictor %q the function is unknown", e.When)
	}
	after := e.When == "after"
	switch e.Kind {
	case "count":
		if d.Evictor = window.CountEvictor(e.MaxCount); after {
			d.Evictor = window.CountEvictor(e.MaxCount).After()
		}
	case "time":
		if d.Evictor = window.TimeEvictor(millis(e.Window)); after {
			d.Evictor = window.TimeEvictor(millis(e.Window)).After()
		}
	case "delta":
		delta := window.DeltaEvictor(e.Threshold, func(x, last T) float64 { return float64(l.to(last).Value - l.to(x).Value) })
		if d.ElementEvictor = delta; after {
			d.ElementEvictor = delta.After()
		}
	default:
		t.Fatalf("evictor %q is unknown", e.Kind)
	}
	return d
}

// trigger is the trigger of a spec, nil if it looks at elements or is unknown.
func (s *windowTriggerSpec) trigger() window.Trigger {
	switch s.Kind {
	case "event_time":
		return window.EventTimeTrigger()
	case "processing_time":
		return window.ProcessingTimeTrigger()
	case "count":
		return window.CountTrigger(s.MaxCount)
	case "continuous_event_time":
		return window.ContinuousEventTimeTrigger(millis(s.Interval))
	case "continuous_processing_time":
		return window.ContinuousProcessingTimeTrigger(millis(s.Interval))
	case "event_time_accum_gc":
		return accumulatingTrigger{s.Cleanup}
	case "purging":
		if nested := s.Nested.trigger(); nested != nil {
			return window.PurgingTrigger(nested)
		}
	}
	return nil
}

func elementTrigger[T any](s *windowTriggerSpec, l layoutOf[windowRecord, T]) window.ElementTrigger[T] {
	switch s.Kind {
	case "delta":
		return window.DeltaTrigger(s.Threshold, func(old, x T) float64 { return float64(l.to(x).Value - l.to(old).Value) })
	case "purging":
		if nested := elementTrigger(s.Nested, l); nested != nil {
			return window.PurgingTriggerBy(nested)
		}
	}
	return nil
}

// accumulatingTrigger is event_time_accum_gc.
type accumulatingTrigger struct{ cleanup int64 }

func (t accumulatingTrigger) New(*process.Runtime) window.TriggerFunction { return t }

func (accumulatingTrigger) CanMerge() bool { return true }

func (accumulatingTrigger) OnElement(ctx *window.TriggerContext, _ int64) (window.TriggerResult, error) {
	if ctx.MaxTimestamp() <= ctx.Watermark() {
		return window.Fire, nil
	}
	ctx.RegisterEventTimeTimer(ctx.MaxTimestamp())
	return window.Continue, nil
}

func (t accumulatingTrigger) OnEventTime(ctx *window.TriggerContext, at int64) (window.TriggerResult, error) {
	if end := ctx.MaxTimestamp(); at == end || at == end+t.cleanup {
		return window.FireAndPurge, nil
	}
	return window.Continue, nil
}

func (accumulatingTrigger) OnProcessingTime(*window.TriggerContext, int64) (window.TriggerResult, error) {
	return window.Continue, nil
}

func (accumulatingTrigger) OnMerge(ctx *window.MergeContext) error {
	ctx.RegisterEventTimeTimer(ctx.MaxTimestamp())
	return nil
}

func (accumulatingTrigger) Clear(ctx *window.TriggerContext) error {
	ctx.DeleteEventTimeTimer(ctx.MaxTimestamp())
	return nil
}
