package windowing

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/window"
)

// scriptedMerger merges what it is told to.
type scriptedMerger struct {
	result  window.Time
	sources []window.Time
}

func (m *scriptedMerger) Merge(_ []window.Time, merged func(window.Time, []window.Time)) {
	if len(m.sources) != 0 {
		merged(m.result, m.sources)
	}
}

func span(start, end int64) window.Time { return window.Time{Start: start, End: end} }

func add(t *testing.T, s *MergingSet[window.Time], w window.Time) (window.Time, []Merge[window.Time]) {
	t.Helper()
	result, merges, err := s.Add(w)
	if err != nil {
		t.Fatal(err)
	}
	return result, merges
}

func wantState(t *testing.T, s *MergingSet[window.Time], w, state window.Time) {
	t.Helper()
	if got, ok := s.StateOf(w); !ok || got != state {
		t.Fatalf("the state window of %v is %v (%v), want %v", w, got, ok, state)
	}
}

func TestMergedContentsFollowInOrderOfTime(t *testing.T) {
	s := NewMergingSet[window.Time](window.Session(3))
	s.Restore(InFlight[window.Time]{span(20, 30), span(20, 21)}, InFlight[window.Time]{span(5, 8), span(6, 7)}, InFlight[window.Time]{span(10, 15), span(10, 12)})
	result, merges := add(t, s, span(7, 22))
	if result != span(5, 30) || len(merges) != 1 {
		t.Fatalf("the result is %v after %d merges", result, len(merges))
	}
	m := merges[0]
	if m.Result != result || m.State != span(6, 7) || !slices.Equal(m.Sources, []window.Time{span(5, 8), span(10, 15), span(20, 30)}) ||
		!slices.Equal(m.States, []window.Time{span(10, 12), span(20, 21)}) {
		t.Fatalf("merged %+v", m)
	}
	wantState(t, s, result, span(6, 7))
	if len(s.Pairs()) != 1 || !s.Changed() {
		t.Fatalf("%v are in flight, changed %v", s.Pairs(), s.Changed())
	}
}

func TestWindowThatIsThereKeepsItsState(t *testing.T) {
	s := NewMergingSet[window.Time](window.Session(3))
	s.Restore(InFlight[window.Time]{span(0, 9), span(0, 3)})
	for _, w := range []window.Time{span(0, 9), span(2, 4), span(0, 3)} {
		if result, merges := add(t, s, w); result != span(0, 9) || len(merges) != 0 {
			t.Fatalf("%v became %v by %d merges", w, result, len(merges))
		}
	}
	wantState(t, s, span(0, 9), span(0, 3))
	if s.Changed() {
		t.Error("the set has changed")
	}
}

func TestWindowThatComesAgainGetsContentsOfItsOwn(t *testing.T) {
	m := &scriptedMerger{}
	s := NewMergingSet[window.Time](m)
	add(t, s, span(0, 1))
	m.result, m.sources = span(0, 2), []window.Time{span(0, 1), span(1, 2)}
	add(t, s, span(1, 2))
	m.result, m.sources = span(0, 3), []window.Time{span(0, 2), span(2, 3)}
	add(t, s, span(2, 3))
	wantState(t, s, span(0, 3), span(0, 1))
	m.sources = nil
	result, merges := add(t, s, span(0, 1))
	if result != span(0, 1) || len(merges) != 1 || len(merges[0].Sources) != 0 {
		t.Fatalf("%v by %+v", result, merges)
	}
	if move := merges[0]; move.State != span(0, 3) || !slices.Equal(move.States, []window.Time{span(0, 1)}) {
		t.Fatalf("moved %+v", move)
	}
	wantState(t, s, span(0, 3), span(0, 3))
	wantState(t, s, span(0, 1), span(0, 1))
}

func TestSetThatIsAsBeforeHasNotChanged(t *testing.T) {
	s := NewMergingSet[window.Time](window.Session(3))
	s.Restore(InFlight[window.Time]{span(0, 3), span(0, 3)})
	add(t, s, span(50, 53))
	if !s.Changed() {
		t.Error("a window more is no change")
	}
	if err := s.Retire(span(50, 53)); err != nil || s.Changed() {
		t.Errorf("error %v, changed %v", err, s.Changed())
	}
	if err := s.Retire(span(50, 53)); !errors.Is(err, ErrNotInFlight) {
		t.Errorf("got %v", err)
	}
}

func TestMergerThatInventsWindowsIsRefused(t *testing.T) {
	for want, m := range map[string]*scriptedMerger{
		"not one of those to be merged": {span(0, 9), []window.Time{span(0, 1), span(7, 8)}},
		"no window to merge with":       {span(0, 9), []window.Time{span(3, 4), span(3, 4)}},
		"it is in flight":               {span(5, 6), []window.Time{span(0, 1), span(3, 4)}},
	} {
		s := NewMergingSet[window.Time](m)
		s.Restore(InFlight[window.Time]{span(0, 1), span(0, 1)}, InFlight[window.Time]{span(5, 6), span(5, 6)})
		if _, _, err := s.Add(span(3, 4)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestMergesOfOthersLeaveTheNewWindowAlone is Flink's testNonEagerMerging with a merger that leaves windows for later.
func TestMergesOfOthersLeaveTheNewWindowAlone(t *testing.T) {
	m := &scriptedMerger{}
	s := NewMergingSet[window.Time](m)
	add(t, s, span(0, 2))
	add(t, s, span(1, 4))
	m.result, m.sources = span(0, 4), []window.Time{span(0, 2), span(1, 4)}
	result, merges := add(t, s, span(10, 12))
	if result != span(10, 12) || len(merges) != 1 || merges[0].Result != span(0, 4) {
		t.Fatalf("%v by %+v", result, merges)
	}
	wantState(t, s, span(0, 4), span(0, 2))
	wantState(t, s, span(10, 12), span(10, 12))
}
