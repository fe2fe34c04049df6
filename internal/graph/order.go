package graph

import (
	"fmt"
	"strings"
)

// Order gives the nodes in topological order, feedback edges aside, and in the order of creation where that leaves a
// choice. The error shows a loop that no feedback edge closes, or an input that is not part of the graph.
func (g *Graph) Order() ([]*Node, error) {
	w := walk{state: make(map[*Node]visit, len(g.Nodes)), order: make([]*Node, 0, len(g.Nodes))}
	for _, n := range g.Nodes {
		w.state[n] = known
	}
	for _, n := range g.Nodes {
		if err := w.visit(n); err != nil {
			return nil, err
		}
	}
	return w.order, nil
}

type visit uint8

const (
	unknown visit = iota
	known
	open
	done
)

type walk struct {
	state map[*Node]visit
	path  []*Node
	order []*Node
}

func (w *walk) visit(n *Node) error {
	switch w.state[n] {
	case done:
		return nil
	case open:
		return w.loop(n)
	}
	w.state[n] = open
	w.path = append(w.path, n)
	for i := range n.Inputs {
		e := &n.Inputs[i]
		if e.From == nil || w.state[e.From] == unknown {
			return n.mistake("edge %d of its inputs comes from a node that is not in the graph", i)
		}
		if e.Feedback {
			continue
		}
		if err := w.visit(e.From); err != nil {
			return err
		}
	}
	w.path = w.path[:len(w.path)-1]
	w.state[n] = done
	w.order = append(w.order, n)
	return nil
}

// loop names the nodes of the loop in the direction of data; the path was walked against it.
func (w *walk) loop(n *Node) error {
	names := []string{n.String()}
	for i := len(w.path) - 1; w.path[i] != n; i-- {
		names = append(names, w.path[i].String())
	}
	names = append(names, n.String())
	return n.mistake("a loop without a feedback edge: %s", strings.Join(names, " -> "))
}

// mistake is an error in what the user built: it begins with the place of the call.
func (n *Node) mistake(format string, args ...any) error {
	where := ""
	if n.Caller != "" {
		where = n.Caller + ": "
	}
	return fmt.Errorf("%s%s %q: "+format, append([]any{where, n.Kind, n.Name}, args...)...)
}
