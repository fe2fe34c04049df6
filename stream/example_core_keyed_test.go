package stream_test

import (
	"context"
	"fmt"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// Sale is what the examples on keyed streams are about.
type Sale struct {
	Shop  string
	Price int
	At    int64 // ms
}

func shop(s Sale) string { return s.Shop }
func price(s Sale) int   { return s.Price }

var sales = []Sale{{"north", 5, 1000}, {"south", 3, 2000}, {"north", 2, 3000}, {"north", 9, 61_000}}

func ExampleStream_KeyBy() {
	type place struct{ Country, City string }
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(place{"FR", "Paris"}, place{"US", "Paris"}, place{"FR", "Paris"}).
		KeyBy(func(p place) place { return p }). // a key may have several parts
		Count().
		Print()
	if _, err := env.Execute(context.Background(), "places"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ({FR Paris},1)
	// ({US Paris},1)
	// ({FR Paris},2)
}

func ExampleStream_KeyByPtr() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(sales).
		KeyByPtr(func(s *Sale) string { return s.Shop }).
		Count().
		Print()
	if _, err := env.Execute(context.Background(), "sales"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// (north,1)
	// (south,1)
	// (north,2)
	// (north,3)
}

func ExampleKeyedStream_Reduce() {
	env := stream.NewEnv().SetParallelism(1)
	dearest := func(a, b Sale) Sale {
		if b.Price > a.Price {
			return b
		}
		return a
	}
	env.FromSlice(sales).KeyBy(shop).Reduce(dearest).Print()
	if _, err := env.Execute(context.Background(), "dearest"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {north 5 1000}
	// {south 3 2000}
	// {north 5 1000}
	// {north 9 61000}
}

func ExampleKeyedStream_ReducePtr() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(sales).KeyBy(shop).
		ReducePtr(func(acc, x *Sale) { acc.Price += x.Price }).
		Print()
	if _, err := env.Execute(context.Background(), "turnover"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {north 5 1000}
	// {south 3 2000}
	// {north 7 1000}
	// {north 16 1000}
}

func ExampleKeyedStream_Sum() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(sales).KeyBy(shop).Sum(price).Print()
	if _, err := env.Execute(context.Background(), "turnover"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// (north,5)
	// (south,3)
	// (north,7)
	// (north,16)
}

func ExampleKeyedStream_Count() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("to", "be", "or", "not", "to", "be").
		KeyBy(func(word string) string { return word }).
		Count().
		Filter(func(c stream.KeyValue[string, int64]) bool { return c.Value > 1 }).
		Print()
	if _, err := env.Execute(context.Background(), "repeated words"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// (to,2)
	// (be,2)
}

func ExampleKeyedStream_Min() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(sales).KeyBy(shop).Min(price).Print()
	if _, err := env.Execute(context.Background(), "cheapest"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// (north,5)
	// (south,3)
	// (north,2)
	// (north,2)
}

func ExampleKeyedStream_Max() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(sales).KeyBy(shop).Max(price).Print()
	if _, err := env.Execute(context.Background(), "dearest"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// (north,5)
	// (south,3)
	// (north,5)
	// (north,9)
}

func ExampleKeyedStream_Stream() {
	// All sales of a shop go to one subtask, in order; the map itself needs no key.
	env := stream.NewEnv().SetParallelism(2)
	env.FromSlice(sales).KeyBy(shop).Stream().
		Map(func(s Sale) string { return fmt.Sprint(s.Shop, " ", s.Price) }).
		ForEach(func(s string) { fmt.Println(s) })
	if _, err := env.Execute(context.Background(), "sales"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// north 5
	// south 3
	// north 2
	// north 9
}

// stamps emits where and when a sale was, by the timestamp of the element.
type stamps struct{}

func (stamps) ProcessElement(ctx *process.Context, s Sale, out *process.Collector[string]) error {
	if at, ok := ctx.Timestamp(); ok {
		out.Collect(fmt.Sprint(s.Shop, " at ", at.UTC().Format(time.TimeOnly)))
	}
	return nil
}

func ExampleStream_Process() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(sales).
		AssignAscendingTimestamps(func(s Sale) time.Time { return time.UnixMilli(s.At) }).
		Process(func(*process.Runtime) stamps { return stamps{} }).
		Print()
	if _, err := env.Execute(context.Background(), "sales"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// north at 00:00:01
	// south at 00:00:02
	// north at 00:00:03
	// north at 00:01:01
}

// turnover adds up what a shop sells in a minute and emits it when event time has passed the minute.
type turnover struct {
	total *state.Map[int64, int] // by the end of the minute
}

func newTurnover(rt *process.Runtime) *turnover {
	return &turnover{total: state.NewMap[int64, int](rt, "total")}
}

func (t *turnover) ProcessElement(ctx *process.KeyedContext[string], s Sale, _ *process.Collector[string]) error {
	const minute = 60_000
	end := (s.At/minute + 1) * minute
	t.total.Put(end, t.total.Get(end)+s.Price)
	ctx.RegisterTimer(process.EventTime, end)
	return nil
}

func (t *turnover) OnTimer(ctx *process.KeyedContext[string], at process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%s until %s: %d", ctx.Key(), at.Time().UTC().Format(time.TimeOnly), t.total.Get(at.Millis)))
	t.total.Remove(at.Millis)
	return nil
}

func ExampleKeyedStream_Process() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(sales).
		AssignAscendingTimestamps(func(s Sale) time.Time { return time.UnixMilli(s.At) }).
		KeyBy(shop).
		Process(newTurnover).UID("turnover").
		ForEach(func(s string) { fmt.Println(s) })
	if _, err := env.Execute(context.Background(), "turnover"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// north until 00:01:00: 7
	// south until 00:01:00: 3
	// north until 00:02:00: 9
}
