package co

import (
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// fickle wants another input at each question.
type fickle struct {
	process.NoTimers[int64, int64]
	asked int
}

func (f *fickle) NextSelection() process.InputSelection {
	f.asked++
	return process.InputSelection(f.asked)
}

type unkeyedFickle struct{ *fickle }

func (unkeyedFickle) ProcessElement1(*process.Context, int64, *process.Collector[int64]) error {
	return nil
}

func (unkeyedFickle) ProcessElement2(*process.Context, int64, *process.Collector[int64]) error {
	return nil
}

type keyedFickle struct {
	*fickle
	seen *state.Value[int64]
}

func (k keyedFickle) ProcessElement1(ctx *process.KeyedContext[int64], _ int64, _ *process.Collector[int64]) error {
	at, _ := ctx.Timestamp()
	ctx.RegisterEventTimeTimer(at.Add(10 * time.Millisecond))
	return nil
}

func (keyedFickle) ProcessElement2(*process.KeyedContext[int64], int64, *process.Collector[int64]) error {
	return nil
}

// A function is asked again once it was called for an element, an end or a timer, and not otherwise.
func TestFunctionsAreAskedAfterTheyWereCalled(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	in := Inputs{First: typ, Second: typ}
	key := func() *operator.Key { return kit.KeyOf(t, func(x int64) int64 { return x }) }
	for name, op := range map[string]operator.Operator{
		"not keyed": Process(in, typ, nil, func(*process.Runtime) process.CoFunction[int64, int64, int64] {
			return unkeyedFickle{&fickle{}}
		}),
		"keyed": KeyedProcess(in, typ, [2]*operator.Key{key(), key()}, nil, func(rt *process.Runtime) process.KeyedCoFunction[int64, int64, int64, int64] {
			return keyedFickle{&fickle{}, state.NewValue[int64](rt, "seen")}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := op.(operator.Selector)
			if s.Selects() {
				t.Error("it is known to choose before it was opened")
			}
			kit.Open(t, op)
			if !s.Selects() {
				t.Fatal("it does not choose")
			}
			a, b := op.Inputs()[0], op.Inputs()[1]
			want := func(n process.InputSelection) {
				t.Helper()
				for range 2 {
					if got := s.Selection(); got != n {
						t.Errorf("the function was asked %d times, want %d", got, n)
					}
				}
			}
			want(1)
			kit.Must(t, a.Push(kit.Run(t, []int64{1}, int64(3))))
			want(2)
			kit.Must(t, b.Push(kit.Run(t, []int64{1}, int64(3))))
			want(3)
			kit.Must(t, a.Mark(kit.Watermark(20)))
			want(3)
			kit.Must(t, b.Mark(kit.Watermark(20)))
			n := process.InputSelection(3)
			if name == "keyed" {
				n++ // the timer
			}
			want(n)
			kit.Must(t, a.Mark(kit.End()))
			want(n + 1)
		})
	}
}

// Of a type that is known to choose it is said before anything is opened; other functions don't choose.
func TestWhatIsKnownOfTheTypeOfAFunction(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	plain := func(*process.Runtime) process.CoFunction[int64, int64, int64] { return &unkeyed{} }
	for _, typed := range []bool{true, false} {
		op := Process(Inputs{First: typ, Second: typ, Selects: typed}, typ, nil, plain).(operator.Selector)
		if op.Selects() != typed {
			t.Errorf("known: %v, said: %v", typed, op.Selects())
		}
		if !typed {
			kit.Open(t, op)
			if op.Selects() {
				t.Error("a function without a choice chooses")
			}
		}
	}
}
