package streaming_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

func TestWindowAssignerVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "window_assigner", Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{
			"assign": runAssign, "construct_error": runAssignerError, "assign_error": runAssignError,
			"properties": runAssignerProperties, "merge": runSessionMerge, "window_start": runWindowStart,
		},
	}
	s.Run(t)
}

// windowAssigner is an assigner as vectors write it.
type windowAssigner struct {
	Kind   string             `json:"kind"`
	Size   conformance.Millis `json:"size_ms"`
	Slide  conformance.Millis `json:"slide_ms"`
	Offset conformance.Millis `json:"offset_ms"`
	Gap    conformance.Millis `json:"gap_ms"`
}

// described are the parts of an assigner that don't depend on its windows or elements.
type described interface {
	Domain() process.Domain
	DefaultTrigger() window.Trigger
}

// check is the error of making an assigner, if it has one.
func check(a described) error {
	if c, ok := a.(interface{ Check() error }); ok {
		return c.Check()
	}
	return nil
}

// timed is the assigner if its windows are of time and it doesn't look at elements, or nil.
func (v *windowAssigner) timed() window.Assigner[window.Time] {
	switch v.Kind {
	case "tumbling_event_time":
		return window.Tumbling(duration(v.Size)).Offset(duration(v.Offset))
	case "tumbling_processing_time":
		return window.TumblingProcessingTime(duration(v.Size)).Offset(duration(v.Offset))
	case "sliding_event_time":
		return window.Sliding(duration(v.Size), duration(v.Slide)).Offset(duration(v.Offset))
	case "sliding_processing_time":
		return window.SlidingProcessingTime(duration(v.Size), duration(v.Slide)).Offset(duration(v.Offset))
	case "session_event_time":
		return window.Session(duration(v.Gap))
	case "session_processing_time":
		return window.SessionProcessingTime(duration(v.Gap))
	}
	return nil
}

// gapped is the assigner if its gap comes from the element, which is the gap in ms.
func (v *windowAssigner) gapped(t *testing.T) window.DynamicSessionAssigner[conformance.Millis] {
	t.Helper()
	switch v.Kind {
	case "dynamic_session_event_time":
		return window.SessionBy(duration)
	case "dynamic_session_processing_time":
		return window.SessionProcessingTimeBy(duration)
	}
	t.Fatalf("assigner %q is unknown", v.Kind)
	return window.DynamicSessionAssigner[conformance.Millis]{}
}

func (v *windowAssigner) any(t *testing.T) described {
	t.Helper()
	if v.Kind == "global" {
		return window.GlobalWindows()
	}
	if a := v.timed(); a != nil {
		return a
	}
	return v.gapped(t)
}

func duration(ms conformance.Millis) time.Duration { return time.Duration(ms) * time.Millisecond }

type assignCase struct {
	conformance.Head
	Op             string             `json:"op"`
	Assigner       windowAssigner     `json:"assigner"`
	Timestamp      conformance.Millis `json:"timestamp"`
	ProcessingTime conformance.Millis `json:"processing_time"`
	Gap            conformance.Millis `json:"element_gap_ms"`
	Windows        []json.RawMessage  `json:"expect_windows"`
	Order          string             `json:"order"`
}

func runAssign(t *testing.T, c conformance.Case) {
	var v assignCase
	c.Decode(t, &v)
	if v.Assigner.Kind == "global" {
		ws, err := window.GlobalWindows().Assign(nil, int64(v.Timestamp), int64(v.ProcessingTime))
		if err != nil || len(ws) != 1 || len(v.Windows) != 1 || string(v.Windows[0]) != `"global"` {
			t.Fatalf("%v, %v, want %s", ws, err, v.Windows)
		}
		return
	}
	want := make([]window.Time, len(v.Windows))
	for i, w := range v.Windows {
		want[i] = timeWindow(t, w)
	}
	got, err := v.assign(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) > 1 && !slices.IsSortedFunc(got, func(a, b window.Time) int { return int(b.Start - a.Start) }) {
		t.Errorf("%v: the latest window does not come first", got)
	}
	if !slices.Equal(sortedWindows(got), sortedWindows(want)) {
		t.Errorf("%v, want %v", got, want)
	}
	if a, ok := v.Assigner.timed().(window.Gridded); ok {
		g := a.Grid()
		for _, w := range want {
			if w.End-w.Start != g.Size || (w.Start-g.Offset)%g.Slide != 0 {
				t.Errorf("%v is not on the grid %+v", w, g)
			}
		}
	}
}

func (v *assignCase) assign(t *testing.T) ([]window.Time, error) {
	t.Helper()
	ts, now := int64(v.Timestamp), int64(v.ProcessingTime)
	if err := check(v.Assigner.any(t)); err != nil {
		t.Fatal(err)
	}
	if a := v.Assigner.timed(); a != nil {
		return a.Assign(nil, ts, now)
	}
	return v.Assigner.gapped(t).AssignElement(nil, &v.Gap, ts, now)
}

func runAssignError(t *testing.T, c conformance.Case) {
	var v assignCase
	c.Decode(t, &v)
	if ws, err := v.assign(t); err == nil || len(ws) != 0 {
		t.Fatalf("%v, %v, want an error", ws, err)
	}
}

func runAssignerError(t *testing.T, c conformance.Case) {
	var v struct {
		conformance.Head
		Op       string         `json:"op"`
		Assigner windowAssigner `json:"assigner"`
	}
	c.Decode(t, &v)
	if err := check(v.Assigner.any(t)); err == nil {
		t.Fatal("no error")
	}
}

func runAssignerProperties(t *testing.T, c conformance.Case) {
	var v struct {
		conformance.Head
		Op        string         `json:"op"`
		Assigner  windowAssigner `json:"assigner"`
		EventTime bool           `json:"expect_is_event_time"`
		Trigger   string         `json:"expect_default_trigger"`
	}
	c.Decode(t, &v)
	a := v.Assigner.any(t)
	if got := a.Domain() == process.EventTime; got != v.EventTime {
		t.Errorf("event time: %v", got)
	}
	triggers := map[string]window.Trigger{
		"event_time": window.EventTimeTrigger(), "processing_time": window.ProcessingTimeTrigger(), "never": window.NeverTrigger(),
	}
	switch want, ok := triggers[v.Trigger]; {
	case v.Trigger == "": // not asserted
	case !ok:
		t.Errorf("trigger %q is unknown", v.Trigger)
	case a.DefaultTrigger() != want:
		t.Errorf("default trigger %v, want %s", a.DefaultTrigger(), v.Trigger)
	}
}

// runSessionMerge merges windows in the order of the vector and in the opposite one.
func runSessionMerge(t *testing.T, c conformance.Case) {
	var v struct {
		conformance.Head
		Op       string            `json:"op"`
		Assigner windowAssigner    `json:"assigner"`
		Input    []json.RawMessage `json:"input"`
		Merges   []struct {
			Sources []json.RawMessage `json:"sources"`
			Result  json.RawMessage   `json:"result"`
		} `json:"expect_merges"`
	}
	c.Decode(t, &v)
	var input []window.Time
	for _, w := range v.Input {
		input = append(input, timeWindow(t, w))
	}
	for range 2 {
		want := map[window.Time][]window.Time{}
		for _, m := range v.Merges {
			r := timeWindow(t, m.Result)
			for _, w := range m.Sources {
				want[r] = append(want[r], timeWindow(t, w))
			}
		}
		v.Assigner.any(t).(window.Merger[window.Time]).Merge(input, func(result window.Time, sources []window.Time) {
			if !slices.Equal(sortedWindows(sources), sortedWindows(want[result])) {
				t.Errorf("%v became %v, want %v", sources, result, want)
			}
			delete(want, result)
		})
		if len(want) > 0 {
			t.Errorf("not merged: %v", want)
		}
		slices.Reverse(input)
	}
}

func runWindowStart(t *testing.T, c conformance.Case) {
	var v struct {
		conformance.Head
		Op        string             `json:"op"`
		Timestamp conformance.Millis `json:"timestamp"`
		Offset    conformance.Millis `json:"offset_ms"`
		Size      conformance.Millis `json:"size_ms"`
		Expect    conformance.Millis `json:"expect"`
	}
	c.Decode(t, &v)
	want := int64(v.Expect)
	if got := window.StartWithOffset(int64(v.Timestamp), int64(v.Offset), int64(v.Size)); got != want {
		t.Errorf("%d, want %d", got, want)
	}
	ws, err := window.Tumbling(duration(v.Size)).Offset(duration(v.Offset)).Assign(nil, int64(v.Timestamp), math.MinInt64)
	if err != nil || len(ws) != 1 || ws[0] != (window.Time{Start: want, End: want + int64(v.Size)}) {
		t.Errorf("the assigner says %v, %v, want %d", ws, err, want)
	}
}

// timeWindow reads a window [start, end].
func timeWindow(t *testing.T, raw json.RawMessage) window.Time {
	t.Helper()
	var start, end conformance.Millis
	if err := tuple(raw, &start, &end); err != nil {
		t.Fatal(err)
	}
	return window.Time{Start: int64(start), End: int64(end)}
}

// sortedWindows are windows in an order of their own, so that sets can be compared.
func sortedWindows(ws []window.Time) []window.Time {
	return slices.SortedFunc(slices.Values(ws), func(a, b window.Time) int {
		if a.Start != b.Start {
			return int(a.Start - b.Start)
		}
		return int(a.End - b.End)
	})
}
