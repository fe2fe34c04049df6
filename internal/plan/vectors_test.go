package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/serde"
)

// vectorFile is a file of conformance cases whose fields depend on op.
type vectorFile struct {
	Family string            `json:"family"`
	Cases  []json.RawMessage `json:"cases"`
}

type vectorHead struct {
	ID     string `json:"id"`
	Op     string `json:"op"`
	Source string `json:"source"`
	Note   string `json:"note"`
}

// tally is one line of the report.
type tally struct{ cases, run, passed, rules int }

func (c *tally) String() string {
	return fmt.Sprintf("cases %d, run %d, passed %d, rules %d", c.cases, c.run, c.passed, c.rules)
}

// vectors reads a family from FLOTT_CONFORMANCE, or from the repository.
func vectors(t *testing.T, family string) []json.RawMessage {
	t.Helper()
	dir := os.Getenv("FLOTT_CONFORMANCE")
	if dir == "" {
		dir = filepath.Join("..", "..", "conformance", "testdata")
	}
	data, err := os.ReadFile(filepath.Join(dir, "streaming", family+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var f vectorFile
	strict(t, data, &f)
	if f.Family != family || len(f.Cases) == 0 {
		t.Fatalf("%s.json holds %d cases of family %q", family, len(f.Cases), f.Family)
	}
	return f.Cases
}

// strict decodes and fails on unknown fields.
func strict(t *testing.T, data []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in %.200s", err, data)
	}
}

func headOf(t *testing.T, raw json.RawMessage) vectorHead {
	t.Helper()
	var h vectorHead
	if err := json.Unmarshal(raw, &h); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestGraphVectors(t *testing.T) {
	count := &tally{}
	for _, raw := range vectors(t, "graph") {
		h := headOf(t, raw)
		count.cases++
		run := map[string]func(*testing.T, json.RawMessage){
			"topology": topologyVector, "parallelism": parallelismVector, "buffer_timeout": bufferTimeoutVector, "rule": ruleVector,
		}[h.Op]
		if run == nil {
			t.Errorf("%s: op %q is unknown", h.ID, h.Op)
			continue
		}
		if h.Op == "rule" {
			count.rules++
			ruleVector(t, raw)
			continue
		}
		count.run++
		if t.Run(h.ID, func(t *testing.T) { run(t, raw) }) {
			count.passed++
		}
	}
	fmt.Printf("graph: %v\n", count)
}

// ruleVector only checks that the prose is prose: rules are tests of their own, which carry the id in their names.
func ruleVector(t *testing.T, raw json.RawMessage) {
	var c struct {
		vectorHead
		Given string `json:"given"`
		When  string `json:"when"`
		Then  string `json:"then"`
	}
	strict(t, raw, &c)
}

type topology struct {
	vectorHead
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

// word looks a vector's word up and fails on one that it does not know.
func word[V any](t *testing.T, words map[string]V, w string) V {
	t.Helper()
	v, ok := words[w]
	if !ok {
		t.Fatalf("the word %q is unknown", w)
	}
	return v
}

func strategies() map[string]graph.Strategy {
	return map[string]graph.Strategy{
		"forward": graph.Forward, "rebalance": graph.Rebalance, "rescale": graph.Rescale, "shuffle": graph.Shuffle,
		"global": graph.Global, "broadcast": graph.Broadcast, "key_group": graph.Hash,
	}
}

func (c *topology) build(t *testing.T) *graph.Graph {
	kinds := map[string]graph.Kind{"source": graph.Source, "operator": graph.Operator, "sink": graph.Sink}
	chaining := map[string]graph.Chaining{"always": graph.Always, "head": graph.Head, "never": graph.Never}
	exchanges := map[string]graph.Exchange{"undefined": graph.Undefined, "pipelined": graph.Pipelined, "batch": graph.Batch}
	g := newGraph()
	g.ChainingEnabled, g.BlockingConnections = c.ChainingEnabled, c.Blocking
	byName := make(map[string]*graph.Node)
	for _, v := range c.Nodes {
		n := newNode(t, word(t, kinds, v.Kind), v.Name)
		n.Parallelism, n.Chaining, n.Yielding = v.Parallelism, word(t, chaining, v.Chaining), v.Yielding
		if v.SlotGroup != nil {
			n.SlotGroup = *v.SlotGroup
		}
		for _, in := range v.Inputs {
			e := graph.Edge{From: word(t, byName, in.From), Exchange: word(t, exchanges, in.Shuffle)}
			if in.Partitioner != nil {
				e.Partitioner = &graph.Partitioner{Strategy: word(t, strategies(), *in.Partitioner)}
				if e.Partitioner.Strategy == graph.Hash {
					e.Partitioner.Key = stringKey(t)
				}
			}
			n.Inputs = append(n.Inputs, e)
		}
		byName[v.Name] = n
		g.Nodes = append(g.Nodes, n)
	}
	return g
}

func topologyVector(t *testing.T, raw json.RawMessage) {
	var c topology
	strict(t, raw, &c)
	g := c.build(t)
	job, err := Build(g)
	if c.Expect.Error != "" {
		if err == nil {
			t.Fatalf("want an error (%s)", c.Expect.Error)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	checkSound(t, job)
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
	found := make(map[string][]graph.Strategy)
	for _, n := range g.Nodes {
		for i := range n.Inputs {
			e := &n.Inputs[i]
			found[e.From.Name+"->"+n.Name] = append(found[e.From.Name+"->"+n.Name], g.StrategyOf(e, n))
		}
	}
	return found
}

func parallelismVector(t *testing.T, raw json.RawMessage) {
	var c struct {
		vectorHead
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
	strict(t, raw, &c)
	g := newGraph()
	set := func(at *int, v *int) {
		if v != nil {
			*at = *v
		}
	}
	set(&g.Parallelism, c.EnvParallelism)
	set(&g.MaxParallelism, c.EnvMax)
	src := newNode(t, graph.Source, "src")
	n := src
	g.Nodes = append(g.Nodes, src)
	switch c.Node {
	case "from_elements", "from_parallel_collection", "generate_sequence", "":
		n.NonParallel = c.Node == "from_elements"
	case "map", "window_all", "sink":
		n = newNode(t, word(t, map[string]graph.Kind{"map": graph.Operator, "window_all": graph.Operator, "sink": graph.Sink}, c.Node), c.Node, src)
		n.NonParallel = c.Node == "window_all"
		g.Nodes = append(g.Nodes, n)
	default:
		t.Fatalf("node %q is unknown", c.Node)
	}
	set(&n.Parallelism, c.Parallelism)
	set(&n.MaxParallelism, c.OperatorMax)
	if c.EnvLater != nil { // a front door fixes the parallelism when the node is made
		n.Parallelism = g.ParallelismOf(n)
		g.Parallelism = *c.EnvLater
	}
	switch {
	case c.ExpectValid != nil:
		fields := map[string]*int{
			"operator_parallelism": &n.Parallelism, "operator_max_parallelism": &n.MaxParallelism,
			"env_parallelism": &g.Parallelism, "env_max_parallelism": &g.MaxParallelism,
		}
		*word(t, fields, c.Set) = c.Value
		if n.MaxParallelism == graph.Unset && c.Set == "operator_parallelism" {
			n.MaxParallelism = 32768
		}
		err := g.Validate()
		equal(t, fmt.Sprintf("valid (%v)", err), err == nil, *c.ExpectValid)
	case c.ExpectOperatorMax != nil:
		equal(t, "max parallelism", g.MaxParallelismOf(n), *c.ExpectOperatorMax)
	case c.ExpectParallelism != nil:
		job, err := Build(g)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "parallelism", homeOf(t, job, n.Name).Parallelism, *c.ExpectParallelism)
	case c.ExpectError != nil:
		if _, err := Build(g); err == nil {
			t.Errorf("want an error (%v)", c.ExpectError)
		}
	default:
		t.Fatal("the case expects nothing")
	}
}

func bufferTimeoutVector(t *testing.T, raw json.RawMessage) {
	var c struct {
		vectorHead
		Env      int  `json:"env_timeout_ms"`
		Operator *int `json:"operator_timeout_ms"`
		Expect   int  `json:"expect_ms"`
	}
	strict(t, raw, &c)
	g := newGraph()
	g.BufferTimeout = time.Duration(c.Env) * time.Millisecond
	src := newNode(t, graph.Source, "src")
	if c.Operator != nil {
		d := time.Duration(*c.Operator) * time.Millisecond
		src.BufferTimeout = &d
	}
	sink := newNode(t, graph.Sink, "sink", src)
	sink.Chaining = graph.Head
	g.Nodes = []*graph.Node{src, sink}
	job, err := Build(g)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "timeout", job.Edges[0].BufferTimeout, time.Duration(c.Expect)*time.Millisecond)
}

func TestPointwiseVectors(t *testing.T) {
	count := &tally{}
	for _, raw := range vectors(t, "partitioners") {
		h := headOf(t, raw)
		if h.Op != "pointwise_inputs" {
			continue // package exchange runs the others
		}
		count.cases++
		count.run++
		if t.Run(h.ID, func(t *testing.T) {
			var c struct {
				vectorHead
				Upstream   int     `json:"upstream_parallelism"`
				Downstream int     `json:"downstream_parallelism"`
				Expect     [][]int `json:"expect_inputs"`
			}
			strict(t, raw, &c)
			w := Channels(&JobEdge{Pointwise: true}, c.Upstream, c.Downstream)
			equal(t, "inputs", w.Up, c.Expect)
			checkWiring(t, w)
		}) {
			count.passed++
		}
	}
	fmt.Printf("partitioners (pointwise_inputs): %v\n", count)
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
