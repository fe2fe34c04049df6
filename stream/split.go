package stream

import (
	"errors"
	"fmt"
	"slices"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/element"
)

// SplitStream is a stream whose elements carry names; Select takes those of some names.
type SplitStream[T any] struct{ s *splitting }

// splitting is a split that is being built.
type splitting struct {
	c          *core
	selections []element.Selection
}

// Split gives each element names: f is called once per element and may name any number of outputs, none included. New
// programs rather use side outputs (Process), which may be of other types. A stream that was split, or is a side output,
// can't be split before an operator has handled it.
func (s *Stream[T]) Split[F func(T) []string](f F) *SplitStream[T] {
	return &SplitStream[T]{s.c.split(func(typ *frame.Type, selections []element.Selection) operator.Operator {
		return element.Split(typ, selections, f)
	})}
}

// Select is the stream of the elements that carry one of the names; an element that carries several of them is there
// once. Names that no element carries are allowed.
func (s *SplitStream[T]) Select(names ...string) *Stream[T] { return &Stream[T]{s.s.take(names)} }

var errSplit = errors.New("it was split, or is a side output: an operator must come between")

func (c *core) split(open func(typ *frame.Type, selections []element.Selection) operator.Operator) *splitting {
	for _, o := range c.from {
		if o.tag != "" {
			c.env.report(fmt.Errorf("split the stream of %q: %w", o.node.Name, errSplit))
			break
		}
	}
	n := newNode(graph.Operator, "Split", c.typ)
	n.Inputs = c.edges()
	n.Side = map[string]*frame.Type{}
	s := &splitting{}
	n.New = func() operator.Operator { return open(c.typ, s.selections) }
	s.c = c.env.add(n)
	return s
}

// take adds a selection; equal ones share an output.
func (s *splitting) take(names []string) *core {
	if len(names) == 0 {
		s.c.env.report(errors.New("select from a split stream: no name is given"))
	}
	tag := fmt.Sprintf("%q", names)
	if s.c.node.Side[tag] == nil {
		s.selections = append(s.selections, element.Selection{Tag: tag, Names: slices.Clone(names)})
		s.c.node.Side[tag] = s.c.typ
	}
	return s.c.side(tag, s.c.typ)
}
