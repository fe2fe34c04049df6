package window_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/flott-dev/flott/window"
)

func assigned[W window.Window](t *testing.T, a window.Assigner[W], ts int64) []W {
	t.Helper()
	ws, err := a.Assign(nil, ts, math.MinInt64)
	if err != nil {
		t.Fatalf("%v of %d: %v", a, ts, err)
	}
	return ws
}

func place(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// B001: windows of times before 1970 contain their elements.
func TestB001TimesBefore1970AreFloored(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		assigner window.Assigner[window.Time]
		ts       int64
		want     []window.Time
	}{
		{window.Tumbling(10 * ms), -1, []window.Time{{-10, 0}}},
		{window.Tumbling(10 * ms), -10, []window.Time{{-10, 0}}},
		{window.Tumbling(10 * ms), -11, []window.Time{{-20, -10}}},
		{window.Tumbling(10 * ms), -15, []window.Time{{-20, -10}}},
		{window.Tumbling(10 * ms), 0, []window.Time{{0, 10}}},
		{window.Tumbling(10 * ms).Offset(3 * ms), -1, []window.Time{{-7, 3}}},
		{window.Tumbling(10 * ms).Offset(3 * ms), -8, []window.Time{{-17, -7}}},
		{window.Tumbling(10 * ms).Offset(-3 * ms), -15, []window.Time{{-23, -13}}},
		{window.Sliding(10*ms, 5*ms), -1, []window.Time{{-5, 5}, {-10, 0}}},
		{window.Sliding(10*ms, 5*ms), -10, []window.Time{{-10, 0}, {-15, -5}}},
		{window.Sliding(10*ms, 5*ms), -11, []window.Time{{-15, -5}, {-20, -10}}},
		{window.Sliding(10*ms, 5*ms), -15, []window.Time{{-15, -5}, {-20, -10}}},
		{window.Sliding(10*ms, 5*ms).Offset(3 * ms), -15, []window.Time{{-17, -7}, {-22, -12}}},
		{window.Sliding(10*ms, 5*ms).Offset(3 * ms), 0, []window.Time{{-2, 8}, {-7, 3}}},
		{window.Session(10 * ms), -15, []window.Time{{-15, -5}}},
		{window.Daily(time.UTC), -1, []window.Time{{-86_400_000, 0}}},
		{window.Daily(time.UTC), -86_400_000, []window.Time{{-86_400_000, 0}}},
		{window.Daily(time.UTC), -86_400_001, []window.Time{{-172_800_000, -86_400_000}}},
	} {
		if got := assigned(t, c.assigner, c.ts); !slices.Equal(got, c.want) {
			t.Errorf("%v of %d: %v, want %v", c.assigner, c.ts, got, c.want)
		}
	}
}

// B003: one event an hour for three days around a clock change. Windows of a fixed length stay as long as they are;
// calendar windows follow the clock; none loses an event.
func TestB003DaysWithAClockChange(t *testing.T) {
	la := place(t, "America/Los_Angeles")
	for _, c := range []struct {
		first time.Time // midnight at the beginning of the day before the change
		hours []int     // events of the three days
	}{
		{time.Date(2021, 3, 13, 0, 0, 0, 0, la), []int{24, 23, 24}},
		{time.Date(2021, 11, 6, 0, 0, 0, 0, la), []int{24, 25, 24}},
	} {
		last := c.first.AddDate(0, 0, 3)
		count := func(a window.Assigner[window.Time]) (starts []int64, sizes map[int64]int) {
			sizes = map[int64]int{}
			for at := c.first; at.Before(last); at = at.Add(time.Hour) {
				ws := assigned(t, a, at.UnixMilli())
				if len(ws) != 1 || at.UnixMilli() < ws[0].Start || at.UnixMilli() >= ws[0].End {
					t.Fatalf("%v of %v: %v", a, at, ws)
				}
				if sizes[ws[0].Start] == 0 {
					starts = append(starts, ws[0].Start)
				}
				sizes[ws[0].Start]++
			}
			return starts, sizes
		}
		starts, sizes := count(window.Daily(la))
		for i, want := range c.hours {
			day := c.first.AddDate(0, 0, i).UnixMilli()
			if len(starts) != 3 || starts[i] != day || sizes[day] != want {
				t.Errorf("day %d from %v: windows %v, %d events, want %d", i, c.first, starts, sizes[day], want)
			}
		}
		total := int(last.Sub(c.first).Hours())
		for _, a := range []window.Assigner[window.Time]{
			window.Tumbling(24 * time.Hour).Offset(8 * time.Hour), window.Tumbling(4 * time.Hour), window.Tumbling(4 * time.Hour).Offset(-time.Hour),
		} {
			g := a.(window.Gridded).Grid()
			starts, sizes := count(a)
			sum := 0
			for i, s := range starts {
				sum += sizes[s]
				if i > 0 && s != starts[i-1]+g.Size || s%g.Size != g.Offset {
					t.Errorf("%v: windows at %v", a, starts)
				}
			}
			if sum != total {
				t.Errorf("%v: %d events, want %d", a, sum, total)
			}
		}
	}
}

// B004: an element between sliding windows belongs to none.
func TestB004SlidingWindowsWithGaps(t *testing.T) {
	a := window.Sliding(3*time.Millisecond, 10*time.Millisecond)
	for ts, want := range map[int64][]window.Time{
		1: {{0, 3}}, 2: {{0, 3}}, 3: nil, 5: nil, 9: nil, 12: {{10, 13}}, -1: nil, -7: nil, -8: {{-10, -7}},
	} {
		if got := assigned(t, a, ts); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", ts, got, want)
		}
	}
}

// B012: windows end where time does.
func TestB012WindowsDoNotWrapAround(t *testing.T) {
	const first, last = math.MinInt64, math.MaxInt64
	year3000 := time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for _, c := range []struct {
		assigner window.Assigner[window.Time]
		ts       int64
		want     []window.Time
	}{
		{window.Tumbling(time.Second), year3000, []window.Time{{year3000, year3000 + 1000}}},
		{window.Tumbling(time.Second), last, []window.Time{{last - 807, last}}},
		{window.Tumbling(time.Second), first + 1, []window.Time{{first, first + 808}}},
		{window.Sliding(2*time.Second, time.Second), last, []window.Time{{last - 807, last}, {last - 1807, last}}},
		{window.Sliding(2*time.Second, time.Second), first + 1, []window.Time{{first, first + 1808}, {first, first + 808}}},
		{window.Session(time.Second), last, []window.Time{{last, last}}},
		{window.Session(time.Second), last - 5, []window.Time{{last - 5, last}}},
		{window.Session(time.Second), first + 1, []window.Time{{first + 1, first + 1001}}},
	} {
		if got := assigned(t, c.assigner, c.ts); !slices.Equal(got, c.want) {
			t.Errorf("%v of %d: %v, want %v", c.assigner, c.ts, got, c.want)
		}
	}
	for _, a := range []window.Assigner[window.Time]{window.Daily(time.UTC), window.Weekly(place(t, "Asia/Tokyo"), time.Monday), window.Monthly(place(t, "America/Los_Angeles"))} {
		if w := assigned(t, a, last)[0]; w.End != last || w.Start < last-32*86_400_000 {
			t.Errorf("%v at the end of time: %v", a, w)
		}
		if w := assigned(t, a, first+1)[0]; w.Start != first || w.End > first+32*86_400_000 {
			t.Errorf("%v at the beginning of time: %v", a, w)
		}
	}
}

// B012: an element without a timestamp is an error in event time, not data at minus infinity.
func TestB012ElementsWithoutTimestampAreRefused(t *testing.T) {
	event := []window.Assigner[window.Time]{
		window.Tumbling(time.Second), window.Sliding(time.Second, time.Second), window.Session(time.Second),
		window.Daily(time.UTC), window.Weekly(time.UTC, time.Monday), window.Monthly(time.UTC),
	}
	for _, a := range event {
		if ws, err := a.Assign(nil, math.MinInt64, 5); !errors.Is(err, window.ErrNoTimestamp) || len(ws) != 0 {
			t.Errorf("%v: %v, %v", a, ws, err)
		}
	}
	gap := time.Second
	if _, err := window.SessionBy(identity).AssignElement(nil, &gap, math.MinInt64, 5); !errors.Is(err, window.ErrNoTimestamp) {
		t.Errorf("dynamic sessions: %v", err)
	}
	processing := []window.Assigner[window.Time]{
		window.TumblingProcessingTime(time.Second), window.SlidingProcessingTime(time.Second, time.Second),
		window.Daily(time.UTC).ProcessingTime(),
	}
	for _, a := range processing {
		if ws, err := a.Assign(nil, math.MinInt64, 5); err != nil || len(ws) != 1 || ws[0].Start != 0 {
			t.Errorf("%v: %v, %v", a, ws, err)
		}
	}
	if ws, err := window.GlobalWindows().Assign(nil, math.MinInt64, 5); err != nil || len(ws) != 1 {
		t.Errorf("global windows: %v, %v", ws, err)
	}
}

// B016: sessions that exactly touch are one.
func TestB016SessionsThatTouchMerge(t *testing.T) {
	a := window.Session(10 * time.Millisecond)
	for _, c := range []struct{ at, start, end []int64 }{
		{[]int64{0, 10}, []int64{0}, []int64{20}},
		{[]int64{0, 11}, []int64{0, 11}, []int64{10, 21}},
		{[]int64{0, 10, 5}, []int64{0}, []int64{20}},
		{[]int64{0, 20, 10}, []int64{0}, []int64{30}},
		{[]int64{0, 21, 10}, []int64{0, 21}, []int64{20, 31}},
	} {
		for _, order := range permutations(c.at) {
			live := map[window.Time]bool{}
			for _, ts := range order {
				live[assigned(t, a, ts)[0]] = true
				mergeInto(a, live)
			}
			want := map[window.Time]bool{}
			for i := range c.start {
				want[window.Time{Start: c.start[i], End: c.end[i]}] = true
			}
			if !equalSets(live, want) {
				t.Errorf("events at %v: %v, want %v", order, live, want)
			}
		}
	}
}

func identity(d time.Duration) time.Duration { return d }

// mergeInto merges the windows of one key as drivers do.
func mergeInto(m window.Merger[window.Time], live map[window.Time]bool) {
	var all []window.Time
	for w := range live {
		all = append(all, w)
	}
	m.Merge(all, func(result window.Time, sources []window.Time) {
		for _, s := range sources {
			delete(live, s)
		}
		live[result] = true
	})
}

func equalSets(a, b map[window.Time]bool) bool {
	for w := range a {
		if !b[w] {
			return false
		}
	}
	return len(a) == len(b)
}

func permutations(xs []int64) [][]int64 {
	if len(xs) <= 1 {
		return [][]int64{xs}
	}
	var out [][]int64
	for i := range xs {
		for _, p := range permutations(slices.Delete(slices.Clone(xs), i, i+1)) {
			out = append(out, append([]int64{xs[i]}, p...))
		}
	}
	return out
}
