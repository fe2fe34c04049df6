package co

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/valve"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

func TestCoMapAppliesEachSidesFunction(t *testing.T) {
	in := Inputs{First: kit.TypeOf[int64](t), Second: kit.TypeOf[string](t)}
	op := Map(in, kit.TypeOf[string](t), func(a int64) string { return fmt.Sprint("a", a) }, func(b string) string { return "b" + b })
	out, _ := kit.Open(t, op)
	ins := op.Inputs()
	if ins[0].Type() != in.First || ins[1].Type() != in.Second || op.Output("side") != nil {
		t.Fatal("inputs or outputs are mixed up")
	}
	kit.Must(t, ins[0].Push(kit.Run(t, []int64{1, 2}, int64(7), 8)))
	kit.Must(t, ins[1].Push(kit.Run(t, nil, "x", "y", "z", "u", "v")))
	out.Want(t, "a7@1", "a8@2", "bx", "by", "bz", "bu", "bv")
}

func TestCoMapCutsRunsThatItsColumnCannotHold(t *testing.T) {
	type big struct{ A, B, C, D, E, F, G, H [64]byte }
	in := Inputs{First: kit.TypeOf[int64](t), Second: kit.TypeOf[int64](t)}
	op := Map(in, kit.TypeOf[big](t), func(a int64) big { return big{A: [64]byte{byte(a)}} }, func(b int64) big { return big{} })
	out, _ := kit.Open(t, op)
	xs, times := make([]int64, 200), make([]int64, 200)
	for i := range xs {
		xs[i], times[i] = int64(i), int64(i)
	}
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, times, xs...)))
	if len(out.Got) != 200 || !strings.HasSuffix(out.Got[199], "@199") || !strings.HasPrefix(out.Got[199], "{[199 ") {
		t.Fatalf("%d results, the last one %s", len(out.Got), out.Got[len(out.Got)-1])
	}
}

func TestCoMapLeavesSharedRunsAlone(t *testing.T) {
	in := Inputs{First: kit.TypeOf[int64](t), Second: kit.TypeOf[int64](t)}
	op := Map(in, in.First, func(a int64) int64 { return a + 1 }, func(b int64) int64 { return b - 1 })
	kit.Open(t, op)
	r := kit.Run(t, []int64{1, 2}, int64(7), 8)
	untouched := kit.Share(t, r)
	kit.Must(t, op.Inputs()[0].Push(r))
	untouched()
}

func TestCoFlatMapKeepsTimestamps(t *testing.T) {
	in := Inputs{First: kit.TypeOf[string](t), Second: kit.TypeOf[int64](t)}
	op := FlatMap(in, kit.TypeOf[string](t), func(a string, emit func(string)) {
		for _, w := range strings.Fields(a) {
			emit(w)
		}
	}, func(b int64, emit func(string)) {
		if b > 0 {
			emit(fmt.Sprint(b))
		}
	})
	out, _ := kit.Open(t, op)
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, []int64{5, 6}, "to be", "or")))
	kit.Must(t, op.Inputs()[1].Push(kit.Run(t, nil, int64(0), 3)))
	out.Want(t, "to@5", "be@5", "or@6", "3")
}

func TestMarksOfBothInputsAreCombined(t *testing.T) {
	idle, active := frame.Mark{Kind: frame.Idle}, frame.Mark{Kind: frame.Active}
	for _, c := range []struct {
		rule  valve.Rule
		after string // the second input, at 7, is idle while the first goes on to 9
	}{{valve.ReleaseIdle, "watermark 9"}, {valve.HoldIdle, "watermark 7"}} {
		in := Inputs{First: kit.TypeOf[int64](t), Second: kit.TypeOf[int64](t), Rule: c.rule}
		id := func(x int64) int64 { return x }
		op := Map(in, in.First, id, id)
		out, _ := kit.Open(t, op)
		a, b := op.Inputs()[0], op.Inputs()[1]
		kit.Must(t, a.Mark(kit.Watermark(5)))
		out.Want(t)
		kit.Must(t, b.Mark(kit.Watermark(3)))
		out.Want(t, "watermark 3")
		kit.Must(t, b.Mark(kit.Watermark(7)))
		out.Want(t, "watermark 5")
		kit.Must(t, b.Mark(idle))
		kit.Must(t, a.Mark(kit.Watermark(9)))
		out.Want(t, c.after)
		kit.Must(t, a.Mark(idle))
		out.Want(t, "idle")
		kit.Must(t, b.Mark(active))
		out.Want(t, "active")
		kit.Must(t, a.Mark(frame.Mark{Kind: frame.Barrier, Value: 4}))
		out.Want(t, "barrier 4")
	}
}

// ender tells its ends.
type ender struct{ closed *int }

func (e *ender) ProcessElement1(_ *process.Context, a string, out *process.Collector[string]) error {
	out.Collect("[Operator0-1]: " + a)
	return nil
}

func (e *ender) ProcessElement2(_ *process.Context, b string, out *process.Collector[string]) error {
	out.Collect("[Operator0-2]: " + b)
	return nil
}

func (e *ender) EndInput1(out *process.Collector[string]) error {
	out.Collect("[Operator0-1]: End of input")
	return nil
}

func (e *ender) EndInput2(out *process.Collector[string]) error {
	out.Collect("[Operator0-2]: End of input")
	return nil
}

func (e *ender) Finish(out *process.Collector[string]) error {
	out.Collect("[Operator0]: Bye")
	return nil
}

func (e *ender) Close() error {
	*e.closed++
	return nil
}

// TestEndsComeInOrder: each side's end, in whatever order, then the operator's own, then the mark; and closing tells no
// more. The vectors of Flink (conformance, task.json) have the same, over operators of their own.
func TestEndsComeInOrder(t *testing.T) {
	last := fmt.Sprint("watermark ", int64(frame.MaxWatermark))
	for _, c := range []struct {
		first int
		want  []string
	}{
		{0, []string{"[Operator0-1]: End of input", "[Operator0-2]: x", last, "[Operator0-2]: End of input"}},
		{1, []string{"[Operator0-2]: End of input", "[Operator0-1]: x", last, "[Operator0-1]: End of input"}},
	} {
		typ, closed := kit.TypeOf[string](t), 0
		op := Process(Inputs{First: typ, Second: typ}, typ, nil, func(*process.Runtime) process.CoFunction[string, string, string] {
			return &ender{closed: &closed}
		})
		rt := kit.Runtime()
		out := kit.Record(t, op.Output(""), rt)
		kit.Must(t, op.Open(rt))
		end := func(in operator.Input) {
			kit.Must(t, in.Mark(kit.Watermark(frame.MaxWatermark)))
			kit.Must(t, in.Mark(kit.End()))
		}
		first, second := op.Inputs()[c.first], op.Inputs()[1-c.first]
		end(first)
		kit.Must(t, second.Push(kit.Run(t, nil, "x")))
		end(second)
		out.Want(t, append(c.want, "[Operator0]: Bye", "end")...)
		if kit.Must(t, op.Close()); closed != 1 {
			t.Errorf("closed %d times", closed)
		}
	}
}

// totals adds up both sides per key, and emits at a timer.
type totals struct {
	sum *state.Value[int64]
}

func (f *totals) ProcessElement1(ctx *process.KeyedContext[string], a int64, out *process.Collector[string]) error {
	return f.add(ctx, a, out)
}

func (f *totals) ProcessElement2(ctx *process.KeyedContext[string], b string, out *process.Collector[string]) error {
	return f.add(ctx, int64(len(b))*100, out)
}

func (f *totals) add(ctx *process.KeyedContext[string], n int64, out *process.Collector[string]) error {
	f.sum.Update(func(s *int64) { *s += n })
	ctx.RegisterTimer(process.EventTime, ctx.TimestampMillis()+10)
	ctx.RegisterTimer(process.ProcessingTime, 50)
	out.Collect(fmt.Sprintf("%s=%d wm %d", ctx.Key(), f.sum.Get(), max(-1, ctx.Watermark())))
	return nil
}

func (f *totals) OnTimer(ctx *process.KeyedContext[string], t process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%s %v %d: %d", ctx.Key(), t.Domain, t.Millis, f.sum.Get()))
	return nil
}

func keyedTotals(t testing.TB) operator.Operator {
	in := Inputs{First: kit.TypeOf[int64](t), Second: kit.TypeOf[string](t)}
	keys := [2]*operator.Key{
		kit.KeyOf(t, func(a int64) string { return string(rune('a' + a%3)) }),
		kit.KeyOf(t, func(b string) string { return b[:1] }),
	}
	return KeyedProcess(in, kit.TypeOf[string](t), keys, nil, func(rt *process.Runtime) process.KeyedCoFunction[string, int64, string, string] {
		return &totals{sum: state.NewValue[int64](rt, "sum")}
	})
}

func TestBothSidesShareStateAndTimersOfAKey(t *testing.T) {
	op := keyedTotals(t)
	out, rt := kit.Open(t, op)
	a, b := op.Inputs()[0], op.Inputs()[1]
	kit.Must(t, a.Push(kit.Run(t, []int64{1, 2}, int64(3), 4))) // keys a, b
	kit.Must(t, b.Push(kit.Run(t, []int64{1, 4}, "ab", "bcd")))
	out.Want(t, "a=3 wm -1@1", "b=4 wm -1@2", "a=203 wm -1@1", "b=304 wm -1@4")
	kit.Must(t, a.Mark(kit.Watermark(12)))
	out.Want(t)
	kit.Must(t, b.Mark(kit.Watermark(20)))
	out.Want(t, "a event time 11: 203@11", "b event time 12: 304@12", "watermark 12")
	kit.Must(t, a.Push(kit.Run(t, []int64{13}, int64(3))))
	out.Want(t, "a=206 wm 12@13")
	rt.Now = 51
	kit.Must(t, rt.Timers.Run(50))
	slices.Sort(out.Got)
	out.Want(t, "a processing time 50: 206", "b processing time 50: 304")
}

// TestLongRunsAreCut: a run may be longer than the scratch columns of keyed drivers.
func TestLongRunsAreCut(t *testing.T) {
	op := keyedTotals(t)
	out, _ := kit.Open(t, op)
	n := 2*frame.MaxLen + 3
	xs := make([]int64, n)
	times := make([]int64, n)
	for i := range xs {
		xs[i] = 3 // key a
	}
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, times, xs...)))
	if want := fmt.Sprintf("a=%d wm -1@0", 3*n); len(out.Got) != n || out.Got[n-1] != want {
		t.Fatalf("%d results, the last one %q, want %q", len(out.Got), out.Got[len(out.Got)-1], want)
	}
}

type unkeyed struct{ v *state.Value[int64] }

func (u *unkeyed) ProcessElement1(*process.Context, int64, *process.Collector[int64]) error {
	u.v.Set(1)
	return nil
}

func (u *unkeyed) ProcessElement2(ctx *process.Context, b int64, out *process.Collector[int64]) error {
	out.Collect(b)
	return nil
}

func TestStateWithoutKeysFails(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	op := Process(Inputs{First: typ, Second: typ}, typ, nil, func(rt *process.Runtime) process.CoFunction[int64, int64, int64] {
		return &unkeyed{state.NewValue[int64](rt, "v")}
	})
	kit.Open(t, op)
	kit.Must(t, op.Inputs()[1].Push(kit.Run(t, nil, int64(1))))
	err := op.Inputs()[0].Push(kit.Run(t, nil, int64(1)))
	var not *state.NotKeyedError
	if !errors.As(err, &not) || not.State != "v" {
		t.Fatalf("error %v", err)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	in := Inputs{First: typ, Second: typ}
	key := func() *operator.Key { return kit.KeyOf(t, func(x int64) int64 { return x }) }
	for name, op := range map[string]operator.Operator{
		"map": Map(in, typ, func(a int64) int64 { return a + 1 }, func(b int64) int64 { return b - 1 }),
		"flat map": FlatMap(in, typ, func(a int64, emit func(int64)) { emit(a) }, func(b int64, emit func(int64)) {
			emit(b)
			emit(b)
		}),
		"process": Process(in, typ, nil, func(*process.Runtime) process.CoFunction[int64, int64, int64] { return adder{} }),
		"keyed process": KeyedProcess(in, typ, [2]*operator.Key{key(), key()}, nil, func(rt *process.Runtime) process.KeyedCoFunction[int64, int64, int64, int64] {
			return &keyedAdder{sum: state.NewValue[int64](rt, "sum")}
		}),
	} {
		a, b := kit.Run(t, kit.Numbers(512), kit.Numbers(512)...), kit.Run(t, nil, kit.Numbers(512)...)
		a.Shared, b.Shared = true, true
		kit.AllocatesNothing(t, name, op, a, b)
	}
}

type adder struct{}

func (adder) ProcessElement1(_ *process.Context, a int64, out *process.Collector[int64]) error {
	out.Collect(a)
	return nil
}

func (adder) ProcessElement2(_ *process.Context, b int64, out *process.Collector[int64]) error {
	out.Collect(b)
	return nil
}

type keyedAdder struct {
	process.NoTimers[int64, int64]
	sum *state.Value[int64]
}

func (f *keyedAdder) ProcessElement1(_ *process.KeyedContext[int64], a int64, out *process.Collector[int64]) error {
	f.sum.Set(f.sum.Get() + a)
	out.Collect(f.sum.Get())
	return nil
}

func (f *keyedAdder) ProcessElement2(_ *process.KeyedContext[int64], b int64, out *process.Collector[int64]) error {
	f.sum.Set(f.sum.Get() - b)
	out.Collect(f.sum.Get())
	return nil
}
