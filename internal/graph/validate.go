package graph

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/keygroup"
)

// Validate finds every mistake in the graph and returns them joined, in the order of creation, each beginning with the
// file and line of the user's call. A graph without one can be planned.
func (g *Graph) Validate() error {
	c := checker{g: g, known: make(map[*Node]bool, len(g.Nodes))}
	for _, n := range g.Nodes {
		if c.known[n] {
			c.add(n.mistake("is in the graph twice"))
		}
		c.known[n] = true
	}
	c.environment()
	for _, n := range g.Nodes {
		c.parallelism(n)
		c.inputs(n)
		if g.RequireUIDs && n.UID == "" && n.UIDHash == "" && n.Kind != IterationHead && n.Kind != IterationTail {
			c.add(n.mistake("has neither UID nor UIDHash, which this environment requires"))
		}
	}
	order, err := g.Order()
	if err != nil {
		c.add(err)
		return errors.Join(c.mistakes...)
	}
	_, duplicates := g.ids(order)
	c.mistakes = append(c.mistakes, duplicates...)
	c.loops(order)
	c.coLocation(order)
	c.timestamps(order)
	return errors.Join(c.mistakes...)
}

// Warnings lists what is allowed and unwise: nodes with state that will be found again by their place only.
func (g *Graph) Warnings() []string {
	var list []string
	for _, n := range g.Nodes {
		if n.Stateful && n.UID == "" && n.UIDHash == "" {
			list = append(list, n.mistake("keeps state and has no UID: it finds the state again only while the operators "+
				"before it stay the same; give it one with UID").Error())
		}
	}
	return list
}

type checker struct {
	g        *Graph
	known    map[*Node]bool
	mistakes []error
}

func (c *checker) add(err error) {
	if err != nil {
		c.mistakes = append(c.mistakes, err)
	}
}

func (c *checker) environment() {
	if p := c.g.Parallelism; p < 1 || p > keygroup.MaxParallelismLimit {
		c.add(fmt.Errorf("environment: parallelism %d is outside 1 ... %d", p, keygroup.MaxParallelismLimit))
	}
	if m := c.g.MaxParallelism; m != Unset && (m < 1 || m > keygroup.MaxParallelismLimit) {
		c.add(fmt.Errorf("environment: max parallelism %d is outside 1 ... %d", m, keygroup.MaxParallelismLimit))
	}
}

// parallelism checks the numbers that the node itself has; what it inherits was checked with the environment.
func (c *checker) parallelism(n *Node) {
	p, m := c.g.ParallelismOf(n), c.g.KeyGroupsOf(n)
	switch {
	case n.Parallelism != Unset && (p < 1 || p > keygroup.MaxParallelismLimit):
		c.add(n.mistake("parallelism %d is outside 1 ... %d", p, keygroup.MaxParallelismLimit))
	case n.NonParallel && p != 1:
		c.add(n.mistake("parallelism %d: it can't be parallel", p))
	case n.MaxParallelism != Unset && (m < 1 || m > keygroup.MaxParallelismLimit):
		c.add(n.mistake("max parallelism %d is outside 1 ... %d", m, keygroup.MaxParallelismLimit))
	case p > m && m >= 1:
		c.add(n.mistake("parallelism %d is above max parallelism %d", p, m))
	}
}

// inputs checks the edges that enter a node, each alone and against those of the same input.
func (c *checker) inputs(n *Node) {
	if n.Kind == Source && len(n.Inputs) != 0 {
		c.add(n.mistake("a source has no inputs"))
	}
	if n.Kind != Source && n.Kind != IterationHead && len(n.Inputs) == 0 {
		c.add(n.mistake("has no input"))
	}
	first := make(map[int]*Edge)
	last := -1
	for i := range n.Inputs {
		e := &n.Inputs[i]
		if e.Input < 0 {
			c.add(n.mistake("input %d does not exist", e.Input))
			continue
		}
		if e.From == nil || !c.known[e.From] {
			continue // Order reports it
		}
		last = max(last, e.Input)
		c.edge(n, e)
		if u := first[e.Input]; u == nil {
			first[e.Input] = e
		} else {
			c.union(n, u, e)
		}
	}
	if last >= len(n.Inputs) {
		c.add(n.mistake("input %d has an edge, but there are only %d edges", last, len(n.Inputs)))
		return
	}
	for i := range last {
		if first[i] == nil {
			c.add(n.mistake("input %d is not connected", i))
		}
	}
	c.keys(n)
}

func (c *checker) edge(n *Node, e *Edge) {
	if _, ok := e.produces(); !ok {
		c.add(n.mistake("%s has no %s", e.From, outputName(e.Tag)))
	}
	if (e.From.Kind == IterationTail) != e.Feedback || e.Feedback && n.Kind != IterationHead {
		c.add(n.mistake("feedback leads from an iteration's tail to its head, not from %s", e.From))
		return
	}
	c.partitioner(n, e)
	if e.Feedback && e.batch() {
		c.add(n.mistake("feedback from %s can't be a blocking edge", e.From))
	}
}

func (c *checker) partitioner(n *Node, e *Edge) {
	p, up, down := e.Partitioner, c.g.ParallelismOf(e.From), c.g.ParallelismOf(n)
	if p == nil {
		if e.Feedback && up != down {
			c.add(n.mistake("parallelism %d, feedback from %s has %d: they must be equal", down, e.From, up))
		}
		return
	}
	switch {
	case p.Strategy > Custom:
		c.add(n.mistake("partitioning %d from %s is unknown", p.Strategy, e.From))
	case p.Strategy == Hash && p.Key == nil:
		c.add(n.mistake("partitioned by hash from %s without a key", e.From))
	case p.Strategy == Custom && p.Select == nil:
		c.add(n.mistake("custom partitioning from %s without a function", e.From))
	case e.Feedback && p.Strategy != Forward:
		c.add(n.mistake("feedback from %s can't be repartitioned (%s)", e.From, p.Strategy))
	case p.Strategy == Forward && up != down:
		c.add(n.mistake("forward from %s needs equal parallelism, but %d feeds %d: set one of them or use rebalance or rescale",
			e.From, up, down))
	}
	if p.Batch && e.Exchange == Pipelined {
		c.add(n.mistake("the edge from %s is asked to be both blocking and pipelined", e.From))
	}
}

// union checks that two edges can enter one input.
func (c *checker) union(n *Node, a, b *Edge) {
	t, okT := a.produces()
	u, okU := b.produces()
	if okT && okU && !t.Same(u) {
		c.add(n.mistake("input %d unites %s from %s with %s from %s", a.Input, t.Name, a.From, u.Name, b.From))
	}
}

// keys checks that what enters a keyed input is where its key's state is, and that all keyed inputs have one key type.
func (c *checker) keys(n *Node) {
	var first *Key
	for i, k := range n.Key {
		if k == nil {
			continue
		}
		if first == nil {
			first = k
		} else if !sameKey(first, k) {
			c.add(n.mistake("inputs are keyed by different types: %s and %s", keyName(first), keyName(k)))
		}
		for j := range n.Inputs {
			if e := &n.Inputs[j]; e.Input == i && c.known[e.From] {
				c.keyed(n, e, k)
			}
		}
	}
}

func (c *checker) keyed(n *Node, e *Edge, k *Key) {
	if e.Feedback || n.NonParallel { // one subtask has all keys, wherever elements come from
		return
	}
	p := e.Partitioner
	switch {
	case p != nil && p.Strategy == Hash:
		if p.Key != nil && !sameKey(p.Key, k) {
			c.add(n.mistake("input %d is keyed by %s, but %s is partitioned by %s", e.Input, keyName(k), e.From, keyName(p.Key)))
		}
	case p != nil && p.Strategy == Forward:
		// Elements are said to be where their keys belong, so key groups must be cut alike on both sides.
		if up, down := c.g.KeyGroupsOf(e.From), c.g.KeyGroupsOf(n); e.From.Keyed() && up != down {
			c.add(n.mistake("max parallelism %d, but %s, whose keys it takes over, has %d", down, e.From, up))
		}
	case p == nil:
		c.add(n.mistake("input %d is keyed, but what comes from %s is not partitioned by key", e.Input, e.From))
	default:
		c.add(n.mistake("input %d is keyed, but what comes from %s is partitioned by %s", e.Input, e.From, p.Strategy))
	}
}

func sameKey(a, b *Key) bool { return keyHandle(a) == nil || keyHandle(b) == nil || a.Type == b.Type }
