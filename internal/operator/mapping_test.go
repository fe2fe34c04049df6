package operator

import (
	"errors"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/process"
)

func TestMappingGivesEachElementItsResultAndItsTime(t *testing.T) {
	double := MapEach(func(x int64) int64 { return 2 * x })
	for _, n := range []int{0, 1, 3, 4, 5, 8, 1023, frame.DefaultLen, frame.DefaultLen + 1, 3*frame.DefaultLen + 2} {
		for _, timed := range []bool{false, true} {
			o, _, _, ks := tee(t, 1)
			ks[0].short = false
			var m Mapping
			m.Open(o)
			xs := make([]int64, n)
			for i := range xs {
				xs[i] = int64(i)
			}
			if err := m.Push(int64Run(t, timed, xs...), double); err != nil {
				t.Fatal(err)
			}
			got := slices.Concat(ks[0].runs...)
			if len(got) != n || len(ks[0].runs) != (n+frame.DefaultLen-1)/frame.DefaultLen {
				t.Fatalf("%d results in %d runs of %d elements", len(got), len(ks[0].runs), n)
			}
			for i, x := range got {
				if x != int64(2*i) {
					t.Fatalf("result %d is %d", i, x)
				}
			}
			times := slices.Concat(ks[0].times...)
			if timed != (len(times) != 0) && n > 0 {
				t.Errorf("timed %v: %d times of %d elements", timed, len(times), n)
			}
			for i, ms := range times {
				if ms != int64(10*i) {
					t.Fatalf("result %d has the time %d", i, ms)
				}
			}
		}
	}
}

func TestMappingEndsWithTheFirstFailure(t *testing.T) {
	cause := errors.New("cause")
	n := 2 * frame.DefaultLen
	o, _, _, ks := tee(t, 1)
	var m Mapping
	m.Open(o)
	calls := 0
	failing := func(*frame.Run, int, int, *frame.Column) error { calls++; return cause }
	if err := m.Push(int64Run(t, false, make([]int64, n)...), failing); err != cause || calls != 1 || len(ks[0].runs) != 0 {
		t.Errorf("kernel: %v after %d calls, %d runs came out", err, calls, len(ks[0].runs))
	}
	ks[0].err = cause
	if err := m.Push(int64Run(t, false, make([]int64, n)...), MapEach(func(x int64) int64 { return x })); err != cause || len(ks[0].runs) != 1 {
		t.Errorf("consumer: %v, %d runs came out", err, len(ks[0].runs))
	}
	if m.buf.Len() != 0 {
		t.Error("what was refused is sent again")
	}
}

// finisher has all the hooks that a function may have.
type finisher struct{ err error }

func (f finisher) Finish(out *process.Collector[int64]) error {
	out.Collect(99)
	return f.err
}

func (f finisher) Close() error { return f.err }

// calling is Calls with a main output and the side output a, one consumer each.
func calling(t *testing.T) (c *Calls[int64], main, side *taker) {
	o, owner, _, ks := tee(t, 1)
	sides := NewSides(map[string]*frame.Type{"a": typeOf[int64](t)})
	side = &taker{scope: owner.Scope}
	if err := sides.Output("a").Connect(side, &Runtime{Scope: owner.Scope}); err != nil {
		t.Fatal(err)
	}
	c = &Calls[int64]{}
	c.Init(o, sides)
	c.Open(owner)
	if c.Output("") != o || c.Output("a") != sides.Output("a") || c.Output("b") != nil {
		t.Error("another output has the name")
	}
	return c, ks[0], side
}

func TestCallsSendWhatFunctionsEmit(t *testing.T) {
	c, main, side := calling(t)
	c.To.SetTime(7)
	c.To.Collect(1)
	c.To.Collect(2)
	process.NewContext(NewServices(&Runtime{Scope: &Scope{}}, c.Sides)).Emit(process.NewOutputTag[int64]("a"), int64(3))
	if err := errors.Join(c.Send(), c.Send(), c.Forward(frame.Mark{Kind: frame.Idle})); err != nil {
		t.Fatal(err)
	}
	if len(main.runs) != 1 || !slices.Equal(main.runs[0], []int64{1, 2}) || len(side.runs) != 1 || !slices.Equal(side.runs[0], []int64{3}) {
		t.Errorf("main %v, side %v", main.runs, side.runs)
	}
	if len(main.marks) != 1 || len(side.marks) != 1 {
		t.Errorf("marks %v and %v", main.marks, side.marks)
	}
}

func TestCallsTellFailuresOfBothOutputs(t *testing.T) {
	cause := errors.New("cause")
	for _, ofSide := range []bool{false, true} {
		c, main, side := calling(t)
		main.err, side.err = cause, nil
		if ofSide {
			main.err, side.err = nil, cause
		}
		c.To.Collect(1)
		process.NewContext(NewServices(&Runtime{Scope: &Scope{}}, c.Sides)).Emit(process.NewOutputTag[int64]("a"), int64(3))
		if err := c.Send(); err != cause {
			t.Errorf("side %v: send gave %v", ofSide, err)
		}
		if err := c.Forward(frame.Mark{Kind: frame.Idle}); err != cause {
			t.Errorf("side %v: a mark gave %v", ofSide, err)
		}
	}
}

func TestHooksAreCalledWhereThereAreAny(t *testing.T) {
	cause := errors.New("cause")
	c, main, _ := calling(t)
	for _, f := range []any{nil, struct{}{}} {
		if err := errors.Join(c.Finish(f), CloseFunction(f), c.Send()); err != nil || len(main.runs) != 0 {
			t.Errorf("%v has no hooks: %v", f, err)
		}
	}
	if err := errors.Join(c.Finish(finisher{}), CloseFunction(finisher{}), c.Send()); err != nil || len(main.runs) != 1 || main.runs[0][0] != 99 {
		t.Errorf("%v, %v", main.runs, err)
	}
	if c.Finish(finisher{cause}) != cause || CloseFunction(finisher{cause}) != cause {
		t.Error("a hook's failure is lost")
	}
}

// The first error that comes up a link is remembered with who was at work: later ones follow from it.
func TestFirstFailureOfTheLinksIsRemembered(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	o, owner, rts, ks := tee(t, 2)
	ks[0].err = first
	if err := o.Push(int64Run(t, false, 1)); err != first {
		t.Fatal(err)
	}
	ks[0].err, ks[1].err = nil, second
	if err := o.Mark(frame.Mark{Kind: frame.End}); err != second {
		t.Fatal(err)
	}
	if owner.Failed != first || owner.FailedAt != rts[0] || owner.At != rts[1] {
		t.Errorf("remembered is %v", owner.Failed)
	}
}
