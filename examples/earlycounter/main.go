// Command earlycounter keeps the numbers of a dashboard up to date: the turnover of each region in each hour of event time,
// shown at short intervals while the hour lasts, then once when it is over, and again for each order that comes late. That
// is one window with a trigger for each of the three (window.OnTime with Early and Late).
//
//	go run ./examples/earlycounter [-orders 20000] [-rate 20000] [-every 100ms] [-parallelism n]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// Order is something that was sold.
type Order struct {
	Region string
	Cents  int64
	At     time.Time
}

// Number is what the dashboard shows of a region and an hour.
type Number struct {
	Region string
	Hour   time.Time
	Cents  int64
	Stage  Stage
}

// Stage says how much a number can still change.
type Stage string

// The stages of a number.
const (
	Early     Stage = "so far"
	OnTime    Stage = "complete"
	Corrected Stage = "corrected"
)

func (n Number) String() string {
	return fmt.Sprintf("%s %s %d.%02d %s", n.Hour.Format("15:04"), n.Region, n.Cents/100, n.Cents%100, n.Stage)
}

func main() {
	orders := flag.Int64("orders", 20_000, "how many orders to make")
	rate := flag.Float64("rate", 20_000, "orders per second; 0 for as many as possible")
	every := flag.Duration("every", 100*time.Millisecond, "how often to show what is not complete")
	parallelism := flag.Int("parallelism", 2, "subtasks of each operator")
	flag.Parse()
	if err := run(context.Background(), *orders, *rate, *every, *parallelism, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run makes orders, as many as n, and writes the dashboard's numbers to out.
func run(ctx context.Context, n int64, rate float64, every time.Duration, parallelism int, out io.Writer, opts ...stream.Option) error {
	env := stream.NewEnv(opts...).SetParallelism(parallelism).SetAutoWatermarkInterval(50 * time.Millisecond)
	orders := env.FromGenerator(n, order, rate).
		AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(time.Minute, func(o Order) time.Time { return o.At }))
	dashboard(orders, every).PrintTo(out).Parallelism(1)
	_, err := env.Execute(ctx, "early counter")
	return err
}

// dashboard is the stream of numbers: each replaces the one before of its region and hour.
func dashboard(orders *stream.Stream[Order], every time.Duration) *stream.Stream[Number] {
	return orders.
		KeyBy(func(o Order) string { return o.Region }).
		Window(window.Tumbling(time.Hour)).
		AllowedLateness(10*time.Minute).
		Trigger(window.OnTime().
			Early(window.ContinuousProcessingTimeTrigger(every)).
			Late(window.CountTrigger(1))).
		AggregateProcess(agg.Sum(func(o Order) int64 { return o.Cents }), newNumbers).UID("turnover")
}

// numbers tells at which stage a window fires.
type numbers struct {
	complete *state.Value[bool] // whether the region's window at hand has been
}

func newNumbers(rt *window.Runtime) *numbers {
	return &numbers{state.NewValue[bool](rt.PerWindow(), "complete")}
}

// Process is given the turnover of a region and an hour each time its window fires.
func (n *numbers) Process(ctx *window.Context[string, window.Time], cents []int64, out *process.Collector[Number]) error {
	stage := Early
	if ctx.Watermark() >= ctx.Window().MaxTimestamp() {
		stage = OnTime
		if n.complete.Get() {
			stage = Corrected
		}
		n.complete.Set(true)
	}
	out.Collect(Number{ctx.Key(), time.UnixMilli(ctx.Window().Start).UTC(), cents[0], stage})
	return nil
}

// Clear forgets a window that is gone.
func (n *numbers) Clear(*window.Context[string, window.Time]) error {
	n.complete.Clear()
	return nil
}

// order makes the order i of four hours of event time that go by in 20000 orders.
func order(i int64) Order {
	random := rand.New(rand.NewPCG(uint64(i), 7))
	at := time.Date(2024, 3, 1, 8, 0, 0, 0, time.UTC).Add(time.Duration(i) * 720 * time.Millisecond)
	at = at.Add(-time.Duration(random.IntN(60_000)) * time.Millisecond)
	return Order{[...]string{"east", "north", "south", "west"}[random.IntN(4)], 100 + random.Int64N(9900), at}
}
