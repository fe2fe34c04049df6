package stream_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/stream"
)

func TestFuncSourceKeepsOrderUnderBackpressure(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	const n = 100_000
	var g gather[int]
	env.FromFunc("numbers", func(_ context.Context, out *stream.SourceContext[int]) error {
		for i := range n {
			if !out.Collect(i) {
				return errors.New("turned away")
			}
		}
		return nil
	}).ForEach(g.add)
	execute(t, env)
	if len(g.xs) != n || !slices.IsSorted(g.xs) {
		t.Errorf("%d elements, in order: %v", len(g.xs), slices.IsSorted(g.xs))
	}
}

func TestFuncSourceThatWaitsHoldsNothingBack(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	seen := make(chan string)
	env.FromFunc("slow", func(ctx context.Context, out *stream.SourceContext[string]) error {
		for _, x := range []string{"a", "b", "c"} {
			out.Collect(x)
			select {
			case y := <-seen: // nothing follows before the sink has had it
				if x != y {
					t.Errorf("sent %s, seen %s", x, y)
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}).DisableChaining().ForEach(func(x string) { seen <- x })
	execute(t, env)
}

func TestFuncSourceEmitsTimestampsAndWatermarks(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	var g gather[string]
	env.FromFunc("timed", func(_ context.Context, out *stream.SourceContext[int]) error {
		out.CollectWithMillis(1, 100)
		out.EmitWatermarkMillis(100)
		out.CollectWithTimestamp(2, time.UnixMilli(200).Add(999*time.Microsecond))
		out.EmitWatermarkMillis(50) // never back
		out.MarkAsTemporarilyIdle()
		out.Collect(3)
		out.EmitWatermark(time.UnixMilli(300))
		out.Collect(4)
		return nil
	}).AddSink(func(_ context.Context, x int, at connector.ElementContext) error {
		ts, wm := fmt.Sprint(at.Timestamp), fmt.Sprint(at.Watermark)
		if at.Timestamp == math.MinInt64 {
			ts = "none"
		}
		if at.Watermark == math.MinInt64 {
			wm = "none"
		}
		g.add(fmt.Sprintf("%d@%s/%s", x, ts, wm))
		return nil
	})
	execute(t, env)
	if want := []string{"1@100/none", "2@200/100", "3@none/100", "4@none/300"}; !slices.Equal(g.xs, want) {
		t.Errorf("got %q, want %q", g.xs, want)
	}
}

func TestFuncSourceErrorsAndPanicsNameTheOperator(t *testing.T) {
	for name, f := range map[string]stream.SourceFunction[int]{
		"error": func(context.Context, *stream.SourceContext[int]) error { return errors.New("boom") },
		"panic": func(context.Context, *stream.SourceContext[int]) error { panic("boom") },
		"panic with an error": func(context.Context, *stream.SourceContext[int]) error {
			panic(errors.New("boom"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := stream.NewEnv()
			env.FromFunc("broken pipe", f).Discard()
			executeFailing(t, env, "broken pipe", "boom")
		})
	}
}

func TestCancelledFuncSourceEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	env := stream.NewEnv().SetParallelism(2)
	var turnedAway gather[bool]
	var begun sync.WaitGroup // both functions, which a job that is cancelled early need not call
	begun.Add(2)
	env.FromParallelFunc("endless", func(ctx context.Context, out *stream.SourceContext[int]) error {
		begun.Done()
		for out.Collect(1) {
		}
		turnedAway.add(ctx.Err() != nil)
		return ctx.Err()
	}).ForEach(func(int) {
		begun.Wait()
		cancel()
	})
	_, err := env.Execute(ctx, "endless")
	if !errors.Is(err, stream.ErrCanceled) {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(turnedAway.xs, []bool{true, true}) {
		t.Errorf("functions that were turned away: %v", turnedAway.xs)
	}
}

func TestParallelFuncSourceKnowsItsSubtask(t *testing.T) {
	env := stream.NewEnv().SetParallelism(3)
	var g gather[int]
	env.AddParallelSource(func(_ context.Context, out *stream.SourceContext[int]) error {
		if out.Parallelism() != 3 {
			t.Errorf("parallelism %d", out.Parallelism())
		}
		var group sync.WaitGroup // several goroutines may emit
		for i := range 10 {
			group.Go(func() { out.Collect(out.Subtask()*10 + i) })
		}
		group.Wait()
		return nil
	}).ForEach(g.add)
	execute(t, env)
	slices.Sort(g.xs)
	if len(g.xs) != 30 {
		t.Fatalf("elements %v", g.xs)
	}
	for i, x := range g.xs {
		if i != x {
			t.Fatalf("elements %v", g.xs)
		}
	}
}

func TestNilSourceFunctionNamesTheCall(t *testing.T) {
	env := stream.NewEnv()
	env.AddSource[int](nil).Discard()
	executeFailing(t, env, "func_source_test.go:", "nil")
}

func TestGeneratorDealsIndicesToItsSubtasks(t *testing.T) {
	for _, rate := range []float64{0, 1e6} {
		env := stream.NewEnv().SetParallelism(3)
		var g gather[int64]
		env.FromGenerator(10_000, func(i int64) int64 { return i }, rate).ForEach(g.add)
		execute(t, env)
		slices.Sort(g.xs)
		if len(g.xs) != 10_000 || g.xs[0] != 0 || g.xs[9999] != 9999 {
			t.Errorf("rate %v: %d elements", rate, len(g.xs))
		}
	}
	env := stream.NewEnv()
	env.FromGenerator(0, func(i int64) int64 { return i }, 0).ForEach(func(x int64) { t.Errorf("element %d", x) })
	execute(t, env)
	env.FromGenerator(1, func(i int64) int64 { return i }, -1).Discard()
	executeFailing(t, env, "func_source_test.go:", "rate")
}

func TestEndlessGeneratorRunsUntilCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	env := stream.NewEnv().SetParallelism(1)
	env.FromGenerator(-1, func(i int64) int64 { return i }, 0).ForEach(func(x int64) {
		if x == 5000 {
			cancel()
		}
	})
	if _, err := env.Execute(ctx, "endless"); !errors.Is(err, stream.ErrCanceled) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkFuncSource(b *testing.B) {
	const n = 1 << 20
	run(b, n, func(env *stream.Env) {
		env.SetParallelism(1)
		env.FromFunc("numbers", func(_ context.Context, out *stream.SourceContext[int64]) error {
			for i := range int64(n) {
				out.Collect(i)
			}
			return nil
		}).ForEach(func(int64) {})
	})
}

func BenchmarkGenerator(b *testing.B) {
	const n = 1 << 22
	run(b, n, func(env *stream.Env) {
		env.SetParallelism(1)
		env.FromGenerator(n, func(i int64) int64 { return i }, 0).ForEach(func(int64) {})
	})
}

func ExampleEnv_FromFunc() {
	env := stream.NewEnv()
	env.FromFunc("countdown", func(ctx context.Context, out *stream.SourceContext[int]) error {
		for i := 3; i > 0; i-- {
			if !out.Collect(i) {
				return ctx.Err()
			}
		}
		return nil
	}).ForEach(func(x int) { fmt.Println(x) }).Parallelism(1)
	if _, err := env.Execute(context.Background(), "countdown"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 3
	// 2
	// 1
}

func ExampleEnv_FromParallelFunc() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromParallelFunc("names", func(_ context.Context, out *stream.SourceContext[string]) error {
		out.Collect(fmt.Sprintf("subtask %d of %d", out.Subtask()+1, out.Parallelism()))
		return nil
	}).ForEach(func(x string) { fmt.Println(x) }).Parallelism(1)
	if _, err := env.Execute(context.Background(), "names"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// subtask 1 of 2
	// subtask 2 of 2
}

func ExampleEnv_FromGenerator() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromGenerator(3, func(i int64) string { return fmt.Sprint("event ", i) }, 1000).ForEach(func(x string) { fmt.Println(x) })
	if _, err := env.Execute(context.Background(), "events"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// event 0
	// event 1
	// event 2
}

func ExampleEnv_AddSource() {
	env := stream.NewEnv().SetParallelism(1)
	env.AddSource(func(_ context.Context, out *stream.SourceContext[string]) error {
		out.CollectWithTimestamp("hello", time.UnixMilli(1000))
		out.EmitWatermark(time.UnixMilli(1000))
		out.MarkAsTemporarilyIdle()
		return nil
	}).Print()
	if _, err := env.Execute(context.Background(), "hello"); err != nil {
		fmt.Println(err)
	}
	// Output: hello
}

func ExampleEnv_AddParallelSource() {
	env := stream.NewEnv().SetParallelism(2)
	env.AddParallelSource(func(_ context.Context, out *stream.SourceContext[int]) error {
		out.Collect(out.Subtask())
		return nil
	}).ForEach(func(x int) { fmt.Println(x) }).Parallelism(1)
	if _, err := env.Execute(context.Background(), "subtasks"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 0
	// 1
}
