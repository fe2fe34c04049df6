package graph

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/internal/keygroup"
)

// DefaultSlotGroup is the slot-sharing group of nodes that neither name nor inherit one.
const DefaultSlotGroup = "default"

// String gives the kind's word for plans and errors.
func (k Kind) String() string {
	return [...]string{"source", "operator", "sink", "iteration head", "iteration tail"}[k]
}

// String gives the word for plans.
func (c Chaining) String() string { return [...]string{"always", "head", "never"}[c] }

// String gives the word for plans.
func (e Exchange) String() string { return [...]string{"undefined", "pipelined", "batch"}[e] }

// String gives the word for fingerprints.
func (t Timestamps) String() string { return [...]string{"kept", "none", "given"}[t] }

// String names the node and where it was made, for errors.
func (n *Node) String() string {
	s := fmt.Sprintf("%s %q", n.Kind, n.Name)
	if n.Caller != "" {
		s += " (" + n.Caller + ")"
	}
	return s
}

// Title is the name as plans show it: "Source: a", "Map", "Sink: b".
func (n *Node) Title() string {
	switch n.Kind {
	case Source:
		return "Source: " + n.Name
	case Sink:
		return "Sink: " + n.Name
	}
	return n.Name
}

// Keyed reports whether any input of the node is keyed.
func (n *Node) Keyed() bool {
	for _, k := range n.Key {
		if k != nil {
			return true
		}
	}
	return false
}

// ParallelismOf is the node's own parallelism, 1 for a node that can't be parallel, else the environment's.
func (g *Graph) ParallelismOf(n *Node) int {
	switch {
	case n.Parallelism != Unset:
		return n.Parallelism
	case n.NonParallel:
		return 1
	}
	return g.Parallelism
}

// MaxParallelismOf is the maximum parallelism that the user gave the node or the environment, or Unset.
func (g *Graph) MaxParallelismOf(n *Node) int {
	if n.MaxParallelism != Unset {
		return n.MaxParallelism
	}
	return g.MaxParallelism
}

// KeyGroupsOf is MaxParallelismOf with Flink's default, computed from parallelism, where that is unset.
func (g *Graph) KeyGroupsOf(n *Node) int {
	if m := g.MaxParallelismOf(n); m != Unset {
		return m
	}
	return keygroup.DefaultMaxParallelism(g.ParallelismOf(n))
}

// BufferTimeoutOf is how long the node's frames may wait to be filled: its own timeout, or the environment's if it has
// none or a negative one (Flink: -1 on an operator = the default). Only the environment's may be negative: until full.
func (g *Graph) BufferTimeoutOf(n *Node) time.Duration {
	if n.BufferTimeout != nil && *n.BufferTimeout >= 0 {
		return *n.BufferTimeout
	}
	return g.BufferTimeout
}

// StrategyOf is the edge's strategy; an edge without one is forward if parallelism is equal, else rebalance.
func (g *Graph) StrategyOf(e *Edge, to *Node) Strategy {
	switch {
	case e.Partitioner != nil:
		return e.Partitioner.Strategy
	case g.ParallelismOf(e.From) == g.ParallelismOf(to):
		return Forward
	}
	return Rebalance
}

// Blocking reports whether the edge, if it is between chains, is a blocking one.
func (g *Graph) Blocking(e *Edge) bool {
	switch {
	case e.Feedback:
		return false
	case e.batch():
		return true
	}
	return e.Exchange == Undefined && g.BlockingConnections
}

// slotGroups resolves the slot-sharing group of each node: its own, else the one that all its inputs have, else the
// default. A tail goes where its head is, since the two share slots.
func slotGroups(order []*Node) map[*Node]string {
	groups := make(map[*Node]string, len(order))
	heads := loops(order)
	for _, n := range order {
		switch head := heads[n]; {
		case n.SlotGroup != "":
			groups[n] = n.SlotGroup
		case head != nil && groups[head] != "":
			groups[n] = groups[head]
		default:
			groups[n] = inherited(n, groups)
		}
	}
	return groups
}

func inherited(n *Node, groups map[*Node]string) string {
	common := ""
	for _, e := range n.Inputs {
		if e.Feedback {
			continue
		}
		group := groups[e.From]
		if common != "" && common != group {
			return DefaultSlotGroup
		}
		common = group
	}
	if common == "" {
		return DefaultSlotGroup
	}
	return common
}

// SlotGroups gives the slot-sharing group of every node.
func (g *Graph) SlotGroups() (map[*Node]string, error) {
	order, err := g.Order()
	if err != nil {
		return nil, err
	}
	return slotGroups(order), nil
}

// loops maps each tail to the head that it feeds.
func loops(order []*Node) map[*Node]*Node {
	heads := make(map[*Node]*Node)
	for _, n := range order {
		for i := range n.Inputs {
			if e := &n.Inputs[i]; e.Feedback {
				heads[e.From] = n
			}
		}
	}
	return heads
}
