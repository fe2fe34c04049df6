package graph

import (
	"maps"
	"slices"

	"github.com/flott-dev/flott/internal/operator"
)

// Alternative is what a node is in place of itself.
type Alternative struct {
	// New and AlignedInputs take the places of the node's.
	New           func() operator.Operator
	AlignedInputs bool
	// Attributes are put over those of the node.
	Attributes map[string]string
}

// Spilled is the graph as it is run on a state backend that keeps more state than fits into memory: nodes with an
// alternative for that (Node.OnDisk) are what it says. It is g itself if there is none; g stays as it is.
func (g *Graph) Spilled() *Graph {
	if !slices.ContainsFunc(g.Nodes, func(n *Node) bool { return n.OnDisk != nil }) {
		return g
	}
	out := *g
	out.Nodes = make([]*Node, len(g.Nodes))
	now := make(map[*Node]*Node, len(g.Nodes))
	for i, n := range g.Nodes {
		c := *n
		if a := n.OnDisk; a != nil {
			c.New, c.AlignedInputs, c.OnDisk = a.New, a.AlignedInputs, nil
			c.Attributes = make(map[string]string)
			maps.Copy(c.Attributes, n.Attributes)
			maps.Copy(c.Attributes, a.Attributes)
		}
		out.Nodes[i], now[n] = &c, &c
	}
	for _, n := range out.Nodes {
		edges := make([]Edge, len(n.Inputs))
		for i, e := range n.Inputs {
			if to, ok := now[e.From]; ok { // else it is a mistake that Validate reports
				e.From = to
			}
			edges[i] = e
		}
		n.Inputs = edges
	}
	return &out
}
