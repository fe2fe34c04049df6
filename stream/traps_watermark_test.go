package stream_test

// The traps of watermarks, with windows and reports.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// countedBy counts elements in tumbling windows; results go to out as "window=count".
func countedBy(s *stream.Stream[int64], size time.Duration, out *gather[string]) {
	s.KeyBy(one[int64]).Window(window.Tumbling(size)).
		AggregateWith(agg.Count[int64](), func(i window.Info[int, window.Time], n int64) string {
			return fmt.Sprintf("%v=%d", i.Window, n)
		}).Name("Window").ForEach(out.add)
}

// taken is what a sink has got so far.
func (g *gather[T]) taken() []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.xs)
}

// TestB005SilentStreamsFireAtTheirEndOnly: the last window of a stream without input does not fire for hours; a report says
// who it waits for. It fires at the end of the input, and when the silent subtask is idle beside one that goes on.
func TestB005SilentStreamsFireAtTheirEndOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(1)
		var got gather[string]
		s := script().EmitAt(1, 1).EmitAt(2, 2).Watermark(1).Pause("silence")
		countedBy(flotttest.FromScripts(env, s), time.Minute, &got)
		job := clockwork(t, env)
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		if got := got.taken(); len(got) != 0 {
			t.Errorf("the window of a silent stream fired: %q", got)
		}
		if r := reportOf(t, job, "Window", 1); r.Watermark != 1 || r.Idle {
			t.Errorf("report %v", r)
		}
		s.Resume("silence")
		synctest.Wait()
		if got := got.taken(); !slices.Equal(got, []string{"[0,60000)=2"}) {
			t.Errorf("at the end of the input: %q", got)
		}
	})
}

func TestB005IdlenessFiresTheLastWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(2)
		var got gather[string]
		each := watermark.Punctuated(func(_, ms int64) (int64, bool) { return ms, true }).WithMillis(millis)
		busy := script().Emit(5).Pause("later").Emit(60_000).Pause("end")
		silent := script().Emit(7).Pause("end")
		countedBy(flotttest.FromScripts(env, busy, silent).AssignTimestampsAndWatermarks(each.WithIdleness(time.Minute)), time.Minute, &got)
		job := clockwork(t, env)
		busy.Resume("later")
		synctest.Wait()
		r := reportOf(t, job, "Window", 1)
		if want := []string{"Timestamps/Watermarks 2 4"}; len(got.taken()) != 0 || !slices.Equal(ways(r.HeldBy), want) {
			t.Errorf("results %q, held by %q, want %q", got.taken(), ways(r.HeldBy), want)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := got.taken(); !slices.Equal(got, []string{"[0,60000)=2"}) {
			t.Errorf("with idleness: %q", got)
		}
	})
}

// paced is a source in whose subtasks several splits are read in turn, as their scripts say, step by step.
type paced struct {
	steps [][]func(out *connector.Output[int64])
}

type pacedSplit struct{ Subtask int }

func (p paced) Bounded() bool { return true }

func (p paced) Enumerator(ctx connector.EnumeratorContext[pacedSplit], _ []byte) (connector.Enumerator[pacedSplit], error) {
	return &pacedEnumerator{ctx}, nil
}

func (p paced) Reader(ctx connector.ReaderContext) (connector.Reader[int64, pacedSplit], error) {
	return &pacedReader{steps: p.steps[ctx.Subtask()]}, nil
}

type pacedEnumerator struct {
	ctx connector.EnumeratorContext[pacedSplit]
}

func (*pacedEnumerator) Start() error                    { return nil }
func (*pacedEnumerator) Request(int) error               { return nil }
func (*pacedEnumerator) AddBack(int, []pacedSplit) error { return nil }
func (*pacedEnumerator) Snapshot(int64) ([]byte, error)  { return nil, nil }
func (*pacedEnumerator) Close() error                    { return nil }

type pacedReader struct {
	steps []func(out *connector.Output[int64])
}

func (r *pacedReader) Poll(out *connector.Output[int64]) (connector.Status, error) {
	if len(r.steps) == 0 {
		return connector.Nothing, nil
	}
	r.steps[0](out)
	r.steps = r.steps[1:]
	return connector.More, nil
}

func (*pacedReader) AddSplits([]pacedSplit) error         { return nil }
func (*pacedReader) NoMoreSplits()                        {}
func (*pacedReader) Snapshot(int64) ([]pacedSplit, error) { return nil, nil }
func (*pacedReader) Committed(int64) error                { return nil }
func (*pacedReader) Close() error                         { return nil }

// says is a step: in the split of that name an element, if at >= 0, its watermark, and idleness.
func says(split string, at int64, idle bool) func(out *connector.Output[int64]) {
	return func(out *connector.Output[int64]) {
		out.Split(split)
		if at >= 0 {
			out.EmitAt(at, at)
			out.Watermark(at)
		}
		if idle {
			out.Idle()
		}
	}
}

// TestB006AllIdleFlushesTheMaximum: A is at 5 and goes idle, B at 4, in both orders, on the level of splits and of channels:
// 5 comes out, so that the window until 5 fires. B resumes, says 4 again, goes idle: nobody is stalled.
func TestB006AllIdleFlushesTheMaximum(t *testing.T) {
	type steps = []func(out *connector.Output[int64])
	a, b := says("A", 5, true), says("B", 4, true)
	first := says("B", 0, false) // so that A does not run ahead of a split that nobody knows
	again := func(out *connector.Output[int64]) {
		out.Split("B")
		out.EmitAt(4, 4)
		out.Watermark(4)
		out.Idle()
	}
	for name, c := range map[string]struct {
		subtasks []steps
		want     string
	}{
		"splits, A first":         {[]steps{{first, a, b}}, "[0,6)=3"},
		"splits, B first":         {[]steps{{first, says("A", 5, false), b, says("A", -1, true)}}, "[0,6)=3"},
		"splits, B resumes":       {[]steps{{first, says("A", 5, false), says("B", 4, false), a, b, again}}, "[0,6)=5"},
		"channels, two subtasks":  {[]steps{{a}, {b}}, "[0,6)=2"},
		"channels, the other way": {[]steps{{b}, {a}}, "[0,6)=2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := stream.NewEnv().SetParallelism(len(c.subtasks))
				var got gather[string]
				countedBy(env.FromSource(paced{c.subtasks}, "paced"), 6*ms, &got)
				job := clockwork(t, env)
				r := reportOf(t, job, "Window", 1)
				if got := got.taken(); !slices.Equal(got, []string{c.want}) || r.Watermark != 5 || !r.Idle {
					t.Errorf("results %q, want %q; %v", got, c.want, r)
				}
			})
		})
	}
}

// TestSplitThatHoldsEventTimeBackIsNamed: one silent partition of several in a subtask is seen.
func TestSplitThatHoldsEventTimeBackIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(2)
		var got gather[string]
		each := watermark.Punctuated(func(_, ms int64) (int64, bool) { return ms, true }).WithMillis(millis)
		countedBy(env.FromSourceWithWatermarks(paced{[][]func(out *connector.Output[int64]){
			{says("p0", 10, false), says("p1", 2, false), says("p1", 12, false), says("p0", 30, false)},
			{says("p2", 40, false), says("p3", 7, false)},
		}}, each, "log"), 6*ms, &got)
		job := clockwork(t, env)
		r := reportOf(t, job, "Window", 2)
		want := `watermark 1970-01-01T00:00:00.012Z, 28ms behind, held back by "Source: log" subtask 1 with split "p1", which is at`
		if !strings.Contains(r.String(), want) {
			t.Errorf("got  %v\nwant %s", r, want)
		}
	})
}

// TestB009WindowOverAUnionWithItself: each element counts twice, and event time goes on over both edges.
func TestB009WindowOverAUnionWithItself(t *testing.T) {
	for _, parallelism := range []int{1, 4} {
		env := stream.NewEnv().SetParallelism(parallelism)
		var got gather[string]
		s := env.FromElements[int64](1, 2, 3, 4, 5).AssignTimestampsAndWatermarks(watermark.ForMonotonousTimestamps[int64]().WithMillis(millis))
		countedBy(s.Union(s), 10*ms, &got)
		execute(t, env)
		if !slices.Equal(got.xs, []string{"[0,10)=10"}) {
			t.Errorf("parallelism %d: %q", parallelism, got.xs)
		}
	}
}

// TestB012WindowsWithoutTimestampsAreNamed: run 3, no assigner at all. Where it is certain, before the job runs, with the
// line of the window; else with the window's name, at the first element.
func TestB012WindowsWithoutTimestampsAreNamed(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements[int64](1000, 2000).Map(millis).KeyBy(one[int64]).Window(window.Tumbling(time.Second)).Aggregate(agg.Count[int64]()).Name("per second").Discard()
	line := above(1)
	executeFailing(t, env, line+": ", `"per second"`, "event time", `"Collection Source"`, "AssignTimestampsAndWatermarks")

	env.FromElements[int64](1000, 2000).WindowAll(window.Tumbling(time.Second)).Aggregate(agg.Count[int64]()).Discard()
	line = above(1)
	executeFailing(t, env, line+": ", "event time", `"Collection Source"`)

	env.FromFunc("untimed", func(_ context.Context, sc *stream.SourceContext[int64]) error {
		sc.Collect(1000)
		return nil
	}).KeyBy(one[int64]).Window(window.Tumbling(time.Second)).Aggregate(agg.Count[int64]()).Name("per second").Discard()
	executeFailing(t, env, `"per second"`, "timestamp")
}

// TestWindowsOfProcessingTimeGiveTimestamps: what they emit can go into windows of event time.
func TestWindowsOfProcessingTimeGiveTimestamps(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	var got gather[int64]
	env.FromElements[int64](1, 2, 3).KeyBy(one[int64]).CountWindow(3).Sum(millis).
		WindowAll(window.Tumbling(time.Second)).Aggregate(agg.Count[window.Result[int, window.Global, int64]]()).
		ForEach(func(r window.AllResult[window.Time, int64]) { got.add(r.Value) })
	execute(t, env)
	if !slices.Equal(got.xs, []int64{1}) {
		t.Errorf("got %v", got.xs)
	}
}
