package stream_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// results collects what a stream gives, over all subtasks.
type results[T any] struct {
	mu  sync.Mutex
	all []T
}

func collect[T any](s *stream.Stream[T]) *results[T] {
	r := &results[T]{}
	s.ForEach(func(x T) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, x)
	})
	return r
}

// texts are the results as sorted text.
func (r *results[T]) texts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, x := range r.all {
		out = append(out, fmt.Sprint(x))
	}
	slices.Sort(out)
	return out
}

// everywhere runs a test at parallelism 1 and 2, chained or not, and with elements that are encoded between tasks.
func everywhere(t *testing.T, f func(t *testing.T, env *stream.Env)) {
	for _, p := range []int{1, 2} {
		t.Run(fmt.Sprintf("parallelism %d", p), func(t *testing.T) { f(t, stream.NewEnv().SetParallelism(p)) })
		t.Run(fmt.Sprintf("parallelism %d, unchained", p), func(t *testing.T) {
			f(t, stream.NewEnv().SetParallelism(p).DisableOperatorChaining())
		})
		t.Run(fmt.Sprintf("parallelism %d, isolated", p), func(t *testing.T) {
			f(t, stream.NewEnv(stream.WithIsolation()).SetParallelism(p))
		})
	}
}

func runJob(t *testing.T, env *stream.Env) {
	t.Helper()
	if _, err := env.Execute(context.Background(), t.Name()); err != nil {
		t.Fatal(err)
	}
}

func wantTexts(t *testing.T, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestConnectedStreamsMapEachSide(t *testing.T) {
	everywhere(t, func(t *testing.T, env *stream.Env) {
		numbers, words := env.FromSequence(1, 3), env.FromElements("x", "y")
		got := collect(numbers.Connect(words).Map(func(n int64) string { return fmt.Sprint(n * n) }, strings.ToUpper))
		runJob(t, env)
		wantTexts(t, got.texts(), "1", "4", "9", "X", "Y")
	})
}

func TestConnectedStreamsFlatMapEachSide(t *testing.T) {
	everywhere(t, func(t *testing.T, env *stream.Env) {
		numbers, words := env.FromParallelSlice([]int{0, 1, 2}), env.FromElements("to be", "or not")
		got := collect(numbers.Connect(words).FlatMap(func(n int, emit func(string)) {
			for range n {
				emit(fmt.Sprint(n))
			}
		}, func(line string, emit func(string)) {
			for w := range strings.FieldsSeq(line) {
				emit(w)
			}
		}))
		runJob(t, env)
		wantTexts(t, got.texts(), "1", "2", "2", "to", "be", "or", "not")
	})
}

func TestAStreamConnectedWithItselfAndAUnion(t *testing.T) {
	everywhere(t, func(t *testing.T, env *stream.Env) {
		a := env.FromElements(1, 2)
		both := a.Connect(a.Union(env.FromElements(5)))
		got := collect(both.Map(func(n int) int { return n }, func(n int) int { return -n }))
		runJob(t, env)
		wantTexts(t, got.texts(), "1", "2", "-1", "-2", "-5")
	})
}

func TestConnectedInputsAreAtHand(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	both := env.FromElements(1, 2).Connect(env.FromElements("a"))
	firsts, seconds := collect(both.First()), collect(both.Second())
	keyed := both.KeyBy(func(n int) int { return n }, func(s string) int { return len(s) })
	counts := collect(keyed.First().Count())
	others := collect(keyed.Second().Count())
	mapped := collect(keyed.Map(func(n int) int { return n }, func(s string) int { return -len(s) }))
	flat := collect(keyed.FlatMap(func(n int, emit func(int)) { emit(n) }, func(string, func(int)) {}))
	runJob(t, env)
	wantTexts(t, firsts.texts(), "1", "2")
	wantTexts(t, seconds.texts(), "a")
	wantTexts(t, counts.texts(), "(1,1)", "(2,1)")
	wantTexts(t, others.texts(), "(1,1)")
	wantTexts(t, mapped.texts(), "-1", "1", "2")
	wantTexts(t, flat.texts(), "1", "2")
}

// endTeller emits what it has seen when its inputs end.
type endTeller struct {
	first, second int
	odd           process.OutputTag[string]
}

func (f *endTeller) ProcessElement1(ctx *process.Context, a int, out *process.Collector[string]) error {
	f.first++
	if a%2 == 1 {
		ctx.Emit(f.odd, fmt.Sprint(a))
	}
	return nil
}

func (f *endTeller) ProcessElement2(ctx *process.Context, b string, out *process.Collector[string]) error {
	f.second++
	ctx.Emit(f.odd, b)
	return nil
}

func (f *endTeller) EndInput1(out *process.Collector[string]) error {
	out.Collect(fmt.Sprint("first ends after ", f.first))
	return nil
}

func (f *endTeller) EndInput2(out *process.Collector[string]) error {
	out.Collect(fmt.Sprint("second ends after ", f.second))
	return nil
}

func (f *endTeller) Finish(out *process.Collector[string]) error {
	out.Collect(fmt.Sprint("all ", f.first+f.second))
	return nil
}

func TestCoProcessTellsEndsAndHasSideOutputs(t *testing.T) {
	tag := process.NewOutputTag[string]("odd")
	for _, chained := range []bool{true, false} {
		env := stream.NewEnv().SetParallelism(1)
		if !chained {
			env.DisableOperatorChaining()
		}
		s := env.FromElements(1, 2, 3).Connect(env.FromElements("x")).Process(func(*process.Runtime) *endTeller {
			return &endTeller{odd: tag}
		})
		got, odd := collect(s), collect(s.SideOutput(tag))
		runJob(t, env)
		wantTexts(t, got.texts(), "first ends after 3", "second ends after 1", "all 4")
		wantTexts(t, odd.texts(), "1", "3", "x")
		if last := got.all[len(got.all)-1]; last != "all 4" {
			t.Errorf("the operator finished before its inputs had ended: %q", got.all)
		}
	}
}

// coOrder and coPayment meet by their order number.
type coOrder struct {
	ID   int64
	Item string
	At   int64
}

type coPayment struct {
	Order  int64
	Amount int
	At     int64
}

// matcher joins an order with its payment, whichever comes first; a timer tells of orders that nobody pays.
type matcher struct {
	order *state.Value[coOrder]
	paid  *state.Value[int]
}

func newMatcher(rt *process.Runtime) *matcher {
	return &matcher{order: state.NewValue[coOrder](rt, "order"), paid: state.NewValue[int](rt, "paid")}
}

func (m *matcher) ProcessElement1(ctx *process.KeyedContext[int64], o coOrder, out *process.Collector[string]) error {
	if amount, ok := m.paid.Lookup(); ok {
		out.Collect(fmt.Sprintf("%s: %d", o.Item, amount))
		m.paid.Clear()
		return nil
	}
	m.order.Set(o)
	ctx.RegisterTimer(process.EventTime, o.At+1000)
	return nil
}

func (m *matcher) ProcessElement2(ctx *process.KeyedContext[int64], p coPayment, out *process.Collector[string]) error {
	if o, ok := m.order.Lookup(); ok {
		out.Collect(fmt.Sprintf("%s: %d", o.Item, p.Amount))
		m.order.Clear()
		ctx.DeleteTimer(process.EventTime, o.At+1000)
		return nil
	}
	m.paid.Set(p.Amount)
	return nil
}

func (m *matcher) OnTimer(ctx *process.KeyedContext[int64], at process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%d is not paid at %d", ctx.Key(), at.Millis))
	m.order.Clear()
	return nil
}

func TestKeyedSidesMeetByTheirKeys(t *testing.T) {
	const n = 2000
	everywhere(t, func(t *testing.T, env *stream.Env) {
		var orders []coOrder
		var payments []coPayment
		var want []string
		for i := range int64(n) {
			orders = append(orders, coOrder{i, fmt.Sprint("item ", i), i})
			if i%10 == 3 {
				want = append(want, fmt.Sprintf("%d is not paid at %d", i, i+1000))
				continue
			}
			payments = append(payments, coPayment{i, int(i) * 2, i})
			want = append(want, fmt.Sprintf("item %d: %d", i, 2*i))
		}
		slices.Reverse(payments)
		at := func(ms int64) time.Time { return time.UnixMilli(ms) }
		a := env.FromSlice(orders).AssignTimestampsAndWatermarks(watermark.Ascending[coOrder](func(o coOrder) time.Time { return at(o.At) }))
		b := env.FromSlice(payments).AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(n*time.Millisecond, func(p coPayment) time.Time { return at(p.At) }))
		got := collect(a.Connect(b).
			KeyBy(func(o coOrder) int64 { return o.ID }, func(p coPayment) int64 { return p.Order }).
			Process(newMatcher))
		runJob(t, env)
		wantTexts(t, got.texts(), want...)
	})
}

func TestTwoKeyedStreamsConnectDirectly(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	a := env.FromElements(coOrder{1, "tea", 0}).KeyBy(func(o coOrder) int64 { return o.ID })
	b := env.FromElements(coPayment{1, 7, 0}).KeyBy(func(p coPayment) int64 { return p.Order })
	got := collect(a.Connect(b).Process(newMatcher).UID("match"))
	runJob(t, env)
	wantTexts(t, got.texts(), "tea: 7")
}

func TestConnectMistakesNameTheCall(t *testing.T) {
	env, other := stream.NewEnv(), stream.NewEnv()
	env.FromElements(1).Connect(other.FromElements(2)).Map(func(a int) int { return a }, func(b int) int { return b }).Discard()
	_, err := env.Execute(context.Background(), "mistake")
	if err == nil || !strings.Contains(err.Error(), "two environments") || !strings.Contains(err.Error(), "connected_test.go") {
		t.Errorf("error %v", err)
	}
}

func TestCoProcessErrorNamesTheOperator(t *testing.T) {
	cause := errors.New("cause")
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements(1).Connect(env.FromElements("x")).Process(func(*process.Runtime) *coFailing {
		return &coFailing{cause}
	}).Name("joiner").Discard()
	_, err := env.Execute(context.Background(), "failing")
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), `"joiner"`) {
		t.Errorf("error %v", err)
	}
}

type coFailing struct{ err error }

func (f *coFailing) ProcessElement1(*process.Context, int, *process.Collector[int]) error { return nil }

func (f *coFailing) ProcessElement2(*process.Context, string, *process.Collector[int]) error {
	return f.err
}

// TestOrderWithinASideIsKept: nothing is promised between the sides, everything within one.
func TestOrderWithinASideIsKept(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	got := collect(env.FromSequence(1, 5000).Connect(env.FromSequence(10001, 15000)).
		Map(func(a int64) int64 { return a }, func(b int64) int64 { return b }))
	runJob(t, env)
	next := map[bool]int64{false: 1, true: 10001}
	for _, x := range got.all {
		if second := x > 10000; x != next[second] {
			t.Fatalf("%d came in place of %d", x, next[second])
		} else {
			next[second]++
		}
	}
	if want := map[bool]int64{false: 5001, true: 15001}; !maps.Equal(next, want) {
		t.Errorf("ended before %v", next)
	}
}
