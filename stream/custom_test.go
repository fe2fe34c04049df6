package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// batcher emits the sum of each run, and what it saw at watermarks and the end.
type batcher struct {
	side   process.OutputTag[string]
	n      int
	closed *gather[bool]
}

func (b *batcher) ProcessRun(ctx *process.OperatorContext, xs []reading, times []int64, out *process.Collector[string]) error {
	for i, x := range xs {
		b.n++
		out.SetTime(times[i] + 1)
		out.Collect(fmt.Sprint("element ", x.Val))
	}
	ctx.EmitAt(b.side, fmt.Sprint("watermark before ", ctx.Watermark() > 0), 7)
	return nil
}

func (b *batcher) ProcessWatermark(_ *process.OperatorContext, ms int64, out *process.Collector[string]) error {
	if ms < 1<<40 {
		out.Collect(fmt.Sprintf("watermark %d after %d", ms, b.n))
	}
	return nil
}

func (b *batcher) Finish(out *process.Collector[string]) error {
	out.Collect(fmt.Sprint("end after ", b.n))
	return nil
}

func (b *batcher) Close() error {
	b.closed.add(true)
	return nil
}

func TestTransformSeesRunsWatermarksAndTheEnd(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	side := process.NewOutputTag[string]("side")
	var got, sides gather[string]
	var closed gather[bool]
	s := env.FromElements(reading{1000, 1}, reading{2000, 2}, reading{3000, 3}).
		AssignTimestampsAndWatermarks(watermark.Punctuated(func(r reading, ms int64) (int64, bool) { return ms, r.Val == 2 }).
			WithTimestamps(reading.Time)).
		Transform("batcher", func(*process.Runtime) *batcher { return &batcher{side: side, closed: &closed} })
	s.ForEach(got.add)
	s.SideOutput(side).ForEach(sides.add)
	execute(t, env)
	if want := []string{"element 1", "element 2", "watermark 2000 after 2", "element 3", "end after 3"}; !slices.Equal(got.xs, want) {
		t.Errorf("got %q", got.xs)
	}
	if want := []string{"watermark before false", "watermark before true"}; !slices.Equal(slices.Compact(sides.xs), want) { // one a run
		t.Errorf("side output %q", sides.xs)
	}
	if len(closed.xs) != 1 {
		t.Errorf("closed %d times", len(closed.xs))
	}
}

// ticker emits the times of its timers.
type ticker struct{ last int }

func (k *ticker) ProcessRun(ctx *process.OperatorContext, xs []int, _ []int64, _ *process.Collector[string]) error {
	for _, x := range xs {
		k.last = x
		at := time.UnixMilli(int64(x))
		ctx.RegisterProcessingTimeTimer(at)
		ctx.RegisterProcessingTimeTimer(at) // a set
		if x == 20 {
			ctx.DeleteProcessingTimeTimer(at)
			ctx.DeleteProcessingTimeTimer(at)
		}
	}
	return nil
}

func (k *ticker) OnProcessingTime(ctx *process.OperatorContext, ms int64, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%d by %d, last %d", ms, ctx.ProcessingTime(), k.last))
	return nil
}

func TestTransformFiresTimersOnceTheClockIsPast(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	var got []string
	// The generator keeps the virtual clock going: an element each 10 ms. The timer of 500 is left at the end.
	at := []int{30, 10, 20, 500, 500, 500, 500}
	env.FromGenerator(int64(len(at)), func(i int64) int { return at[i] }, 100).
		Transform("ticker", func(*process.Runtime) *ticker { return &ticker{} }).
		ForEach(func(s string) { got = append(got, s) })
	if _, err := env.Simulate(context.Background(), "ticker", 1); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !strings.HasPrefix(got[0], "10 by 1") || !strings.HasPrefix(got[1], "30 by 31") {
		t.Errorf("got %q", got)
	}
}

// broken fails where it is told to.
type broken struct{ where string }

func (b broken) ProcessRun(*process.OperatorContext, []int, []int64, *process.Collector[int]) error {
	if b.where == "run" {
		return errors.New("broken at run")
	}
	return nil
}

func (b broken) ProcessWatermark(*process.OperatorContext, int64, *process.Collector[int]) error {
	if b.where == "watermark" {
		return errors.New("broken at watermark")
	}
	return nil
}

func (b broken) Finish(*process.Collector[int]) error {
	if b.where == "finish" {
		return errors.New("broken at finish")
	}
	return nil
}

func (b broken) Close() error {
	if b.where == "close" {
		return errors.New("broken at close")
	}
	return nil
}

func TestErrorsOfTransformNameTheOperator(t *testing.T) {
	for _, where := range []string{"run", "watermark", "finish", "close"} {
		env := stream.NewEnv().SetParallelism(1)
		env.FromElements(1).Transform("fragile", func(*process.Runtime) broken { return broken{where} }).Discard()
		executeFailing(t, env, "fragile", "broken at "+where)
	}
}

// running adds numbers up. Where a run ends means nothing: what spans runs is kept.
type running struct{ sum int }

func (r *running) ProcessRun(_ *process.OperatorContext, xs []int, _ []int64, out *process.Collector[int]) error {
	for _, x := range xs {
		r.sum += x
		out.Collect(r.sum)
	}
	return nil
}

func ExampleStream_Transform() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1, 2, 3, 4).Transform("running", func(*process.Runtime) *running { return new(running) }).Print()
	if _, err := env.Execute(context.Background(), "running"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1
	// 3
	// 6
	// 10
}
