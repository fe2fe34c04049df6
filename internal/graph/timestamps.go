package graph

import (
	"slices"
	"strings"
)

// bare maps nodes whose main output certainly has no timestamps to the sources that give none.
type bare map[*Node][]*Node

// note takes a node whose inputs have been noted: a node that keeps timestamps has none to keep if no input has any. What
// comes back into an iteration may have got some on its way, so nothing is said of its head.
func (b bare) note(n *Node) {
	switch {
	case n.Timestamps == TimestampsNone:
		b[n] = []*Node{n}
	case n.Timestamps == TimestampsGiven || n.NeedsTimestamps || n.Kind == IterationHead:
	default:
		if from, all := b.of(n.Inputs); all {
			b[n] = from
		}
	}
}

// of is the sources of edges that all lead from outputs without timestamps.
func (b bare) of(edges []Edge) (sources []*Node, all bool) {
	for i := range edges {
		from := b.edge(&edges[i])
		if from == nil {
			return nil, false
		}
		for _, s := range from {
			if !slices.Contains(sources, s) {
				sources = append(sources, s)
			}
		}
	}
	return sources, len(edges) != 0
}

// edge is the sources of what the edge carries if that has no timestamps. Functions may give timestamps of their own to
// what they emit to side outputs.
func (b bare) edge(e *Edge) []*Node {
	if e.Tag != "" && e.From.Kind != Source {
		return nil
	}
	return b[e.From]
}

// timestamps finds operators in event time one of whose inputs has no timestamps: not an element could be handled.
func (c *checker) timestamps(order []*Node) {
	without := make(bare)
	for _, n := range order {
		without.note(n)
	}
	for _, n := range c.g.Nodes {
		if !n.NeedsTimestamps {
			continue
		}
		inputs := make(map[int][]Edge)
		for _, e := range n.Inputs {
			inputs[e.Input] = append(inputs[e.Input], e)
		}
		for in := range len(inputs) {
			if from, all := without.of(inputs[in]); all {
				c.add(n.mistake("works in event time, but no element that comes in%s has a timestamp: %s. Give them some "+
					"before it, with AssignTimestampsAndWatermarks and a strategy that finds them in the elements, or use processing time", which(in, len(inputs)), giveNone(from)))
			}
		}
	}
}

// which names one of several inputs.
func which(in, inputs int) string {
	if inputs == 1 {
		return ""
	}
	return " by the " + [...]string{"first", "second"}[min(in, 1)] + " input"
}

func giveNone(sources []*Node) string {
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = s.String()
	}
	if len(names) == 1 {
		return names[0] + " gives none"
	}
	return strings.Join(names, " and ") + " give none"
}
