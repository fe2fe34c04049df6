package stream_test

import (
	"context"
	"fmt"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// limit says how much a sensor may show; it comes from a control stream.
type limit struct {
	Sensor string
	Max    int
}

type measurement struct {
	Sensor string
	Value  int
}

// guard lets measurements through that are above their limit. It holds them back until all limits are known: between the
// streams there is no order.
type guard struct {
	limits *state.BroadcastDescriptor[string, int]
	known  *state.BroadcastView[string, int]
	held   []measurement
}

func (g *guard) ProcessElement(ctx *process.ReadOnlyContext, m measurement, _ *process.Collector[string]) error {
	g.known = ctx.BroadcastState(g.limits) // can be read here, not changed
	g.held = append(g.held, m)
	return nil
}

func (g *guard) ProcessBroadcastElement(ctx *process.BroadcastContext, l limit, _ *process.Collector[string]) error {
	ctx.BroadcastState(g.limits).Put(l.Sensor, l.Max)
	return nil
}

func (g *guard) Finish(out *process.Collector[string]) error {
	for _, m := range g.held {
		if top, ok := g.known.Lookup(m.Sensor); ok && m.Value > top {
			out.Collect(fmt.Sprintf("%s: %d is above %d", m.Sensor, m.Value, top))
		}
	}
	return nil
}

func ExampleStream_BroadcastState() {
	env := stream.NewEnv().SetParallelism(2)
	limits := state.NewBroadcast[string, int]("limits")
	control := env.FromElements(limit{"boiler", 90}, limit{"pump", 7}).BroadcastState(limits)

	env.FromParallelSlice([]measurement{{"boiler", 95}, {"pump", 3}, {"door", 1}, {"pump", 8}}).
		ConnectBroadcast(control).
		Process(func(*process.Runtime) *guard { return &guard{limits: limits} }).
		ForEach(func(line string) { fmt.Println(line) })
	if _, err := env.Execute(context.Background(), "limits"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// boiler: 95 is above 90
	// pump: 8 is above 7
}

func ExampleStream_ConnectBroadcast() {
	env := stream.NewEnv().SetParallelism(1)
	limits := state.NewBroadcast[string, int]("limits")
	env.FromElements(measurement{"boiler", 95}).
		ConnectBroadcast(env.FromElements(limit{"boiler", 90}).BroadcastState(limits)).
		Process(func(*process.Runtime) *guard { return &guard{limits: limits} }).
		Print()
	if _, err := env.Execute(context.Background(), "limits"); err != nil {
		fmt.Println(err)
	}
	// Output: boiler: 95 is above 90
}

func ExampleBroadcastConnectedStream_Process() {
	env := stream.NewEnv().SetParallelism(1)
	limits := state.NewBroadcast[string, int]("limits")
	env.FromElements(measurement{"pump", 8}, measurement{"pump", 6}).
		ConnectBroadcast(env.FromElements(limit{"pump", 7}).BroadcastState(limits)).
		Process(func(*process.Runtime) *guard { return &guard{limits: limits} }).
		Print()
	if _, err := env.Execute(context.Background(), "limits"); err != nil {
		fmt.Println(err)
	}
	// Output: pump: 8 is above 7
}

// highest keeps the highest value of each sensor; a word on the control stream tells them all.
type highest struct {
	process.NoBroadcastTimers[string, string]
	max   *state.Value[int]
	ended func()
}

func (h *highest) ProcessElement(_ *process.KeyedReadOnlyContext[string], m measurement, _ *process.Collector[string]) error {
	h.max.Update(func(top *int) { *top = max(*top, m.Value) })
	return nil
}

func (h *highest) ProcessBroadcastElement(ctx *process.KeyedBroadcastContext[string], word string, out *process.Collector[string]) error {
	// This side has no key. It can visit those of a state, of this subtask.
	return ctx.ApplyToKeyedState("max", func(sensor string) error {
		out.Collect(fmt.Sprintf("%s: %s %d", word, sensor, h.max.Get()))
		return nil
	})
}

func (h *highest) EndInput1(*process.Collector[string]) error {
	h.ended()
	return nil
}

func ExampleKeyedStream_ConnectBroadcast() {
	env := stream.NewEnv().SetParallelism(1)
	measured := make(chan struct{}) // the word comes when all measurements are there
	control := env.FromFunc("control", func(_ context.Context, out *process.SourceContext[string]) error {
		<-measured
		out.Collect("today")
		return nil
	}).BroadcastState()

	env.FromElements(measurement{"boiler", 95}, measurement{"pump", 3}, measurement{"pump", 8}).
		KeyBy(func(m measurement) string { return m.Sensor }).
		ConnectBroadcast(control).
		Process(func(rt *process.Runtime) *highest {
			return &highest{max: state.NewValue[int](rt, "max"), ended: func() { close(measured) }}
		}).
		Print()
	if _, err := env.Execute(context.Background(), "highest"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// today: boiler 95
	// today: pump 8
}

func ExampleKeyedBroadcastConnectedStream_Process() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(measurement{"pump", 3}).
		KeyBy(func(m measurement) string { return m.Sensor }).
		ConnectBroadcast(env.FromElements[string]().BroadcastState()).
		Process(func(rt *process.Runtime) *highest {
			return &highest{max: state.NewValue[int](rt, "max"), ended: func() { fmt.Println("measured") }}
		}).
		Print()
	if _, err := env.Execute(context.Background(), "highest"); err != nil {
		fmt.Println(err)
	}
	// Output: measured
}
