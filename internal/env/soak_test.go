package env

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	"github.com/flott-dev/flott/internal/operator/element"
	"github.com/flott-dev/flott/internal/operator/keyed"
	"github.com/flott-dev/flott/internal/operator/source"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// number reads a setting of the environment. FLOTT_SEED is the first seed, FLOTT_SOAK how many times as many programs are
// tried.
func number(t *testing.T, name string, fallback int) int {
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// Random graphs of drivers give what a plain loop gives, whatever the schedule, the parallelism, the chaining and the
// buffer timeout; none of them ever stands still, and a simulated run can be repeated.
func TestRandomGraphsGiveWhatALoopGives(t *testing.T) {
	first := number(t, "FLOTT_SEED", 1)
	for seed := first; seed < first+40*number(t, "FLOTT_SOAK", 1); seed++ {
		run := func(how string, execute func(e *Env) error) {
			e := New()
			p := grow(t, e, uint64(seed))
			if err := execute(e); err != nil {
				t.Errorf("FLOTT_SEED=%d, %s: %v\n%s", seed, how, err, p)
				return
			}
			p.check(t, fmt.Sprintf("FLOTT_SEED=%d, %s", seed, how))
		}
		var traces []string
		for _, schedule := range []uint64{1, 2, 1} {
			run(fmt.Sprint("schedule ", schedule), func(e *Env) error {
				trace, err := e.Simulate(t.Context(), "random", schedule)
				traces = append(traces, trace)
				return err
			})
		}
		if traces[0] != traces[2] {
			t.Errorf("FLOTT_SEED=%d: one schedule gave two runs", seed)
		}
		run("goroutines", func(e *Env) error {
			x, err := e.Start(t.Context(), "random")
			if err != nil {
				return err
			}
			<-x.Done()
			return x.Err()
		})
		if t.Failed() {
			return
		}
	}
}

// plant is a random program with the results that it must have.
type plant struct {
	e       *Env
	rng     *rand.Rand
	typ     *frame.Type
	streams []branch
	sinks   []*basin
	lines   []string // the program, for people
	kept    bool     // it takes checkpoints and fails
}

// branch is a stream: where its elements come from and which they are.
type branch struct {
	node *graph.Node
	tag  string
	xs   []int64
}

// basin is a sink with what must come into it.
type basin struct {
	name string
	want []int64
	got  [][]int64 // by subtask
	ends []int

	vault *vault // nil: the sink does not commit
}

// most bounds the elements of a stream.
const most = 6000

// grow makes the program of a seed.
func grow(t *testing.T, e *Env, seed uint64) *plant { return growWith(t, e, seed, false) }

func growWith(t *testing.T, e *Env, seed uint64, kept bool) *plant {
	p := &plant{kept: kept, e: e, rng: rand.New(rand.NewPCG(seed, 6)), typ: typeOf[int64](t)}
	s := &e.Settings
	s.Parallelism = 1 + p.rng.IntN(3)
	s.Chaining = p.rng.IntN(3) != 0
	s.BufferTimeout = []time.Duration{0, -1, DefaultBufferTimeout}[p.rng.IntN(3)]
	s.Isolated = p.rng.IntN(4) == 0
	p.note("parallelism %d, chaining %v, buffer timeout %v, isolated %v", s.Parallelism, s.Chaining, s.BufferTimeout, s.Isolated)
	for range 1 + p.rng.IntN(2) {
		p.source()
	}
	for range 2 + p.rng.IntN(7) {
		p.step(t)
	}
	for range map[bool]int{true: 1 + p.rng.IntN(2)}[kept] {
		p.lay(p.pick())
		p.trail(p.pick())
	}
	for i := range p.streams {
		p.drainBranch(i)
	}
	return p
}

func (p *plant) note(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

func (p *plant) String() string { return strings.Join(p.lines, "\n") }

// add adds a node with an own parallelism, now and then.
func (p *plant) add(kind graph.Kind, name string, out *frame.Type, open func() operator.Operator, from ...graph.Edge) *graph.Node {
	n := add(p.e, kind, name, out, open, from...)
	n.Caller = ""
	if p.rng.IntN(3) == 0 {
		n.Parallelism = 1 + p.rng.IntN(4)
	}
	p.note("%d: %s, parallelism %d", len(p.e.graph.Nodes)-1, name, n.Parallelism)
	return n
}

// parallelism is that of a node of the program.
func (p *plant) parallelism(n *graph.Node) int {
	if n.Parallelism != graph.Unset {
		return n.Parallelism
	}
	return p.e.Settings.Parallelism
}

func (p *plant) source() {
	xs := make([]int64, p.rng.IntN(most/2))
	for i := range xs {
		xs[i] = p.rng.Int64N(1000)
	}
	typ := p.typ
	n := p.add(graph.Source, fmt.Sprint("source of ", len(xs)), typ, func() operator.Operator {
		if p.kept {
			return &resumed{out: operator.NewOutput(typ), xs: xs}
		}
		return source.Slice(typ, xs)
	})
	p.streams = append(p.streams, branch{node: n, xs: xs})
}

// pick chooses a stream; it may be chosen again.
func (p *plant) pick() branch { return p.streams[p.rng.IntN(len(p.streams))] }

// edge leads from a stream to an input, partitioned in some way that does not change what comes out.
func (p *plant) edge(b branch, input int) graph.Edge {
	e := graph.Edge{From: b.node, Tag: b.tag, Input: input}
	switch p.rng.IntN(7) {
	case 0:
		e.Partitioner = &graph.Partitioner{Strategy: graph.Rebalance}
	case 1:
		e.Partitioner = &graph.Partitioner{Strategy: graph.Rescale}
	case 2:
		e.Partitioner = &graph.Partitioner{Strategy: graph.Shuffle, Seed: 5}
	case 3:
		e.Partitioner = &graph.Partitioner{Strategy: graph.Global}
	case 4:
		e.Partitioner = &graph.Partitioner{Strategy: graph.Custom, Select: byValue}
	}
	if e.Partitioner != nil {
		p.note("   %v", e.Partitioner.Strategy)
	}
	return e
}

func byValue() func(r *frame.Run, channels int, out []uint16) error {
	return func(r *frame.Run, channels int, out []uint16) error {
		for i, x := range frame.Values[int64](r) {
			out[i] = uint16(x % int64(channels))
		}
		return nil
	}
}

func mapped(xs []int64, f func(int64) int64) []int64 {
	out := make([]int64, len(xs))
	for i, x := range xs {
		out[i] = f(x)
	}
	return out
}

// step adds one operator to the program, and what it does to the elements.
func (p *plant) step(t *testing.T) {
	typ, b := p.typ, p.pick()
	switch p.rng.IntN(8) {
	case 0:
		f := func(x int64) int64 { return (3*x + 1) % 1000 }
		n := p.add(graph.Operator, "map", typ, func() operator.Operator { return element.Map(typ, typ, f) }, p.edge(b, 0))
		p.streams = append(p.streams, branch{node: n, xs: mapped(b.xs, f)})
	case 1:
		f := func(x int64) bool { return x%3 != 0 }
		n := p.add(graph.Operator, "filter", typ, func() operator.Operator { return element.Filter(typ, f) }, p.edge(b, 0))
		p.streams = append(p.streams, branch{node: n, xs: slices.DeleteFunc(slices.Clone(b.xs), func(x int64) bool { return !f(x) })})
	case 2:
		p.flatMap(b)
	case 3:
		p.union(b, p.pick())
	case 4:
		p.broadcast(b)
	case 5:
		p.split(b)
	case 6:
		p.sum(t, b)
	case 7:
		c := p.pick()
		if len(b.xs)+len(c.xs) > most {
			return
		}
		f, g := func(x int64) int64 { return x + 1 }, func(x int64) int64 { return x + 500 }
		n := p.add(graph.Operator, "co-map", typ, func() operator.Operator {
			return co.Map(co.Inputs{First: typ, Second: typ}, typ, f, g)
		}, p.edge(b, 0), p.edge(c, 1))
		p.streams = append(p.streams, branch{node: n, xs: append(mapped(b.xs, f), mapped(c.xs, g)...)})
	}
}

// flatMap emits each element as often as its last two bits say, so that frames overflow in the middle of a run.
func (p *plant) flatMap(b branch) {
	if 3*len(b.xs) > most {
		return
	}
	typ := p.typ
	n := p.add(graph.Operator, "flat map", typ, func() operator.Operator {
		return element.FlatMap(typ, typ, func(x int64, emit func(int64)) {
			for i := range x & 3 {
				emit(x + i)
			}
		})
	}, p.edge(b, 0))
	var xs []int64
	for _, x := range b.xs {
		for i := range x & 3 {
			xs = append(xs, x+i)
		}
	}
	p.streams = append(p.streams, branch{node: n, xs: xs})
}

// union unites two streams, or one with itself.
func (p *plant) union(b, c branch) {
	if len(b.xs)+len(c.xs) > most {
		return
	}
	typ := p.typ
	n := p.add(graph.Operator, "union", typ, func() operator.Operator { return element.Map(typ, typ, same) }, p.edge(b, 0), p.edge(c, 0))
	p.streams = append(p.streams, branch{node: n, xs: slices.Concat(b.xs, c.xs)})
}

// broadcast gives every subtask all elements. Its operator overwrites in place what it may: shared frames it must not.
func (p *plant) broadcast(b branch) {
	if 4*len(b.xs) > most {
		return
	}
	typ := p.typ
	e := graph.Edge{From: b.node, Tag: b.tag, Partitioner: &graph.Partitioner{Strategy: graph.Broadcast}}
	n := p.add(graph.Operator, "update all", typ, func() operator.Operator {
		return element.Update(typ, func(x *int64) { *x = (*x + 7) % 1000 })
	}, e)
	p.note("   BROADCAST")
	var xs []int64
	for range p.parallelism(n) {
		xs = append(xs, mapped(b.xs, func(x int64) int64 { return (x + 7) % 1000 })...)
	}
	p.streams = append(p.streams, branch{node: n, xs: xs})
}

// parting emits odd numbers to a side output.
type parting struct{}

func (parting) ProcessElement(ctx *process.Context, x int64, out *process.Collector[int64]) error {
	if x%2 == 1 {
		ctx.Emit(process.NewOutputTag[int64]("odd"), x)
	} else {
		out.Collect(x)
	}
	return nil
}

func (p *plant) split(b branch) {
	typ := p.typ
	sides := map[string]*frame.Type{"odd": typ}
	n := p.add(graph.Operator, "split", typ, func() operator.Operator {
		return element.Process(typ, typ, sides, func(*process.Runtime) process.Function[int64, int64] { return parting{} })
	}, p.edge(b, 0))
	n.Side = sides
	var even, odd []int64
	for _, x := range b.xs {
		if x%2 == 1 {
			odd = append(odd, x)
		} else {
			even = append(even, x)
		}
	}
	p.streams = append(p.streams, branch{node: n, xs: even}, branch{node: n, tag: "odd", xs: odd})
}

// sum keeps a running total for each key. All elements of a key add the same, so that the totals that come out do not
// depend on the order in which they went in; a key that two subtasks know does not get them.
func (p *plant) sum(t *testing.T, b branch) {
	typ, pairs := p.typ, typeOf[process.KeyValue[int64, int64]](t)
	keys := 1 + p.rng.Int64N(200)
	k, err := serde.KeyOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	key := &graph.Key{Key: k, Extract: func() func(*frame.Run) serde.Column {
		buf := make([]int64, frame.MaxLen)
		return func(r *frame.Run) serde.Column {
			for i, x := range frame.Values[int64](r) {
				buf[i] = x % keys
			}
			return serde.Column{P: unsafe.Pointer(unsafe.SliceData(buf)), N: r.N, Stride: 8}
		}
	}}
	n := p.add(graph.Operator, fmt.Sprint("sum of ", keys, " keys"), pairs, func() operator.Operator {
		return keyed.Sum[int64, int64](typ, pairs, typ.Handle, key, func(x int64) int64 { return x%keys + 1 })
	}, graph.Edge{From: b.node, Tag: b.tag, Partitioner: &graph.Partitioner{Strategy: graph.Hash, Key: key}})
	n.Key = []*graph.Key{key}
	flat := func(key, total int64) int64 { return (key*100_003 + total) % 1_000_003 }
	m := p.add(graph.Operator, "flatten", typ, func() operator.Operator {
		return element.Map(pairs, typ, func(kv process.KeyValue[int64, int64]) int64 { return flat(kv.Key, kv.Value) })
	}, graph.Edge{From: n})
	totals := map[int64]int64{}
	xs := make([]int64, len(b.xs))
	for i, x := range b.xs {
		totals[x%keys] += x%keys + 1
		xs[i] = flat(x%keys, totals[x%keys])
	}
	p.streams = append(p.streams, branch{node: m, xs: xs})
}

// drainBranch lets a stream flow into a sink.
func (p *plant) drainBranch(i int) {
	b := p.streams[i]
	s := &basin{name: fmt.Sprintf("stream %d of node %q %s", i, b.node.Name, b.tag), want: slices.Sorted(slices.Values(b.xs))}
	typ := p.typ
	open := func() operator.Operator { return &drain{b: s, typ: typ} }
	if p.kept {
		s.vault = &vault{committed: map[[2]int64][]int64{}}
		fuse := newMine(p.rng, 5)
		open = func() operator.Operator { return &teller{drain: drain{b: s, typ: typ}, to: s.vault, fuse: fuse} }
	}
	n := p.add(graph.Sink, fmt.Sprint("sink of stream ", i), nil, open, p.edge(b, 0))
	s.got, s.ends = make([][]int64, p.parallelism(n)), make([]int, p.parallelism(n))
	p.sinks = append(p.sinks, s)
}

// drain is the driver of a basin.
type drain struct {
	b         *basin
	typ       *frame.Type
	subtask   int
	watermark int64
}

func (d *drain) Inputs() []operator.Input       { return []operator.Input{d} }
func (d *drain) Output(string) *operator.Output { return nil }
func (d *drain) Type() *frame.Type              { return d.typ }
func (d *drain) Close() error                   { return nil }

func (d *drain) Open(rt *operator.Runtime) error {
	d.subtask, d.watermark = rt.Subtask, frame.MinWatermark
	return nil
}

func (d *drain) Push(r *frame.Run) error {
	if d.b.ends[d.subtask] != 0 || r.N == 0 {
		return fmt.Errorf("%d elements after %d ends", r.N, d.b.ends[d.subtask])
	}
	d.b.got[d.subtask] = append(d.b.got[d.subtask], frame.Values[int64](r)...)
	return nil
}

func (d *drain) Mark(m frame.Mark) error {
	switch m.Kind {
	case frame.Watermark:
		if m.Value <= d.watermark {
			return fmt.Errorf("watermark %d after %d", m.Value, d.watermark)
		}
		d.watermark = m.Value
	case frame.End:
		if d.watermark != frame.MaxWatermark {
			return fmt.Errorf("the end comes at watermark %d", d.watermark)
		}
		d.b.ends[d.subtask]++
	}
	return nil
}

// check compares what came into the sinks with what a loop gives.
func (p *plant) check(t *testing.T, how string) {
	t.Helper()
	for _, s := range p.sinks {
		got := slices.Sorted(slices.Values(slices.Concat(s.got...)))
		if !slices.Equal(got, s.want) {
			t.Errorf("%s: %s gave %d elements, a loop gives %d, or others\n%s", how, s.name, len(got), len(s.want), p)
		}
		for i, n := range s.ends {
			if n != 1 {
				t.Errorf("%s: subtask %d of the sink of %s saw %d ends\n%s", how, i, s.name, n, p)
			}
		}
	}
}
