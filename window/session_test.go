package window_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/window"
)

func TestGapOfTheElement(t *testing.T) {
	assigners := map[string]window.DynamicSessionAssigner[time.Duration]{
		"event time":               window.SessionBy(identity),
		"event time, pointer":      window.SessionByPtr(func(d *time.Duration) time.Duration { return *d }),
		"processing time":          window.SessionProcessingTimeBy(identity),
		"processing time, pointer": window.SessionProcessingTimeByPtr(func(d *time.Duration) time.Duration { return *d }),
	}
	for name, a := range assigners {
		start := int64(100)
		if strings.HasPrefix(name, "processing") {
			start = 7
		}
		gap := 9*time.Second + 1
		ws, err := a.AssignElement(nil, &gap, 100, 7)
		if want := []window.Time{{start, start + 9000}}; err != nil || !slices.Equal(ws, want) {
			t.Errorf("%s: %v, %v, want %v", name, ws, err, want)
		}
		if got := a.GapOf(&gap); got != 9000 {
			t.Errorf("%s: gap %d", name, got)
		}
		for _, gap := range []time.Duration{0, -1, -time.Second, 999_999} {
			ws, err := a.AssignElement(nil, &gap, 100, 7)
			if len(ws) != 0 || err == nil || !strings.Contains(err.Error(), "its gap is ") || a.GapOf(&gap) > 0 {
				t.Errorf("%s: gap %v: %v, %v", name, gap, ws, err)
			}
		}
	}
}

// checkMerge compares merges with the union of the windows as sets of times, painted ms by ms: touching windows share the
// point between them.
func checkMerge(t *testing.T, windows []window.Time) {
	t.Helper()
	before := slices.Clone(windows)
	covered := map[int64]bool{} // in half ms, ends included
	for _, w := range windows {
		for p := 2 * w.Start; p <= 2*w.End; p++ {
			covered[p] = true
		}
	}
	group := func(w window.Time) window.Time {
		lo, hi := 2*w.Start, 2*w.End
		for covered[lo-1] {
			lo--
		}
		for covered[hi+1] {
			hi++
		}
		return window.Time{Start: lo / 2, End: hi / 2}
	}
	want := map[window.Time][]window.Time{}
	for _, w := range windows {
		want[group(w)] = append(want[group(w)], w)
	}
	for g, sources := range want {
		if len(sources) < 2 {
			delete(want, g)
		}
	}
	byTime := func(a, b window.Time) int {
		return int(a.Start-b.Start)*1000 + int(a.End-b.End)
	}
	window.Session(time.Second).Merge(windows, func(result window.Time, sources []window.Time) {
		expected, ok := want[result]
		delete(want, result)
		slices.SortFunc(expected, byTime)
		got := slices.SortedFunc(slices.Values(sources), byTime)
		if !ok || !slices.Equal(got, expected) {
			t.Fatalf("%v: merged %v into %v, want %v", before, got, result, expected)
		}
	})
	if len(want) > 0 {
		t.Fatalf("%v: not merged: %v", before, want)
	}
	if !slices.Equal(windows, before) {
		t.Fatalf("%v: windows were reordered: %v", before, windows)
	}
}

func TestMergeIsTheUnion(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		distinct := map[window.Time]bool{}
		for range rng.IntN(9) {
			start := rng.Int64N(60) - 30
			distinct[window.Time{Start: start, End: start + rng.Int64N(10)}] = true
		}
		var windows []window.Time
		for w := range distinct {
			windows = append(windows, w)
		}
		checkMerge(t, windows)
	}
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte{0, 10, 10, 10, 21, 10})
	f.Add([]byte{1, 0, 0, 2, 4, 3, 5, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		var windows []window.Time
		for ; len(data) >= 2; data = data[2:] {
			w := window.Time{Start: int64(int8(data[0])), End: int64(int8(data[0])) + int64(data[1]%32)}
			if !slices.Contains(windows, w) {
				windows = append(windows, w)
			}
		}
		checkMerge(t, windows)
	})
}
