package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
)

type frameType = frame.Type

// constant is a custom partitioner.
func constant() func(*frame.Run, int, []uint16) error {
	return func(_ *frame.Run, _ int, out []uint16) error {
		clear(out)
		return nil
	}
}

// randomProgram draws a valid graph: mixed parallelism, strategies, chaining, groups, unions, side outputs and loops.
func randomProgram(t *testing.T, r *rand.Rand) *program {
	p := newProgram(t)
	p.Parallelism = 1 + r.IntN(5)
	p.ChainingEnabled = r.IntN(5) != 0
	p.BlockingConnections = r.IntN(8) == 0
	p.SlotGroupPerRegion = r.IntN(4) == 0
	var open []*graph.Node // may be consumed
	for i := range 1 + r.IntN(12) {
		kind := graph.Operator
		if len(open) == 0 || r.IntN(5) == 0 {
			kind = graph.Source
		}
		n := p.add(kind, fmt.Sprint("n", i))
		n.Side = map[string]*frameType{"side": n.Out}
		n.Parallelism = []int{graph.Unset, graph.Unset, 1, 2, 7}[r.IntN(5)]
		n.MaxParallelism = []int{graph.Unset, graph.Unset, 10, 300}[r.IntN(4)]
		n.Chaining = []graph.Chaining{graph.Always, graph.Always, graph.Always, graph.Head, graph.Never}[r.IntN(5)]
		n.SlotGroup = []string{"", "", "", "g"}[r.IntN(4)]
		n.Yielding = r.IntN(6) == 0
		if kind == graph.Operator {
			randomInputs(p, r, n, open)
		}
		open = append(open, n)
	}
	if r.IntN(2) == 0 {
		randomLoop(p, r, open)
	}
	return p
}

func randomInputs(p *program, r *rand.Rand, n *graph.Node, open []*graph.Node) {
	for i := range 1 + r.IntN(3)*r.IntN(2) {
		e := graph.Edge{From: open[r.IntN(len(open))], Exchange: graph.Exchange(r.IntN(3) * r.IntN(2))}
		e.Input = i * r.IntN(2)
		if i > 0 && n.Inputs[i-1].Input < e.Input {
			e.Input = n.Inputs[i-1].Input + 1
		} else if i > 0 {
			e.Input = n.Inputs[i-1].Input
		}
		if r.IntN(4) == 0 {
			e.Tag = "side"
		}
		switch s := graph.Strategy(r.IntN(16)); {
		case s == graph.Forward && p.ParallelismOf(e.From) == p.ParallelismOf(n),
			s > graph.Forward && s < graph.Hash:
			e.Partitioner = by(s)
		case s == graph.Hash:
			e.Partitioner = &graph.Partitioner{Strategy: s, Key: stringKey(p.t)}
		case s == graph.Custom:
			e.Partitioner = &graph.Partitioner{Strategy: s, Select: constant}
		}
		n.Inputs = append(n.Inputs, e)
	}
}

func randomLoop(p *program, r *rand.Rand, open []*graph.Node) {
	head := p.add(graph.IterationHead, "head", open[r.IntN(len(open))])
	at := head
	for i := range r.IntN(3) {
		at = p.add(graph.Operator, fmt.Sprint("body", i), at)
	}
	tail := p.add(graph.IterationTail, "tail", at)
	head.Inputs = append(head.Inputs, graph.Edge{From: tail, Feedback: true})
	p.add(graph.Sink, "result", at)
}

func TestRandomGraphsArePlannedSoundly(t *testing.T) {
	chained, loops := 0, 0
	for seed := range uint64(1500) {
		p := randomProgram(t, rand.New(rand.NewPCG(seed, 1)))
		job := p.build()
		again := randomProgram(t, rand.New(rand.NewPCG(seed, 1))).build()
		if job.String() != again.String() || !reflect.DeepEqual(job.Plan("x"), again.Plan("x")) {
			t.Errorf("equal graphs are planned differently:\n%v\n%v", job, again)
		}
		for _, v := range job.Vertices {
			checkChainingRule(t, p.Graph, job, v)
			chained += len(v.Nodes) - 1
		}
		for _, e := range job.Edges {
			if e.Feedback {
				loops++
				if e.From == e.To || e.From.CoLocation != e.To.CoLocation {
					t.Error("feedback leads out of its slot or into its own task")
				}
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d:\n%v", seed, job)
		}
	}
	if chained < 1000 || loops < 200 {
		t.Errorf("%d chained nodes, %d loops: the test looks at too little", chained, loops)
	}
}

// checkChainingRule says the rule of the vectors' README once more, from the consumer's side and in its words.
func checkChainingRule(t *testing.T, g *graph.Graph, job *JobGraph, v *Vertex) {
	t.Helper()
	for at, n := range v.Nodes {
		if len(n.Node.Inputs) == 0 {
			continue
		}
		in := &n.Node.Inputs[0]
		up := homeOf(t, job, in.From.Name)
		all := len(n.Node.Inputs) == 1 &&
			g.StrategyOf(in, n.Node) == graph.Forward &&
			g.ParallelismOf(in.From) == g.ParallelismOf(n.Node) &&
			up.slotGroupBefore(g) == v.slotGroupBefore(g) &&
			n.Node.Chaining == graph.Always &&
			in.From.Chaining != graph.Never &&
			in.Exchange != graph.Batch &&
			g.ChainingEnabled &&
			!(n.Node.Yielding && up.Head().Node.Kind == graph.Source) &&
			n.Node.Kind != graph.IterationTail
		if together := up == v && at > 0; together != all {
			t.Errorf("%s is chained to %s: %v, by the rule: %v", n.Node, in.From, together, all)
		}
	}
}

// slotGroupBefore is the vertex's slot group before regions were split.
func (v *Vertex) slotGroupBefore(g *graph.Graph) string {
	groups, err := g.SlotGroups()
	if err != nil {
		return err.Error()
	}
	return groups[v.Head().Node]
}
