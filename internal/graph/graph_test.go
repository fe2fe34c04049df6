package graph

import (
	"fmt"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/serde"
)

// sketch builds graphs for tests: one line a node.
type sketch struct {
	t *testing.T
	g *Graph
}

func newSketch(t *testing.T) *sketch {
	return &sketch{t: t, g: &Graph{JobName: "job", Parallelism: 2, MaxParallelism: Unset, ChainingEnabled: true}}
}

func typeOf[T any](t *testing.T) *frame.Type {
	t.Helper()
	h, err := frame.TypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func keyOf[K any](t *testing.T) *Key {
	t.Helper()
	k, err := serde.KeyOf[K]()
	if err != nil {
		t.Fatal(err)
	}
	return &Key{Key: k}
}

// add appends a node of int elements whose inputs are united into input 0.
func (s *sketch) add(kind Kind, name string, from ...*Node) *Node {
	n := &Node{
		Kind: kind, Name: name, Caller: fmt.Sprintf("main.go:%d", 10*(len(s.g.Nodes)+1)), Parallelism: Unset, MaxParallelism: Unset,
	}
	if kind != Sink {
		n.Out = typeOf[int](s.t)
	}
	for _, f := range from {
		n.Inputs = append(n.Inputs, Edge{From: f})
	}
	s.g.Nodes = append(s.g.Nodes, n)
	return n
}

func (s *sketch) source(name string) *Node { return s.add(Source, name) }

func (s *sketch) op(name string, from ...*Node) *Node { return s.add(Operator, name, from...) }

func (s *sketch) sink(name string, from ...*Node) *Node { return s.add(Sink, name, from...) }

// keyed appends an operator keyed by K.
func keyed[K any](s *sketch, name string, from *Node) *Node {
	n := s.op(name, from)
	n.Key = []*Key{keyOf[K](s.t)}
	n.Inputs[0].Partitioner = &Partitioner{Strategy: Hash, Key: n.Key[0]}
	return n
}

func (s *sketch) ids() map[string]string {
	s.t.Helper()
	ids, err := s.g.IDs()
	if err != nil {
		s.t.Fatal(err)
	}
	byName := make(map[string]string)
	for n, id := range ids {
		byName[n.Name] = id.String()
	}
	return byName
}
