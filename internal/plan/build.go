package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flott-dev/flott/internal/graph"
)

// Build validates a logical graph and makes its job graph. The error joins all mistakes, each with its place.
func Build(g *graph.Graph) (*JobGraph, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	order, err := g.Order()
	if err != nil {
		return nil, err
	}
	ids, err := g.IDs()
	if err != nil {
		return nil, err
	}
	groups, err := g.SlotGroups()
	if err != nil {
		return nil, err
	}
	b := builder{
		g: g, order: order, ids: ids, groups: groups,
		coLocation: coLocationKeys(order, ids), home: make(map[*graph.Node]home, len(order)),
	}
	b.chains()
	b.connect()
	if g.SlotGroupPerRegion {
		b.splitRegions()
	}
	return &JobGraph{Graph: g, Vertices: b.vertices, Edges: b.edges}, nil
}

// builder makes a job graph of a valid graph.
type builder struct {
	g          *graph.Graph
	order      []*graph.Node
	ids        map[*graph.Node]graph.ID
	groups     map[*graph.Node]string
	coLocation map[*graph.Node]string

	home     map[*graph.Node]home
	vertices []*Vertex
	edges    []*JobEdge
}

// home is where a node came to be.
type home struct {
	vertex *Vertex
	node   *ChainNode
}

// chains puts every node into the chain of its producer or opens a vertex for it. Since a chained node has one input
// only, the order of the heads is a topological order of the vertices.
func (b *builder) chains() {
	for _, n := range b.order {
		node := &ChainNode{Node: n, ID: b.ids[n], MaxParallelism: b.g.KeyGroupsOf(n)}
		v := b.chainOf(n)
		if v == nil {
			v = &Vertex{
				ID: node.ID, Index: len(b.vertices), Parallelism: b.g.ParallelismOf(n), MaxParallelism: node.MaxParallelism,
				SlotGroup: b.groups[n],
			}
			b.vertices = append(b.vertices, v)
		} else {
			e := &n.Inputs[0]
			from := b.home[e.From].node
			from.Links = append(from.Links, Link{Tag: e.Tag, To: len(v.Nodes), Input: e.Input})
		}
		node.Index = len(v.Nodes)
		v.Nodes = append(v.Nodes, node)
		v.MaxParallelism = min(v.MaxParallelism, node.MaxParallelism)
		if v.CoLocation == "" {
			v.CoLocation = b.coLocation[n]
		}
		b.home[n] = home{v, node}
	}
	for _, v := range b.vertices {
		v.Name = v.title(0)
	}
}

// chainOf is the chain that n joins, nil if it opens its own.
func (b *builder) chainOf(n *graph.Node) *Vertex {
	if len(n.Inputs) != 1 || !b.g.ChainingEnabled {
		return nil
	}
	e := &n.Inputs[0]
	v := b.home[e.From].vertex
	switch {
	case !e.Joins(n),
		b.g.ParallelismOf(e.From) != b.g.ParallelismOf(n),
		b.groups[e.From] != b.groups[n],
		// Such an operator would serve its mailbox in the middle of the source's work.
		n.Yielding && v.Head().Node.Kind == graph.Source,
		v.CoLocation != "" && b.coLocation[n] != "" && v.CoLocation != b.coLocation[n]:
		return nil
	}
	return v
}

// title joins the names of a chain as Flink does.
func (v *Vertex) title(at int) string {
	n := v.Nodes[at]
	name := n.Node.Title()
	switch len(n.Links) {
	case 0:
		return name
	case 1:
		return name + " -> " + v.title(n.Links[0].To)
	}
	branches := make([]string, len(n.Links))
	for i, l := range n.Links {
		branches[i] = v.title(l.To)
	}
	return name + " -> (" + strings.Join(branches, ", ") + ")"
}

// connect makes the edges between vertices. Only heads have any: an edge into another node of a chain is a link.
func (b *builder) connect() {
	for _, v := range b.vertices {
		n := v.Head().Node
		for i := range n.Inputs {
			e := b.edge(v, &n.Inputs[i])
			e.ID, e.Gate = len(b.edges), len(v.Inputs)
			b.edges = append(b.edges, e)
			v.Inputs = append(v.Inputs, e)
		}
	}
	// Outputs follow the consumers' order of creation, which the order of vertices may not.
	created := make(map[*graph.Node]int, len(b.g.Nodes))
	for i, n := range b.g.Nodes {
		created[n] = i
	}
	for _, e := range b.edges {
		e.From.Outputs = append(e.From.Outputs, e)
	}
	for _, v := range b.vertices {
		slices.SortStableFunc(v.Outputs, func(x, y *JobEdge) int {
			if x.Producer != y.Producer {
				return x.Producer - y.Producer
			}
			return created[x.To.Head().Node] - created[y.To.Head().Node]
		})
		for i, e := range v.Outputs {
			e.Output = i
		}
	}
}

func (b *builder) edge(to *Vertex, e *graph.Edge) *JobEdge {
	from := b.home[e.From]
	strategy := b.g.StrategyOf(e, to.Head().Node)
	partitioner := e.Partitioner
	if partitioner == nil {
		partitioner = &graph.Partitioner{Strategy: strategy}
	}
	return &JobEdge{
		From: from.vertex, To: to, Producer: from.node.Index, Tag: e.Tag, Consumer: 0, Input: e.Input,
		Strategy: strategy, Partitioner: partitioner, Type: e.Produces(), MaxParallelism: to.Head().MaxParallelism,
		BufferTimeout: b.g.BufferTimeoutOf(e.From), Feedback: e.Feedback, Blocking: b.g.Blocking(e),
		Pointwise: strategy == graph.Forward || strategy == graph.Rescale,
	}
}

// coLocationKeys gives each node its co-location key; the ends of an iteration that has none get one, since feedback
// never leaves its slot.
func coLocationKeys(order []*graph.Node, ids map[*graph.Node]graph.ID) map[*graph.Node]string {
	keys := make(map[*graph.Node]string)
	for _, n := range order {
		if n.CoLocation != "" {
			keys[n] = n.CoLocation
		}
	}
	for _, head := range order {
		for _, e := range head.Inputs {
			if !e.Feedback {
				continue
			}
			if keys[head] == "" {
				keys[head] = keys[e.From]
			}
			if keys[head] == "" {
				keys[head] = fmt.Sprintf("iteration %s", ids[head])
			}
			keys[e.From] = keys[head]
		}
	}
	return keys
}
