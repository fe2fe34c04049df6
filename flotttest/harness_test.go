package flotttest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// reminder emits an element and reminds of it by a timer 5 ms later.
type reminder struct {
	last *state.Value[int64]
	n    *state.Map[string, int64]
}

func newReminder(rt *process.Runtime) *reminder {
	return &reminder{last: state.NewValue[int64](rt, "last"), n: state.NewMap[string, int64](rt, "n")}
}

func (r *reminder) ProcessElement(ctx *process.KeyedContext[string], x string, out *process.Collector[string]) error {
	if x == "fail" {
		return errors.New("told to fail")
	}
	if x == "panic" {
		panic("told to panic")
	}
	r.last.Set(r.last.Get() + 1)
	r.n.Put(x, 1)
	out.Collect(fmt.Sprintf("%s %d", x, r.last.Get()))
	ctx.RegisterTimer(process.EventTime, ctx.TimestampMillis()+5)
	ctx.RegisterTimer(process.ProcessingTime, ctx.ProcessingTime()+5)
	ctx.Emit(lengths(), len(x))
	return nil
}

func (r *reminder) OnTimer(ctx *process.KeyedContext[string], t process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%s %v %d now %d", ctx.Key(), t.Domain, t.Millis, ctx.ProcessingTime()))
	return nil
}

func lengths() process.OutputTag[int] { return process.NewOutputTag[int]("lengths") }

func reminders(in *stream.Stream[string]) *stream.Stream[string] {
	return in.KeyBy(func(x string) string { return x[:1] }).Process(newReminder)
}

func TestHarnessFiresTimersOfBothDomains(t *testing.T) {
	h := flotttest.NewHarness(t, reminders, flotttest.WithSideOutput(lengths()))
	h.ProcessElement("apple", 10)
	h.ProcessElements(flotttest.At("banana", 11), flotttest.At("avocado", 12))
	h.Expect(t, "apple 1@10", "banana 1@11", "avocado 2@12")
	h.ProcessWatermark(16)
	h.Expect(t, "a event time 15 now 0@15", "b event time 16 now 0@16", "watermark 16")
	h.SetProcessingTime(4)
	h.Expect(t)
	h.SetProcessingTime(7)
	got := strings.Join([]string{h.Values()[0], h.Values()[1]}, ", ")
	if got != "a processing time 5 now 7, b processing time 5 now 7" && got != "b processing time 5 now 7, a processing time 5 now 7" {
		t.Errorf("timers: %s", got)
	}
	h.Clear()
	flotttest.Equal(t, h.SideOutput(lengths()), []flotttest.Element[int]{{Value: 5, Time: 10}, {Value: 6, Time: 11}, {Value: 7, Time: 12}})
	if n := h.StateEntries("last"); n != 2 {
		t.Errorf("%d keys have state, want 2", n)
	}
	if n := h.StateEntries("n"); n != 3 {
		t.Errorf("%d map entries, want 3", n)
	}
	h.EndInput()
	h.Expect(t, "end")
}

func TestHarnessReportsErrorsAndPanicsWithTheirOperator(t *testing.T) {
	for _, x := range []string{"fail", "panic"} {
		h := flotttest.NewHarness(t, func(in *stream.Stream[string]) *stream.Stream[string] { return reminders(in).Name("the reminder") })
		err := h.TryProcessElement(x, 1)
		if err == nil || !strings.Contains(err.Error(), "the reminder") || !strings.Contains(err.Error(), "told to "+x) {
			t.Errorf("error %v", err)
		}
		if h.TryProcessElement("a", 2) == nil {
			t.Error("a dead operator goes on")
		}
	}
}

func TestHarnessRunsChainsAndUnions(t *testing.T) {
	h := flotttest.NewHarness(t, func(in *stream.Stream[int]) *stream.Stream[int] {
		return in.Filter(func(x int) bool { return x%2 == 0 }).Union(in.Map(func(x int) int { return -x })).Map(func(x int) int { return 10 * x })
	})
	h.ProcessElement(1, 1)
	h.ProcessElement(2, 2)
	h.ProcessWatermark(2)
	h.Expect(t, "-10@1", "20@2", "-20@2", "watermark 2")
	h.EndInput()
	h.Expect(t, "end")
}

type merger struct{}

func (merger) ProcessElement1(_ *process.Context, a int, out *process.Collector[string]) error {
	out.Collect(fmt.Sprint("first ", a))
	return nil
}

func (merger) ProcessElement2(ctx *process.Context, b string, out *process.Collector[string]) error {
	out.Collect(fmt.Sprint("second ", b, " at ", ctx.Watermark()))
	return nil
}

func TestTwoInputHarnessCombinesWatermarks(t *testing.T) {
	h := flotttest.NewTwoInputHarness(t, func(a *stream.Stream[int], b *stream.Stream[string]) *stream.Stream[string] {
		return a.Connect(b).Process(func(*process.Runtime) merger { return merger{} })
	})
	h.First.ProcessElement(1, flotttest.NoTime)
	h.First.ProcessWatermark(9)
	h.Second.ProcessWatermark(5)
	h.Second.ProcessElement("x", 6)
	h.Expect(t, "first 1", "watermark 5", "second x at 5@6")
	h.First.SetIdle(true)
	h.First.SetIdle(false)
	h.Second.EndInput()
	h.First.EndInput()
	if e := h.Output()[len(h.Output())-1]; e.Kind != flotttest.IsEnd {
		t.Errorf("the last event is %v", e)
	}
}

func TestHarnessWaitsForAsynchronousResults(t *testing.T) {
	release := make(chan struct{})
	h := flotttest.NewHarness(t, func(in *stream.Stream[int]) *stream.Stream[int] {
		return in.AsyncOrdered(func(ctx context.Context, x int) ([]int, error) {
			<-release
			return []int{2 * x}, nil
		}, stream.AsyncOptions[int, int]{})
	})
	h.ProcessElement(1, 1)
	h.ProcessElement(2, 2)
	h.Expect(t)
	close(release)
	h.Await(func() bool { return len(h.Output()) == 2 })
	h.Expect(t, "2@1", "4@2")
}

func TestHarnessChecksThatSharedInputIsNotChanged(t *testing.T) {
	h := flotttest.NewHarness(t, func(in *stream.Stream[[]int]) *stream.Stream[int] {
		return in.Map(func(x []int) int { x[0]++; return x[0] })
	}, flotttest.WithReadOnlyInput())
	h.ProcessElement([]int{1}, 1) // what is behind a slice is the function's own affair
	h.Expect(t, "2@1")
	u := flotttest.NewHarness(t, func(in *stream.Stream[int]) *stream.Stream[int] {
		return in.Update(func(x *int) { *x++ })
	}, flotttest.WithReadOnlyInput())
	u.ProcessElements(flotttest.At(1, 1), flotttest.At(2, 2))
	u.Expect(t, "2@1", "3@2")
	wrong := flotttest.NewHarness(t, func(in *stream.Stream[int]) *stream.Stream[int] {
		return in.MapPtr(func(x *int) int { *x++; return *x }) // it may look, not touch
	}, flotttest.WithReadOnlyInput())
	if err := wrong.TryProcessElement(1, 1); err == nil || !strings.Contains(err.Error(), "changed element 1") {
		t.Errorf("error %v", err)
	}
}

// fatal is a testing.TB whose Fatal is a panic.
type fatal struct{ testing.TB }

func (fatal) Helper() {}

func (fatal) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (fatal) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func TestHarnessRefusesWhatItCanNotDrive(t *testing.T) {
	for want, build := range map[string]func(in *stream.Stream[int]) *stream.Stream[int]{
		"its own input": func(in *stream.Stream[int]) *stream.Stream[int] { return in },
		"begins a loop": func(in *stream.Stream[int]) *stream.Stream[int] {
			loop := stream.Iterate(in)
			return loop.CloseWith(loop.Map(func(x int) int { return x }))
		},
		"harness_test.go:": func(in *stream.Stream[int]) *stream.Stream[int] {
			return in.KeyBy(func(x int) *int { return &x }).Reduce(func(a, b int) int { return a })
		},
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, want) {
					t.Errorf("the harness says %q, want %q", text, want)
				}
			}()
			flotttest.NewHarness(fatal{t}, build)
		}()
	}
}

type place struct{ rt *process.Runtime }

func (p place) ProcessElement(_ *process.Context, x int, out *process.Collector[string]) error {
	i := p.rt.Info()
	v, _ := p.rt.GlobalParameter("who")
	out.Collect(fmt.Sprintf("%d of %d, %d groups, %s", i.Subtask, i.Parallelism, i.MaxParallelism, v))
	return nil
}

func TestHarnessSetsThePlaceOfTheSubtask(t *testing.T) {
	h := flotttest.NewHarness(t, func(in *stream.Stream[int]) *stream.Stream[string] {
		return in.Process(func(rt *process.Runtime) place { return place{rt} })
	}, flotttest.WithSubtask(2, 3), flotttest.WithMaxParallelism(7), flotttest.WithProcessingTime(70),
		flotttest.Configure(func(env *stream.Env) { env.SetGlobalParameter("who", "me") }), flotttest.WithEnv(stream.WithIsolation()))
	h.ProcessElement(1, 1)
	h.Expect(t, "2 of 3, 7 groups, me@1")
	h.Advance(2 * time.Millisecond)
	if h.ProcessingTime() != 72 {
		t.Errorf("the clock is at %d", h.ProcessingTime())
	}
}

type closer struct{ calls *[]string }

func (c closer) ProcessElement(*process.Context, int, *process.Collector[int]) error { return nil }

func (c closer) Finish(*process.Collector[int]) error {
	*c.calls = append(*c.calls, "finish")
	return nil
}

func (c closer) Close() error {
	*c.calls = append(*c.calls, "close")
	return nil
}

func TestHarnessClosesOnce(t *testing.T) {
	var calls []string
	t.Run("harness", func(t *testing.T) {
		h := flotttest.NewHarness(t, func(in *stream.Stream[int]) *stream.Stream[int] {
			return in.Process(func(*process.Runtime) closer { return closer{&calls} })
		})
		h.EndInput()
		h.Close()
	})
	flotttest.Equal(t, calls, []string{"finish", "close"})
}
