package stream_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

const ms = time.Millisecond

// stampedEvent is an element of a join.
type stampedEvent struct {
	Key, At int64
	Name    string
}

func (r stampedEvent) key() int64 { return r.Key }

// TestB019BoundsAreInclusiveAndNothingIsLateBehindAJoin: offsets -5 ... +5 with duplicates around left elements, against a
// nested loop.
func TestB019BoundsAreInclusiveAndNothingIsLateBehindAJoin(t *testing.T) {
	var left, right []stampedEvent
	for key := range int64(4) {
		for at := int64(10); at < 100; at += 30 {
			left = append(left, stampedEvent{key, at, fmt.Sprintf("l%d-%d", key, at)})
			for offset := int64(-5); offset <= 5; offset++ {
				for copy := range 3 {
					right = append(right, stampedEvent{key, at + offset, fmt.Sprintf("r%d-%d-%d", key, at+offset, copy)})
				}
			}
		}
	}
	byTime := func(a, b stampedEvent) int { return int(a.At - b.At) }
	slices.SortStableFunc(left, byTime)
	slices.SortStableFunc(right, byTime)
	for _, c := range []struct {
		lower, upper           int64
		afterLower, belowUpper bool
	}{
		{-2, 1, false, false},
		{-2, 1, true, false},
		{-2, 1, false, true},
		{-2, 1, true, true},
		{0, 0, false, false},
		{0, 0, true, true}, // empty
		{1, 4, false, false},
		{-5, -3, false, false},
	} {
		var want []string
		for _, l := range left {
			for _, r := range right {
				d := r.At - l.At
				if l.Key == r.Key && c.lower <= d && d <= c.upper && !(c.afterLower && d == c.lower) && !(c.belowUpper && d == c.upper) {
					want = append(want, fmt.Sprintf("%s+%s@%d on time", l.Name, r.Name, max(l.At, r.At)))
				}
			}
		}
		slices.Sort(want)
		everywhere(t, func(t *testing.T, env *stream.Env) {
			j := stamped(env, left).KeyBy(stampedEvent.key).IntervalJoin(stamped(env, right).KeyBy(stampedEvent.key)).
				Between(time.Duration(c.lower)*ms, time.Duration(c.upper)*ms)
			if c.afterLower {
				j = j.LowerBoundExclusive()
			}
			if c.belowUpper {
				j = j.UpperBoundExclusive()
			}
			got := collect(j.Join(func(a, b stampedEvent) string { return a.Name + "+" + b.Name }).
				Process(func(*process.Runtime) punctuality { return punctuality{} }))
			runJob(t, env)
			if got := got.texts(); !slices.Equal(got, want) {
				t.Errorf("%+v: got %d pairs\n%q, want %d\n%q", c, len(got), got, len(want), want)
			}
		})
	}
}

// stamped is a stream in event time with a watermark behind each element.
func stamped(env *stream.Env, rs []stampedEvent) *stream.Stream[stampedEvent] {
	at := watermark.Punctuated(func(r stampedEvent, _ int64) (int64, bool) { return r.At - 1, true }).
		WithMillis(func(r stampedEvent) int64 { return r.At })
	return env.FromSlice(rs).AssignTimestampsAndWatermarks(at)
}

// punctuality says of each element whether it is behind the watermark.
type punctuality struct{}

func (punctuality) ProcessElement(ctx *process.Context, x string, out *process.Collector[string]) error {
	is := "on time"
	if ctx.TimestampMillis() <= ctx.Watermark() {
		is = "late"
	}
	out.Collect(fmt.Sprintf("%s@%d %s", x, ctx.TimestampMillis(), is))
	return nil
}

func TestLateElementsOfAJoinAreSideOutputs(t *testing.T) {
	tags := [2]process.OutputTag[string]{process.NewOutputTag[string]("late left"), process.NewOutputTag[string]("late right")}
	first := func(s string) byte { return s[0] }
	h := flotttest.NewTwoInputHarness(t, func(a, b *stream.Stream[string]) *stream.Stream[string] {
		return a.KeyBy(first).IntervalJoin(b.KeyBy(first)).Between(-5*ms, 5*ms).
			SideOutputLeftLateData(tags[0]).SideOutputRightLateData(tags[1]).
			JoinPtr(func(a, b *string) string { return *a + "+" + *b })
	}, flotttest.WithSideOutput(tags[0]), flotttest.WithSideOutput(tags[1]))
	h.First.ProcessElement("a1", 8)
	h.First.ProcessWatermark(10)
	h.Second.ProcessElement("a2", 9) // the watermark is the smaller one
	h.Second.ProcessWatermark(10)
	h.First.ProcessElements(flotttest.At("a3", 9), flotttest.At("a4", 10))
	h.Second.ProcessElements(flotttest.At("a5", 3), flotttest.At("a6", 10))
	var got []string
	for _, e := range h.Elements() {
		got = append(got, e.String())
	}
	slices.Sort(got)
	if want := []string{"a1+a2@9", "a1+a6@10", "a4+a2@10", "a4+a6@10"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, want := range []string{"a3@9", "a5@3"} {
		if late := h.SideOutput(tags[i]); len(late) != 1 || late[0].String() != want {
			t.Errorf("side output %q holds %v, want %s", tags[i].Name(), late, want)
		}
	}
	if n := h.Metric("numLateRecordsDropped"); n != int64(0) {
		t.Errorf("%v elements are counted as dropped", n)
	}
}

func TestLateElementsOfAJoinAreDroppedWithoutATag(t *testing.T) {
	one := func(string) int { return 1 }
	h := flotttest.NewTwoInputHarness(t, func(a, b *stream.Stream[string]) *stream.Stream[string] {
		return a.KeyBy(one).IntervalJoin(b.KeyBy(one)).Between(-5*ms, 5*ms).Join(func(a, b string) string { return a + b })
	})
	h.First.ProcessWatermark(10)
	h.Second.ProcessWatermark(10)
	h.First.ProcessElement("a", 9)
	h.Second.ProcessElement("b", 10)
	if got, n := h.Elements(), h.Metric("numLateRecordsDropped"); len(got) != 0 || n != int64(1) {
		t.Errorf("pairs %v, %v elements are counted as dropped, want none and 1", got, n)
	}
}

func TestBuildersOfAJoinDoNotShareWhatWasSaid(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	s := stamped(env, []stampedEvent{{1, 1, "a"}, {1, 2, "b"}}).KeyBy(stampedEvent.key)
	pair := func(a, b stampedEvent) string { return a.Name + b.Name }
	wide := s.IntervalJoin(s).Between(0, ms)
	narrow := wide.LowerBoundExclusive()
	all, later := collect(wide.Join(pair)), collect(narrow.Join(pair))
	runJob(t, env)
	if got, want := all.texts(), []string{"aa", "ab", "bb"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := later.texts(), []string{"ab"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBoundsOfAJoinAreTruncated(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	s := stamped(env, []stampedEvent{{1, 1, "a"}, {1, 2, "b"}, {1, 3, "c"}}).KeyBy(stampedEvent.key)
	got := collect(s.IntervalJoin(s).Between(-1900*time.Microsecond, 900*time.Microsecond).
		Join(func(a, b stampedEvent) string { return a.Name + b.Name }))
	runJob(t, env)
	if got, want := got.texts(), []string{"aa", "ba", "bb", "cb", "cc"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMistakesInAJoinAreReported(t *testing.T) {
	one := func(int) int { return 1 }
	pair := func(a, b int) int { return a + b }
	for want, build := range map[string]func(a, b *stream.KeyedStream[int, int]){
		"the lower bound is above the upper one": func(a, b *stream.KeyedStream[int, int]) {
			a.IntervalJoin(b).Between(time.Second, 0).Join(pair).Discard()
		},
		"it has no bounds": func(a, b *stream.KeyedStream[int, int]) {
			a.IntervalJoin(b).LowerBoundExclusive().Join(pair).Discard()
		},
		"the tag has no name": func(a, b *stream.KeyedStream[int, int]) {
			a.IntervalJoin(b).Between(0, 0).SideOutputRightLateData(process.OutputTag[int]{}).Join(pair).Discard()
		},
		"connect streams of two environments": func(a, _ *stream.KeyedStream[int, int]) {
			a.IntervalJoin(stream.NewEnv().FromElements(1).KeyBy(one)).Between(0, 0).Join(pair).Discard()
		},
	} {
		env := stream.NewEnv()
		build(env.FromElements(1).KeyBy(one), env.FromElements(2).KeyBy(one))
		_, err := env.Execute(context.Background(), "mistakes")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "interval_join_test.go") {
			t.Errorf("got the error %v, want one about %q at its line", err, want)
		}
	}
}

func TestJoinOfElementsWithoutTimestampsFails(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	s := env.FromFunc("untimed", func(_ context.Context, sc *stream.SourceContext[int]) error {
		sc.Collect(1)
		return nil
	}).KeyBy(func(int) int { return 1 })
	s.IntervalJoin(s).Between(0, 0).Join(func(a, b int) int { return a + b }).Name("sums").Discard()
	_, err := env.Execute(context.Background(), "no timestamps")
	if err == nil || !strings.Contains(err.Error(), "it has no timestamp") || !strings.Contains(err.Error(), "sums") {
		t.Errorf("got the error %v", err)
	}
}
