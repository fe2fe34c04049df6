package co

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/element"
	"github.com/flott-dev/flott/internal/operator/valve"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
)

func typeOf[T any](t testing.TB) *frame.Type {
	t.Helper()
	typ, err := frame.TypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// recorder is the end of a chain: it writes down what comes.
type recorder[R any] struct {
	typ    *frame.Type
	got    []string
	values []string
}

func (s *recorder[R]) Type() *frame.Type { return s.typ }

func (s *recorder[R]) Push(r *frame.Run) error {
	for i, v := range frame.Values[R](r) {
		text := fmt.Sprint(v)
		s.values = append(s.values, text)
		if ts := r.Time(i); ts != frame.NoTime {
			text += fmt.Sprintf("@%d", ts)
		}
		s.got = append(s.got, text)
	}
	return nil
}

func (s *recorder[R]) Mark(m frame.Mark) error {
	text := m.Kind.String()
	if m.Kind != frame.Idle && m.Kind != frame.Active && m.Kind != frame.End {
		text += " " + strconv.FormatInt(m.Value, 10)
	}
	s.got = append(s.got, text)
	return nil
}

func (s *recorder[R]) want(t *testing.T, texts ...string) {
	t.Helper()
	if !slices.Equal(s.got, texts) {
		t.Fatalf("got %q, want %q", s.got, texts)
	}
	s.got = nil
}

// runtimeOf makes what an operator gets; its keyed state lies on the heap.
func runtimeOf() *operator.Runtime {
	rt := &operator.Runtime{
		Scope: &operator.Scope{
			Ctx: context.Background(), Clock: clock.NewManual(0), Timers: &operator.Callbacks{}, Parallelism: 1,
		},
		Name: "op", Seed: 7, MaxParallelism: 128,
	}
	rt.At = rt
	rt.OpenState = func(o statebackend.Options) (statebackend.Store, error) {
		o.MaxParallelism, o.LastGroup = 128, 127
		return heap.Backend{}.Open(o)
	}
	return rt
}

// open connects and opens an operator; it is closed at the end of the test.
func open[R any](t testing.TB, op operator.Operator, to *recorder[R]) *operator.Runtime {
	t.Helper()
	rt := runtimeOf()
	to.typ = op.Output("").Type
	if err := op.Output("").Connect(to, rt); err != nil {
		t.Fatal(err)
	}
	if err := op.Open(rt); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := op.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// run makes a run of values with timestamps; nil times: none.
func run[T any](t testing.TB, times []int64, xs ...T) *frame.Run {
	c := frame.NewColumn(typeOf[T](t), len(xs))
	for i, x := range xs {
		ts := int64(frame.NoTime)
		if times != nil {
			ts = times[i]
		}
		frame.Add(c, x, ts)
	}
	r := c.Run()
	return &r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func watermark(ms int64) frame.Mark { return frame.Mark{Kind: frame.Watermark, Value: ms} }

func TestCoMapAppliesEachSidesFunction(t *testing.T) {
	in := Inputs{First: typeOf[int64](t), Second: typeOf[string](t)}
	op := Map(in, typeOf[string](t), func(a int64) string { return fmt.Sprint("a", a) }, func(b string) string { return "b" + b })
	var out recorder[string]
	open(t, op, &out)
	ins := op.Inputs()
	if ins[0].Type() != in.First || ins[1].Type() != in.Second || op.Output("side") != nil {
		t.Fatal("inputs or outputs are mixed up")
	}
	must(t, ins[0].Push(run(t, []int64{1, 2}, int64(7), 8)))
	must(t, ins[1].Push(run(t, nil, "x", "y", "z", "u", "v")))
	out.want(t, "a7@1", "a8@2", "bx", "by", "bz", "bu", "bv")
}

func TestCoMapCutsRunsThatItsColumnCannotHold(t *testing.T) {
	type big struct{ A, B, C, D, E, F, G, H [64]byte }
	in := Inputs{First: typeOf[int64](t), Second: typeOf[int64](t)}
	op := Map(in, typeOf[big](t), func(a int64) big { return big{A: [64]byte{byte(a)}} }, func(b int64) big { return big{} })
	out := recorder[big]{}
	open(t, op, &out)
	xs, times := make([]int64, 200), make([]int64, 200)
	for i := range xs {
		xs[i], times[i] = int64(i), int64(i)
	}
	must(t, op.Inputs()[0].Push(run(t, times, xs...)))
	if len(out.got) != 200 || !strings.HasSuffix(out.got[199], "@199") || !strings.HasPrefix(out.got[199], "{[199 ") {
		t.Fatalf("%d results, the last one %s", len(out.got), out.got[len(out.got)-1])
	}
}

func TestCoMapLeavesSharedRunsAlone(t *testing.T) {
	in := Inputs{First: typeOf[int64](t), Second: typeOf[int64](t)}
	op := Map(in, typeOf[int64](t), func(a int64) int64 { return a + 1 }, func(b int64) int64 { return b - 1 })
	rt := runtimeOf()
	must(t, op.Output("").Connect(spoiler{typeOf[int64](t)}, rt))
	must(t, op.Open(rt))
	r := run(t, []int64{1, 2}, int64(7), 8)
	r.Shared = true
	must(t, op.Inputs()[0].Push(r))
	if got := fmt.Sprint(frame.Values[int64](r), r.Times); got != "[7 8] [1 2]" {
		t.Errorf("the shared run became %s", got)
	}
}

// spoiler does what a consumer may do to a run that is not shared.
type spoiler struct{ typ *frame.Type }

func (s spoiler) Type() *frame.Type { return s.typ }
func (s spoiler) Push(r *frame.Run) error {
	if !r.Shared {
		clear(frame.Values[int64](r))
		clear(r.Times)
	}
	return nil
}
func (s spoiler) Mark(frame.Mark) error { return nil }

func TestCoFlatMapKeepsTimestamps(t *testing.T) {
	in := Inputs{First: typeOf[string](t), Second: typeOf[int64](t)}
	op := FlatMap(in, typeOf[string](t), func(a string, emit func(string)) {
		for _, w := range strings.Fields(a) {
			emit(w)
		}
	}, func(b int64, emit func(string)) {
		if b > 0 {
			emit(fmt.Sprint(b))
		}
	})
	var out recorder[string]
	open(t, op, &out)
	must(t, op.Inputs()[0].Push(run(t, []int64{5, 6}, "to be", "or")))
	must(t, op.Inputs()[1].Push(run(t, nil, int64(0), 3)))
	out.want(t, "to@5", "be@5", "or@6", "3")
}

func TestMarksOfBothInputsAreCombined(t *testing.T) {
	idle, active := frame.Mark{Kind: frame.Idle}, frame.Mark{Kind: frame.Active}
	for _, c := range []struct {
		rule  valve.Rule
		after string // the second input, at 7, is idle while the first goes on to 9
	}{{valve.ReleaseIdle, "watermark 9"}, {valve.HoldIdle, "watermark 7"}} {
		in := Inputs{First: typeOf[int64](t), Second: typeOf[int64](t), Rule: c.rule}
		id := func(x int64) int64 { return x }
		op := Map(in, in.First, id, id)
		var out recorder[int64]
		open(t, op, &out)
		a, b := op.Inputs()[0], op.Inputs()[1]
		must(t, a.Mark(watermark(5)))
		out.want(t)
		must(t, b.Mark(watermark(3)))
		out.want(t, "watermark 3")
		must(t, b.Mark(watermark(7)))
		out.want(t, "watermark 5")
		must(t, b.Mark(idle))
		must(t, a.Mark(watermark(9)))
		out.want(t, c.after)
		must(t, a.Mark(idle))
		out.want(t, "idle")
		must(t, b.Mark(active))
		out.want(t, "active")
		must(t, a.Mark(frame.Mark{Kind: frame.Barrier, Value: 4}))
		out.want(t, "barrier 4")
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

// tail is the one-input operator of the vector behind it.
type tail struct{}

func (tail) ProcessElement(_ *process.Context, x string, out *process.Collector[string]) error {
	out.Collect(x)
	return nil
}

func (tail) Finish(out *process.Collector[string]) error {
	out.Collect("[Operator1]: End of input")
	out.Collect("[Operator1]: Bye")
	return nil
}

// endOfInput is a case of the vectors of that kind.
type endOfInput struct {
	ID     string   `json:"id"`
	Kind   string   `json:"kind"`
	Chain  []string `json:"chain"`
	Expect []string `json:"expect_values"`
	Steps  []struct {
		Record string `json:"record"`
		Input  int    `json:"input"`
		End    int    `json:"end_input"`
	} `json:"steps"`
}

// readEndOfInput gives the cases that are this package's: the others have one input.
func readEndOfInput(t *testing.T) []endOfInput {
	dir := os.Getenv("FLOTT_CONFORMANCE")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "conformance", "testdata")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "streaming", "task.json"))
	if errors.Is(err, os.ErrNotExist) {
		raw, err = os.ReadFile(filepath.Join(dir, "task.json"))
	}
	must(t, err)
	var file struct{ Cases []json.RawMessage }
	must(t, json.Unmarshal(raw, &file))
	var out []endOfInput
	for _, c := range file.Cases {
		var e endOfInput
		if json.Unmarshal(c, &e) == nil && e.Kind == "end_of_input" && slices.Equal(e.Chain, []string{"two_input:Operator0", "one_input:Operator1"}) {
			out = append(out, e)
		}
	}
	return out
}

func TestEndsComeInTheVectorsOrder(t *testing.T) {
	cases := readEndOfInput(t)
	if len(cases) == 0 {
		t.Skip("the vectors have no chain with two inputs")
	}
	for _, c := range cases {
		typ, closed := typeOf[string](t), 0
		op := Process(Inputs{First: typ, Second: typ}, typ, nil, func(*process.Runtime) process.CoFunction[string, string, string] {
			return &ender{closed: &closed}
		})
		last := element.Process(typ, typ, nil, func(*process.Runtime) process.Function[string, string] { return tail{} })
		var out recorder[string]
		rt := open(t, last, &out)
		must(t, op.Output("").Connect(last.Inputs()[0], rt))
		must(t, op.Open(rt))
		for _, s := range c.Steps {
			if s.End != 0 {
				must(t, op.Inputs()[s.End-1].Mark(watermark(frame.MaxWatermark)))
				must(t, op.Inputs()[s.End-1].Mark(frame.Mark{Kind: frame.End}))
				continue
			}
			must(t, op.Inputs()[s.Input-1].Push(run(t, nil, s.Record)))
		}
		if !slices.Equal(out.values, c.Expect) {
			t.Errorf("%s: got %q, want %q", c.ID, out.values, c.Expect)
		}
		must(t, op.Close())
		if closed != 1 {
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

func keyOf[T any](t testing.TB, key func(T) string) *operator.Key {
	k, err := serde.KeyOf[string]()
	must(t, err)
	return &operator.Key{Key: k, Extract: func() func(*frame.Run) serde.Column {
		buf := make([]string, frame.MaxLen)
		return func(r *frame.Run) serde.Column {
			for i, x := range frame.Values[T](r) {
				buf[i] = key(x)
			}
			return serde.Column{P: unsafe.Pointer(unsafe.SliceData(buf)), N: r.N, Stride: unsafe.Sizeof(buf[0])}
		}
	}}
}

func keyedTotals(t testing.TB) operator.Operator {
	in := Inputs{First: typeOf[int64](t), Second: typeOf[string](t)}
	keys := [2]*operator.Key{
		keyOf(t, func(a int64) string { return string(rune('a' + a%3)) }),
		keyOf(t, func(b string) string { return b[:1] }),
	}
	return KeyedProcess(in, typeOf[string](t), keys, nil, func(rt *process.Runtime) process.KeyedCoFunction[string, int64, string, string] {
		return &totals{sum: state.NewValue[int64](rt, "sum")}
	})
}

func TestBothSidesShareStateAndTimersOfAKey(t *testing.T) {
	op := keyedTotals(t)
	var out recorder[string]
	rt := open(t, op, &out)
	a, b := op.Inputs()[0], op.Inputs()[1]
	must(t, a.Push(run(t, []int64{1, 2}, int64(3), 4))) // keys a, b
	must(t, b.Push(run(t, []int64{1, 4}, "ab", "bcd")))
	out.want(t, "a=3 wm -1@1", "b=4 wm -1@2", "a=203 wm -1@1", "b=304 wm -1@4")
	must(t, a.Mark(watermark(12)))
	out.want(t)
	must(t, b.Mark(watermark(20)))
	out.want(t, "a event time 11: 203@11", "b event time 12: 304@12", "watermark 12")
	must(t, a.Push(run(t, []int64{13}, int64(3))))
	out.want(t, "a=206 wm 12@13")
	rt.Now = 51
	must(t, rt.Timers.Run(50))
	slices.Sort(out.got)
	out.want(t, "a processing time 50: 206", "b processing time 50: 304")
}

// TestLongRunsAreCut: a run may be longer than the scratch columns of keyed drivers.
func TestLongRunsAreCut(t *testing.T) {
	op := keyedTotals(t)
	var out recorder[string]
	open(t, op, &out)
	n := 2*frame.MaxLen + 3
	xs := make([]int64, n)
	times := make([]int64, n)
	for i := range xs {
		xs[i] = 3 // key a
	}
	must(t, op.Inputs()[0].Push(run(t, times, xs...)))
	if want := fmt.Sprintf("a=%d wm -1@0", 3*n); len(out.got) != n || out.got[n-1] != want {
		t.Fatalf("%d results, the last one %q, want %q", len(out.got), out.got[len(out.got)-1], want)
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
	typ := typeOf[int64](t)
	op := Process(Inputs{First: typ, Second: typ}, typ, nil, func(rt *process.Runtime) process.CoFunction[int64, int64, int64] {
		return &unkeyed{state.NewValue[int64](rt, "v")}
	})
	var out recorder[int64]
	open(t, op, &out)
	must(t, op.Inputs()[1].Push(run(t, nil, int64(1))))
	err := op.Inputs()[0].Push(run(t, nil, int64(1)))
	var not *state.NotKeyedError
	if !errors.As(err, &not) || not.State != "v" {
		t.Fatalf("error %v", err)
	}
}

// null drops what comes.
type null struct{ typ *frame.Type }

func (n null) Type() *frame.Type     { return n.typ }
func (n null) Push(*frame.Run) error { return nil }
func (n null) Mark(frame.Mark) error { return nil }

func TestSteadyStateAllocatesNothing(t *testing.T) {
	typ := typeOf[int64](t)
	in := Inputs{First: typ, Second: typ}
	key := func() *operator.Key {
		k, err := serde.KeyOf[int64]()
		must(t, err)
		return &operator.Key{Key: k, Extract: func() func(*frame.Run) serde.Column {
			return func(r *frame.Run) serde.Column { return serde.Column{P: r.P, N: r.N, Stride: 8} }
		}}
	}
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
		rt := runtimeOf()
		must(t, op.Output("").Connect(null{typ}, rt))
		must(t, op.Open(rt))
		xs, times := make([]int64, 512), make([]int64, 512)
		for i := range xs {
			xs[i], times[i] = int64(i), int64(i)
		}
		a, b := run(t, times, xs...), run(t, nil, xs...)
		b.Shared = true
		ins := op.Inputs()
		push := func() {
			must(t, ins[0].Push(a))
			must(t, ins[1].Push(b))
		}
		push()
		if got := testing.AllocsPerRun(20, push); got != 0 {
			t.Errorf("%s: %v allocations per two runs of 512", name, got)
		}
		must(t, op.Close())
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
