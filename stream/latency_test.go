package stream_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// latencies are the histograms of latency of each operator: by the part of the name before "latency", one per subtask.
func latencies(job *stream.Job) map[string]map[string][]process.HistogramReading {
	all := map[string]map[string][]process.HistogramReading{}
	for _, m := range job.Metrics() {
		for name, values := range m.User {
			source, ok := strings.CutSuffix(name, "latency")
			if !ok {
				continue
			}
			if all[m.Name] == nil {
				all[m.Name] = map[string][]process.HistogramReading{}
			}
			for _, v := range values {
				all[m.Name][source] = append(all[m.Name][source], v.(process.HistogramReading))
			}
		}
	}
	return all
}

// resting sleeps over its first element.
type resting struct{ rest time.Duration }

func (r *resting) ProcessElement(_ *process.Context, x int64, out *process.Collector[int64]) error {
	time.Sleep(r.rest)
	r.rest = 0
	out.Collect(x)
	return nil
}

func TestLatencyIsMeasuredFromEachSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(2).SetLatencyTrackingInterval(100 * time.Millisecond)
		fast := flotttest.FromScripts(env, script().Pause("end"), script().Pause("end")).UIDHash(strings.Repeat("a", 32))
		slow := flotttest.FromScripts(env, script().EmitAt(1, 1).Pause("end")).UIDHash(strings.Repeat("b", 32)).
			Process(func(*process.Runtime) *resting { return &resting{time.Second} }).Name("rest").StartNewChain().Parallelism(1)
		fast.Union(slow).Rebalance().Map(alike).Name("Map").StartNewChain().Discard()
		job := clockwork(t, env)
		time.Sleep(1050 * time.Millisecond)
		synctest.Wait()
		got := latencies(job)
		a, b := strings.Repeat("a", 32)+".", strings.Repeat("b", 32)+"."
		for operator, want := range map[string]map[string]int64{ // how many markers have come, of all subtasks
			"rest":    {b: 11},
			"Map":     {a: 22, b: 11},
			"Discard": {a: 22, b: 11},
			"script":  nil,
		} {
			if len(got[operator]) != len(want) {
				t.Errorf("%s has latencies %v", operator, got[operator])
			}
			for source, n := range want {
				var count, most int64
				for _, r := range got[operator][source] {
					count, most = count+r.Count, max(most, r.Max)
				}
				if count != n {
					t.Errorf("%s: %d markers of %s, want %d", operator, count, source, n)
				}
				// Those that came while the function slept waited for it, the others for nobody.
				if late := source == b; late != (most >= 900) || most > 1000 {
					t.Errorf("%s: %d ms at most from %s", operator, most, source)
				}
			}
		}
	})
}

func TestLatencyGranularity(t *testing.T) {
	id := strings.Repeat("a", 32)
	for g, want := range map[stream.LatencyGranularity][]string{
		stream.LatencySingle:      {""},
		stream.LatencyPerOperator: {id + "."},
		stream.LatencyPerSubtask:  {id + ".0.", id + ".1."},
	} {
		synctest.Test(t, func(t *testing.T) {
			env := stream.NewEnv().SetParallelism(1).SetLatencyTrackingInterval(time.Nanosecond).SetLatencyTrackingGranularity(g)
			flotttest.FromScripts(env, script().Pause("end"), script().Pause("end")).UIDHash(id).Map(alike).Name("Map").Discard()
			job := clockwork(t, env)
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			got := latencies(job)["Map"]
			if len(got) != len(want) {
				t.Errorf("granularity %d: %v", g, got)
			}
			for _, source := range want {
				if len(got[source]) == 0 {
					t.Errorf("granularity %d: no histogram of %q in %v", g, source, got)
				}
			}
		})
	}
}

func TestLatencyIsNotMeasuredUnlessAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(1)
		flotttest.FromScripts(env, script().Pause("end")).Rebalance().Map(alike).Discard()
		job := clockwork(t, env)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := latencies(job); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
}

func TestMistakesOfLatencyTracking(t *testing.T) {
	env := stream.NewEnv().SetLatencyTrackingInterval(-1)
	env.FromElements(1).Discard()
	executeFailing(t, env, "latency tracking interval", "latency_test.go:")
	env.SetLatencyTrackingGranularity(99).FromElements(1).Discard()
	executeFailing(t, env, "granularity 99", "latency_test.go:")
}
