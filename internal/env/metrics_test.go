package env

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/element"
	"github.com/flott-dev/flott/internal/operator/sink"
	"github.com/flott-dev/flott/internal/operator/source"
	"github.com/flott-dev/flott/process"
)

// splitting emits odd numbers to a side output and counts all.
type splitting struct {
	seen *process.LongCounter
	rows *process.MetricCounter
	fail func(attempt int) error
	rt   *process.Runtime
}

func (s *splitting) ProcessElement(ctx *process.Context, x int64, out *process.Collector[int64]) error {
	s.seen.Add(1)
	s.rows.Inc(1)
	if x == 7 && s.fail != nil {
		if err := s.fail(s.rt.Info().Attempt); err != nil {
			return err
		}
	}
	if x%2 == 1 {
		ctx.Emit(process.NewOutputTag[int64]("odd"), x)
		return nil
	}
	out.Collect(x)
	return nil
}

// census is a program of a source of 0 ... n-1 by two subtasks, a splitting process function and two sinks, one for each
// output. The sinks wait for hold.
func census(t testing.TB, e *Env, n int, fail func(attempt int) error, hold func()) {
	typ := typeOf[int64](t)
	e.Settings.Parallelism = 2
	xs := make([]int64, n)
	for i := range xs {
		xs[i] = int64(i)
	}
	src := add(e, graph.Source, "source", typ, func() operator.Operator { return source.Slice(typ, xs) })
	split := add(e, graph.Operator, "split", typ, func() operator.Operator {
		return element.Process(typ, typ, map[string]*frame.Type{"odd": typ}, func(rt *process.Runtime) process.Function[int64, int64] {
			return &splitting{seen: process.NewLongCounter(rt, "seen"), rows: process.NewMetricCounter(rt, "rows"), fail: fail, rt: rt}
		})
	}, graph.Edge{From: src})
	split.Side = map[string]*frame.Type{"odd": typ}
	discard := func() operator.Operator { return sink.Each[int64](typ, func(int64) {}) }
	add(e, graph.Sink, "even", nil, discard, graph.Edge{From: split})
	add(e, graph.Sink, "odd", nil, func() operator.Operator {
		return sink.Each[int64](typ, func(int64) { hold() })
	}, graph.Edge{From: split, Tag: "odd", Partitioner: &graph.Partitioner{Strategy: graph.Rebalance}})
}

func TestMetricsAreSummedOverSubtasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New()
		release := make(chan struct{})
		census(t, e, 11, nil, func() { <-release })
		x, err := e.Start(t.Context(), "census")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		got := map[string]OperatorMetrics{}
		for _, m := range x.Metrics() {
			got[m.Name] = m
		}
		if len(got) != 4 || len(x.Metrics()) != 4 {
			t.Errorf("%d operators", len(x.Metrics()))
		}
		for name, want := range map[string]OperatorMetrics{
			"source": {RecordsOut: 11, Watermark: frame.MaxWatermark, Source: true},
			"split":  {RecordsIn: 11, RecordsOut: 6, Watermark: frame.MaxWatermark, SideOut: map[string]int64{"odd": 5}},
			"even":   {RecordsIn: 6, Watermark: math.MaxInt64},
			"odd":    {RecordsIn: got["odd"].RecordsIn, Watermark: math.MaxInt64}, // at the end
		} {
			m := got[name]
			if m.RecordsIn != want.RecordsIn || m.RecordsOut != want.RecordsOut || m.Watermark != want.Watermark || m.Source != want.Source ||
				m.SideOut["odd"] != want.SideOut["odd"] || len(m.SideOut) != len(want.SideOut) || m.Parallelism != 2 || len(m.UID) != 32 {
				t.Errorf("%s: %+v, want %+v", name, m, want)
			}
		}
		rows := got["split"].User["rows"]
		if len(rows) != 2 || rows[0].(int64)+rows[1].(int64) != 11 {
			t.Errorf("the user's metric is %v, want one value per subtask, 11 together", rows)
		}
		// Both subtasks of the sink have been at work on their first element all the time.
		if m := got["odd"]; m.Busy != 2*time.Minute || m.Idle != 0 || m.Backpressured != 0 {
			t.Errorf("busy %v, idle %v, backpressured %v in two subtasks after a minute", m.Busy, m.Idle, m.Backpressured)
		}
		close(release)
		<-x.Done()
		acc, err := x.Accumulators()
		if err != nil || len(acc) != 1 || acc["seen"] != int64(11) || x.Err() != nil {
			t.Errorf("accumulators %v, %v; %v", acc, err, x.Err())
		}
		for _, m := range x.Metrics() {
			if m.Name == "odd" && m.RecordsIn != 5 {
				t.Errorf("%d elements came out of the side output", m.RecordsIn)
			}
		}
	})
}

// Idle and backpressured time are the waits of the task; what is left was work.
func TestTimeIsSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New()
		e.Settings.Parallelism, e.Settings.BufferTimeout, e.Settings.Chaining = 1, 0, false
		numbers(t, e, make([]int64, 30_000), same, func(int64) { time.Sleep(time.Millisecond) })
		x, err := e.Start(t.Context(), "slow")
		if err != nil {
			t.Fatal(err)
		}
		<-x.Done()
		for _, m := range x.Metrics() {
			if total := m.Busy + m.Idle + m.Backpressured; total < 30*time.Second || total > 30*time.Second+time.Millisecond {
				t.Errorf("%s: %v of 30 s", m.Name, total)
			}
			switch m.Name {
			case "sink":
				if m.Busy < 29*time.Second {
					t.Errorf("the sink was busy for %v", m.Busy)
				}
			case "numbers":
				if m.Backpressured == 0 || m.Idle != 0 {
					t.Errorf("the source was held back for %v and idle for %v", m.Backpressured, m.Idle)
				}
			}
		}
	})
}

// What an attempt counted is gone with it: the figures are those of the present one.
func TestFiguresAreThoseOfThePresentAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New()
		e.Settings.Restart = FixedDelay(1, time.Minute)
		census(t, e, 11, func(attempt int) error {
			if attempt == 0 {
				return errBoom
			}
			return nil
		}, func() {})
		x, err := e.Start(t.Context(), "census")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if first, err := x.Accumulators(); err != nil || first["seen"] == int64(11) || first["seen"] == nil {
			t.Errorf("after the failure: %v, %v", first, err)
		}
		<-x.Done()
		acc, err := x.Accumulators()
		if x.Err() != nil || err != nil || acc["seen"] != int64(11) {
			t.Errorf("%v; accumulators %v, %v", x.Err(), acc, err)
		}
		for _, m := range x.Metrics() {
			if m.Name == "source" && m.RecordsOut != 11 {
				t.Errorf("the source has emitted %d elements", m.RecordsOut)
			}
		}
	})
}

func TestThereAreNoFiguresBeforeTheFirstAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New()
		e.Settings.Parallelism = 1
		_, _, end := numbers(t, e, nil, same, func(int64) {})
		release := make(chan struct{})
		end.Prepare = func(int) error { <-release; return nil }
		x, err := e.Start(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if acc, err := x.Accumulators(); x.Metrics() != nil || acc != nil || err != nil {
			t.Errorf("metrics %v, accumulators %v, %v", x.Metrics(), acc, err)
		}
		close(release)
		<-x.Done()
		if len(x.Metrics()) != 3 {
			t.Errorf("metrics %v", x.Metrics())
		}
	})
}

func TestAccumulatorsThatCannotBeMergedAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New()
		e.Settings.Parallelism = 1
		typ := typeOf[int64](t)
		src := add(e, graph.Source, "source", typ, func() operator.Operator { return source.Slice(typ, []int64{1}) })
		declare := func(f func(rt *process.Runtime)) func() operator.Operator {
			return func() operator.Operator {
				return element.Process(typ, typ, nil, func(rt *process.Runtime) process.Function[int64, int64] {
					f(rt)
					return &splitting{seen: process.NewLongCounter(rt, "seen"), rows: process.NewMetricCounter(rt, "rows")}
				})
			}
		}
		a := add(e, graph.Operator, "a", typ, declare(func(rt *process.Runtime) { process.NewLongCounter(rt, "n") }), graph.Edge{From: src})
		add(e, graph.Operator, "b", typ, declare(func(rt *process.Runtime) { process.NewHistogram(rt, "n") }), graph.Edge{From: a})
		x, err := e.Start(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		<-x.Done()
		acc, err := x.Accumulators()
		if err == nil || acc != nil || !strings.Contains(err.Error(), `merge accumulator "n"`) {
			t.Errorf("%v, %v", acc, err)
		}
		if errors.Is(err, errBoom) || fmt.Sprint(x.Err()) != "<nil>" {
			t.Errorf("the job: %v", x.Err())
		}
	})
}
