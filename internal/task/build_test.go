package task

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
)

func TestChainThatDoesNotFitIsRefused(t *testing.T) {
	text := func(e *echo) { e.out.Type = typeOf[string](t) }
	for _, c := range []struct {
		name   string
		change func(b *bench, es []*echo)
		want   []string
	}{
		{"types", func(_ *bench, es []*echo) { text(es[1]) }, []string{"op0", "op1", "int64", "string"}},
		{"missing output", func(b *bench, _ []*echo) { b.vertex.Nodes[0].Links[0].Tag = "lost" }, []string{"op0", `no output "lost"`}},
		{"missing output of an edge", func(b *bench, _ []*echo) { b.edge(1, "lost", graph.Forward, 0, 1) }, []string{"op1", `no output "lost"`}},
		{"head without input", func(b *bench, es []*echo) { es[0].ins, b.dep.Inputs = nil, nil }, []string{"no source and has no input"}},
	} {
		b, es := chain(t, 2)
		c.change(b, es)
		b.dep.Outputs = b.out
		_, err := New(b.dep)
		if err == nil {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		for _, w := range append(c.want, "build the chain chain") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.name, err, w)
			}
		}
	}
}

func TestScopeTellsOperatorsWhereTheyStand(t *testing.T) {
	b, es := chain(t, 2)
	b.vertex.Parallelism = 5
	b.send(0, mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	s := es[1].rt.Scope
	if s != es[0].rt.Scope {
		t.Error("the operators of a task have two scopes")
	}
	if s.Subtask != 2 || s.Parallelism != 5 || s.Attempt != 3 || s.JobName != "job" || s.AutoWatermarkInterval != 200 {
		t.Errorf("scope %+v", s)
	}
	if s.Ctx != b.dep.Ctx || s.Clock != b.dep.Clock || s.Mailbox != b.mailbox || s.Waiter != b.task.waiter || s.Spawn != b.dep.Spawn || s.Now != 1000 {
		t.Error("something of the deployment did not reach the operators")
	}
	if ops, rts := b.task.Operators(), b.task.Runtimes(); len(ops) != 2 || len(rts) != 2 || rts[1] != es[1].rt || ops[0] != operator.Operator(es[0]) {
		t.Error("operators and runtimes are not those of the chain")
	}
}

// A task sends to a tagged output, a main output and a link of the same operator, each by its own way.
func TestOutputsAndSideOutputsGoTheirOwnWays(t *testing.T) {
	b, es := chain(t, 2)
	main := b.edge(0, "", graph.Rebalance, 0, 2)
	side := b.edge(0, "side", graph.Forward, 0, 1)
	es[0].push = func(r *frame.Run) error {
		s := r.Slice(0, 1)
		return es[0].side.Push(&s)
	}
	b.send(0, 1, 2, mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"1", "end"}, {"2", "end"}} {
		if got := received(main[i]); !slices.Equal(got, want) {
			t.Errorf("main channel %d got %v, want %v", i, got, want)
		}
	}
	if got := received(side[0]); !slices.Equal(got, []string{"1"}) {
		t.Errorf("the side output got %v", got)
	}
	b.wants("a [1 2]", "b [1 2]", "a end", "b end")
}

// Feedback edges have a way of their own: a task makes no writer for them.
func TestFeedbackEdgeHasNoWriter(t *testing.T) {
	b, _ := chain(t, 1)
	b.edge(0, "", graph.Forward, 0, 1)
	b.vertex.Outputs[0].Feedback = true
	b.send(0, 1, mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	if len(b.task.writers) != 0 || b.out[0][0].Len() != 0 {
		t.Error("elements went into a feedback edge")
	}
}

func TestCountersOfAChain(t *testing.T) {
	b, es := chain(t, 3)
	b.send(0, 1, 2, 3, watermark(9), mark(frame.End))
	b.build().scope.RunLen = 2
	for i, e := range es {
		if e.out.EventTime.Load() != frame.MinWatermark {
			t.Errorf("operator %d has the watermark %d before it is opened", i, e.out.EventTime.Load())
		}
	}
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	for i, e := range es {
		if e.rt.In.Load() != 3 || e.out.Count.Load() != 3 || e.out.EventTime.Load() != 9 {
			t.Errorf("operator %d: %d in, %d out, watermark %d; want 3, 3, 9", i, e.rt.In.Load(), e.out.Count.Load(), e.out.EventTime.Load())
		}
	}
}

// letter is an element with memory behind it.
type letter struct{ Text []byte }

// letters is an operator of letters.
type letters struct {
	operator.Unary
	push func(r *frame.Run) error
}

func newLetters(t *testing.T, push func(r *frame.Run) error) *letters {
	typ := typeOf[letter](t)
	return &letters{Unary: operator.Unary{In: typ, Out: operator.NewOutput(typ)}, push: push}
}

func (l *letters) Inputs() []operator.Input { return []operator.Input{l} }

func (l *letters) Push(r *frame.Run) error {
	if err := l.push(r); err != nil {
		return err
	}
	return l.Out.Push(r)
}

// In an isolated environment chained operators share no memory either, and what one does to its run the other does not
// see; long runs come in pieces, and failures go up.
func TestIsolatedChainSharesNothing(t *testing.T) {
	for _, isolated := range []bool{false, true} {
		var sent, got []letter
		total, longest := 0, 0
		head := newLetters(t, func(r *frame.Run) error { sent = append(sent, frame.Values[letter](r)...); return nil })
		tail := newLetters(t, func(r *frame.Run) error {
			for i, x := range frame.Values[letter](r) {
				if r.Time(i) != int64(total+i) {
					t.Errorf("element %d has the time %d", total+i, r.Time(i))
				}
				got = append(got, x)
			}
			total, longest = total+r.N, max(longest, r.N)
			if total > 1000 {
				return errBoom
			}
			return nil
		})
		b := newBench(t, []int{1}, head, tail)
		b.dep.Isolated = isolated
		f := frame.New(head.In, 1024)
		for i := range 1000 {
			frame.Add(&f.Column, letter{[]byte{'a'}}, int64(i))
		}
		b.in[0].Offer(f)
		err := b.run(func() {
			for i := range sent {
				sent[i].Text[0] = 'X'
			}
			f := frame.New(head.In, 1024)
			for i := range 1000 {
				frame.Add(&f.Column, letter{[]byte{'b'}}, int64(1000+i))
			}
			b.in[0].Offer(f)
		})
		checkFailure(t, "the tail of an isolated chain", err, "op1", "error")
		want, pieces := "X", 1000
		if isolated {
			want, pieces = "a", head.In.FrameLen(frame.Bytes)
		}
		if string(got[0].Text) != want || string(got[999].Text) != want || longest != pieces {
			t.Errorf("isolated %v: the tail holds %q, runs of %d, want %q and %d", isolated, got[0].Text, longest, want, pieces)
		}
		if isolated && total != 1000+pieces {
			t.Errorf("%d elements were pushed, though the first piece after 1000 failed", total)
		}
	}
}

// stuck can't be encoded when it is told so.
type stuck struct{ Bad bool }

func (s stuck) MarshalBinary() ([]byte, error) {
	if s.Bad {
		return nil, errBoom
	}
	return nil, nil
}

func (*stuck) UnmarshalBinary([]byte) error { return nil }

func TestIsolatedLinkTellsWhatCannotBeEncoded(t *testing.T) {
	typ := typeOf[stuck](t)
	in := isolate(newLetters(t, nil), typ, &operator.Scope{})
	c := frame.NewColumn(typ, 1)
	frame.Add(c, stuck{Bad: true}, frame.NoTime)
	r := c.Run()
	if err := in.Push(&r); !errors.Is(err, errBoom) {
		t.Errorf("got %v", err)
	}
}

func TestSecondInputOfAChainedOperator(t *testing.T) {
	e := newEcho(t, "two", 2)
	b := newBench(t, []int{1}, newEcho(t, "", 1), e)
	e.b = b
	b.vertex.Nodes[0].Links = []plan.Link{{To: 1, Input: 1}, {To: 1}}
	b.send(0, 1, mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wants("two 1: [1]", "two 0: [1]", "two 1: end", "two 0: end")
}
