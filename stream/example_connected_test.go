package stream_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

func ExampleStream_Connect() {
	env := stream.NewEnv().SetParallelism(1)
	celsius := env.FromElements(20.0, 25)
	fahrenheit := env.FromElements("50F")
	// The two streams keep their types; Union would need one.
	celsius.Connect(fahrenheit).Map(
		func(c float64) string { return fmt.Sprintf("%.0f degrees", c) },
		func(f string) string {
			var n float64
			fmt.Sscanf(f, "%fF", &n)
			return fmt.Sprintf("%.0f degrees", (n-32)/1.8)
		},
	).Print()
	if _, err := env.Execute(context.Background(), "degrees"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 20 degrees
	// 25 degrees
	// 10 degrees
}

func ExampleConnectedStreams_Map() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1, 2).Connect(env.FromElements("a", "b")).
		Map(func(n int) string { return fmt.Sprint(n * n) }, strings.ToUpper).
		Print()
	if _, err := env.Execute(context.Background(), "map"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 1
	// 4
	// A
	// B
}

func ExampleConnectedStreams_FlatMap() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(3).Connect(env.FromElements("to be", "or")).FlatMap(
		func(n int, emit func(string)) {
			for i := range n {
				emit(fmt.Sprint(i))
			}
		},
		func(line string, emit func(string)) {
			for word := range strings.FieldsSeq(line) {
				emit(word)
			}
		},
	).Print()
	if _, err := env.Execute(context.Background(), "flat map"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 0
	// 1
	// 2
	// to
	// be
	// or
}

// census counts both sides and tells when they have ended.
type census struct{ cats, dogs int }

func (c *census) ProcessElement1(*process.Context, string, *process.Collector[string]) error {
	c.cats++
	return nil
}

func (c *census) ProcessElement2(*process.Context, string, *process.Collector[string]) error {
	c.dogs++
	return nil
}

// EndInput1 is optional, as are EndInput2, Finish and Close.
func (c *census) EndInput1(out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%d cats", c.cats))
	return nil
}

func (c *census) Finish(out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%d animals", c.cats+c.dogs))
	return nil
}

func ExampleConnectedStreams_Process() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("Tom", "Felix").Connect(env.FromElements("Rex")).
		Process(func(*process.Runtime) *census { return &census{} }).
		Print()
	if _, err := env.Execute(context.Background(), "census"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2 cats
	// 3 animals
}

// stock keeps what is there of an article, whichever stream it comes from or goes to.
type stock struct {
	process.NoTimers[string, string]
	left *state.Value[int]
}

func newStock(rt *process.Runtime) *stock { return &stock{left: state.NewValue[int](rt, "left")} }

// delivery and soldItem name an article and how many pieces of it.
type (
	delivery struct {
		Article string
		Pieces  int
	}
	soldItem struct {
		Article string
		Pieces  int
	}
)

func (s *stock) ProcessElement1(ctx *process.KeyedContext[string], d delivery, out *process.Collector[string]) error {
	return s.change(ctx, d.Pieces, out)
}

func (s *stock) ProcessElement2(ctx *process.KeyedContext[string], x soldItem, out *process.Collector[string]) error {
	return s.change(ctx, -x.Pieces, out)
}

func (s *stock) change(ctx *process.KeyedContext[string], n int, out *process.Collector[string]) error {
	s.left.Update(func(left *int) { *left += n })
	if s.left.Get() == 0 {
		out.Collect(ctx.Key() + " is sold out")
	}
	return nil
}

func ExampleConnectedStreams_KeyBy() {
	env := stream.NewEnv().SetParallelism(2)
	deliveries := env.FromElements(delivery{"tea", 5}, delivery{"rum", 1})
	sales := env.FromElements(soldItem{"tea", 2}, soldItem{"tea", 3})
	// Elements of both streams with one key meet in one subtask.
	deliveries.Connect(sales).
		KeyBy(func(d delivery) string { return d.Article }, func(s soldItem) string { return s.Article }).
		Process(newStock).UID("stock").
		ForEach(func(line string) { fmt.Println(line) })
	if _, err := env.Execute(context.Background(), "stock"); err != nil {
		fmt.Println(err)
	}
	// Output: tea is sold out
}

func ExampleKeyedStream_Connect() {
	env := stream.NewEnv().SetParallelism(1)
	deliveries := env.FromElements(delivery{"tea", 1}).KeyBy(func(d delivery) string { return d.Article })
	sales := env.FromElements(soldItem{"tea", 1}).KeyBy(func(s soldItem) string { return s.Article })
	deliveries.Connect(sales).Process(newStock).Print()
	if _, err := env.Execute(context.Background(), "stock"); err != nil {
		fmt.Println(err)
	}
	// Output: tea is sold out
}

func ExampleConnectedKeyedStreams_Process() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(delivery{"rum", 2}).Connect(env.FromElements(soldItem{"rum", 2})).
		KeyBy(func(d delivery) string { return d.Article }, func(s soldItem) string { return s.Article }).
		Process(newStock).
		Print()
	if _, err := env.Execute(context.Background(), "stock"); err != nil {
		fmt.Println(err)
	}
	// Output: rum is sold out
}
