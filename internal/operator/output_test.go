package operator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
)

func typeOf[T any](t *testing.T) *frame.Type {
	t.Helper()
	typ, err := frame.TypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

func int64Run(t *testing.T, timed bool, xs ...int64) *frame.Run {
	c := frame.NewColumn(typeOf[int64](t), max(1, len(xs)))
	for _, x := range xs {
		ts := int64(frame.NoTime)
		if timed {
			ts = 10 * x
		}
		frame.Add(c, x, ts)
	}
	r := c.Run()
	return &r
}

// taker is an Input that writes down what it gets and who is said to be at work.
type taker struct {
	typ    *frame.Type
	scope  *Scope
	runs   [][]int64
	times  [][]int64
	shared []bool
	at     []*Runtime
	marks  []frame.Mark
	err    error
	short  bool // shortens and overwrites what it may
}

func (k *taker) Type() *frame.Type { return k.typ }

func (k *taker) Push(r *frame.Run) error {
	k.runs = append(k.runs, slices.Clone(frame.Values[int64](r)))
	k.times = append(k.times, slices.Clone(r.Times))
	k.shared = append(k.shared, r.Shared)
	k.at = append(k.at, k.scope.At)
	if k.short && !r.Shared {
		clear(frame.Values[int64](r))
		r.N = 0
	}
	return k.err
}

func (k *taker) Mark(m frame.Mark) error {
	k.marks = append(k.marks, m)
	k.at = append(k.at, k.scope.At)
	return k.err
}

// tee is an output of int64 with consumers; owner and consumers are operators of one scope.
func tee(t *testing.T, consumers int) (o *Output, owner *Runtime, rts []*Runtime, ks []*taker) {
	scope := &Scope{}
	owner = &Runtime{Scope: scope, Name: "owner"}
	out := NewOutput(typeOf[int64](t))
	for range consumers {
		k := &taker{scope: scope, short: true}
		rt := &Runtime{Scope: scope}
		if err := out.Connect(k, rt); err != nil {
			t.Fatal(err)
		}
		ks, rts = append(ks, k), append(rts, rt)
	}
	out.Bind(owner)
	scope.At = owner
	return &out, owner, rts, ks
}

func TestOutputLendsToAllAndLastMayChangeIt(t *testing.T) {
	for consumers := range 4 {
		o, owner, rts, ks := tee(t, consumers)
		for range 2 {
			if err := o.Push(int64Run(t, false, 1, 2, 3)); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Push(int64Run(t, false)); err != nil {
			t.Fatal(err)
		}
		if o.Count.Load() != 6 {
			t.Errorf("%d consumers: %d elements were counted, want 6", consumers, o.Count.Load())
		}
		for i, k := range ks {
			last := i == consumers-1
			if len(k.runs) != 2 || !slices.Equal(k.runs[1], []int64{1, 2, 3}) || k.shared[1] == last {
				t.Errorf("consumer %d of %d got %v, shared %v", i+1, consumers, k.runs, k.shared)
			}
			if k.at[0] != rts[i] || rts[i].In.Load() != 6 {
				t.Errorf("consumer %d of %d: another is said to be at work, or %d elements came in", i+1, consumers, rts[i].In.Load())
			}
		}
		if owner.At != owner || owner.In.Load() != 0 {
			t.Errorf("%d consumers: after the push the emitter is not at work again", consumers)
		}
	}
}

func TestSharedRunStaysSharedForTheLast(t *testing.T) {
	o, _, _, ks := tee(t, 2)
	r := int64Run(t, false, 1)
	r.Shared = true
	if err := o.Push(r); err != nil || !ks[0].shared[0] || !ks[1].shared[0] {
		t.Errorf("a shared run was lent as %v and %v, %v", ks[0].shared, ks[1].shared, err)
	}
}

func TestFailureLeavesTheFailedOperatorAtWork(t *testing.T) {
	cause := errors.New("cause")
	for failing := range 3 {
		for _, marks := range []bool{false, true} {
			o, owner, rts, ks := tee(t, 3)
			ks[failing].err = cause
			var err error
			if marks {
				err = o.Mark(frame.Mark{Kind: frame.End})
			} else {
				err = o.Push(int64Run(t, false, 1))
			}
			if err != cause || owner.At != rts[failing] {
				t.Errorf("consumer %d fails (marks %v): got %v, another operator is at work", failing+1, marks, err)
			}
			for i, k := range ks {
				if got := len(k.runs) + len(k.marks); got != 0 != (i <= failing) {
					t.Errorf("consumer %d fails: consumer %d got %d", failing+1, i+1, got)
				}
			}
		}
	}
}

func TestExchangeFailsInTheNameOfTheEmitter(t *testing.T) {
	scope := &Scope{}
	owner := &Runtime{Scope: scope, Name: "owner", UID: "uid", AtHand: func(*frame.Run) string { return "of an input" }}
	o := NewOutput(typeOf[int64](t))
	k := &taker{scope: scope}
	if err := o.Connect(k, nil); err != nil {
		t.Fatal(err)
	}
	o.Bind(owner)
	if err := errors.Join(o.Push(int64Run(t, false, 1)), o.Mark(frame.Mark{Kind: frame.Idle})); err != nil {
		t.Fatal(err)
	}
	for _, at := range k.at {
		if at.Name != "owner" || at.UID != "uid" || at.AtHand != nil {
			t.Errorf("at work: %+v", at)
		}
	}
	if owner.In.Load() != 0 {
		t.Errorf("%d elements came in", owner.In.Load())
	}
}

func TestMarksGoToAllAndWatermarksAreRemembered(t *testing.T) {
	o, owner, rts, ks := tee(t, 2)
	if o.EventTime.Load() != frame.MinWatermark {
		t.Errorf("before the first watermark: %d", o.EventTime.Load())
	}
	marks := []frame.Mark{{Kind: frame.Watermark, Value: 5}, {Kind: frame.Idle, Value: 9}}
	for _, m := range marks {
		if err := o.Mark(m); err != nil {
			t.Fatal(err)
		}
	}
	if o.EventTime.Load() != 5 {
		t.Errorf("the last watermark was 5, remembered is %d", o.EventTime.Load())
	}
	for i, k := range ks {
		if !slices.Equal(k.marks, marks) || k.at[0] != rts[i] {
			t.Errorf("consumer %d got %v", i+1, k.marks)
		}
	}
	if owner.At != owner {
		t.Error("after a mark the emitter is not at work again")
	}
}

func TestConnectAssertsTypes(t *testing.T) {
	o := NewOutput(typeOf[int64](t))
	for _, c := range []struct {
		typ *frame.Type
		ok  bool
	}{
		{nil, true}, {o.Type, true}, {typeOf[int64](t), true}, {typeOf[int32](t), false}, {typeOf[struct{ X int64 }](t), false},
	} {
		err := o.Connect(&taker{typ: c.typ}, nil)
		if (err == nil) != c.ok {
			t.Errorf("connect int64 to %v: %v", c.typ, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "int64") || !strings.Contains(err.Error(), c.typ.Name)) {
			t.Errorf("%q does not name both types", err)
		}
	}
}
