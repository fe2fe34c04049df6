package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flott-dev/flott/internal/frame"
)

// Fingerprint is all of a graph that can be compared between processes: everything but functions and what the engine
// draws anew for each submission (HashSeed). Every process of a job builds the graph by running the same program; a
// Fingerprint shows whether it got the same one. It can be sent as JSON.
type Fingerprint struct {
	Settings []string    `json:"settings"`
	Nodes    []NodePrint `json:"nodes"`
}

// NodePrint is one node of a Fingerprint.
type NodePrint struct {
	Node  string   `json:"node"`  // kind, name and place, for people
	Facts []string `json:"facts"` // "name=value", in a fixed order
}

// Fingerprint takes the graph's fingerprint. Places of calls belong to it: the same graph made by other lines is made by
// another program.
func (g *Graph) Fingerprint() Fingerprint {
	var f facts
	f.add("job", strconv.Quote(g.JobName))
	f.add("parallelism", g.Parallelism)
	f.add("max parallelism", g.MaxParallelism)
	f.add("buffer timeout", g.BufferTimeout)
	f.add("chaining", g.ChainingEnabled)
	f.add("UIDs required", g.RequireUIDs)
	f.add("blocking connections", g.BlockingConnections)
	f.add("slot group per region", g.SlotGroupPerRegion)
	for _, k := range slices.Sorted(maps.Keys(g.GlobalParameters)) {
		f.add("parameter "+strconv.Quote(k), strconv.Quote(g.GlobalParameters[k]))
	}
	place := make(map[*Node]int, len(g.Nodes))
	for i, n := range g.Nodes {
		place[n] = i
	}
	made := Fingerprint{Settings: f, Nodes: make([]NodePrint, len(g.Nodes))}
	for i, n := range g.Nodes {
		made.Nodes[i] = NodePrint{Node: n.String(), Facts: n.facts(place)}
	}
	return made
}

// Sum is a hash of the whole fingerprint, 64 hex digits.
func (f Fingerprint) Sum() string {
	h := sha256.New()
	list := func(facts []string) {
		fmt.Fprintf(h, "%d\n", len(facts))
		for _, fact := range facts {
			fmt.Fprintf(h, "%d %s\n", len(fact), fact)
		}
	}
	list(f.Settings)
	for _, n := range f.Nodes {
		list(n.Facts)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Difference compares with the fingerprint of another process, which the error calls other. The error names the first
// setting or node that differs and how; nil if the graphs are the same.
func (f Fingerprint) Difference(theirs Fingerprint, other string) error {
	if d := firstDifference(f.Settings, theirs.Settings, other); d != "" {
		return fmt.Errorf("the job graph differs from that of %s in its settings: %s", other, d)
	}
	for i := range min(len(f.Nodes), len(theirs.Nodes)) {
		ours, their := f.Nodes[i], theirs.Nodes[i]
		if d := firstDifference(ours.Facts, their.Facts, other); d != "" {
			return fmt.Errorf("the job graph differs from that of %s first at node %d, %s: %s", other, i+1, ours.Node, d)
		}
	}
	switch n, m := len(f.Nodes), len(theirs.Nodes); {
	case n > m:
		return fmt.Errorf("the job graph differs from that of %s first at node %d, %s: %s has %d nodes only",
			other, m+1, f.Nodes[m].Node, other, m)
	case n < m:
		return fmt.Errorf("the job graph differs from that of %s first at node %d, %s of %s: there are %d nodes only",
			other, n+1, theirs.Nodes[n].Node, other, n)
	}
	return nil
}

func firstDifference(ours, theirs []string, other string) string {
	for i := range max(len(ours), len(theirs)) {
		a, b := "nothing", "nothing"
		if i < len(ours) {
			a = ours[i]
		}
		if i < len(theirs) {
			b = theirs[i]
		}
		if a != b {
			return fmt.Sprintf("%s here, %s in %s", a, b, other)
		}
	}
	return ""
}

type facts []string

func (f *facts) add(name string, value any) { *f = append(*f, fmt.Sprintf("%s=%v", name, value)) }

func (n *Node) facts(place map[*Node]int) []string {
	var f facts
	f.add("kind", n.Kind)
	f.add("name", strconv.Quote(n.Name))
	f.add("place", n.Caller)
	f.add("description", strconv.Quote(n.Description))
	f.add("UID", strconv.Quote(n.UID))
	f.add("UIDHash", strconv.Quote(n.UIDHash))
	f.add("parallelism", n.Parallelism)
	f.add("non-parallel", n.NonParallel)
	f.add("max parallelism", n.MaxParallelism)
	f.add("chaining", n.Chaining)
	f.add("slot group", strconv.Quote(n.SlotGroup))
	f.add("co-location", strconv.Quote(n.CoLocation))
	if n.BufferTimeout == nil {
		f.add("buffer timeout", "unset")
	} else {
		f.add("buffer timeout", *n.BufferTimeout)
	}
	f.add("stateful", n.Stateful)
	f.add("yielding", n.Yielding)
	f.add("aligned inputs", n.AlignedInputs)
	f.add("timestamps", n.Timestamps)
	f.add("needs timestamps", n.NeedsTimestamps)
	f.add("makes watermarks", n.MakesWatermarks)
	f.add("output", typeName(n.Out))
	for _, tag := range slices.Sorted(maps.Keys(n.Side)) {
		f.add("side output "+strconv.Quote(tag), typeName(n.Side[tag]))
	}
	for i, k := range n.Key {
		f.add(fmt.Sprintf("key of input %d", i), keyFact(k))
	}
	for i := range n.Inputs {
		f.add(fmt.Sprintf("edge %d", i), n.Inputs[i].fact(place))
	}
	f.add("coordinator", n.NewCoordinator != nil)
	for _, k := range slices.Sorted(maps.Keys(n.Attributes)) {
		f.add("attribute "+strconv.Quote(k), strconv.Quote(n.Attributes[k]))
	}
	return f
}

func (e *Edge) fact(place map[*Node]int) string {
	var b strings.Builder
	from, known := place[e.From]
	if !known {
		from = -1
	}
	fmt.Fprintf(&b, "node %d, tag %q, input %d, exchange %s", from+1, e.Tag, e.Input, e.Exchange)
	if e.Feedback {
		b.WriteString(", feedback")
	}
	p := e.Partitioner
	if p == nil {
		return b.String()
	}
	fmt.Fprintf(&b, ", %s by %s, seed %d", p.Strategy, keyFact(p.Key), p.Seed)
	if p.Select != nil {
		b.WriteString(", function")
	}
	if p.Batch {
		b.WriteString(", blocking")
	}
	return b.String()
}

func typeName(t *frame.Type) string {
	if t == nil || t.Handle == nil {
		return "none"
	}
	return t.Name
}

func keyFact(k *Key) string {
	if k == nil {
		return "nothing"
	}
	return keyName(k)
}
