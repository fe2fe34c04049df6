package state_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// Purchase is what the examples are about.
type Purchase struct {
	Customer string
	Article  string
	Cents    int
}

func customer(p Purchase) string { return p.Customer }

var purchases = []Purchase{
	{"ann", "tea", 250}, {"bob", "milk", 110}, {"ann", "milk", 120}, {"ann", "tea", 240},
}

// print runs a keyed process function over the purchases, by customer, and prints what it emits.
func print[P process.KeyedFunction[string, Purchase, string]](construct func(*process.Runtime) P) {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(purchases).KeyBy(customer).Process(construct).Print()
	if _, err := env.Execute(context.Background(), "purchases"); err != nil {
		fmt.Println(err)
	}
}

type spender struct {
	process.NoTimers[string, string]
	total *state.Value[int]
}

func newSpender(rt *process.Runtime) *spender {
	return &spender{total: state.NewValue[int](rt, "total", state.Default(1000))} // everybody begins with 10.00
}

func (s *spender) ProcessElement(ctx *process.KeyedContext[string], p Purchase, out *process.Collector[string]) error {
	s.total.Update(func(cents *int) { *cents -= p.Cents }) // in place; Get and Set do the same with a copy
	out.Collect(fmt.Sprint(ctx.Key(), " has ", s.total.Get()))
	return nil
}

func ExampleNewValue() {
	print(newSpender)
	// Output:
	// ann has 750
	// bob has 890
	// ann has 630
	// ann has 390
}

type history struct {
	process.NoTimers[string, string]
	articles *state.List[string]
}

func newHistory(rt *process.Runtime) *history {
	return &history{articles: state.NewList[string](rt, "articles")}
}

func (h *history) ProcessElement(ctx *process.KeyedContext[string], p Purchase, out *process.Collector[string]) error {
	h.articles.Add(p.Article)
	out.Collect(fmt.Sprint(ctx.Key(), " has ", h.articles.Get()))
	return nil
}

func ExampleNewList() {
	print(newHistory)
	// Output:
	// ann has [tea]
	// bob has [milk]
	// ann has [tea milk]
	// ann has [tea milk tea]
}

type shelf struct {
	process.NoTimers[string, string]
	dearest *state.Map[string, int] // by article
}

func newShelf(rt *process.Runtime) *shelf {
	return &shelf{dearest: state.NewMap[string, int](rt, "dearest")}
}

func (s *shelf) ProcessElement(ctx *process.KeyedContext[string], p Purchase, out *process.Collector[string]) error {
	if !s.dearest.Contains(p.Article) || p.Cents > s.dearest.Get(p.Article) {
		s.dearest.Put(p.Article, p.Cents)
	}
	for article, cents := range s.dearest.All() { // in the order in which they were first put
		out.Collect(fmt.Sprint(ctx.Key(), " ", article, " ", cents))
	}
	return nil
}

func ExampleNewMap() {
	print(newShelf)
	// Output:
	// ann tea 250
	// bob milk 110
	// ann tea 250
	// ann milk 120
	// ann tea 250
	// ann milk 120
}

type cheapest struct {
	process.NoTimers[string, string]
	least *state.Reducing[int]
}

func newCheapest(rt *process.Runtime) *cheapest {
	return &cheapest{least: state.NewReducing(rt, "least", func(a, b int) int { return min(a, b) })}
}

func (c *cheapest) ProcessElement(ctx *process.KeyedContext[string], p Purchase, out *process.Collector[string]) error {
	c.least.Add(p.Cents)
	out.Collect(fmt.Sprint(ctx.Key(), " paid ", c.least.Get(), " or more"))
	return nil
}

func ExampleNewReducing() {
	print(newCheapest)
	// Output:
	// ann paid 250 or more
	// bob paid 110 or more
	// ann paid 120 or more
	// ann paid 120 or more
}

type average struct {
	process.NoTimers[string, string]
	cents *state.Aggregating[Purchase, agg.Average, float64]
}

func newAverage(rt *process.Runtime) *average {
	mean := agg.Avg(func(p Purchase) int { return p.Cents })
	return &average{cents: state.NewAggregating(rt, "cents", mean)}
}

func (a *average) ProcessElement(ctx *process.KeyedContext[string], p Purchase, out *process.Collector[string]) error {
	a.cents.Add(p)
	out.Collect(fmt.Sprintf("%s pays %.1f on average", ctx.Key(), a.cents.Get()))
	return nil
}

func ExampleNewAggregating() {
	print(newAverage)
	// Output:
	// ann pays 250.0 on average
	// bob pays 110.0 on average
	// ann pays 185.0 on average
	// ann pays 203.3 on average
}

type greeter struct {
	process.NoTimers[string, string]
	known *state.Value[bool]
}

// newGreeter forgets customers who have not been seen for a month.
func newGreeter(rt *process.Runtime) *greeter {
	month := state.TTL(state.TTLConfig{After: 30 * 24 * time.Hour, Update: state.OnReadAndWrite})
	return &greeter{known: state.NewValue[bool](rt, "known", month)}
}

func (g *greeter) ProcessElement(ctx *process.KeyedContext[string], _ Purchase, out *process.Collector[string]) error {
	if !g.known.Exists() {
		out.Collect("welcome, " + ctx.Key())
		g.known.Set(true)
	}
	return nil
}

func ExampleTTL() {
	print(newGreeter)
	// Output:
	// welcome, ann
	// welcome, bob
}

type names struct {
	process.NoTimers[string, string]
	seen *state.Value[[]string]
}

func newNames(rt *process.Runtime) *names {
	return &names{seen: state.NewValue[[]string](rt, "seen")}
}

// ProcessElement changes what Get gave, which is a copy, and thinks better of it.
func (n *names) ProcessElement(ctx *process.KeyedContext[string], p Purchase, out *process.Collector[string]) error {
	seen := append(n.seen.Get(), p.Article)
	if !slices.Contains(n.seen.Get(), p.Article) {
		n.seen.Set(seen)
	}
	seen[0] = "changed"
	out.Collect(fmt.Sprint(ctx.Key(), " ", n.seen.Get()))
	return nil
}

// Get gives a value that is the caller's; Set keeps a copy.
func ExampleValue() {
	print(newNames)
	// Output:
	// ann [tea]
	// bob [milk]
	// ann [tea milk]
	// ann [tea milk]
}

// pricing multiplies prices by what a broadcast stream says of the article. Purchases that come before the first factor
// of their article are not changed.
type pricing struct {
	factors *state.BroadcastDescriptor[string, int]
}

func (f pricing) ProcessElement(ctx *process.ReadOnlyContext, p Purchase, out *process.Collector[string]) error {
	if factor, ok := ctx.BroadcastState(f.factors).Lookup(p.Article); ok {
		p.Cents *= factor
	}
	out.Collect(fmt.Sprint(p.Article, " ", p.Cents))
	return nil
}

func (f pricing) ProcessBroadcastElement(ctx *process.BroadcastContext, b stream.KeyValue[string, int], out *process.Collector[string]) error {
	s := ctx.BroadcastState(f.factors)
	s.Put(b.Key, b.Value)
	out.Collect(fmt.Sprint(s.Len(), " factors"))
	return nil
}

func ExampleNewBroadcast() {
	factors := state.NewBroadcast[string, int]("factors")
	env := stream.NewEnv().SetParallelism(1)
	known := make(chan bool)
	changes := env.FromElements(stream.KeyValue[string, int]{Key: "tea", Value: 3}).BroadcastState(factors)
	env.FromFunc("purchases", func(_ context.Context, out *stream.SourceContext[Purchase]) error {
		<-known // only to make this example's output certain
		for _, p := range purchases[:2] {
			out.Collect(p)
		}
		return nil
	}).ConnectBroadcast(changes).
		Process(func(*process.Runtime) pricing { return pricing{factors} }).
		ForEach(func(s string) {
			fmt.Println(s)
			if s == "1 factors" {
				close(known)
			}
		})
	if _, err := env.Execute(context.Background(), "prices"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1 factors
	// tea 750
	// milk 110
}

func ExampleNewOperatorList() {
	// A source keeps its offsets in a list that is dealt out to the subtasks when the job is restored.
	d := state.NewOperatorList[int64]("offsets", state.Split)
	offsets := d.Open(func(err error) { fmt.Println(err) }) // the engine opens it for each subtask
	offsets.Set([]int64{17, 4})
	for o := range offsets.All() {
		fmt.Println(o)
	}
	// Output:
	// 17
	// 4
}

type forgetful struct{ total *state.Value[int] }

func (f forgetful) ProcessElement(_ *process.Context, p Purchase, _ *process.Collector[int]) error {
	f.total.Set(p.Cents)
	return nil
}

// State belongs to a key: on a stream that is not keyed its use fails the task.
func ExampleNotKeyedError() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(purchases).
		Process(func(rt *process.Runtime) forgetful { return forgetful{state.NewValue[int](rt, "total")} }).
		Discard()
	_, err := env.Execute(context.Background(), "no key")
	var unkeyed *state.NotKeyedError
	fmt.Println(errors.As(err, &unkeyed) && unkeyed.State == "total")
	// Output: true
}
