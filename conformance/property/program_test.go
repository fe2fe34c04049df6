package property

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/stream"
)

func TestMain(m *testing.M) { os.Exit(flotttest.CheckLeaks(m)) }

// program is a random job: sources, then steps, each of which reads earlier branches and makes a new one.
type program struct {
	seed    uint64
	scripts []int // per source: how many
	steps   []step
	model   []branch // sources, then steps
}

// step reads one branch, or two.
type step struct {
	name   string
	first  int
	second int // -1: there is none
	build  func(a, b records) records
}

// newProgram makes the program of a seed.
func newProgram(seed uint64) *program {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := &program{seed: seed}
	for i := range 1 + rng.IntN(2) {
		n := 1 + rng.IntN(3)
		p.scripts = append(p.scripts, n)
		b := branch{timed: true, linear: n == 1}
		for j := range n {
			_, elements := script(p.scriptSeed(i, j), 1)
			b.elements = append(b.elements, elements...)
		}
		p.model = append(p.model, b)
	}
	for range 2 + rng.IntN(6) {
		if rng.IntN(4) == 0 {
			p.binary(rng)
		} else {
			p.unary(rng)
		}
	}
	return p
}

func (p *program) scriptSeed(source, number int) uint64 {
	return p.seed*100 + uint64(source*10+number)
}

// pick chooses a branch: the last one mostly, so that programs grow deep.
func (p *program) pick(rng *rand.Rand) int {
	if rng.IntN(3) > 0 {
		return len(p.model) - 1
	}
	return rng.IntN(len(p.model))
}

func (p *program) unary(rng *rand.Rand) {
	at := p.pick(rng)
	in := &p.model[at]
	all := operations(rng)
	op := all[rng.IntN(len(all))]
	if op.needsTime && !in.timed || len(in.elements) > 3000 {
		op = all[0] // a map
	}
	p.steps = append(p.steps, step{name: op.name, first: at, second: -1, build: func(a, _ records) records { return op.build(a) }})
	p.model = append(p.model, branch{
		elements: op.model(in.elements), timed: in.timed && !op.untimed, linear: in.linear && !op.reorders,
	})
}

func (p *program) binary(rng *rand.Rand) {
	i, j := p.pick(rng), rng.IntN(len(p.model))
	a, b := &p.model[i], &p.model[j]
	out := branch{timed: a.timed && b.timed}
	s := step{first: i, second: j}
	both := append(slices.Clone(a.elements), b.elements...)
	switch rng.IntN(3) {
	case 0:
		s.name, s.build, out.elements = "union", united, both
	case 1:
		s.name, s.build = "co-map", coMap
		out.elements = append(slices.Clone(a.elements), eachOf(func(e element, emit func(record)) { emit(negated(e.Value)) })(b.elements)...)
	default:
		s.name, s.build, out.timed = "difference", differenceOf, false
		sums := totals(a.elements)
		for k, v := range totals(b.elements) {
			sums[k] -= v
		}
		out.elements = finals(sums)
	}
	p.steps = append(p.steps, s)
	p.model = append(p.model, out)
}

// leaves are the branches that no step reads.
func (p *program) leaves() []int {
	read := map[int]bool{}
	for _, s := range p.steps {
		read[s.first], read[s.second] = true, true
	}
	var out []int
	for i := range p.model {
		if !read[i] {
			out = append(out, i)
		}
	}
	return out
}

// String describes the program for those who look for its mistake.
func (p *program) String() string {
	var b strings.Builder
	for i, n := range p.scripts {
		fmt.Fprintf(&b, "%d: source of %d scripts, %d elements\n", i, n, len(p.model[i].elements))
	}
	for i, s := range p.steps {
		at := len(p.scripts) + i
		fmt.Fprintf(&b, "%d: %s of %d", at, s.name, s.first)
		if s.second >= 0 {
			fmt.Fprintf(&b, " and %d", s.second)
		}
		fmt.Fprintf(&b, ", %d elements\n", len(p.model[at].elements))
	}
	return b.String()
}

// layout is a way to lay the job out.
type layout struct {
	parallelism int
	chained     bool
	cut         int // elements of a frame at most
	isolated    bool
}

func (l layout) String() string {
	return fmt.Sprintf("parallelism %d, chained %v, frames of %d, isolated %v", l.parallelism, l.chained, l.cut, l.isolated)
}

func layouts() []layout {
	var out []layout
	for _, p := range []int{1, 2, 4} {
		for _, cut := range []int{1, 2, 1024} {
			out = append(out, layout{p, true, cut, false}, layout{p, false, cut, false})
		}
		out = append(out, layout{p, false, 1024, true})
	}
	return out
}

// run runs the program and returns the elements of its leaves.
func (p *program) run(t *testing.T, l layout) [][]element {
	t.Helper()
	var opts []stream.Option
	if l.isolated {
		opts = append(opts, flotttest.Isolated())
	}
	env := stream.NewEnv(opts...).SetParallelism(l.parallelism)
	if !l.chained {
		env.DisableOperatorChaining()
	}
	if l.cut <= 2 {
		env.SetBufferTimeout(0) // every run is a frame
	}
	var branches []records
	for i, n := range p.scripts {
		var scripts []*flotttest.Script[record]
		for j := range n {
			s, _ := script(p.scriptSeed(i, j), l.cut)
			scripts = append(scripts, s)
		}
		branches = append(branches, flotttest.FromScripts(env, scripts...))
	}
	for _, s := range p.steps {
		var second records
		if s.second >= 0 {
			second = branches[s.second]
		}
		branches = append(branches, s.build(branches[s.first], second))
	}
	var sinks []*flotttest.Sink[record]
	for _, i := range p.leaves() {
		sink := flotttest.NewSink[record]()
		branches[i].SinkTo(sink)
		sinks = append(sinks, sink)
	}
	flotttest.Execute(t, env)
	var out [][]element
	for _, s := range sinks {
		out = append(out, s.Elements())
	}
	return out
}

func number(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil && n > 0 {
		return n
	}
	return otherwise
}

func TestLayoutsOfAProgramGiveTheSameResults(t *testing.T) {
	first := number("FLOTT_SEED", 1)
	for seed := first; seed < first+12*number("FLOTT_SOAK", 1); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { checkProgram(t, newProgram(seed)) })
	}
}

func checkProgram(t *testing.T, p *program) {
	t.Helper()
	order := map[int][]string{} // of leaves whose order is promised
	for _, l := range layouts() {
		for n, got := range p.run(t, l) {
			at := p.leaves()[n]
			b := &p.model[at]
			texts := b.texts(got)
			if !slices.Equal(sorted(texts), sorted(b.texts(b.elements))) {
				t.Errorf("branch %d in layout %v:", at, l)
				flotttest.Same(t, texts, b.texts(b.elements))
			}
			if !b.linear || l.parallelism > 1 {
				continue
			}
			if order[at] == nil {
				order[at] = texts
			}
			if !slices.Equal(texts, order[at]) {
				t.Errorf("branch %d in layout %v has another order:", at, l)
				flotttest.Equal(t, texts, order[at])
			}
		}
		if t.Failed() {
			t.Fatalf("the program:\n%v", p)
		}
	}
}
