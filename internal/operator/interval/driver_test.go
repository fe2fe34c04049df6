package interval

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// wordJoin joins words of one letter with words of the same first letter.
func wordJoin(t *testing.T, c Config, construct func(*process.Runtime) process.JoinFunction[string, string, string]) operator.Operator {
	t.Helper()
	typ := kit.TypeOf[string](t)
	key := kit.KeyOf(t, func(s string) string { return s[:1] })
	c.Keys = [2]*operator.Key{key, key}
	if construct == nil {
		return Join(co.Inputs{First: typ, Second: typ}, typ, c, func(a, b string) string { return a + "+" + b })
	}
	return Process(co.Inputs{First: typ, Second: typ}, typ, c, construct)
}

func advance(t *testing.T, op operator.Operator, ms int64) {
	t.Helper()
	for _, in := range op.Inputs() {
		kit.Must(t, in.Mark(kit.Watermark(ms)))
	}
}

func TestBoundsAreRangesOfTheOtherSide(t *testing.T) {
	const first, last = math.MinInt64, math.MaxInt64
	for _, c := range []struct {
		b        Bounds
		input    int
		at       int64
		from, to int64
	}{
		{Bounds{-2, 1}, left, 10, 8, 11},
		{Bounds{-2, 1}, right, 10, 9, 12},
		{Bounds{3, 5}, left, -4, -1, 1},
		{Bounds{3, 5}, right, -4, -9, -7},
		{Bounds{-2, 1}, left, last - 1, last - 3, last},
		{Bounds{-2, 1}, left, first + 1, first, first + 2},
		{Bounds{1, 2}, left, last, 0, -1},
		{Bounds{1, 2}, right, first + 1, first, first},
		{Bounds{2, 3}, right, first + 1, 0, -1},
		{Bounds{-2, -1}, right, last, 0, -1},
		{Bounds{1, -1}, left, 0, 1, -1},
	} {
		if from, to := c.b.of(c.input, c.at); from != c.from || to != c.to {
			t.Errorf("%+v of %d at input %d: %d ... %d, want %d ... %d", c.b, c.at, c.input, from, to, c.from, c.to)
		}
	}
}

func TestARangeLiesInTwoBucketsAtMost(t *testing.T) {
	for _, length := range []int64{-1, 0, 1, 2, 3, 4, 5, 1000, 1 << 52} {
		b := Bounds{Lower: -7, Upper: -7 + length}
		for at := int64(-40); at < 40; at++ {
			from, to := b.of(left, at)
			if n := to>>b.shift() - from>>b.shift(); from <= to && n > 1 {
				t.Fatalf("an interval of %d ms at %d lies in %d buckets", length, at, n+1)
			}
		}
		if width := int64(1) << b.shift(); width > 2*max(1, length+1) {
			t.Errorf("buckets of %d ms for an interval of %d", width, length)
		}
	}
}

func TestElementsOfOneTimeAreAllKeptInTheirOrder(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 8, 9, 1000} {
		op := wordJoin(t, Config{Bounds: Bounds{-3, 0}}, nil)
		out, _ := kit.Open(t, op)
		var want []string
		for i := range n {
			kit.Must(t, op.Inputs()[1].Push(kit.Run(t, []int64{5}, fmt.Sprint("a", i))))
			want = append(want, fmt.Sprintf("a+a%d@6", i))
		}
		kit.Must(t, op.Inputs()[0].Push(kit.Run(t, []int64{6}, "a")))
		out.Want(t, want...)
		advance(t, op, 8)
		if kept := op.(*driver[string, string, string]).sides[right].table.Len(); kept != 0 {
			t.Errorf("%d of %d elements are kept", kept, n)
		}
	}
}

// Timers come many at a time: here those of more keys than are taken together, which have lengths of their own.
func TestManyKeysAreCleanedTogether(t *testing.T) {
	typ := kit.TypeOf[string](t)
	key := kit.KeyOf(t, func(s string) string { return s })
	c := Config{Bounds: Bounds{-3, 5}, Keys: [2]*operator.Key{key, key}}
	op := Join(co.Inputs{First: typ, Second: typ}, typ, c, func(a, b string) string { return a + "+" + b })
	out, _ := kit.Open(t, op)
	sides := &op.(*driver[string, string, string]).sides
	const n = 700
	words, times := make([]string, n), make([]int64, n)
	for i := range words {
		words[i], times[i] = strings.Repeat("k", i%40)+fmt.Sprint(i), int64(10+i%2)
	}
	for _, in := range op.Inputs() {
		kit.Must(t, in.Push(kit.Run(t, times, words...)))
	}
	if len(out.Got) != n {
		t.Errorf("%d pairs of %d keys", len(out.Got), n)
	}
	for _, c := range []struct {
		at          int64
		left, right int
	}{{12, n, n}, {13, n, n / 2}, {14, n, 0}, {15, n / 2, 0}, {16, 0, 0}} {
		advance(t, op, c.at)
		if l, r := sides[left].table.Len(), sides[right].table.Len(); l != c.left || r != c.right {
			t.Errorf("at %d there are %d and %d elements, want %d and %d", c.at, l, r, c.left, c.right)
		}
	}
}

func TestElementsWithoutTimestampFail(t *testing.T) {
	for name, times := range map[string][]int64{"none": nil, "one of two": {4, frame.NoTime}} {
		for input, side := range []string{"left", "right"} {
			op := wordJoin(t, Config{}, nil)
			kit.Open(t, op)
			err := op.Inputs()[input].Push(kit.Run(t, times, "a", "b"))
			if !errors.Is(err, errNoTime) || !strings.Contains(err.Error(), side+" stream") {
				t.Errorf("%s has a timestamp: got %v, want an error about the %s stream", name, err, side)
			}
		}
	}
}

func TestLateElementsAreDroppedAndCounted(t *testing.T) {
	op := wordJoin(t, Config{Bounds: Bounds{-5, 5}}, nil)
	out, rt := kit.Open(t, op)
	in := op.Inputs()
	dropped := rt.Host.(*kit.Host).Metrics[lateDropped]
	if dropped == nil || dropped.Read() != int64(0) {
		t.Fatalf("before the first element the metric is %v", dropped)
	}
	kit.Must(t, in[0].Push(kit.Run(t, []int64{math.MinInt64 + 1}, "a"))) // nothing is late before the first watermark
	kit.Must(t, in[0].Mark(kit.Watermark(10)))                           // the other input holds the operator back
	kit.Must(t, in[0].Push(kit.Run(t, []int64{7}, "b")))
	kit.Must(t, in[1].Mark(kit.Watermark(10)))
	out.Want(t, "watermark 10")
	kit.Must(t, in[0].Push(kit.Run(t, []int64{9, 10, 9}, "b1", "b2", "b3")))
	kit.Must(t, in[1].Push(kit.Run(t, []int64{9, 10, 12}, "b4", "b5", "b6")))
	out.Want(t, "b+b5@10", "b2+b5@10", "b+b6@12", "b2+b6@12")
	if got := dropped.Read(); got != int64(3) {
		t.Errorf("%v elements are counted, want 3", got)
	}
}

func TestLateElementsGoToTheirSideOutput(t *testing.T) {
	typ := kit.TypeOf[string](t)
	op := wordJoin(t, Config{Late: [2]string{"late left", "late right"}, Sides: map[string]*frame.Type{"late left": typ}}, nil)
	rt := kit.Runtime()
	late := kit.Record(t, op.Output("late left"), rt)
	kit.OpenAt(t, op, rt)
	advance(t, op, 10)
	late.Want(t, "watermark 10")
	long := make([]string, 2*frame.MaxLen)
	times := make([]int64, len(long))
	var want []string
	for i := range long {
		long[i], times[i] = fmt.Sprint("a", i), 9
		want = append(want, fmt.Sprintf("a%d@9", i))
	}
	run := kit.Run(t, times, long...)
	untouched := kit.Share(t, run)
	kit.Must(t, op.Inputs()[0].Push(run))
	untouched()
	late.Want(t, want...)
	kit.Must(t, op.Inputs()[1].Push(kit.Run(t, []int64{9}, "b"))) // nobody reads them
	late.Want(t)
	if got := rt.Host.(*kit.Host).Metrics[lateDropped].Read(); got != int64(0) {
		t.Errorf("%v elements are counted as dropped", got)
	}
}

func TestLateSideOutputOfAnotherTypeIsRefused(t *testing.T) {
	op := wordJoin(t, Config{Late: [2]string{"late", ""}, Sides: map[string]*frame.Type{"late": kit.TypeOf[int64](t)}}, nil)
	err := op.Open(kit.Runtime())
	if err == nil || !strings.Contains(err.Error(), `side output "late": it is read as int64`) {
		t.Errorf("got %v", err)
	}
	kit.Must(t, op.Close())
}

// pairCounter numbers the pairs of a key and fails at a word.
type pairCounter struct {
	seen   *state.Value[int64]
	closed *int
}

func (f *pairCounter) ProcessElement(_ *process.JoinContext, a, b string, out *process.Collector[string]) error {
	if b == "bad" {
		return errors.New("a bad word")
	}
	f.seen.Update(func(n *int64) { *n++ })
	out.Collect(fmt.Sprintf("%s+%s %d", a, b, f.seen.Get()))
	return nil
}

func (f *pairCounter) Finish(out *process.Collector[string]) error {
	out.Collect("end of pairs")
	return nil
}

func (f *pairCounter) Close() error {
	*f.closed++
	return nil
}

func TestJoinFunctionHasStateAndHooks(t *testing.T) {
	closed := 0
	op := wordJoin(t, Config{Bounds: Bounds{0, 5}}, func(rt *process.Runtime) process.JoinFunction[string, string, string] {
		return &pairCounter{seen: state.NewValue[int64](rt, "seen"), closed: &closed}
	})
	rt := kit.Runtime()
	out := kit.Record(t, op.Output(""), rt)
	kit.Must(t, op.Open(rt))
	in := op.Inputs()
	kit.Must(t, in[0].Push(kit.Run(t, []int64{1, 2, 3}, "a1", "c1", "a2")))
	kit.Must(t, in[1].Push(kit.Run(t, []int64{3, 3, 9}, "a3", "c2", "a4")))
	out.Want(t, "a1+a3 1@3", "a2+a3 2@3", "c1+c2 1@3")
	for _, side := range in {
		kit.Must(t, side.Mark(kit.End()))
	}
	out.Want(t, "end of pairs", "end")
	if kit.Must(t, op.Close()); closed != 1 {
		t.Errorf("closed %d times", closed)
	}
}

func TestErrorOfTheJoinFunctionEndsTheSearch(t *testing.T) {
	op := wordJoin(t, Config{Bounds: Bounds{-1, 1}}, func(rt *process.Runtime) process.JoinFunction[string, string, string] {
		return &pairCounter{seen: state.NewValue[int64](rt, "seen"), closed: new(int)}
	})
	kit.Open(t, op)
	kit.Must(t, op.Inputs()[1].Push(kit.Run(t, []int64{3, 4}, "bad", "b"))) // in two buckets
	err := op.Inputs()[0].Push(kit.Run(t, []int64{4}, "b"))
	if err == nil || err.Error() != "a bad word" {
		t.Errorf("got %v", err)
	}
}

func TestElementsKeptUntilTheEndOfTimeNeedNoTimer(t *testing.T) {
	op := wordJoin(t, Config{Bounds: Bounds{-5, 5}}, nil)
	out, _ := kit.Open(t, op)
	in := op.Inputs()
	const last = math.MaxInt64
	kit.Must(t, in[0].Push(kit.Run(t, []int64{last - 9, last - 3}, "a1", "a2")))
	kit.Must(t, in[1].Push(kit.Run(t, []int64{last - 4, last}, "a3", "a4")))
	out.Want(t, fmt.Sprint("a1+a3@", last-4), fmt.Sprint("a2+a3@", last-3), fmt.Sprint("a2+a4@", last))
	advance(t, op, last)
	out.Want(t, fmt.Sprint("watermark ", last))
	if kept := op.(*driver[string, string, string]).sides[left].table.Len(); kept != 1 {
		t.Errorf("%d left elements are kept, want the one that lasts for ever", kept)
	}
}
