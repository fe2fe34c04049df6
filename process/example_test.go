package process_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// Click is what the examples are about.
type Click struct {
	User string
	At   time.Time
}

func at(second int) time.Time { return time.Unix(int64(second), 0).UTC() }

var clicks = []Click{{"ann", at(0)}, {"bob", at(1)}, {"ann", at(2)}, {"ann", at(90)}}

// sampler lets every n-th element through.
type sampler struct{ n, seen int }

func (s *sampler) ProcessElement(_ *process.Context, c Click, out *process.Collector[Click]) error {
	if s.seen++; s.seen%s.n == 0 {
		out.Collect(c)
	}
	return nil
}

func ExampleFunction() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(clicks).
		Process(func(*process.Runtime) *sampler { return &sampler{n: 2} }).
		Map(func(c Click) string { return c.User }).
		Print()
	if _, err := env.Execute(context.Background(), "sample"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// bob
	// ann
}

// visits counts the clicks of a visit, which is over after a minute without one: each click moves the timer on.
type visits struct {
	clicks *state.Value[int]
	end    *state.Value[int64] // ms
}

func newVisits(rt *process.Runtime) *visits {
	return &visits{state.NewValue[int](rt, "clicks"), state.NewValue[int64](rt, "end")}
}

func (v *visits) ProcessElement(ctx *process.KeyedContext[string], c Click, _ *process.Collector[string]) error {
	if end, ok := v.end.Lookup(); ok {
		ctx.DeleteEventTimeTimer(time.UnixMilli(end))
	}
	end := c.At.Add(time.Minute)
	ctx.RegisterEventTimeTimer(end)
	v.end.Set(end.UnixMilli())
	v.clicks.Update(func(n *int) { *n++ })
	return nil
}

func (v *visits) OnTimer(ctx *process.KeyedContext[string], t process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%s left at %s after %d", ctx.Key(), t.Time().UTC().Format(time.TimeOnly), v.clicks.Get()))
	v.clicks.Clear()
	v.end.Clear()
	return nil
}

func ExampleKeyedFunction() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(clicks).
		AssignAscendingTimestamps(func(c Click) time.Time { return c.At }).
		KeyBy(func(c Click) string { return c.User }).
		Process(newVisits).UID("visits").
		Print()
	if _, err := env.Execute(context.Background(), "visits"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// bob left at 00:01:01 after 1
	// ann left at 00:02:30 after 3
}

// firsts keeps the first click of each user.
type firsts struct {
	process.NoTimers[string, string]
	seen *state.Value[bool]
}

func (f *firsts) ProcessElement(ctx *process.KeyedContext[string], _ Click, out *process.Collector[string]) error {
	if !f.seen.Exists() {
		f.seen.Set(true)
		out.Collect(ctx.Key())
	}
	return nil
}

func ExampleNoTimers() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(clicks).
		KeyBy(func(c Click) string { return c.User }).
		Process(func(rt *process.Runtime) *firsts { return &firsts{seen: state.NewValue[bool](rt, "seen")} }).
		Print()
	if _, err := env.Execute(context.Background(), "users"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ann
	// bob
}

// sorter emits its elements in order when its input has ended.
type sorter struct{ all []string }

func (s *sorter) ProcessElement(_ *process.Context, x string, _ *process.Collector[string]) error {
	s.all = append(s.all, x)
	return nil
}

func (s *sorter) Finish(out *process.Collector[string]) error {
	slices.Sort(s.all)
	for _, x := range s.all {
		out.Collect(x)
	}
	return nil
}

// Close is called in any case, also after a failure.
func (s *sorter) Close() error {
	fmt.Println("closed")
	return nil
}

func ExampleFinisher() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("pear", "apple").Process(func(*process.Runtime) *sorter { return &sorter{} }).Print()
	if _, err := env.Execute(context.Background(), "sort"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// apple
	// pear
	// closed
}

// ages sends the age of each click to a side output.
type ages struct {
	tag process.OutputTag[time.Duration]
}

func (a ages) ProcessElement(ctx *process.Context, c Click, out *process.Collector[Click]) error {
	ctx.Emit(a.tag, at(100).Sub(c.At))
	out.Collect(c)
	return nil
}

func ExampleContext_Emit() {
	tag := process.NewOutputTag[time.Duration]("ages")
	env := stream.NewEnv().SetParallelism(1)
	s := env.FromSlice(clicks).Process(func(*process.Runtime) ages { return ages{tag} })
	s.Discard()
	s.SideOutput(tag).Print()
	if _, err := env.Execute(context.Background(), "ages"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1m40s
	// 1m39s
	// 1m38s
	// 10s
}

// counters counts what it sees for the client (accumulators) and for whoever watches the job (metrics).
type counters struct {
	clicks  *process.LongCounter
	users   *process.ListAccumulator[string]
	perUser *process.MetricCounter
}

func newCounters(rt *process.Runtime) *counters {
	return &counters{
		clicks:  process.NewLongCounter(rt, "clicks"),
		users:   process.NewListAccumulator[string](rt, "users"),
		perUser: process.NewMetricCounter(rt, "clicksOfAnn"),
	}
}

func (f *counters) ProcessElement(_ *process.Context, c Click, _ *process.Collector[Click]) error {
	f.clicks.Add(1)
	f.users.Add(c.User)
	if c.User == "ann" {
		f.perUser.Inc(1)
	}
	return nil
}

func ExampleNewLongCounter() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(clicks).Process(newCounters).Name("count").Discard()
	job, err := env.ExecuteAsync(context.Background(), "clicks")
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := job.Wait()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Accumulators["clicks"], result.Accumulators["users"])
	for _, m := range job.Metrics() {
		if m.Name == "count" {
			fmt.Println(m.User["clicksOfAnn"]) // one value per subtask
		}
	}
	// Output:
	// 4 [ann bob ann ann]
	// [3]
}

// longest is an accumulator of one's own: the longest text.
type longest struct{ text string }

func (l *longest) Snapshot() process.AccumulatorValue { return longText(l.text) }

type longText string

func (t longText) Value() any { return string(t) }

func (t longText) Merge(other process.AccumulatorValue) (process.AccumulatorValue, error) {
	if o, ok := other.(longText); ok && len(o) > len(t) {
		return o, nil
	}
	return t, nil
}

type measure struct{ longest *longest }

func (m measure) ProcessElement(_ *process.Context, s string, _ *process.Collector[string]) error {
	if len(s) > len(m.longest.text) {
		m.longest.text = s
	}
	return nil
}

func ExampleNewAccumulator() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements("a", "ccc", "bb").Rebalance().
		Process(func(rt *process.Runtime) measure {
			return measure{process.NewAccumulator(rt, "longest", func() *longest { return &longest{} })}
		}).Discard()
	result, err := env.Execute(context.Background(), "measure")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Accumulators["longest"])
	// Output: ccc
}

// who tells where its subtask stands.
type who struct{ prefix string }

func newWho(rt *process.Runtime) who {
	i := rt.Info()
	return who{fmt.Sprintf("subtask %d of %d of %q", i.Subtask+1, i.Parallelism, i.TaskName)}
}

func (w who) ProcessElement(_ *process.Context, x string, out *process.Collector[string]) error {
	out.Collect(w.prefix + ": " + x)
	return nil
}

func ExampleRuntime() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements("hello").Broadcast().
		Process(newWho).Name("who").
		ForEach(func(s string) { fmt.Println(s) })
	if _, err := env.Execute(context.Background(), "who"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// subtask 1 of 2 of "who": hello
	// subtask 2 of 2 of "who": hello
}

// A source function emits elements with their times, and says how far time has come.
func ExampleSourceContext() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromFunc("clicks", func(ctx context.Context, out *process.SourceContext[Click]) error {
		for _, c := range clicks {
			out.EmitWatermark(c.At.Add(-time.Millisecond)) // nothing older follows
			if !out.CollectWithTimestamp(c, c.At) {
				return ctx.Err()
			}
		}
		return nil
	}).
		KeyBy(func(c Click) string { return c.User }).
		Process(newVisits).
		Print()
	if _, err := env.Execute(context.Background(), "visits"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// bob left at 00:01:01 after 1
	// ann left at 00:01:02 after 2
	// ann left at 00:02:30 after 1
}

// meeting pairs the words of two streams that have the same first letter, from their state.
type meeting struct {
	process.NoTimers[string, string]
	left, right *state.List[string]
}

func newMeeting(rt *process.Runtime) *meeting {
	return &meeting{left: state.NewList[string](rt, "left"), right: state.NewList[string](rt, "right")}
}

func (m *meeting) ProcessElement1(_ *process.KeyedContext[string], word string, out *process.Collector[string]) error {
	m.left.Add(word)
	for other := range m.right.All() {
		out.Collect(word + " " + other)
	}
	return nil
}

func (m *meeting) ProcessElement2(_ *process.KeyedContext[string], word string, out *process.Collector[string]) error {
	m.right.Add(word)
	for other := range m.left.All() {
		out.Collect(other + " " + word)
	}
	return nil
}

func ExampleKeyedCoFunction() {
	first := func(s string) string { return strings.ToLower(s[:1]) }
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("bright", "cold").KeyBy(first).
		Connect(env.FromElements("cat", "butterfly", "dog").KeyBy(first)).
		Process(newMeeting).
		ForEach(func(s string) { fmt.Println(s) })
	if _, err := env.Execute(context.Background(), "pairs"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// bright butterfly
	// cold cat
}
