package guide

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// What the pages about windows say without a program of their own.

func refused(t *testing.T, build func(env *stream.Env), words ...string) {
	t.Helper()
	env := stream.NewEnv().SetParallelism(1)
	build(env)
	_, err := env.Execute(context.Background(), t.Name())
	if err == nil {
		t.Error("not refused")
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no %q in: %v", word, err)
		}
	}
}

func TestSessionsRefuseWhatCanNotMerge(t *testing.T) {
	sessions := func(env *stream.Env) *stream.WindowedStream[Bid, string, window.Time] {
		return bids(env).KeyBy(func(b Bid) string { return b.Item }).Window(window.Session(time.Minute))
	}
	refused(t, func(env *stream.Env) {
		sessions(env).Fold("", func(s string, b Bid) string { return s + b.Bidder }).Discard()
	}, "Window Fold", "claims_test.go", "merge")
	refused(t, func(env *stream.Env) {
		sessions(env).TriggerBy(window.DeltaTrigger(1, func(a, b Bid) float64 { return 0 })).Count().Discard()
	}, "Window Count", "claims_test.go", "DeltaTrigger(1)")
	refused(t, func(env *stream.Env) {
		sessions(env).AggregateProcess(agg.Count[Bid](), newCorrections).Discard()
	}, "Window Process", "merge")
}

func TestMistakesNameOperatorAndLine(t *testing.T) {
	perMinute := func(env *stream.Env, a window.Assigner[window.Time]) *stream.WindowedStream[Bid, string, window.Time] {
		return bids(env).KeyBy(func(b Bid) string { return b.Item }).Window(a)
	}
	refused(t, func(env *stream.Env) { perMinute(env, window.Tumbling(0)).Count().Discard() }, "Window Count", "claims_test.go", "size")
	refused(t, func(env *stream.Env) {
		perMinute(env, window.Tumbling(time.Minute).Offset(time.Minute)).Count().Discard()
	}, "Window Count", "claims_test.go", "offset")
	refused(t, func(env *stream.Env) {
		perMinute(env, window.Sliding(24*time.Hour, time.Millisecond)).Count().Discard()
	}, "Window Count", "claims_test.go", "100000")
	refused(t, func(env *stream.Env) {
		env.FromElements(1, 2).WindowAll(window.Tumbling(time.Minute)).Count().Discard()
	}, "Window Count", "claims_test.go", "timestamp")
}

func TestSessionsThatFiredAreJoinedWithinLatenessOnly(t *testing.T) {
	for lateness, want := range map[time.Duration][]string{
		0:                     {"[0,5)=1@4", "watermark 6", "[3,8)=1@7", "watermark 8"},
		10 * time.Millisecond: {"[0,5)=1@4", "watermark 6", "[0,8)=2@7", "watermark 8"},
	} {
		for _, path := range []stream.Option{stream.WithGeneralWindows(), nil} {
			var opts []flotttest.Option
			if path != nil {
				opts = append(opts, flotttest.WithEnv(path))
			}
			h := flotttest.NewHarness(t, func(in *stream.Stream[int64]) *stream.Stream[string] {
				return in.KeyBy(func(int64) string { return "" }).Window(window.Session(5*time.Millisecond)).AllowedLateness(lateness).
					AggregateWith(agg.Count[int64](), func(i window.Info[string, window.Time], n int64) string { return fmt.Sprintf("%v=%d", i.Window, n) })
			}, opts...)
			h.ProcessElement(0, 0)
			h.ProcessWatermark(6)
			h.ProcessElement(3, 3)
			h.ProcessWatermark(8)
			h.Expect(t, want...)
		}
	}
}

func TestEndOfTheInputFiresEventTimeOnly(t *testing.T) {
	count := func(a window.Assigner[window.Time]) []int64 {
		return flotttest.Run(t, func(env *stream.Env) *stream.Stream[int64] {
			return bids(env).WindowAll(a).AggregateWith(agg.Count[Bid](), func(_ window.Time, n int64) int64 { return n })
		})
	}
	flotttest.Equal(t, count(window.Tumbling(time.Hour)), []int64{6})
	flotttest.Equal(t, count(window.TumblingProcessingTime(1000*time.Hour)), nil)
}
