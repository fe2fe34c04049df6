package streaming_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/operator/windowing"
	"github.com/flott-dev/flott/window"
)

type mergingSetCase struct {
	conformance.Head
	Assigner struct {
		Kind string `json:"kind"`
		Gap  int64  `json:"gap_ms"`
	} `json:"assigner"`
	Steps []mergingSetStep `json:"steps"`
}

type mergingSetStep struct {
	Add           *windowSpan       `json:"add"`
	Result        *windowSpan       `json:"expect_result"`
	Merged        *bool             `json:"expect_merged"`
	Target        *windowSpan       `json:"expect_target"`
	Sources       *[]windowSpan     `json:"expect_sources"`
	StateAnyOf    []windowSpan      `json:"expect_state_window_any_of"`
	StatesAnyOf   [][]windowSpan    `json:"expect_merged_state_windows_any_of"`
	HasState      bool              `json:"expect_result_has_state_window"`
	StateWindowOf *windowSpan       `json:"state_window_of"`
	AnyOf         []windowSpan      `json:"expect_any_of"`
	Absent        bool              `json:"expect_absent"`
	Retire        *windowSpan       `json:"retire"`
	Restore       *[]inFlightWindow `json:"restore"`
	Persist       bool              `json:"persist"`
	Written       *[]inFlightWindow `json:"expect_written"`
	ExpectError   json.RawMessage   `json:"expect_error"`
}

type inFlightWindow struct {
	Window windowSpan `json:"window"`
	State  windowSpan `json:"state_window"`
}

func (p inFlightWindow) String() string { return fmt.Sprintf("%v in %v", p.Window, p.State) }

func TestMergingWindowSetVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "merging_window_set", Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{"": runMergingSet},
	}
	s.Run(t)
}

func spanOf(w window.Time) windowSpan { return windowSpan(w) }

func spansOf(ws []window.Time) []windowSpan {
	out := []windowSpan{}
	for _, w := range ws {
		out = append(out, spanOf(w))
	}
	return out
}

func runMergingSet(t *testing.T, c conformance.Case) {
	var v mergingSetCase
	c.Decode(t, &v)
	var m window.Merger[window.Time]
	switch v.Assigner.Kind {
	case "session_event_time":
		m = window.Session(time.Duration(v.Assigner.Gap) * time.Millisecond)
	case "non_eager_test_assigner":
		m = nonEager{}
	default:
		t.Fatalf("assigner %q is unknown", v.Assigner.Kind)
	}
	set := windowing.NewMergingSet(m)
	for i, s := range v.Steps {
		mergingSetAt(t, i, set, s)
	}
}

// nonEager merges what starts within the earliest window, and what is merged ends one later.
type nonEager struct{}

func (nonEager) Merge(ws []window.Time, merged func(window.Time, []window.Time)) {
	ws = slices.Clone(ws)
	slices.SortFunc(ws, func(a, b window.Time) int { return cmp.Compare(a.Start, b.Start) })
	first := ws[0]
	with := slices.DeleteFunc(ws, func(w window.Time) bool { return w.Start < first.Start || w.Start > first.End })
	if len(with) > 1 {
		merged(window.Time{Start: first.Start, End: first.End + 1}, with)
	}
}

func mergingSetAt(t *testing.T, i int, set *windowing.MergingSet[window.Time], s mergingSetStep) {
	t.Helper()
	switch {
	case s.Add != nil:
		addToSet(t, i, set, s)
	case s.StateWindowOf != nil:
		state, ok := set.StateOf(window.Time(*s.StateWindowOf))
		if ok == s.Absent || ok && !slices.Contains(s.AnyOf, spanOf(state)) {
			t.Fatalf("step %d: the state window of %v is %v (%v), want one of %v", i, *s.StateWindowOf, state, ok, s.AnyOf)
		}
	case s.Retire != nil:
		if err := set.Retire(window.Time(*s.Retire)); (err != nil) != (len(s.ExpectError) != 0) {
			t.Fatalf("step %d: error %v", i, err)
		}
	case s.Restore != nil:
		var pairs []windowing.InFlight[window.Time]
		for _, p := range *s.Restore {
			pairs = append(pairs, windowing.InFlight[window.Time]{Window: window.Time(p.Window), State: window.Time(p.State)})
		}
		set.Restore(pairs...)
	case s.Persist:
		written := []inFlightWindow{}
		if set.Changed() {
			for _, p := range set.Pairs() {
				written = append(written, inFlightWindow{spanOf(p.Window), spanOf(p.State)})
			}
		}
		compare(t, i, "written", texts(written), texts(*s.Written), true)
	default:
		t.Fatalf("step %d is unknown", i)
	}
}

func addToSet(t *testing.T, i int, set *windowing.MergingSet[window.Time], s mergingSetStep) {
	t.Helper()
	result, merges, err := set.Add(window.Time(*s.Add))
	if err != nil {
		t.Fatalf("step %d: %v", i, err)
	}
	if s.Result != nil && spanOf(result) != *s.Result {
		t.Fatalf("step %d: the result is %v, want %v", i, result, *s.Result)
	}
	if s.Merged != nil && *s.Merged != (len(merges) != 0) {
		t.Fatalf("step %d: %d merges, want some: %v", i, len(merges), *s.Merged)
	}
	if _, ok := set.StateOf(result); !ok {
		t.Fatalf("step %d: the result has no state window", i)
	}
	if len(merges) == 0 {
		return
	}
	m := merges[0]
	if len(merges) != 1 || s.Target != nil && spanOf(m.Result) != *s.Target {
		t.Fatalf("step %d: %d merges, the first into %v, want %v", i, len(merges), m.Result, s.Target)
	}
	if s.Sources != nil {
		compare(t, i, "sources", texts(spansOf(m.Sources)), texts(*s.Sources), true)
	}
	if len(s.StateAnyOf) != 0 && !slices.Contains(s.StateAnyOf, spanOf(m.State)) {
		t.Fatalf("step %d: the state window is %v, want one of %v", i, m.State, s.StateAnyOf)
	}
	if len(s.StatesAnyOf) == 0 {
		return
	}
	got := sortedTexts(spansOf(m.States))
	if !slices.ContainsFunc(s.StatesAnyOf, func(want []windowSpan) bool { return slices.Equal(got, sortedTexts(want)) }) {
		t.Fatalf("step %d: merged state windows %v, want one of %v", i, got, s.StatesAnyOf)
	}
}

func sortedTexts(ws []windowSpan) []string { return slices.Sorted(slices.Values(texts(ws))) }
