package window_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// What programs and the engine expect of the assigners.
var (
	_ window.Assigner[window.Time]                       = window.TumblingAssigner{}
	_ window.Assigner[window.Time]                       = window.SlidingAssigner{}
	_ window.Assigner[window.Time]                       = window.SessionAssigner{}
	_ window.Assigner[window.Time]                       = window.CalendarAssigner{}
	_ window.Assigner[window.Global]                     = window.GlobalAssigner{}
	_ window.ElementAssigner[time.Duration, window.Time] = window.DynamicSessionAssigner[time.Duration]{}
	_ window.Gridded                                     = window.TumblingAssigner{}
	_ window.Gridded                                     = window.SlidingAssigner{}
	_ window.Gridded                                     = window.CalendarAssigner{}
	_ window.Merger[window.Time]                         = window.SessionAssigner{}
	_ window.Merger[window.Time]                         = window.DynamicSessionAssigner[time.Duration]{}
	_ window.Sessional                                   = window.SessionAssigner{}
	_ window.ElementSessional[time.Duration]             = window.DynamicSessionAssigner[time.Duration]{}
	_ interface{ Check() error }                         = window.DynamicSessionAssigner[time.Duration]{}
)

// windowsOf infers the type of windows from an assigner, as streams do.
func windowsOf[W window.Window](t *testing.T, a window.Assigner[W], ts int64) []W {
	return assigned(t, a, ts)
}

func TestTypeOfWindowsIsInferred(t *testing.T) {
	if got := windowsOf(t, window.Tumbling(time.Second), 1500); !slices.Equal(got, []window.Time{{1000, 2000}}) {
		t.Error(got)
	}
	if got := windowsOf(t, window.GlobalWindows(), 0); !slices.Equal(got, []window.Global{{}}) {
		t.Error(got)
	}
}

func TestDomainsAndDefaultTriggers(t *testing.T) {
	type described interface {
		Domain() process.Domain
		DefaultTrigger() window.Trigger
	}
	for _, a := range []described{
		window.Tumbling(time.Second), window.Sliding(time.Second, time.Second), window.Session(time.Second),
		window.SessionBy(identity), window.SessionByPtr(func(*int) time.Duration { return 1 }), window.Daily(time.UTC),
		window.Weekly(time.UTC, time.Sunday), window.Monthly(time.UTC),
	} {
		if a.Domain() != process.EventTime || a.DefaultTrigger() != window.EventTimeTrigger() {
			t.Errorf("%v: %v, %v", a, a.Domain(), a.DefaultTrigger())
		}
	}
	for _, a := range []described{
		window.TumblingProcessingTime(time.Second).Offset(time.Millisecond), window.SlidingProcessingTime(time.Second, time.Second).Offset(time.Millisecond),
		window.SessionProcessingTime(time.Second), window.SessionProcessingTimeBy(identity),
		window.SessionProcessingTimeByPtr(func(*int) time.Duration { return 1 }), window.Daily(time.UTC).ProcessingTime().Offset(time.Hour),
	} {
		if a.Domain() != process.ProcessingTime || a.DefaultTrigger() != window.ProcessingTimeTrigger() {
			t.Errorf("%v: %v, %v", a, a.Domain(), a.DefaultTrigger())
		}
	}
	if a := window.GlobalWindows(); a.Domain() != process.ProcessingTime || a.DefaultTrigger() != window.NeverTrigger() {
		t.Errorf("%v: %v, %v", a, a.Domain(), a.DefaultTrigger())
	}
}

func TestChecksOfAssigners(t *testing.T) {
	const second, hour = time.Second, time.Hour
	var nobody func(int) time.Duration
	var nobodyPtr func(*int) time.Duration
	for _, c := range []struct {
		assigner any
		wrong    string // part of the error; "" for none
	}{
		{window.Tumbling(second), ""},
		{window.Tumbling(second + 1), ""},
		{window.Tumbling(second).Offset(second - 1), ""},
		{window.Tumbling(second).Offset(1 - second), ""},
		{window.Tumbling(0), "tumbling windows: the size is 0s; it must be at least 1ms"},
		{window.Tumbling(-second), "the size is -1s"},
		{window.Tumbling(999 * time.Microsecond), "the size is less than a millisecond"},
		{window.TumblingProcessingTime(10 * second).Offset(-11 * second), "the offset is -11s; with a size of 10s it must be between -10s and 10s"},
		{window.Tumbling(second).Offset(second), "the offset is 1s"},
		{window.Tumbling(second).Offset(-second), "the offset is -1s"},
		{window.Tumbling(second).Offset(time.Microsecond), "the offset is less than a millisecond; it must be whole milliseconds"},
		{window.TumblingAssigner{}, "the size is 0s"},
		{window.Sliding(second, second), ""},
		{window.Sliding(second, hour), ""},
		{window.Sliding(second, hour).Offset(hour - second), ""},
		{window.Sliding(hour, second).Offset(999 * time.Millisecond), ""},
		{window.Sliding(hour, second).Offset(second), "the offset is 1s; with a slide of 1s it must be between"},
		{window.Sliding(hour, second).Offset(-second), "the offset is -1s; with a slide"},
		{window.Sliding(-second, second), "sliding windows: the size is -1s"},
		{window.Sliding(second, 0), "sliding windows: the slide is 0s"},
		{window.Sliding(second, time.Nanosecond), "the slide is less than a millisecond"},
		{window.SlidingProcessingTime(second, -second), "the slide is -1s"},
		{window.Session(time.Millisecond), ""},
		{window.Session(0), "session windows: the gap is 0s"},
		{window.SessionProcessingTime(-second), "the gap is -1s"},
		{window.Session(time.Nanosecond), "the gap is less than a millisecond"},
		{window.SessionBy(identity), ""},
		{window.SessionBy(nobody), "the function that gives the gap is nil"},
		{window.SessionByPtr(nobodyPtr), "the function that gives the gap is nil"},
		{window.SessionProcessingTimeBy(nobody), "the function that gives the gap is nil"},
		{window.SessionProcessingTimeByPtr(nobodyPtr), "the function that gives the gap is nil"},
		{window.Daily(time.UTC), ""},
		{window.Daily(time.UTC).Offset(-23 * hour), ""},
		{window.Weekly(time.UTC, time.Saturday), ""},
		{window.Monthly(nil), "the location is nil"},
		{window.Daily(nil).ProcessingTime(), "the location is nil"},
		{window.Weekly(time.UTC, 7), "the first day of the week is 7"},
		{window.Weekly(time.UTC, -1), "the first day of the week is -1"},
		{window.Daily(time.UTC).Offset(24 * hour), "the offset is 24h0m0s; with a day of 24h0m0s"},
		{window.Daily(time.UTC).Offset(1500 * time.Millisecond), "the offset is 1.5s; it must be whole seconds"},
		{window.Daily(time.UTC).Offset(1), "the offset is less than a millisecond; it must be whole seconds"},
	} {
		err := c.assigner.(interface{ Check() error }).Check()
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%v: %v", c.assigner, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%v: error %v, want one with %q", c.assigner, err, c.wrong)
		}
	}
}

// What was not checked gives the same error when it is used.
func TestUncheckedAssignersFailTheirElements(t *testing.T) {
	for _, a := range []window.Assigner[window.Time]{
		window.Tumbling(0), window.Sliding(time.Second, 0), window.Sliding(0, time.Second), window.Session(-1), window.Daily(nil),
	} {
		ws, err := a.Assign(nil, 1, 1)
		if want := a.(interface{ Check() error }).Check(); len(ws) != 0 || err == nil || err.Error() != want.Error() {
			t.Errorf("%v: %v, %v, want %v", a, ws, err, want)
		}
	}
}

// B074: so many windows per element that memory would run out are refused, with advice that helps.
func TestB074AbsurdOverlapIsRefused(t *testing.T) {
	err := window.Sliding(24*time.Hour, time.Millisecond).Check()
	if err == nil || !strings.Contains(err.Error(), "86400000 windows") || !strings.Contains(err.Error(), "use a slide of 864ms or longer") {
		t.Errorf("a day every ms: %v", err)
	}
	if err := window.Sliding(24*time.Hour, 863*time.Millisecond).Check(); err == nil {
		t.Error("a day every 863 ms was accepted")
	}
	for _, a := range []window.SlidingAssigner{
		window.Sliding(24*time.Hour, 864*time.Millisecond), window.Sliding(time.Second, time.Millisecond),
		window.Sliding(100*time.Second, time.Millisecond),
	} {
		if err := a.Check(); err != nil {
			t.Errorf("%v: %v", a, err)
		}
	}
	if got := assigned(t, window.Sliding(time.Second, time.Millisecond), 12345); len(got) != 1000 {
		t.Errorf("a second every ms: %d windows", len(got))
	}
}

func TestAssignersPrintAsTheyWereWritten(t *testing.T) {
	la := place(t, "America/Los_Angeles")
	for want, a := range map[string]any{
		"Tumbling(1m0s)": window.Tumbling(time.Minute),
		"TumblingProcessingTime(1m0s).Offset(-5s)":     window.TumblingProcessingTime(time.Minute).Offset(-5 * time.Second),
		"Sliding(1m0s, 10s)":                           window.Sliding(time.Minute, 10*time.Second),
		"SlidingProcessingTime(1m0s, 10s).Offset(1ms)": window.SlidingProcessingTime(time.Minute, 10*time.Second).Offset(time.Millisecond),
		"Session(30s)":                                 window.Session(30 * time.Second),
		"SessionProcessingTime(30s)":                   window.SessionProcessingTime(30 * time.Second),
		"SessionBy(func)":                              window.SessionBy(identity),
		"SessionProcessingTimeBy(func)":                window.SessionProcessingTimeBy(identity),
		"GlobalWindows()":                              window.GlobalWindows(),
		"Daily(America/Los_Angeles)":                   window.Daily(la),
		"Daily(UTC).Offset(6h0m0s).ProcessingTime()":   window.Daily(time.UTC).ProcessingTime().Offset(6 * time.Hour),
		"Weekly(America/Los_Angeles, Monday)":          window.Weekly(la, time.Monday),
		"Monthly(nil)":                                 window.Monthly(nil),
	} {
		if got := a.(interface{ String() string }).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestOffsetReturnsAChangedCopy(t *testing.T) {
	tumbling, sliding, daily := window.Tumbling(time.Second), window.Sliding(time.Second, time.Second), window.Daily(time.UTC)
	for _, a := range []window.Assigner[window.Time]{
		tumbling.Offset(time.Millisecond), sliding.Offset(time.Millisecond), daily.Offset(time.Second),
	} {
		if ws := assigned(t, a, 0); ws[0].Start == 0 {
			t.Errorf("%v: %v", a, ws)
		}
	}
	if a := daily.ProcessingTime(); a.Domain() != process.ProcessingTime || daily.Domain() != process.EventTime {
		t.Errorf("%v, %v", a, daily)
	}
	for _, a := range []window.Assigner[window.Time]{tumbling, sliding, daily} {
		if ws := assigned(t, a, 0); ws[0].Start != 0 {
			t.Errorf("%v changed: %v", a, ws)
		}
	}
}

// gridCase checks what Assign gives for ts against the definition: the windows [s, s+size) with s = offset modulo slide that
// ts lies in, the latest first.
func gridCase(t *testing.T, a window.Assigner[window.Time], size, slide, offset, ts int64) {
	t.Helper()
	var want []window.Time
	// Every start within reach is looked at; no division is used but to name the first.
	s := offset + (ts-offset)/slide*slide + 2*slide
	for s > ts {
		s -= slide
	}
	for ; s+size > ts; s -= slide {
		want = append(want, window.Time{Start: s, End: s + size})
	}
	got := assigned(t, a, ts)
	if !slices.Equal(got, want) {
		t.Fatalf("%v of %d: %v, want %v", a, ts, got, want)
	}
	g := a.(window.Gridded).Grid()
	for _, w := range got {
		if ts < w.Start || ts >= w.End || w.End-w.Start != g.Size || (w.Start-g.Offset)%g.Slide != 0 || (w.Start-offset)%slide != 0 {
			t.Fatalf("%v of %d: %v", a, ts, w)
		}
	}
}

func TestGridsEqualTheirDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	for range 20_000 {
		size, slide := 1+rng.Int64N(60), 1+rng.Int64N(40)
		ts := rng.Int64N(400) - 200
		if rng.IntN(4) == 0 {
			ts = rng.Int64() >> 2 // far away, both signs
			if rng.IntN(2) == 0 {
				ts = -ts
			}
		}
		offset := rng.Int64N(2*size-1) - size + 1
		a := window.Tumbling(ms(size)).Offset(ms(offset))
		gridCase(t, a, size, size, offset, ts)
		next := assigned(t, a, ts+size)[0]
		if w := assigned(t, a, ts)[0]; w.End != next.Start || w.Start != window.StartWithOffset(ts, offset, size) {
			t.Fatalf("%v: %v is followed by %v", a, w, next)
		}
		offset = rng.Int64N(2*slide-1) - slide + 1
		gridCase(t, window.Sliding(ms(size), ms(slide)).Offset(ms(offset)), size, slide, offset, ts)
	}
}

func FuzzGrids(f *testing.F) {
	f.Add(int64(0), int64(10), int64(5), int64(3))
	f.Add(int64(-15), int64(10), int64(10), int64(-3))
	f.Add(int64(math.MaxInt64), int64(1000), int64(300), int64(7))
	f.Add(int64(math.MinInt64+1), int64(1000), int64(300), int64(7))
	f.Fuzz(func(t *testing.T, ts, size, slide, offset int64) {
		const largest = math.MaxInt64 / int64(time.Millisecond)
		if max(size, slide) > largest || max(offset, -offset) > largest || offset == math.MinInt64 {
			return
		}
		ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
		a := window.Sliding(ms(size), ms(slide)).Offset(ms(offset))
		if a.Check() != nil || (size-1)/slide > 1000 || ts == math.MinInt64 {
			return
		}
		if ts > math.MaxInt64-3*slide-size || ts < math.MinInt64+3*slide+size { // too near to the ends of time for the definition
			for i, w := range assigned(t, a, ts) {
				whole := w.Start != math.MinInt64 && w.End != math.MaxInt64
				if w.Start > ts || ts > w.End || ts == w.End && ts != math.MaxInt64 || whole && w.End-w.Start != size || i > 1000 {
					t.Fatalf("%v of %d: %v", a, ts, w)
				}
			}
			return
		}
		gridCase(t, a, size, slide, offset, ts)
	})
}

func TestAssignDoesNotAllocate(t *testing.T) {
	dst := make([]window.Time, 0, 16)
	gap := time.Second
	sessions := []window.Time{{0, 10}, {5, 20}, {20, 30}, {40, 50}}
	merge := window.Session(time.Second)
	merged := func(window.Time, []window.Time) {}
	assigners := []window.Assigner[window.Time]{
		window.Tumbling(time.Second), window.TumblingProcessingTime(time.Second), window.Sliding(10*time.Second, time.Second),
		window.Session(time.Second), window.Monthly(place(t, "America/Los_Angeles")),
	}
	dynamic := window.SessionByPtr(func(d *time.Duration) time.Duration { return *d })
	if n := testing.AllocsPerRun(100, func() {
		for _, a := range assigners {
			dst, _ = a.Assign(dst[:0], 1_600_000_000_000, 5)
		}
		dst, _ = dynamic.AssignElement(dst[:0], &gap, 0, 5)
		merge.Merge(sessions, merged)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAssign(b *testing.B) {
	loc, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		b.Fatal(err)
	}
	for name, a := range map[string]window.Assigner[window.Time]{
		"tumbling": window.Tumbling(10 * time.Second), "sliding 6": window.Sliding(time.Minute, 10*time.Second),
		"session": window.Session(time.Second), "daily": window.Daily(loc), "monthly": window.Monthly(loc),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var dst []window.Time
			ts := int64(1_600_000_000_000)
			for b.Loop() {
				dst, _ = a.Assign(dst[:0], ts, 0)
				ts += 777
			}
		})
	}
}
