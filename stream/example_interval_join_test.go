package stream_test

import (
	"context"
	"fmt"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// Order is what a Payment is for.
type Order struct {
	ID    string
	Cents int
	At    time.Time
}

// Payment is for an Order, or a part of one.
type Payment struct {
	Order string
	Cents int
	At    time.Time
}

func clockAt(minute int) time.Time {
	return time.Unix(0, 0).Add(time.Duration(minute) * time.Minute).UTC()
}

func orders(env *stream.Env) *stream.KeyedStream[Order, string] {
	return env.FromElements(Order{"o1", 500, clockAt(0)}, Order{"o2", 900, clockAt(1)}, Order{"o3", 300, clockAt(2)}).
		AssignAscendingTimestamps(func(o Order) time.Time { return o.At }).
		KeyBy(func(o Order) string { return o.ID })
}

func payments(env *stream.Env) *stream.KeyedStream[Payment, string] {
	return env.FromElements(Payment{"o1", 500, clockAt(10)}, Payment{"o2", 450, clockAt(10)}, Payment{"o2", 450, clockAt(20)}, Payment{"o3", 300, clockAt(33)}).
		AssignAscendingTimestamps(func(p Payment) time.Time { return p.At }).
		KeyBy(func(p Payment) string { return p.Order })
}

func ExampleKeyedStream_IntervalJoin() {
	env := stream.NewEnv().SetParallelism(1)
	// Payments of an order within half an hour: o3 is paid too late.
	orders(env).IntervalJoin(payments(env)).Between(0, 30*time.Minute).
		Join(func(o Order, p Payment) string { return fmt.Sprintf("%s: %d of %d", o.ID, p.Cents, o.Cents) }).
		Print()
	if _, err := env.Execute(context.Background(), "payments"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// o1: 500 of 500
	// o2: 450 of 900
	// o2: 450 of 900
}

func ExampleIntervalJoin_UpperBoundExclusive() {
	env := stream.NewEnv().SetParallelism(1)
	orders(env).IntervalJoin(payments(env)).Between(9*time.Minute, 10*time.Minute).
		LowerBoundExclusive().UpperBoundExclusive(). // o2 is paid after nine minutes, o1 after ten
		Join(func(o Order, p Payment) string { return o.ID }).
		Print()
	orders(env).IntervalJoin(payments(env)).Between(9*time.Minute, 10*time.Minute).
		UpperBoundExclusive().
		Join(func(o Order, p Payment) string { return o.ID + " from nine to ten minutes" }).
		Print()
	if _, err := env.Execute(context.Background(), "bounds"); err != nil {
		fmt.Println(err)
	}
	// Output: o2 from nine to ten minutes
}

func ExampleIntervalJoin_JoinPtr() {
	env := stream.NewEnv().SetParallelism(1)
	orders(env).IntervalJoin(payments(env)).Between(0, time.Hour).
		JoinPtr(func(o *Order, p *Payment) time.Duration { return p.At.Sub(o.At) }).
		Print()
	if _, err := env.Execute(context.Background(), "waiting"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 10m0s
	// 9m0s
	// 19m0s
	// 31m0s
}

// settle tells when an order is paid in full. State belongs to the key of the pair, the order.
type settle struct{ paid *state.Value[int] }

func newSettle(rt *process.Runtime) *settle { return &settle{state.NewValue[int](rt, "paid")} }

func (s *settle) ProcessElement(ctx *process.JoinContext, o Order, p Payment, out *process.Collector[string]) error {
	paid := s.paid.Get() + p.Cents
	s.paid.Set(paid)
	if paid == o.Cents {
		out.Collect(fmt.Sprintf("%s paid after %v", o.ID, ctx.RightTimestamp().Sub(ctx.LeftTimestamp())))
	}
	return nil
}

func ExampleIntervalJoin_Process() {
	env := stream.NewEnv().SetParallelism(1)
	orders(env).IntervalJoin(payments(env)).Between(0, time.Hour).Process(newSettle).Print()
	if _, err := env.Execute(context.Background(), "settled"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// o1 paid after 10m0s
	// o2 paid after 19m0s
	// o3 paid after 31m0s
}
