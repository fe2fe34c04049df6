package stream

import (
	"fmt"
	"reflect"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
)

// core is what every stream is under its types: where its elements come from, and what they are. Methods that don't
// look at elements are written here, once.
type core struct {
	env  *Env
	typ  *frame.Type
	from []origin    // several for a union
	node *graph.Node // the operator that made the stream; nil for unions, partitioning, side outputs
}

// origin is one output that feeds a stream, and how its elements are spread.
type origin struct {
	node *graph.Node
	tag  string
	part *graph.Partitioner // nil: forward or rebalance, as the parallelisms allow
}

// sourceNode starts a graph. NonParallel sources run as one subtask.
func (e *Env) sourceNode(name string, out *frame.Type, parallel bool, open func() operator.Operator) *core {
	n := newNode(graph.Source, name, out)
	n.NonParallel = !parallel
	n.New = e.ingest(out, open)
	if e.time == IngestionTime {
		n.Timestamps, n.MakesWatermarks = graph.TimestampsGiven, true
	}
	return e.add(n)
}

// untimed says that the source gives no timestamps.
func (c *core) untimed() *core {
	if c.node.Timestamps == graph.TimestampsKept {
		c.node.Timestamps = graph.TimestampsNone
	}
	return c
}

// timed says that the stream's operator gives timestamps, or may do so.
func (c *core) timed() *core {
	c.node.Timestamps = graph.TimestampsGiven
	return c
}

func newNode(kind graph.Kind, name string, out *frame.Type) *graph.Node {
	return &graph.Node{
		Kind: kind, Name: name, Out: out, Parallelism: unset, MaxParallelism: unset, Caller: env.Caller(packagePath),
	}
}

// add puts a node into the graph. Its parallelism is the environment's as of now: a later setting is for later operators.
func (e *Env) add(n *graph.Node) *core {
	if n.Parallelism == unset && !n.NonParallel {
		n.Parallelism = e.e.Settings.Parallelism
	}
	e.e.Add(n)
	return &core{env: e, typ: n.Out, node: n, from: []origin{{node: n}}}
}

// apply adds an operator with this stream as its one input.
//
//go:noinline
func (c *core) apply(name string, out *frame.Type, open func() operator.Operator) *core {
	n := newNode(graph.Operator, name, out)
	n.New = open
	n.Inputs = c.edges()
	return c.env.add(n)
}

// sink adds a sink.
//
//go:noinline
func (c *core) sink(name string, open func() operator.Operator) *Sink {
	n := newNode(graph.Sink, name, nil)
	n.New = open
	n.Inputs = c.edges()
	return &Sink{c: c.env.add(n)}
}

func (c *core) edges() []graph.Edge {
	var out []graph.Edge
	for _, o := range c.from {
		out = append(out, graph.Edge{From: o.node, Tag: o.tag, Partitioner: o.part})
	}
	return out
}

// partitioned is the same stream with another way to spread its elements.
//
//go:noinline
func (c *core) partitioned(p *graph.Partitioner) *core {
	d := &core{env: c.env, typ: c.typ}
	for _, o := range c.from {
		o.part = p
		d.from = append(d.from, o)
	}
	return d
}

//go:noinline
func (c *core) strategy(s graph.Strategy) *core {
	return c.partitioned(&graph.Partitioner{Strategy: s})
}

// union is the stream of all elements of several.
//
//go:noinline
func (c *core) union(others []*core) *core {
	d := &core{env: c.env, typ: c.typ, from: append([]origin(nil), c.from...)}
	for _, o := range others {
		if o.env != c.env {
			c.env.report(fmt.Errorf("unite streams of two environments"))
		}
		d.from = append(d.from, o.from...)
	}
	return d
}

// refuseCommitting finds a sink whose commits nobody would call. Its committables' type is not known here, so it is known
// by its method.
func (c *core) refuseCommitting(sink any) {
	if _, ok := reflect.TypeOf(sink).MethodByName("Committer"); ok {
		c.env.report(fmt.Errorf("operator %q: a %T commits in two phases: write to it with CommitTo", c.node.Name, sink))
	}
}

// placed is a connector whose paths and URLs were found, by what the environment has linked.
func placed[S any](e *Env, x S) S {
	p, ok := any(x).(connector.Placed[S])
	if !ok {
		return x
	}
	found := p.PlacedBy(e.e.Place)
	if was, is := pointee(x), pointee(found); was != is { // what it wraps would be used without it
		e.report(fmt.Errorf("a %v finds its paths by the PlacedBy of a %v, as which it would be used: give it a PlacedBy of its own that returns it", was, is))
	}
	return found
}

// pointee is the type of x, or that of what it points to.
func pointee(x any) reflect.Type {
	t := reflect.TypeOf(x)
	if t != nil && t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// inspect asks a connector what is wrong with it now, and lets it look at its target before the job runs.
func (c *core) inspect(of any) {
	if x, ok := of.(interface{ Check() error }); ok {
		if err := x.Check(); err != nil {
			c.env.report(fmt.Errorf("operator %q: %w", c.node.Name, err))
			return
		}
	}
	if x, ok := of.(interface{ Prepare(parallelism int) error }); ok {
		c.node.Prepare = x.Prepare
	}
	if x, ok := of.(connector.Claiming); ok {
		c.env.claim(x.Claim(), c.node.Name)
	}
}

// claim notes what a sink of the next job has for itself.
func (e *Env) claim(what, operator string) {
	if what == "" {
		return
	}
	if e.claims[what] {
		e.report(fmt.Errorf("operator %q: another sink of the job writes %s already: use other names, with PartPrefix for example", operator, what))
	}
	if e.claims == nil {
		e.claims = map[string]bool{}
	}
	e.claims[what] = true
}

// sided says that the stream's operator has side outputs, if somebody reads them.
func (c *core) sided() *core {
	c.node.Side = map[string]*frame.Type{}
	return c
}

// side is a side output of the stream's operator.
//
//go:noinline
func (c *core) side(tag string, typ *frame.Type) *core {
	if c.node == nil {
		c.env.report(fmt.Errorf("read side output %q: %w", tag, errNoOperator))
		return &core{env: c.env, typ: typ, from: c.from}
	}
	if c.node.Side == nil {
		c.env.report(fmt.Errorf("read side output %q of operator %q: it has no side outputs", tag, c.node.Name))
		return &core{env: c.env, typ: typ, from: c.from}
	}
	if have := c.node.Side[tag]; have != nil && !have.Same(typ) {
		c.env.report(fmt.Errorf("read side output %q as %s: it is read as %s elsewhere", tag, typ.Name, have.Name))
	}
	c.node.Side[tag] = typ
	return &core{env: c.env, typ: typ, from: []origin{{node: c.node, tag: tag}}}
}

// configure changes the operator that made the stream.
func (c *core) configure(what string, f func(n *graph.Node)) {
	if c.node == nil {
		c.env.report(fmt.Errorf("set %s: %w", what, errNoOperator))
		return
	}
	f(c.node)
}

//go:noinline
func (c *core) name(name string) { c.configure("the name", func(n *graph.Node) { n.Name = name }) }

//go:noinline
func (c *core) describe(text string) {
	c.configure("the description", func(n *graph.Node) { n.Description = text })
}

//go:noinline
func (c *core) uid(uid string) { c.configure("the UID", func(n *graph.Node) { n.UID = uid }) }

//go:noinline
func (c *core) uidHash(hex string) {
	c.configure("the UID hash", func(n *graph.Node) { n.UIDHash = hex })
}

//go:noinline
func (c *core) parallelism(p int) {
	c.configure("the parallelism", func(n *graph.Node) {
		switch {
		case p < 1:
			c.env.report(fmt.Errorf("set parallelism %d of %q: it must be at least 1", p, n.Name))
		case n.NonParallel && p != 1:
			c.env.report(fmt.Errorf("set parallelism %d of %q: this operator runs as one subtask", p, n.Name))
		default:
			n.Parallelism = p
		}
	})
}

//go:noinline
func (c *core) maxParallelism(p int) {
	c.configure("the max parallelism", func(n *graph.Node) {
		if p < 1 || p > 32768 {
			c.env.report(fmt.Errorf("set max parallelism %d of %q: it must lie in 1 ... 32768", p, n.Name))
			return
		}
		n.MaxParallelism = p
	})
}

//go:noinline
func (c *core) slotGroup(group string) {
	c.configure("the slot sharing group", func(n *graph.Node) { n.SlotGroup = group })
}

//go:noinline
func (c *core) chaining(what graph.Chaining) {
	c.configure("the chaining", func(n *graph.Node) { n.Chaining = what })
}

//go:noinline
func (c *core) bufferTimeout(d time.Duration) {
	c.configure("the buffer timeout", func(n *graph.Node) { n.BufferTimeout = &d })
}
