package graph

import (
	"testing"

	"github.com/flott-dev/flott/internal/operator"
)

func TestSpilledGraphHasTheAlternatives(t *testing.T) {
	g := diamond(t).g
	if g.Spilled() != g {
		t.Error("a graph without alternatives is copied")
	}
	was := g.Fingerprint().Sum()
	n := g.Nodes[1]
	n.OnDisk = &Alternative{
		New: func() operator.Operator { return nil }, AlignedInputs: true, Attributes: map[string]string{"path": "disk"},
	}
	n.Attributes = map[string]string{"path": "memory", "more": "stays"}
	before := g.Fingerprint().Sum()
	s := g.Spilled()
	m := s.Nodes[1]
	if m == n || !m.AlignedInputs || m.OnDisk != nil || m.New() != nil || m.Attributes["path"] != "disk" || m.Attributes["more"] != "stays" {
		t.Errorf("got %+v", m)
	}
	known := map[*Node]bool{}
	for _, n := range s.Nodes {
		known[n] = true
	}
	for _, n := range s.Nodes {
		for i := range n.Inputs {
			if !known[n.Inputs[i].From] {
				t.Errorf("%s: input %d comes from another graph", n, i)
			}
		}
	}
	if g.Fingerprint().Sum() != before || n.Attributes["path"] != "memory" || n.AlignedInputs {
		t.Error("the graph itself has changed")
	}
	m.AlignedInputs, m.Attributes = false, nil
	if s.Fingerprint().Sum() != was {
		t.Error("the rest of the graph is another one")
	}
	ids, err := s.IDs()
	if err != nil || len(ids) != len(s.Nodes) {
		t.Errorf("%d ids, %v", len(ids), err)
	}
}
