package stream_test

import (
	"context"
	"fmt"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// timedSales is a stream of sales in event time, on one subtask.
func timedSales() (*stream.Env, *stream.Stream[Sale]) {
	env := stream.NewEnv().SetParallelism(1)
	return env, env.FromSlice(sales).AssignAscendingTimestamps(func(s Sale) time.Time { return time.UnixMilli(s.At) })
}

// sell executes what an example has built.
func sell(env *stream.Env) {
	if _, err := env.Execute(context.Background(), "sales"); err != nil {
		fmt.Println(err)
	}
}

func ExampleKeyedStream_Window() {
	env, in := timedSales()
	in.KeyBy(shop).Window(window.Tumbling(time.Minute)).Sum(price).Print()
	sell(env)
	// Unordered output:
	// (north,[0,60000),7)
	// (south,[0,60000),3)
	// (north,[60000,120000),9)
}

func ExampleKeyedStream_WindowBy() {
	env, in := timedSales()
	// Dear sales keep a session open for longer.
	patience := func(s Sale) time.Duration { return time.Duration(s.Price) * 10 * time.Second }
	in.KeyBy(shop).WindowBy(window.SessionBy(patience)).Count().Print()
	sell(env)
	// Unordered output:
	// (south,[2000,32000),1)
	// (north,[1000,51000),2)
	// (north,[61000,151000),1)
}

func ExampleKeyedStream_TimeWindow() {
	env, in := timedSales()
	in.KeyBy(shop).TimeWindow(2*time.Minute, time.Minute).Count().Print()
	sell(env)
	// Unordered output:
	// (north,[-60000,60000),2)
	// (south,[-60000,60000),1)
	// (north,[0,120000),3)
	// (south,[0,120000),1)
	// (north,[60000,180000),1)
}

func ExampleKeyedStream_CountWindow() {
	env, in := timedSales()
	in.KeyBy(shop).CountWindow(2).Sum(price).Print() // what does not fill a window is not told
	sell(env)
	// Output:
	// (north,global,7)
}

func ExampleWindowedStream_Reduce() {
	env, in := timedSales()
	dearest := func(a, b Sale) Sale {
		if b.Price > a.Price {
			return b
		}
		return a
	}
	in.KeyBy(shop).TimeWindow(time.Minute).Reduce(dearest).Print()
	sell(env)
	// Unordered output:
	// {north 5 1000}
	// {south 3 2000}
	// {north 9 61000}
}

func ExampleWindowedStream_ReduceWith() {
	env, in := timedSales()
	add := func(acc, s *Sale) { acc.Price += s.Price }
	in.KeyBy(shop).TimeWindow(time.Minute).
		ReduceWith(add, func(i window.Info[string, window.Time], s Sale) string {
			return fmt.Sprintf("%s until %d s: %d", i.Key, i.Window.End/1000, s.Price)
		}).
		Print()
	sell(env)
	// Unordered output:
	// north until 60 s: 7
	// south until 60 s: 3
	// north until 120 s: 9
}

// best is a window function that tells when a shop beats its record.
type best struct{ record *state.Value[int] }

func newBest(rt *window.Runtime) *best { return &best{state.NewValue[int](rt, "record")} }

func (b *best) Process(ctx *window.Context[string, window.Time], totals []int, out *process.Collector[string]) error {
	if total := totals[0]; total > b.record.Get() {
		b.record.Set(total)
		out.Collect(fmt.Sprintf("%s: record %d in %v", ctx.Key(), total, ctx.Window()))
	}
	return nil
}

func ExampleWindowedStream_AggregateProcess() {
	env, in := timedSales()
	in.KeyBy(shop).TimeWindow(time.Minute).AggregateProcess(agg.Sum(price), newBest).Print()
	sell(env)
	// Unordered output:
	// north: record 7 in [0,60000)
	// south: record 3 in [0,60000)
	// north: record 9 in [60000,120000)
}

func ExampleWindowedStream_Aggregate() {
	env, in := timedSales()
	in.KeyBy(shop).TimeWindow(time.Minute).Aggregate(agg.Avg(price)).Print()
	sell(env)
	// Unordered output:
	// (north,[0,60000),3.5)
	// (south,[0,60000),3)
	// (north,[60000,120000),9)
}

func ExampleWindowedStream_AggregateWith() {
	env, in := timedSales()
	in.KeyBy(shop).TimeWindow(time.Minute).
		AggregateWith(agg.TopN(1, price), func(i window.Info[string, window.Time], top []Sale) string {
			return fmt.Sprint(i.Key, " sold best at ", top[0].At)
		}).
		Print()
	sell(env)
	// Unordered output:
	// north sold best at 1000
	// south sold best at 2000
	// north sold best at 61000
}

func ExampleWindowedStream_Fold() {
	env, in := timedSales()
	in.KeyBy(shop).TimeWindow(time.Minute).
		Fold("sold for", func(acc string, s Sale) string { return fmt.Sprint(acc, " ", s.Price) }).
		Print()
	sell(env)
	// Unordered output:
	// (north,[0,60000),sold for 5 2)
	// (south,[0,60000),sold for 3)
	// (north,[60000,120000),sold for 9)
}

func ExampleWindowedStream_Apply() {
	env, in := timedSales()
	in.KeyBy(shop).TimeWindow(time.Minute).
		Apply(func(i window.Info[string, window.Time], sales []Sale, emit func(string)) {
			emit(fmt.Sprintf("%s: %d sales, the first at %d", i.Key, len(sales), sales[0].At))
		}).
		Print()
	sell(env)
	// Unordered output:
	// north: 2 sales, the first at 1000
	// south: 1 sales, the first at 2000
	// north: 1 sales, the first at 61000
}

// numbered is a window function that counts the windows of a shop, and how often each one fires.
type numbered struct {
	windows *state.Value[int]
	firings *state.Value[int]
}

func newNumbered(rt *window.Runtime) *numbered {
	return &numbered{state.NewValue[int](rt, "windows"), state.NewValue[int](rt.PerWindow(), "firings")}
}

func (n *numbered) Process(ctx *window.Context[string, window.Time], sales []Sale, out *process.Collector[string]) error {
	if !n.firings.Exists() {
		n.windows.Update(func(w *int) { *w++ })
	}
	n.firings.Update(func(f *int) { *f++ })
	out.Collect(fmt.Sprintf("%s window %d firing %d: %d sales", ctx.Key(), n.windows.Get(), n.firings.Get(), len(sales)))
	return nil
}

func (n *numbered) Clear(*window.Context[string, window.Time]) error {
	n.firings.Clear()
	return nil
}

func ExampleWindowedStream_Process() {
	env, in := timedSales()
	in.KeyBy(shop).TimeWindow(time.Minute).
		Trigger(window.CountTrigger(1)). // fires with each element
		Process(newNumbered).
		Print()
	sell(env)
	// Unordered output:
	// north window 1 firing 1: 1 sales
	// south window 1 firing 1: 1 sales
	// north window 1 firing 2: 2 sales
	// north window 2 firing 1: 1 sales
}

func ExampleWindowedStream_Trigger() {
	env, in := timedSales()
	in.KeyBy(shop).TimeWindow(time.Minute).
		Trigger(window.PurgingTrigger(window.CountTrigger(2))). // in place of the default: nothing at the end
		Sum(price).
		Print()
	sell(env)
	// Output:
	// (north,[0,60000),7)
}

func ExampleWindowedStream_TriggerBy() {
	env, in := timedSales()
	rise := func(old, new Sale) float64 { return float64(new.Price - old.Price) }
	in.KeyBy(shop).Window(window.GlobalWindows()).TriggerBy(window.DeltaTrigger(3, rise)).MaxBy(price).Print()
	sell(env)
	// Output:
	// {north 9 61000}
}

func ExampleWindowedStream_Evictor() {
	env, in := timedSales()
	in.KeyBy(shop).Window(window.Tumbling(time.Hour)).Evictor(window.CountEvictor(2)).Sum(price).Print() // the last two
	sell(env)
	// Unordered output:
	// (north,[0,3600000),11)
	// (south,[0,3600000),3)
}

func ExampleWindowedStream_EvictorBy() {
	env, in := timedSales()
	dearer := func(s, last Sale) float64 { return float64(s.Price - last.Price) }
	in.KeyBy(shop).Window(window.Tumbling(time.Minute)).EvictorBy(window.DeltaEvictor(3, dearer)).Count().Print()
	sell(env)
	// Unordered output:
	// (north,[0,60000),1)
	// (south,[0,60000),1)
	// (north,[60000,120000),1)
}

func ExampleWindowedStream_SideOutputLateData() {
	env := stream.NewEnv().SetParallelism(1)
	late := process.NewOutputTag[Sale]("late")
	counts := env.FromElements(Sale{"north", 5, 1000}, Sale{"north", 9, 95_000}, Sale{"north", 2, 3000}).
		AssignTimestampsAndWatermarks(everySale()).
		KeyBy(shop).TimeWindow(time.Minute).
		AllowedLateness(10 * time.Second).
		SideOutputLateData(late).
		Count()
	counts.Print()
	counts.SideOutput(late).Map(func(s Sale) string { return fmt.Sprint("too late: ", s) }).Print()
	sell(env)
	// Unordered output:
	// (north,[0,60000),1)
	// too late: {north 2 3000}
	// (north,[60000,120000),1)
}

func ExampleStream_WindowAll() {
	env, in := timedSales()
	in.WindowAll(window.Tumbling(time.Minute)).Sum(price).Print()
	sell(env)
	// Output:
	// ([0,60000),10)
	// ([60000,120000),9)
}

func ExampleStream_CountWindowAll() {
	env, in := timedSales()
	in.CountWindowAll(3, 2).Apply(func(_ window.Global, sales []Sale, emit func(string)) {
		emit(fmt.Sprint("of the last ", len(sales), " the first was of ", sales[0].Shop))
	}).Print()
	sell(env)
	// Output:
	// of the last 2 the first was of north
	// of the last 3 the first was of south
}

func ExampleAllWindowedStream_MaxBy() {
	env, in := timedSales()
	in.TimeWindowAll(time.Hour).MaxBy(price).Print()
	sell(env)
	// Output:
	// {north 9 61000}
}
