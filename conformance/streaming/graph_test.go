package streaming_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/stream"
)

func TestGraphVectors(t *testing.T) {
	s := conformance.Suite{
		Folder: "streaming", Family: "graph", Rules: graphRules(), Rewrite: *rewrite,
		Runners: map[string]conformance.Runner{
			"topology": runTopology, "parallelism": runParallelism, "buffer_timeout": runBufferTimeout,
		},
	}
	s.Run(t)
}

type topologyCase struct {
	conformance.Head
	Op    string `json:"op"`
	Nodes []struct {
		Name        string  `json:"name"`
		Kind        string  `json:"kind"`
		Parallelism int     `json:"parallelism"`
		Chaining    string  `json:"chaining"`
		SlotGroup   *string `json:"slot_group"`
		Yielding    bool    `json:"yielding"`
		Inputs      []struct {
			From        string  `json:"from"`
			Partitioner *string `json:"partitioner"`
			Shuffle     string  `json:"shuffle"`
		} `json:"inputs"`
	} `json:"nodes"`
	ChainingEnabled bool     `json:"chaining_enabled"`
	Blocking        bool     `json:"blocking_connections_between_chains"`
	Derived         []string `json:"derived"`
	Expect          struct {
		Chains        [][]string          `json:"chains"`
		Partitioners  map[string]string   `json:"partitioners"`
		PartitionList map[string][]string `json:"partition_list"`
		SlotGroups    map[string]string   `json:"slot_groups"`
		ResultTypes   map[string]string   `json:"result_types"`
		Error         string              `json:"error"`
	} `json:"expect"`
}

func newGraph() *graph.Graph {
	return &graph.Graph{
		JobName: "job", Parallelism: 1, MaxParallelism: graph.Unset, ChainingEnabled: true, BufferTimeout: 100 * time.Millisecond,
	}
}

// addNode adds a node of numbers behind others.
func addNode(t *testing.T, g *graph.Graph, kind graph.Kind, name string, from ...*graph.Node) *graph.Node {
	t.Helper()
	n := &graph.Node{Kind: kind, Name: name, Caller: name, Parallelism: graph.Unset, MaxParallelism: graph.Unset}
	if kind != graph.Sink {
		n.Out = typeOf[int64](t)
	}
	for _, f := range from {
		n.Inputs = append(n.Inputs, graph.Edge{From: f})
	}
	g.Nodes = append(g.Nodes, n)
	return n
}

func textKey(t *testing.T) *graph.Key {
	t.Helper()
	k, err := serde.KeyOf[string]()
	if err != nil {
		t.Fatal(err)
	}
	return &graph.Key{Key: k}
}

func (c *topologyCase) build(t *testing.T) *graph.Graph {
	t.Helper()
	kinds := map[string]graph.Kind{"source": graph.Source, "operator": graph.Operator, "sink": graph.Sink}
	chaining := map[string]graph.Chaining{"always": graph.Always, "head": graph.Head, "never": graph.Never}
	exchanges := map[string]graph.Exchange{"undefined": graph.Undefined, "pipelined": graph.Pipelined, "batch": graph.Batch}
	g := newGraph()
	g.ChainingEnabled, g.BlockingConnections = c.ChainingEnabled, c.Blocking
	byName := map[string]*graph.Node{}
	for _, v := range c.Nodes {
		n := addNode(t, g, word(t, kinds, v.Kind), v.Name)
		n.Parallelism, n.Chaining, n.Yielding = v.Parallelism, word(t, chaining, v.Chaining), v.Yielding
		if v.SlotGroup != nil {
			n.SlotGroup = *v.SlotGroup
		}
		for _, in := range v.Inputs {
			e := graph.Edge{From: word(t, byName, in.From), Exchange: word(t, exchanges, in.Shuffle)}
			if in.Partitioner != nil {
				e.Partitioner = &graph.Partitioner{Strategy: word(t, strategies(), *in.Partitioner)}
				if e.Partitioner.Strategy == graph.Hash {
					e.Partitioner.Key = textKey(t)
				}
			}
			n.Inputs = append(n.Inputs, e)
		}
		byName[v.Name] = n
	}
	return g
}

func runTopology(t *testing.T, raw conformance.Case) {
	var c topologyCase
	raw.Decode(t, &c)
	g := c.build(t)
	job, err := plan.Build(g)
	if c.Expect.Error != "" {
		if err == nil {
			t.Errorf("no error, want %s", c.Expect.Error)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.Expect.Chains != nil {
		equal(t, "chains", sets(chainNames(job)), sets(c.Expect.Chains))
	}
	for name, want := range c.Expect.SlotGroups {
		equal(t, "slot group of "+name, homeOf(t, job, name).SlotGroup, want)
	}
	for edge, want := range c.Expect.ResultTypes {
		for _, e := range edgesOf(t, job, edge) {
			equal(t, "result type of "+edge, e.ResultType(), want)
		}
	}
	found := shipping(g)
	for edge, want := range c.Expect.Partitioners {
		equal(t, "partitioners of "+edge, found[edge], []graph.Strategy{word(t, strategies(), want)})
	}
	for name, want := range c.Expect.PartitionList {
		var have, wanted []graph.Strategy
		for edge, s := range found {
			if strings.HasSuffix(edge, "->"+name) {
				have = append(have, s...)
			}
		}
		for _, w := range want {
			wanted = append(wanted, word(t, strategies(), w))
		}
		slices.Sort(have)
		slices.Sort(wanted)
		equal(t, "partitioners into "+name, have, wanted)
	}
}

// shipping gives the resolved strategies of all edges, those inside of chains included.
func shipping(g *graph.Graph) map[string][]graph.Strategy {
	found := map[string][]graph.Strategy{}
	for _, n := range g.Nodes {
		for i := range n.Inputs {
			e := &n.Inputs[i]
			found[e.From.Name+"->"+n.Name] = append(found[e.From.Name+"->"+n.Name], g.StrategyOf(e, n))
		}
	}
	return found
}

func chainNames(job *plan.JobGraph) [][]string {
	var out [][]string
	for _, v := range job.Vertices {
		var names []string
		for _, n := range v.Nodes {
			names = append(names, n.Node.Name)
		}
		out = append(out, names)
	}
	return out
}

// sets makes lists of names comparable as a set of sets.
func sets(lists [][]string) []string {
	var out []string
	for _, names := range lists {
		names = slices.Sorted(slices.Values(names))
		out = append(out, strings.Join(names, " "))
	}
	slices.Sort(out)
	return out
}

// homeOf is the vertex that runs the node of that name.
func homeOf(t *testing.T, job *plan.JobGraph, name string) *plan.Vertex {
	t.Helper()
	for _, v := range job.Vertices {
		for _, n := range v.Nodes {
			if n.Node.Name == name {
				return v
			}
		}
	}
	t.Fatalf("no vertex runs %q", name)
	return nil
}

// nodeOf is the planned node of that name.
func nodeOf(t *testing.T, job *plan.JobGraph, name string) *plan.ChainNode {
	t.Helper()
	for _, n := range homeOf(t, job, name).Nodes {
		if n.Node.Name == name {
			return n
		}
	}
	return nil
}

// edgesOf are the edges between vertices that lead from one node to another: "a->b".
func edgesOf(t *testing.T, job *plan.JobGraph, edge string) []*plan.JobEdge {
	t.Helper()
	var out []*plan.JobEdge
	for _, e := range job.Edges {
		if e.From.Nodes[e.Producer].Node.Name+"->"+e.To.Nodes[e.Consumer].Node.Name == edge {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no edge %s", edge)
	}
	return out
}

func equal[V any](t *testing.T, what string, got, want V) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}

type parallelismCase struct {
	conformance.Head
	Op                 string `json:"op"`
	Set                string `json:"set"`
	Value              int    `json:"value"`
	ExpectValid        *bool  `json:"expect_valid"`
	EnvMax             *int   `json:"env_max"`
	OperatorMax        *int   `json:"operator_max"`
	ExpectOperatorMax  *int   `json:"expect_operator_max"`
	EnvParallelism     *int   `json:"env_parallelism"`
	EnvLater           *int   `json:"env_parallelism_changed_after_definition"`
	Parallelism        *int   `json:"operator_parallelism"`
	Node               string `json:"node"`
	ExpectParallelism  *int   `json:"expect_parallelism"`
	ExpectError        any    `json:"expect_error"`
	ExpectErrorMessage string `json:"expect_error_message"`
}

func runParallelism(t *testing.T, raw conformance.Case) {
	var c parallelismCase
	raw.Decode(t, &c)
	switch {
	case c.ExpectValid != nil:
		_, err := tryPlan(t, func(env *stream.Env) { c.set(t, env) })
		equal(t, fmt.Sprintf("valid (%v)", err), err == nil, *c.ExpectValid)
	case c.ExpectOperatorMax != nil:
		// What was asked for, whether or not it can be planned.
		g := newGraph()
		n := addNode(t, g, graph.Operator, "node")
		for to, from := range map[*int]*int{
			&g.Parallelism: c.EnvParallelism, &g.MaxParallelism: c.EnvMax, &n.Parallelism: c.Parallelism, &n.MaxParallelism: c.OperatorMax,
		} {
			if from != nil {
				*to = *from
			}
		}
		equal(t, "max parallelism", g.MaxParallelismOf(n), *c.ExpectOperatorMax)
	default:
		c.runNode(t)
	}
}

// set uses the setter of a bounds case.
func (c *parallelismCase) set(t *testing.T, env *stream.Env) {
	t.Helper()
	env.SetParallelism(1)
	switch c.Set {
	case "env_parallelism":
		env.SetParallelism(c.Value)
	case "env_max_parallelism":
		env.SetMaxParallelism(c.Value)
	case "operator_parallelism", "operator_max_parallelism":
	default:
		t.Fatalf("the setter %q is unknown", c.Set)
	}
	s := env.FromSequence(1, 2).Map(func(x int64) int64 { return x })
	switch c.Set {
	case "operator_parallelism":
		s.Parallelism(c.Value)
	case "operator_max_parallelism":
		s.MaxParallelism(c.Value)
	}
	s.Discard()
}

// runNode plans a program with the node.
func (c *parallelismCase) runNode(t *testing.T) {
	t.Helper()
	job, err := tryPlan(t, func(env *stream.Env) { c.node(t, env) })
	switch {
	case c.ExpectError != nil:
		if err == nil {
			t.Errorf("no error, want %v", c.ExpectError)
		}
	case err != nil:
		t.Fatal(err)
	case c.ExpectParallelism == nil:
		t.Fatal("the case expects nothing")
	default:
		equal(t, "parallelism", homeOf(t, job, "node").Parallelism, *c.ExpectParallelism)
	}
}

func (c *parallelismCase) node(t *testing.T, env *stream.Env) {
	t.Helper()
	if c.EnvParallelism != nil {
		env.SetParallelism(*c.EnvParallelism)
	}
	if c.EnvMax != nil {
		env.SetMaxParallelism(*c.EnvMax)
	}
	var s *stream.Stream[int64]
	switch c.Node {
	case "from_elements":
		s = env.FromElements[int64](1, 2)
	case "from_parallel_collection":
		s = env.FromParallelSlice([]int64{1, 2})
	case "generate_sequence":
		s = env.FromSequence(1, 2)
	case "map":
		s = env.FromSequence(1, 2).Map(func(x int64) int64 { return x })
	case "window_all": // what makes its operator
		s = env.FromSequence(1, 2).Map(func(x int64) int64 { return x }).ForceNonParallel()
	case "sink":
		sink := env.FromSequence(1, 2).Discard().Name("node")
		if c.Parallelism != nil {
			sink.Parallelism(*c.Parallelism)
		}
		return
	default:
		t.Fatalf("node %q is unknown", c.Node)
	}
	s.Name("node")
	if c.Parallelism != nil {
		s.Parallelism(*c.Parallelism)
	}
	if c.OperatorMax != nil {
		s.MaxParallelism(*c.OperatorMax)
	}
	if c.EnvLater != nil {
		env.SetParallelism(*c.EnvLater)
	}
	s.Discard()
}

func runBufferTimeout(t *testing.T, raw conformance.Case) {
	var c struct {
		conformance.Head
		Op       string `json:"op"`
		Env      int    `json:"env_timeout_ms"`
		Operator *int   `json:"operator_timeout_ms"`
		Expect   int    `json:"expect_ms"`
	}
	raw.Decode(t, &c)
	job := planOf(t, func(env *stream.Env) {
		s := env.SetParallelism(1).SetBufferTimeout(time.Duration(c.Env) * time.Millisecond).FromElements[int64](1)
		if c.Operator != nil {
			s.BufferTimeout(time.Duration(*c.Operator) * time.Millisecond)
		}
		s.Discard().StartNewChain()
	})
	equal(t, "timeout", job.Edges[0].BufferTimeout, time.Duration(c.Expect)*time.Millisecond)
}
