package stream_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// script is a source of numbers that are their own timestamps.
func script() *flotttest.Script[int64] { return flotttest.NewScript[int64]() }

// alike keys all elements alike.
func alike(int64) int64 { return 1 }

// clockwork is a job in which nothing happens any more: all its goroutines wait.
func clockwork(t *testing.T, env *stream.Env) *stream.Job {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	job, err := env.ExecuteAsync(ctx, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-job.Done()
	})
	synctest.Wait()
	return job
}

// reportOf is the report of a subtask, counted from 1 as texts do.
func reportOf(t *testing.T, job *stream.Job, operator string, subtask int) stream.WatermarkReport {
	t.Helper()
	for _, r := range job.Watermarks() {
		if r.Operator == operator && r.Subtask == subtask-1 {
			return r
		}
	}
	t.Fatalf("there is no report of subtask %d of %q", subtask, operator)
	panic("unreachable")
}

// ways are holders in short: operator, subtask, reason.
func ways(holders []stream.WatermarkHolder) (names []string) {
	for _, h := range holders {
		names = append(names, fmt.Sprintf("%s %d %d", h.Operator, h.Subtask+1, h.Reason))
	}
	return names
}

// counted is a keyed operator, which has channels of its own, behind a stream.
func counted(s *stream.Stream[int64]) { s.KeyBy(alike).Count().Name("Count").Discard() }

func TestReportNamesTheSourceThatHoldsEventTimeBack(t *testing.T) {
	for name, c := range map[string]struct {
		second func(s *flotttest.Script[int64])
		way    []string
		text   string
	}{
		"no element": {
			func(s *flotttest.Script[int64]) { s.Pause("end") },
			[]string{"Source: script 2 1"},
			`operator "Count" subtask 1 of 2: no watermark yet, held back by "Source: script" subtask 2, which has had no element ` +
				`and sent no watermark yet; if it may be silent for long, mark it idle: watermark.Strategy.WithIdleness`,
		},
		"no watermark": {
			func(s *flotttest.Script[int64]) { s.EmitAt(1, 1).EmitAt(2, 2).Pause("end") },
			[]string{"Source: script 2 2"},
			`operator "Count" subtask 1 of 2: no watermark yet, held back by "Source: script" subtask 2, which has emitted ` +
				`2 elements and no watermark; watermarks come from a strategy: AssignTimestampsAndWatermarks`,
		},
		"behind": {
			func(s *flotttest.Script[int64]) { s.EmitAt(1, 1).Watermark(1796000005000).Pause("end") },
			[]string{"Source: script 2 4"},
			`operator "Count" subtask 1 of 2: watermark 2026-11-30T00:53:25.000Z, 3m20s behind, held back by "Source: script" ` +
				`subtask 2, which is at watermark 2026-11-30T00:53:25.000Z; if it may be silent for long, mark it idle: ` +
				`watermark.Strategy.WithIdleness`,
		},
		"level": {
			func(s *flotttest.Script[int64]) { s.Watermark(1796000205000).Pause("end") }, nil,
			`operator "Count" subtask 1 of 2: watermark 2026-11-30T00:56:45.000Z`,
		},
		"ahead": {
			func(s *flotttest.Script[int64]) { s.Watermark(1796000205001).Pause("end") },
			[]string{"Source: script 1 4"},
			`operator "Count" subtask 1 of 2: watermark 2026-11-30T00:56:45.000Z, 1ms behind, held back by "Source: script" ` +
				`subtask 1, which is at watermark 2026-11-30T00:56:45.000Z; if it may be silent for long, mark it idle: ` +
				`watermark.Strategy.WithIdleness`,
		},
		"idle": {
			func(s *flotttest.Script[int64]) { s.EmitAt(1, 1).Watermark(7).Idle().Pause("end") }, nil,
			`operator "Count" subtask 1 of 2: watermark 2026-11-30T00:56:45.000Z, 1 of 2 channels idle`,
		},
		"ended": {
			func(*flotttest.Script[int64]) {},
			[]string{"Source: script 1 4"},
			`operator "Count" subtask 1 of 2: watermark 2026-11-30T00:56:45.000Z, held back by "Source: script" subtask 1, ` +
				`which is at watermark 2026-11-30T00:56:45.000Z; if it may be silent for long, mark it idle: ` +
				`watermark.Strategy.WithIdleness`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := stream.NewEnv().SetParallelism(2)
				second := script()
				c.second(second)
				counted(flotttest.FromScripts(env, script().EmitAt(1, 1).Watermark(1796000205000).Pause("end"), second))
				job := clockwork(t, env)
				r := reportOf(t, job, "Count", 1)
				if got := ways(r.HeldBy); !slices.Equal(got, c.way) {
					t.Errorf("held by %q, want %q", got, c.way)
				}
				if r.String() != c.text {
					t.Errorf("got  %v\nwant %v", r, c.text)
				}
			})
		})
	}
}

func TestReportFollowsTheStreamToItsRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(2)
		fast := flotttest.FromScripts(env, script().EmitAt(1, 1).Watermark(100).Pause("end"), script().Watermark(110).Pause("end"))
		slow := flotttest.FromScripts(env, script().EmitAt(1, 1).Watermark(40).Pause("end"), script().Watermark(30).Pause("end"), script().Watermark(30).Pause("end")).Name("slow")
		counted(fast.Union(slow).Rebalance().Map(alike).Name("ones").Filter(func(int64) bool { return true }))
		job := clockwork(t, env)
		r := reportOf(t, job, "Count", 2)
		if got, want := ways(r.HeldBy), []string{"Filter 1 0", "ones 1 0", "Source: slow 2 4"}; !slices.Equal(got, want) {
			t.Errorf("held by %q, want %q", got, want)
		}
		if r.Watermark != 30 || r.Furthest != 110 || r.Lag() != 80*time.Millisecond || r.Sent != 30 {
			t.Errorf("report %+v", r)
		}
		if h := r.HeldBy; h[0].Others != 1 || h[2].Others != 1 || h[2].Watermark != 30 || h[2].Elements != 0 {
			t.Errorf("holders %+v, want one more of the maps and of the slow sources", h)
		}
		if want := `held back by "Filter" subtask 1 (and one more), behind which is "Source: slow" subtask 2 (and one more), which is at`; !strings.Contains(r.String(), want) {
			t.Errorf("got %v, want %q in it", r, want)
		}
		// What stands in the chain behind the operator waits for the same.
		sink := reportOf(t, job, "Sink: Discard", 2)
		if got, want := ways(sink.HeldBy), []string{"Count 2 0", "Filter 1 0", "ones 1 0", "Source: slow 2 4"}; !slices.Equal(got, want) {
			t.Errorf("the sink is held by %q, want %q", got, want)
		}
		// A source waits for nobody.
		if r := reportOf(t, job, "Source: slow", 2); r.Watermark != 30 || r.Furthest != 30 || r.HeldBy != nil || r.Inputs != nil || r.Input != -1 {
			t.Errorf("report of a source: %+v", r)
		}
	})
}

func TestReportEndsAtStrategies(t *testing.T) {
	source := func(elements ...int64) *flotttest.Script[int64] {
		return script().Emit(elements...).Watermark(5000).Pause("end")
	}
	perElement := watermark.Punctuated(func(_ int64, ms int64) (int64, bool) { return ms, true }).WithMillis(millis)
	for name, c := range map[string]struct {
		strategy watermark.Strategy[int64]
		second   []int64
		reason   stream.HoldReason
		text     string
	}{
		"no element": {
			perElement, nil, stream.HeldWithoutElements,
			`held back by "Timestamps/Watermarks" subtask 2 at "Source: script", which has had no element`,
		},
		"no watermark": {
			watermark.NoWatermarks[int64]().WithMillis(millis),
			[]int64{1},
			stream.HeldWithoutWatermarks,
			`which has made no watermark of 1 elements; does the strategy`,
		},
		"behind": {
			perElement, []int64{1, 2}, stream.HeldBehind, `which is at watermark 1970-01-01T00:00:00.002Z`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := stream.NewEnv().SetParallelism(2)
				counted(flotttest.FromScripts(env, source(7), source(c.second...)).AssignTimestampsAndWatermarks(c.strategy))
				job := clockwork(t, env)
				r := reportOf(t, job, "Count", 1)
				if len(r.HeldBy) != 1 || r.HeldBy[0].Reason != c.reason || !strings.Contains(r.String(), c.text) {
					t.Errorf("got %v, want the reason %d and %q", r, c.reason, c.text)
				}
				// The strategy's own time is what it makes: its source's watermarks end there.
				if r := reportOf(t, job, "Timestamps/Watermarks", 2); r.Watermark == 5000 || r.Inputs != nil || r.HeldBy != nil {
					t.Errorf("report of the strategy: %+v", r)
				}
			})
		})
	}
}

func TestReportTellsInputsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(1)
		events := flotttest.FromScripts(env, script().Watermark(60).Pause("end")).Name("events")
		rules := flotttest.FromScripts(env, script().Watermark(10).Pause("idle").Idle().Pause("end"), script().Watermark(20).Idle().Pause("end")).Name("rules")
		both := func(x int64, emit func(int64)) { emit(x) }
		events.Connect(rules).FlatMap(both, both).Name("co").Discard()
		job := clockwork(t, env)
		r := reportOf(t, job, "co", 1)
		want := []stream.WatermarkInput{
			{Watermark: 60, Channels: 1},
			{Watermark: 10, Channels: 2, Silent: 1, HeldBy: r.HeldBy},
		}
		if fmt.Sprintf("%+v", r.Inputs) != fmt.Sprintf("%+v", want) || r.Input != 1 || r.Watermark != 10 || r.Furthest != 60 {
			t.Errorf("report %+v\nwant the inputs %+v", r, want)
		}
		text := `watermark 1970-01-01T00:00:00.010Z, 1 of 2 channels of input 2 idle, 50ms behind, held back of input 2 by "Source: rules" subtask 1`
		if !strings.Contains(r.String(), text) {
			t.Errorf("got  %v\nwant %v", r, text)
		}
	})
}

func TestReportTellsWhoWaitsInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(1)
		s := flotttest.FromScripts(env, script().EmitAt(1, 1).Watermark(50).Pause("end"))
		answer := make(chan struct{})
		slow := s.AsyncOrdered(func(ctx context.Context, x int64) ([]int64, error) {
			select {
			case <-answer:
			case <-ctx.Done():
			}
			return []int64{x}, ctx.Err()
		}, stream.AsyncOptions[int64, int64]{}).Name("ask")
		counted(slow.Union(flotttest.FromScripts(env, script().Watermark(70).Pause("end")).Name("other")))
		job := clockwork(t, env)
		r := reportOf(t, job, "Count", 1)
		if got, want := ways(r.HeldBy), []string{"ask 1 5"}; !slices.Equal(got, want) || r.Watermark != math.MinInt64 {
			t.Errorf("%v\nheld by %q, want %q", r, got, want)
		}
		close(answer)
		synctest.Wait()
		if r := reportOf(t, job, "Count", 1); r.Watermark != 50 || !slices.Equal(ways(r.HeldBy), []string{"ask 1 0", "Source: script 1 4"}) {
			t.Errorf("with the answer: %v", r)
		}
	})
}

// halting stops at its first element until it may go on.
type halting struct{ goOn chan struct{} }

func (h halting) ProcessElement(_ *process.Context, x int64, out *process.Collector[int64]) error {
	<-h.goOn
	out.Collect(x)
	return nil
}

func TestReportTellsWhatIsOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		env := stream.NewEnv().SetParallelism(1).SetBufferTimeout(0)
		flotttest.FromScripts(env, script().EmitAt(1, 1).Cut().Watermark(50).EmitAt(60, 60).Pause("end")).Rebalance().
			Process(func(*process.Runtime) halting { return halting{goOn} }).Name("halt").Parallelism(2).Rebalance().
			Map(alike).Name("behind").Discard()
		job := clockwork(t, env)
		r := reportOf(t, job, "halt", 1)
		if got, want := ways(r.HeldBy), []string{"Source: script 1 6"}; !slices.Equal(got, want) || r.HeldBy[0].Waiting == 0 {
			t.Errorf("%v\nheld by %q, want %q", r, got, want)
		}
		if want := "has sent watermark 1970-01-01T00:00:00.050Z, which was not handled yet (frames on the way: "; !strings.Contains(r.String(), want) {
			t.Errorf("got %v, want %q in it", r, want)
		}
		close(goOn)
		synctest.Wait()
		if r := reportOf(t, job, "halt", 1); r.Watermark != 50 || r.HeldBy != nil {
			t.Errorf("when it goes on: %v", r)
		}
	})
}

func TestReportsOfIdleAndEndedInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(2)
		s := script().Watermark(4).Idle().Pause("end")
		counted(flotttest.FromScripts(env, s, script().Watermark(5).Idle()))
		job := clockwork(t, env)
		r := reportOf(t, job, "Count", 1)
		if !r.Idle || r.Watermark != 5 || r.HeldBy != nil || r.String() != `operator "Count" subtask 1 of 2: watermark 1970-01-01T00:00:00.005Z, idle, 1 of 2 channels idle` {
			t.Errorf("all idle: %v", r)
		}
		s.Resume("end")
		synctest.Wait()
		for _, r := range job.Watermarks() {
			if r.Idle || r.HeldBy != nil || r.Watermark != math.MaxInt64 || !strings.HasSuffix(r.String(), ": the end") {
				t.Errorf("after the end: %v", r)
			}
		}
	})
}

// TestReportGoesThroughLoops: feedback says nothing of event time, the way leads past it to the source.
func TestReportGoesThroughLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(1)
		s := flotttest.FromScripts(env, script().EmitAt(3, 3).Watermark(5).Pause("end"))
		loop := stream.Iterate(s.Union(flotttest.FromScripts(env, script().Watermark(9).Pause("end")).Name("other")))
		next := loop.Map(func(x int64) int64 { return x - 1 }).Name("next")
		loop.CloseWith(next.Filter(func(x int64) bool { return x > 0 }))
		counted(next)
		job := clockwork(t, env)
		r := reportOf(t, job, "Count", 1)
		if got, want := ways(r.HeldBy), []string{"next 1 0", "Iteration Head 1 0", "Source: script 1 4"}; !slices.Equal(got, want) || r.Furthest != 9 {
			t.Errorf("%v\nheld by %q, want %q", r, got, want)
		}
	})
}

// TestReportsMayBeAskedForAtAnyTime is for the race detector.
func TestReportsMayBeAskedForAtAnyTime(t *testing.T) {
	env := stream.NewEnv().SetParallelism(3).SetAutoWatermarkInterval(time.Millisecond)
	strategy := watermark.ForMonotonousTimestamps[int64]().WithMillis(millis).WithIdleness(time.Millisecond)
	counted(env.FromSequence(1, 300_000).AssignTimestampsAndWatermarks(strategy).Rebalance().Map(alike))
	job := start(t, env)
	for {
		for _, r := range job.Watermarks() {
			if n := len(r.HeldBy); n > 4 || n > 0 && r.HeldBy[n-1].Reason == stream.HeldBefore && r.HeldBy[n-1].Operator == "Timestamps/Watermarks" {
				t.Errorf("report %v", r)
			}
			_ = r.String()
		}
		select {
		case <-job.Done():
			return
		default:
		}
	}
}

func TestMetricsTellEventTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(1)
		events := flotttest.FromScripts(env, script().Watermark(60).Pause("end")).Name("events")
		rules := flotttest.FromScripts(env, script().Watermark(10).Pause("end"), script().Watermark(20).Pause("end")).Name("rules")
		both := func(x int64, emit func(int64)) { emit(x) }
		events.Connect(rules).FlatMap(both, both).Name("co").Discard()
		job := clockwork(t, env)
		got := map[string]map[string][]any{}
		for _, m := range job.Metrics() {
			got[m.Name] = m.User
		}
		for _, c := range []struct {
			operator, metric string
			want             []any
		}{
			{"co", "currentInputWatermark", []any{int64(10)}},
			{"co", "currentInput1Watermark", []any{int64(60)}},
			{"co", "currentInput2Watermark", []any{int64(10)}},
			{"co", "currentOutputWatermark", []any{int64(10)}},
			{"co", "watermarkHeldBy", []any{`"Source: rules" subtask 1`}},
			{"Discard", "currentInputWatermark", []any{int64(10)}},
			{"Discard", "currentOutputWatermark", nil},
			{"Discard", "watermarkHeldBy", nil},
			{"rules", "currentOutputWatermark", []any{int64(10), int64(20)}},
			{"rules", "currentInputWatermark", nil},
		} {
			if have := got[c.operator][c.metric]; !slices.Equal(have, c.want) {
				t.Errorf("%s of %s: %v, want %v", c.metric, c.operator, have, c.want)
			}
		}
	})
}
