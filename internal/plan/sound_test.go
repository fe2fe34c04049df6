package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/serde"
)

func equal(t *testing.T, what string, have, want any) {
	t.Helper()
	if !reflect.DeepEqual(have, want) {
		t.Errorf("%s: %v, want %v", what, have, want)
	}
}

// sets makes a set of sets comparable.
func sets(list [][]string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		s = slices.Clone(s)
		slices.Sort(s)
		out[i] = strings.Join(s, " ")
	}
	slices.Sort(out)
	return out
}

func chainNames(job *JobGraph) [][]string {
	var chains [][]string
	for _, v := range job.Vertices {
		var names []string
		for _, n := range v.Nodes {
			names = append(names, n.Node.Name)
		}
		chains = append(chains, names)
	}
	return chains
}

func homeOf(t *testing.T, job *JobGraph, name string) *Vertex {
	t.Helper()
	for _, v := range job.Vertices {
		for _, n := range v.Nodes {
			if n.Node.Name == name {
				return v
			}
		}
	}
	t.Fatalf("no vertex holds %s", name)
	return nil
}

// edgesOf finds the job edges "a->b".
func edgesOf(t *testing.T, job *JobGraph, name string) []*JobEdge {
	t.Helper()
	var found []*JobEdge
	for _, e := range job.Edges {
		if e.From.Nodes[e.Producer].Node.Name+"->"+e.To.Nodes[e.Consumer].Node.Name == name {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no edge %s", name)
	}
	return found
}

func newGraph() *graph.Graph {
	return &graph.Graph{
		JobName: "job", Parallelism: 1, MaxParallelism: graph.Unset, ChainingEnabled: true, BufferTimeout: 100 * time.Millisecond,
	}
}

func newNode(t *testing.T, kind graph.Kind, name string, from ...*graph.Node) *graph.Node {
	t.Helper()
	n := &graph.Node{Kind: kind, Name: name, Caller: name + ".go:1", Parallelism: graph.Unset, MaxParallelism: graph.Unset}
	if kind != graph.Sink {
		typ, err := frame.TypeOf[int]()
		if err != nil {
			t.Fatal(err)
		}
		n.Out = typ
	}
	for _, f := range from {
		n.Inputs = append(n.Inputs, graph.Edge{From: f})
	}
	return n
}

func stringKey(t *testing.T) *graph.Key {
	t.Helper()
	k, err := serde.KeyOf[string]()
	if err != nil {
		t.Fatal(err)
	}
	return &graph.Key{Key: k}
}

// checkSound holds a plan against what is true of every plan.
func checkSound(t *testing.T, job *JobGraph) {
	t.Helper()
	checkNodesAndEdges(t, job)
	for i, v := range job.Vertices {
		if v.Index != i {
			t.Errorf("vertex %d has index %d", i, v.Index)
		}
		checkChain(t, v)
	}
	checkExecution(t, Unfold(job))
}

// checkNodesAndEdges: every node is in one chain, every edge of the graph is a link or a job edge, exactly once.
func checkNodesAndEdges(t *testing.T, job *JobGraph) {
	t.Helper()
	nodes := make(map[*graph.Node]int)
	type end struct {
		from  *graph.Node
		tag   string
		to    *graph.Node
		input int
	}
	edges := make(map[end]int)
	for _, n := range job.Graph.Nodes {
		nodes[n]++
		for _, e := range n.Inputs {
			edges[end{e.From, e.Tag, n, e.Input}]++
		}
	}
	for _, v := range job.Vertices {
		for _, n := range v.Nodes {
			nodes[n.Node]--
			for _, l := range n.Links {
				edges[end{n.Node, l.Tag, v.Nodes[l.To].Node, l.Input}]--
			}
		}
	}
	for i, e := range job.Edges {
		edges[end{e.From.Nodes[e.Producer].Node, e.Tag, e.To.Nodes[e.Consumer].Node, e.Input}]--
		if e.ID != i || e.From.Outputs[e.Output] != e || e.To.Inputs[e.Gate] != e {
			t.Errorf("edge %d is not where it says", i)
		}
		if e.Feedback == (e.From.Index < e.To.Index) {
			t.Errorf("edge %d of vertices %d -> %d is against the order (feedback %v)", i, e.From.Index, e.To.Index, e.Feedback)
		}
		if e.Strategy == graph.Forward && e.From.Parallelism != e.To.Parallelism {
			t.Errorf("edge %d is forward from %d to %d subtasks", i, e.From.Parallelism, e.To.Parallelism)
		}
	}
	for n, c := range nodes {
		if c != 0 {
			t.Errorf("%s is in %d chains", n, 1-c)
		}
	}
	for e, c := range edges {
		if c != 0 {
			t.Errorf("the edge %s -> %s is planned %d times too few", e.from, e.to, c)
		}
	}
}

// checkChain: a chain is a tree below its head, of one parallelism.
func checkChain(t *testing.T, v *Vertex) {
	t.Helper()
	reached := make([]int, len(v.Nodes))
	reached[0] = 1
	for i, n := range v.Nodes {
		if n.Index != i {
			t.Errorf("node %d of %q has index %d", i, v.Name, n.Index)
		}
		for _, l := range n.Links {
			if l.To <= i {
				t.Errorf("node %d of %q links backwards to %d", i, v.Name, l.To)
			}
			reached[l.To] += reached[i]
		}
		if v.MaxParallelism > n.MaxParallelism || v.Parallelism > n.MaxParallelism {
			t.Errorf("%q has parallelism %d of %d, but node %d allows %d", v.Name, v.Parallelism, v.MaxParallelism, i, n.MaxParallelism)
		}
	}
	for i, r := range reached {
		if r != 1 {
			t.Errorf("node %d of %q is reached %d times from the head", i, v.Name, r)
		}
	}
	equal(t, "id of "+v.Name, v.ID, v.Nodes[0].ID)
}

func checkExecution(t *testing.T, x *ExecutionGraph) {
	t.Helper()
	for _, v := range x.Vertices {
		for node := range v.Nodes {
			next := 0
			for i, s := range v.Subtasks {
				r := s.KeyGroups[node]
				if s.Index != i || r.First != next || r.Last < r.First {
					t.Errorf("subtask %d of %q owns key groups %v, want them from %d", i, v.Name, r, next)
				}
				next = r.Last + 1
			}
			equal(t, "key groups of "+v.Name, next, v.Nodes[node].MaxParallelism)
		}
	}
	checkSlots(t, x)
	checkChannels(t, x)
}

// checkSlots: every subtask has one slot of its group, no slot two subtasks of a vertex, and there is no slot too many.
func checkSlots(t *testing.T, x *ExecutionGraph) {
	t.Helper()
	placed := make(map[*Subtask]int)
	for i, slot := range x.Slots {
		vertices := make(map[*Vertex]bool)
		for _, s := range slot.Subtasks {
			placed[s]++
			if s.Slot != slot || s.Vertex.SlotGroup != slot.Group || vertices[s.Vertex] {
				t.Errorf("slot %d (%s) holds subtask %d of %q wrongly", i, slot.Group, s.Index, s.Vertex.Name)
			}
			vertices[s.Vertex] = true
		}
		if slot.Index != i || len(slot.Subtasks) == 0 {
			t.Errorf("slot %d has index %d and %d subtasks", i, slot.Index, len(slot.Subtasks))
		}
	}
	located := make(map[string]map[int]*Slot)
	for _, v := range x.Vertices {
		for _, s := range v.Subtasks {
			if placed[s] != 1 {
				t.Errorf("subtask %d of %q is in %d slots", s.Index, v.Name, placed[s])
			}
			if v.CoLocation == "" {
				continue
			}
			if located[v.CoLocation] == nil {
				located[v.CoLocation] = make(map[int]*Slot)
			}
			if other := located[v.CoLocation][s.Index]; other != nil && other != s.Slot {
				t.Errorf("subtasks %d co-located by %q are in slots %d and %d", s.Index, v.CoLocation, other.Index, s.Slot.Index)
			}
			located[v.CoLocation][s.Index] = s.Slot
		}
	}
	equal(t, "slots", len(x.Slots), x.Job.Slots())
}

// checkChannels: both ends of an edge know the same channels, each once, and every subtask has some.
func checkChannels(t *testing.T, x *ExecutionGraph) {
	t.Helper()
	type channel struct{ edge, up, down int }
	ends := make(map[channel]int)
	for _, v := range x.Vertices {
		for _, s := range v.Subtasks {
			for i, g := range s.Outputs {
				if g.Edge != v.Outputs[i] || len(g.Peers) == 0 {
					t.Errorf("output %d of subtask %d of %q has %d channels", i, s.Index, v.Name, len(g.Peers))
				}
				for _, p := range g.Peers {
					ends[channel{g.Edge.ID, s.Index, p}] += 1
				}
			}
			for i, g := range s.Inputs {
				if g.Edge != v.Inputs[i] || len(g.Peers) == 0 {
					t.Errorf("input %d of subtask %d of %q has %d channels", i, s.Index, v.Name, len(g.Peers))
				}
				for _, p := range g.Peers {
					ends[channel{g.Edge.ID, p, s.Index}] += 1000
				}
			}
		}
	}
	want := 0
	for c, n := range ends {
		if n != 1001 {
			t.Errorf("channel %v: %d senders, %d receivers", c, n%1000, n/1000)
		}
	}
	for _, e := range x.Job.Edges {
		up, down := e.From.Parallelism, e.To.Parallelism
		if e.Pointwise {
			want += max(up, down)
		} else {
			want += up * down
		}
	}
	equal(t, "channels", len(ends), want)
}

func checkWiring(t *testing.T, w Wiring) {
	t.Helper()
	channels := make(map[[2]int]int)
	for u, list := range w.Down {
		if len(list) == 0 || !slices.IsSorted(list) {
			t.Errorf("upstream %d feeds %v", u, list)
		}
		for _, d := range list {
			channels[[2]int{u, d}]++
		}
	}
	for d, list := range w.Up {
		if len(list) == 0 || !slices.IsSorted(list) {
			t.Errorf("downstream %d is fed by %v", d, list)
		}
		for _, u := range list {
			channels[[2]int{u, d}] += 1000
		}
	}
	for c, n := range channels {
		if n != 1001 {
			t.Errorf("channel %v: %d senders, %d receivers", c, n%1000, n/1000)
		}
	}
}
