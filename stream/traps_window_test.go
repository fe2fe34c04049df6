package stream_test

// The traps of windows and sessions, on both paths of the same operator.

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// hit is an element of a key.
type hit struct {
	Key string
	N   int64
}

func (h hit) key() string { return h.Key }

func lateHits() process.OutputTag[hit] { return process.NewOutputTag[hit]("late") }

// bothPaths runs a test on the path that the plan chooses, and on the general one.
func bothPaths(t *testing.T, build func(in *stream.Stream[hit]) *stream.Stream[string], run func(t *testing.T, h *windowHarness)) {
	t.Helper()
	for name, opts := range map[string][]stream.Option{"path of its own": nil, "general path": {stream.WithGeneralWindows()}} {
		t.Run(name, func(t *testing.T) {
			run(t, &windowHarness{t, flotttest.NewHarness(t, build, flotttest.WithEnv(opts...), flotttest.WithSideOutput(lateHits()))})
		})
	}
}

type windowHarness struct {
	t *testing.T
	*flotttest.Harness[hit, string]
}

// at gives an element of a key at each of the times.
func (h *windowHarness) at(key string, times ...int64) {
	h.t.Helper()
	for _, ts := range times {
		h.ProcessElement(hit{key, ts}, ts)
	}
}

// want compares the results since the last call, in any order.
func (h *windowHarness) want(results ...string) {
	h.t.Helper()
	flotttest.Same(h.t, h.Values(), results)
	h.Clear()
}

// wantLate compares the elements in the side output since the start, and those dropped.
func (h *windowHarness) wantLate(dropped int64, times ...int64) {
	h.t.Helper()
	var got []int64
	for _, e := range h.SideOutput(lateHits()) {
		got = append(got, e.Time)
	}
	flotttest.Equal(h.t, got, times)
	if n := h.Metric("numLateRecordsDropped"); n != dropped {
		h.t.Errorf("%v late elements were dropped, want %d", n, dropped)
	}
}

func counts(s *stream.WindowedStream[hit, string, window.Time]) *stream.Stream[string] {
	return s.AggregateWith(agg.Count[hit](), func(i window.Info[string, window.Time], n int64) string {
		return fmt.Sprintf("%s %v=%d", i.Key, i.Window, n)
	})
}

// TestB001WindowsBefore1970: floor division, so that every event lies in its window.
func TestB001WindowsBefore1970(t *testing.T) {
	bothPaths(t, func(in *stream.Stream[hit]) *stream.Stream[string] {
		return counts(in.KeyBy(hit.key).Window(window.Tumbling(10 * ms)))
	}, func(t *testing.T, h *windowHarness) {
		h.at("a", -1, -10, -11, -15, 0)
		h.ProcessWatermark(math.MaxInt64)
		h.want("a [-20,-10)=2", "a [-10,0)=2", "a [0,10)=1")
	})
	bothPaths(t, func(in *stream.Stream[hit]) *stream.Stream[string] {
		return counts(in.KeyBy(hit.key).Window(window.Sliding(10*ms, 5*ms).Offset(3 * ms)))
	}, func(t *testing.T, h *windowHarness) {
		h.at("a", -1, -10, -11, -15, 0)
		h.ProcessWatermark(math.MaxInt64)
		h.want("a [-22,-12)=1", "a [-17,-7)=3", "a [-12,-2)=2", "a [-7,3)=2", "a [-2,8)=2")
	})
}

// TestB004NoWindowIsNotLate: an element that lies between windows is not counted as late.
func TestB004NoWindowIsNotLate(t *testing.T) {
	bothPaths(t, func(in *stream.Stream[hit]) *stream.Stream[string] {
		return counts(in.KeyBy(hit.key).Window(window.Sliding(3*ms, 10*ms)).SideOutputLateData(lateHits()))
	}, func(t *testing.T, h *windowHarness) {
		h.ProcessWatermark(-100)
		h.at("a", 1, 5, 12)
		h.wantLate(0)
		h.ProcessWatermark(20)
		h.want("a [0,3)=1", "a [10,13)=1")
		h.wantLate(0)
		h.at("a", 15) // in no window, and behind the watermark
		h.wantLate(0, 15)
	})
}

// TestB005LateAndAllowedFiresAgain: in accumulating and in purging mode; what is too late goes to the side output.
func TestB005LateAndAllowedFiresAgain(t *testing.T) {
	const minute, second = 60_000, 1000
	start := int64(11*60+50) * minute
	for _, c := range []struct {
		purging       bool
		first, second string
	}{{false, "=2", "=3"}, {true, "=2", "=1"}} {
		bothPaths(t, func(in *stream.Stream[hit]) *stream.Stream[string] {
			s := in.KeyBy(hit.key).Window(window.Tumbling(time.Minute)).AllowedLateness(30 * time.Second).SideOutputLateData(lateHits())
			if c.purging {
				s = s.Trigger(window.PurgingTrigger(window.EventTimeTrigger()))
			}
			return counts(s)
		}, func(t *testing.T, h *windowHarness) {
			of := fmt.Sprint("a ", window.Time{Start: start, End: start + minute})
			h.at("a", start, start+30*second)
			h.ProcessWatermark(start + minute + second)
			h.want(of + c.first)
			h.at("a", start+40*second)
			h.want(of + c.second)
			h.ProcessWatermark(start + minute + 30*second)
			h.at("a", start+50*second)
			h.want()
			h.wantLate(0, start+50*second)
			h.ProcessWatermark(math.MaxInt64)
			h.want()
		})
	}
}

// TestB012AbsurdTimestampsDontWrap: the far future fires with the end of time, and only once something is late.
func TestB012AbsurdTimestampsDontWrap(t *testing.T) {
	for _, far := range []int64{32503680000000, math.MaxInt64} {
		bothPaths(t, func(in *stream.Stream[hit]) *stream.Stream[string] {
			return counts(in.KeyBy(hit.key).Window(window.Tumbling(time.Second)).SideOutputLateData(lateHits()))
		}, func(t *testing.T, h *windowHarness) {
			h.at("a", 1000, far)
			h.ProcessWatermark(far - 5001)
			h.at("a", 2000)
			h.wantLate(0, 2000)
			h.ProcessWatermark(math.MaxInt64)
			got := h.Values()
			if len(got) != 2 || got[0] != "a [1000,2000)=1" || !strings.HasSuffix(got[1], "=1") {
				t.Errorf("results %q, want the window at 1000 and the one at %d", got, far)
			}
			h.wantLate(0, 2000)
		})
	}
}

// TestB013TheLastMillisecondBelongsToTheWindow: in processing time.
func TestB013TheLastMillisecondBelongsToTheWindow(t *testing.T) {
	bothPaths(t, func(in *stream.Stream[hit]) *stream.Stream[string] {
		return counts(in.KeyBy(hit.key).Window(window.TumblingProcessingTime(time.Second)))
	}, func(t *testing.T, h *windowHarness) {
		h.SetProcessingTime(998)
		h.at("a", 998)
		h.want()
		h.SetProcessingTime(1000)
		h.want("a [0,1000)=1")
		h.at("a", 1000)
		h.SetProcessingTime(2000)
		h.want("a [1000,2000)=1")
	})
}

// TestB015EarlyFiringsDontStorm: the clock is a week past the windows, whose early firings follow the clock all the same.
func TestB015EarlyFiringsDontStorm(t *testing.T) {
	const week = 7 * 24 * 3600 * 1000
	h := &windowHarness{t, flotttest.NewHarness(t, func(in *stream.Stream[hit]) *stream.Stream[string] {
		return counts(in.KeyBy(hit.key).Window(window.Tumbling(24 * time.Hour).Offset(-8 * time.Hour)).
			Trigger(window.OnTime().Early(window.ContinuousProcessingTimeTrigger(5 * time.Second))))
	}, flotttest.WithProcessingTime(week))}
	h.at("a", 1)
	for now := int64(week); now <= week+20_000; now += 100 {
		h.SetProcessingTime(now)
	}
	if got := h.Values(); len(got) < 3 || len(got) > 5 {
		t.Errorf("%d early firings in 20 s, want one each 5 s", len(got))
	}
	h.Clear()
	h.ProcessWatermark(math.MaxInt64)
	if got := h.Values(); len(got) != 1 {
		t.Errorf("results %q at the end of the window, want one", got)
	}
}

// TestB016TouchingSessionsMerge: in all orders of arrival, and never across keys.
func TestB016TouchingSessionsMerge(t *testing.T) {
	build := func(in *stream.Stream[hit]) *stream.Stream[string] {
		return counts(in.KeyBy(hit.key).Window(window.Session(10 * ms)))
	}
	for _, order := range [][]hit{
		{{"a", 0}, {"a", 10}, {"b", 0}, {"b", 11}},
		{{"a", 10}, {"b", 11}, {"b", 0}, {"a", 0}},
		{{"b", 0}, {"a", 0}, {"a", 10}, {"b", 11}},
		{{"b", 11}, {"a", 10}, {"a", 0}, {"b", 0}},
		{{"a", 0}, {"b", 11}, {"b", 0}, {"a", 10}},
		{{"b", 11}, {"b", 0}, {"a", 10}, {"a", 0}},
	} {
		bothPaths(t, build, func(t *testing.T, h *windowHarness) {
			for _, e := range order {
				h.at(e.Key, e.N)
			}
			h.at("a", 5) // inside
			h.ProcessWatermark(math.MaxInt64)
			h.want("a [0,20)=3", "b [0,10)=1", "b [11,21)=1")
		})
	}
}

// TestB018SessionsAfterAFiring: without lateness a session is forgotten when it has fired, with lateness it goes on.
func TestB018SessionsAfterAFiring(t *testing.T) {
	for _, c := range []struct {
		lateness time.Duration
		want     string
	}{{0, "a [3,8)=1"}, {10 * ms, "a [0,8)=2"}} {
		bothPaths(t, func(in *stream.Stream[hit]) *stream.Stream[string] {
			return counts(in.KeyBy(hit.key).Window(window.Session(5 * ms)).AllowedLateness(c.lateness))
		}, func(t *testing.T, h *windowHarness) {
			h.at("a", 0)
			h.ProcessWatermark(6)
			h.want("a [0,5)=1")
			h.at("a", 3)
			h.want()
			h.ProcessWatermark(8)
			h.want(c.want)
		})
	}
}
