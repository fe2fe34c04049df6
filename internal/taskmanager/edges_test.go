package taskmanager

import (
	"fmt"
	"math"
	"testing"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/process"
)

// planned is the job of a cluster's graph.
func planned(s *snapshots) *Job {
	s.t.Helper()
	jg, err := plan.Build(s.g)
	if err != nil {
		s.t.Fatal(err)
	}
	return &Job{Graph: plan.Unfold(jg), Name: "job", Seed: 77}
}

// What is in flight can be part of a snapshot only where it belongs to one subtask whatever the parallelism.
func TestEdgesWhoseElementsFitNoOtherParallelismStayAligned(t *testing.T) {
	for _, s := range []graph.Strategy{
		graph.Forward, graph.Rebalance, graph.Rescale, graph.Shuffle, graph.Global, graph.Broadcast, graph.Hash, graph.Custom,
	} {
		for _, asked := range []bool{false, true} {
			to := &plan.Vertex{Nodes: []*plan.ChainNode{{Node: &graph.Node{AlignedInputs: !asked}}, {Node: &graph.Node{AlignedInputs: asked}}}}
			want := asked || s == graph.Forward || s == graph.Broadcast || s == graph.Custom
			if got := aligned(&plan.JobEdge{To: to, Consumer: 1, Strategy: s}); got != want {
				t.Errorf("%v into an operator that asks for it %v: aligned %v", s, asked, got)
			}
		}
	}
}

// Barriers overtake only where the job wants it, and never with a loop.
func TestBarriersOvertakeWhereTheyMay(t *testing.T) {
	for _, c := range []struct {
		wanted bool
		mode   control.CheckpointMode
		loop   bool
		want   bool
	}{
		{true, control.ExactlyOnce, false, true},
		{false, control.ExactlyOnce, false, false},
		{true, control.AtLeastOnce, false, false},
		{true, control.ExactlyOnce, true, false},
	} {
		v := []*plan.ExecutionVertex{
			{Vertex: &plan.Vertex{}},
			{Vertex: &plan.Vertex{Inputs: []*plan.JobEdge{{}, {Feedback: c.loop}}}},
		}
		b := &builder{job: &Job{Graph: &plan.ExecutionGraph{Vertices: v}}, opt: Options{Checkpoints: &Checkpoints{Unaligned: c.wanted, Mode: c.mode}}}
		if got := b.unaligned(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// All writers of a job together take no more than half of the memory for frames.
func TestFramesOfAWideJobLeaveHalfOfTheMemory(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		limit int64
		tasks int
		want  int
	}{
		{math.MaxInt64, 10, 4 * mib},
		{8 * mib, 0, 4 * mib},
		{16 * mib, 1, 4 * mib},
		{16 * mib, 7, mib},
		{4, 100, 1},
	} {
		m := host.NewMemory(c.limit)
		v := &plan.ExecutionVertex{Vertex: &plan.Vertex{Outputs: []*plan.JobEdge{{}}}, Subtasks: make([]*plan.Subtask, c.tasks)}
		end := &plan.ExecutionVertex{Vertex: &plan.Vertex{}, Subtasks: make([]*plan.Subtask, c.tasks)} // it sends nothing
		if got := frameBudget(&plan.ExecutionGraph{Vertices: []*plan.ExecutionVertex{v, end}}, m); got != c.want {
			t.Errorf("%d bytes for %d writers: %d each, want %d", c.limit, c.tasks, got, c.want)
		}
	}
	if got := frameBudget(&plan.ExecutionGraph{}, nil); got != 4*mib {
		t.Errorf("without a budget: %d", got)
	}
}

// The time that markers were on their way is told per source, per subtask of it, or all in one.
func TestLatencyIsToldPerOrigin(t *testing.T) {
	for granularity, want := range map[LatencyGranularity]map[string]int64{
		LatencyPerOperator: {"a.latency": 3, "b.latency": 1},
		LatencySingle:      {"latency": 4},
		LatencyPerSubtask:  {"a.0.latency": 1, "a.1.latency": 2, "b.0.latency": 1},
	} {
		h := newTestHost()
		h.job.LatencyGranularity = granularity
		h.origins = []origin{{"a", 0}, {"a", 1}, {"b", 0}}
		h.rt.Clock = clock.NewManual(100)
		for _, from := range []uint16{0, 1, 1, 2, 3} { // the last is of no source
			h.RecordLatency(frame.Mark{Kind: frame.LatencyMarker, Value: 90, From: from})
		}
		metrics := h.Metrics()
		for name, n := range want {
			m, ok := metrics[name]
			if !ok {
				t.Errorf("granularity %d: no %s among %v", granularity, name, metrics)
				continue
			}
			if r := m.Read().(process.HistogramReading); r.Count != n || r.Min != 10 || r.Max != 10 {
				t.Errorf("granularity %d: %s is %+v, want %d of 10 ms", granularity, name, r, n)
			}
		}
		if len(metrics) != len(want) {
			t.Errorf("granularity %d: metrics %v", granularity, metrics)
		}
	}
}

// Markers carry the number of their source's subtask, as far as there are numbers.
func TestSubtasksOfSourcesAreNumbered(t *testing.T) {
	s := newSnapshots(t)
	first := s.add("first", 2, hooks{}, nil, nil)
	s.add("chained", 2, hooks{}, first, nil)
	s.add("second", 3, hooks{}, nil, nil)
	g := planned(s).Graph
	all := origins(g)
	var got []string
	for _, v := range g.Vertices {
		for i := range v.Subtasks {
			n, ok := number(all, v.Head().ID.String(), i)
			got = append(got, fmt.Sprintf("%s %d: %d %v", v.Head().Node.Name, i, n, ok))
		}
	}
	if want := "[first 0: 0 true first 1: 1 true second 0: 2 true second 1: 3 true second 2: 4 true]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if n, ok := number(all, g.Vertices[0].Nodes[1].ID.String(), 0); ok || n != 0 {
		t.Errorf("an operator that is no source has the number %d", n)
	}
	wide := make([]origin, math.MaxUint16+2)
	for i := range wide {
		wide[i] = origin{"wide", i}
	}
	if n, ok := number(wide, "wide", math.MaxUint16); n != math.MaxUint16 || !ok {
		t.Errorf("the last number is %d, %v", n, ok)
	}
	if _, ok := number(wide, "wide", math.MaxUint16+1); ok {
		t.Error("there is a number beyond the last")
	}
}
