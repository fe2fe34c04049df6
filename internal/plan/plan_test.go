package plan

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/graph"
)

// program is a graph for tests, with its nodes by name.
type program struct {
	t *testing.T
	*graph.Graph
}

func newProgram(t *testing.T) *program { return &program{t, newGraph()} }

func (p *program) add(kind graph.Kind, name string, from ...*graph.Node) *graph.Node {
	n := newNode(p.t, kind, name, from...)
	p.Nodes = append(p.Nodes, n)
	return n
}

func (p *program) build() *JobGraph {
	p.t.Helper()
	job, err := Build(p.Graph)
	if err != nil {
		p.t.Fatal(err)
	}
	checkSound(p.t, job)
	return job
}

func by(s graph.Strategy) *graph.Partitioner { return &graph.Partitioner{Strategy: s} }

// keyed appends an operator keyed by string.
func (p *program) keyed(name string, from *graph.Node) *graph.Node {
	n := p.add(graph.Operator, name, from)
	n.Key = []*graph.Key{stringKey(p.t)}
	n.Inputs[0].Partitioner = &graph.Partitioner{Strategy: graph.Hash, Key: n.Key[0]}
	return n
}

// iteration is src -> head -> step -> tail, back to head, and step -> sink.
func iteration(t *testing.T) *program {
	p := newProgram(t)
	p.Parallelism = 3
	head := p.add(graph.IterationHead, "head", p.add(graph.Source, "src"))
	step := p.add(graph.Operator, "step", head)
	tail := p.add(graph.IterationTail, "tail", step)
	head.Inputs = append(head.Inputs, graph.Edge{From: tail, Feedback: true})
	p.add(graph.Sink, "sink", step)
	return p
}

func TestRuleIterationCoLocation(t *testing.T) { // rule/iteration_co_location
	job := iteration(t).build()
	equal(t, "chains", sets(chainNames(job)), []string{"head sink step", "src", "tail"})
	head, tail, src := homeOf(t, job, "head"), homeOf(t, job, "tail"), homeOf(t, job, "src")
	if head.CoLocation == "" || head.CoLocation != tail.CoLocation || src.CoLocation != "" {
		t.Errorf("co-location keys: head %q, tail %q, src %q", head.CoLocation, tail.CoLocation, src.CoLocation)
	}
	for _, v := range job.Vertices {
		equal(t, "slot group of "+v.Name, v.SlotGroup, graph.DefaultSlotGroup)
	}
	feedback := edgesOf(t, job, "tail->head")[0]
	if !feedback.Feedback || !feedback.Pointwise || feedback.Blocking || feedback.Gate != 1 {
		t.Errorf("feedback is planned as %+v", *feedback)
	}
}

func TestUsersKeyOfAnIterationIsKept(t *testing.T) {
	for _, at := range []string{"head", "tail"} {
		p := iteration(t)
		for _, n := range p.Nodes {
			if n.Name == at {
				n.CoLocation = "mine"
			}
		}
		job := p.build()
		equal(t, "head", homeOf(t, job, "head").CoLocation, "mine")
		equal(t, "tail", homeOf(t, job, "tail").CoLocation, "mine")
	}
}

func TestSeveralFeedbacksShareTheirHeadsSlots(t *testing.T) {
	p := iteration(t)
	head, step := p.Nodes[1], p.Nodes[2]
	second := p.add(graph.IterationTail, "second", step)
	head.Inputs = append(head.Inputs, graph.Edge{From: second, Feedback: true})
	job := p.build()
	equal(t, "second", homeOf(t, job, "second").CoLocation, homeOf(t, job, "head").CoLocation)
	equal(t, "inputs of the head", len(homeOf(t, job, "head").Inputs), 3)
}

func TestTailFollowsItsHeadIntoItsSlotGroup(t *testing.T) {
	p := iteration(t)
	p.Nodes[2].SlotGroup = "heavy" // the step
	job := p.build()
	equal(t, "group of the tail", homeOf(t, job, "tail").SlotGroup, graph.DefaultSlotGroup)
	equal(t, "group of the step", homeOf(t, job, "step").SlotGroup, "heavy")
	equal(t, "slots", job.Slots(), 6)
}

func TestRuleDefaultScheduleEager(t *testing.T) { // rule/default_schedule_eager
	for _, e := range iteration(t).build().Edges {
		if e.Blocking {
			t.Errorf("edge %d makes its consumer wait", e.ID)
		}
	}
}

func TestRuleSlotGroupDefaultDisabled(t *testing.T) { // rule/slot_group_default_disabled
	p := newProgram(t)
	p.SlotGroupPerRegion = true
	for i, exchange := range []graph.Exchange{graph.Pipelined, graph.Batch} {
		digit := string(rune('1' + i))
		m := p.add(graph.Operator, "map"+digit, p.add(graph.Source, "source"+digit))
		m.Inputs[0].Partitioner, m.Inputs[0].Exchange = by(graph.Rebalance), exchange
	}
	job := p.build()
	group := func(name string) string { return homeOf(t, job, name).SlotGroup }
	if group("source1") != group("map1") {
		t.Errorf("a pipelined region is in groups %q and %q", group("source1"), group("map1"))
	}
	if a, b, c := group("source1"), group("source2"), group("map2"); a == b || b == c || a == c {
		t.Errorf("three regions are in groups %q, %q, %q", a, b, c)
	}
	p.Nodes[0].CoLocation, p.Nodes[2].CoLocation = "x", "x"
	job = p.build()
	if group("source1") != group("source2") || group("source1") == group("map2") {
		t.Errorf("co-located regions are in %q and %q, another in %q", group("source1"), group("source2"), group("map2"))
	}
	p.Nodes[0].CoLocation, p.Nodes[3].CoLocation = "", "x"
	job = p.build()
	if group("source2") != group("map2") || group("source1") == group("map2") {
		t.Errorf("co-located regions are in %q and %q, another in %q", group("source2"), group("map2"), group("source1"))
	}
	p.Nodes[3].CoLocation, p.Nodes[2].SlotGroup = "", "own"
	job = p.build()
	equal(t, "a group that was asked for", group("source2"), "own")
}

func TestBlockingConnectionsHoldBetweenChainsOnly(t *testing.T) {
	p := newProgram(t)
	p.BlockingConnections = true
	m := p.add(graph.Operator, "map", p.add(graph.Source, "src"))
	far := p.add(graph.Sink, "far", m)
	far.Inputs[0].Partitioner = by(graph.Rebalance)
	near := p.add(graph.Sink, "near", m)
	near.Inputs[0].Partitioner, near.Inputs[0].Exchange = by(graph.Rebalance), graph.Pipelined
	job := p.build()
	equal(t, "chains", sets(chainNames(job)), []string{"far", "map src", "near"})
	equal(t, "far", edgesOf(t, job, "map->far")[0].ResultType(), "blocking")
	equal(t, "near", edgesOf(t, job, "map->near")[0].ResultType(), "pipelined_bounded")
}

func TestRulePartitionerKeptThroughUnion(t *testing.T) { // rule/partitioner_kept_through_union
	p := newProgram(t)
	wanted := []graph.Strategy{graph.Broadcast, graph.Global, graph.Shuffle}
	union := p.add(graph.Operator, "union", p.add(graph.Source, "a"), p.add(graph.Source, "b"), p.add(graph.Source, "c"))
	for i, s := range wanted {
		union.Inputs[i].Partitioner = by(s)
	}
	v := homeOf(t, p.build(), "union")
	for i, e := range v.Inputs {
		equal(t, "strategy", e.Strategy, wanted[i])
		equal(t, "input", e.Input, 0)
		equal(t, "producer", e.From.Nodes[e.Producer].Node, union.Inputs[i].From)
	}
}

func TestRuleCoLocationConstraint(t *testing.T) { // rule/co_location_constraint
	p := newProgram(t)
	at := p.add(graph.Source, "src")
	for i, key := range []string{"group1", "group2", "group1", "group2"} {
		at = p.keyed(string(rune('a'+i)), at)
		at.CoLocation = key
	}
	job := p.build()
	equal(t, "vertices", len(job.Vertices), 5)
	for name, want := range map[string]string{"a": "group1", "b": "group2", "c": "group1", "d": "group2", "src": ""} {
		equal(t, "co-location of "+name, homeOf(t, job, name).CoLocation, want)
	}
}

func TestNodesOfTwoCoLocationsAreNotChained(t *testing.T) {
	p := newProgram(t)
	src := p.add(graph.Source, "src")
	a := p.add(graph.Operator, "a", src)
	b := p.add(graph.Operator, "b", a)
	a.CoLocation, b.CoLocation = "one", "two"
	equal(t, "chains", sets(chainNames(p.build())), []string{"a src", "b"})
}

func TestRuleUserHashIsLastAlternative(t *testing.T) { // rule/user_hash_is_last_alternative
	p := newProgram(t)
	src := p.add(graph.Source, "src")
	m := p.add(graph.Operator, "map", src)
	sink := p.add(graph.Sink, "sink", m)
	sink.Inputs[0].Partitioner = by(graph.Rebalance)
	src.UIDHash, sink.UIDHash = strings.Repeat("a", 32), strings.Repeat("b", 32)
	job := p.build()
	equal(t, "first vertex", job.Vertices[0].ID.String(), src.UIDHash)
	equal(t, "second vertex", job.Vertices[1].ID.String(), sink.UIDHash)
}

func TestRuleKeyedVersusCustomPartition(t *testing.T) { // rule/keyed_vs_custom_partition
	p := newProgram(t)
	src := p.add(graph.Source, "src")
	p.keyed("keyed", src)
	custom := p.add(graph.Operator, "custom", src)
	custom.Inputs[0].Partitioner = by(graph.Custom)
	custom.Inputs[0].Partitioner.Select = constant
	job := p.build()
	equal(t, "keyed", edgesOf(t, job, "src->keyed")[0].Strategy, graph.Hash)
	equal(t, "custom", edgesOf(t, job, "src->custom")[0].Strategy, graph.Custom)
	if !p.Nodes[1].Keyed() || custom.Keyed() {
		t.Error("keyed and custom partitioning are mixed up")
	}
}

// Trap B009: a stream united with itself has two edges, each with channels of its own.
func TestSelfUnionHasTwoEdges(t *testing.T) {
	p := newProgram(t)
	p.Parallelism = 4
	src := p.add(graph.Source, "src")
	union := p.add(graph.Operator, "union", src, src)
	job := p.build()
	edges := edgesOf(t, job, "src->union")
	if len(edges) != 2 || edges[0] == edges[1] || edges[0].Gate == edges[1].Gate || edges[0].Output == edges[1].Output {
		t.Fatalf("edges of a self union: %+v", edges)
	}
	x := Unfold(job)
	for i, s := range x.Vertices[1].Subtasks {
		equal(t, "gates", len(s.Inputs), 2)
		equal(t, "channels", s.Inputs[0].Peers, []int{i})
		equal(t, "channels", s.Inputs[1].Peers, []int{i})
	}
	union.Inputs[0].Partitioner = by(graph.Broadcast)
	x = Unfold(p.build())
	equal(t, "channels", x.Vertices[1].Subtasks[2].Inputs[0].Peers, []int{0, 1, 2, 3})
	equal(t, "channels", x.Vertices[1].Subtasks[2].Inputs[1].Peers, []int{2})
}

// Trap B035: key groups are the node's own, whatever else runs in its chain.
func TestMaxParallelismIsPerNodeOfAChain(t *testing.T) {
	p := newProgram(t)
	p.Parallelism = 2
	count := p.keyed("count", p.add(graph.Source, "src"))
	count.MaxParallelism = 256
	after := p.add(graph.Operator, "after", count)
	after.MaxParallelism = 64
	v := homeOf(t, p.build(), "count")
	equal(t, "nodes", len(v.Nodes), 2)
	equal(t, "key groups", v.Nodes[0].KeyGroups(2, 1).Last, 255)
	equal(t, "bound of scaling", v.MaxParallelism, 64)
	equal(t, "edge", v.Inputs[0].MaxParallelism, 256)
}

func TestSideOutputsAreLinksAndEdges(t *testing.T) {
	p := newProgram(t)
	src := p.add(graph.Source, "src")
	src.Side = map[string]*frameType{"late": src.Out}
	p.add(graph.Sink, "main", src)
	p.add(graph.Sink, "near", src).Inputs[0].Tag = "late"
	far := p.add(graph.Sink, "far", src)
	far.Inputs[0].Tag, far.Inputs[0].Partitioner = "late", by(graph.Rebalance)
	job := p.build()
	equal(t, "links", job.Vertices[0].Nodes[0].Links, []Link{{Tag: "", To: 1}, {Tag: "late", To: 2}})
	equal(t, "edge", job.Edges[0].Tag, "late")
}

func TestOutputsFollowTheOrderOfCreation(t *testing.T) {
	p := newProgram(t)
	src := p.add(graph.Source, "src")
	first := p.add(graph.Sink, "first")
	second := p.add(graph.Operator, "second", src)
	second.Chaining = graph.Head
	first.Inputs = []graph.Edge{{From: src}, {From: second}}
	job := p.build()
	equal(t, "consumer", job.Vertices[0].Outputs[0].To.Name, "Sink: first")
	equal(t, "order", job.Vertices[1].Name, "second")
}

func TestNamesOfChains(t *testing.T) {
	p := newProgram(t)
	m := p.add(graph.Operator, "Map", p.add(graph.Source, "a"))
	p.add(graph.Sink, "b", p.add(graph.Operator, "Filter", m))
	p.add(graph.Sink, "c", m)
	equal(t, "name", p.build().Vertices[0].Name, "Source: a -> Map -> (Filter -> Sink: b, Sink: c)")
}

func TestMistakesComeOutOfBuild(t *testing.T) {
	p := newProgram(t)
	p.add(graph.Operator, "lonely")
	if _, err := Build(p.Graph); err == nil || !strings.Contains(err.Error(), "lonely.go:1") {
		t.Errorf("Build gave %v", err)
	}
}

func TestPointwiseReachesEverySubtaskOnce(t *testing.T) {
	pairs := [][2]int{{32768, 32767}, {32767, 32768}, {1, 32768}, {32768, 1}, {32768, 3}, {3, 32768}, {20000, 32768}}
	for up := 1; up <= 40; up++ {
		for down := 1; down <= 40; down++ {
			pairs = append(pairs, [2]int{up, down})
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		pairs = append(pairs, [2]int{1 + r.IntN(3000), 1 + r.IntN(3000)})
	}
	for _, p := range pairs {
		w := pointwise(p[0], p[1])
		checkWiring(t, w)
		checkBalance(t, w.Up, p[0], p[1])
		if t.Failed() {
			t.Fatalf("at %d -> %d", p[0], p[1])
		}
	}
}

// checkBalance: each side's numbers of channels differ by one at most.
func checkBalance(t *testing.T, rows [][]int, up, down int) {
	t.Helper()
	least, most := up, 0
	for _, row := range rows {
		least, most = min(least, len(row)), max(most, len(row))
	}
	if most-least > 1 {
		t.Errorf("%d -> %d: subtasks have %d to %d channels", up, down, least, most)
	}
}

func TestAllToAllSharesItsRows(t *testing.T) {
	w := Channels(&JobEdge{Strategy: graph.Hash}, 3, 2)
	equal(t, "down", w.Down, [][]int{{0, 1}, {0, 1}, {0, 1}})
	equal(t, "up", w.Up, [][]int{{0, 1, 2}, {0, 1, 2}})
	checkWiring(t, w)
}
