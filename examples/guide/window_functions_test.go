package guide

import (
	"fmt"
	"strings"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// Bid is an offer in an auction.
type Bid struct {
	Item   string
	Bidder string
	Cents  int64
	At     time.Time
}

func bids(env *stream.Env) *stream.Stream[Bid] {
	return env.FromElements(
		Bid{"lamp", "ann", 500, clock(9, 0, 10)}, Bid{"lamp", "bob", 700, clock(9, 0, 20)}, Bid{"vase", "ann", 900, clock(9, 0, 30)},
		Bid{"lamp", "ann", 650, clock(9, 0, 40)}, Bid{"vase", "eve", 950, clock(9, 1, 10)}, Bid{"vase", "bob", 910, clock(9, 1, 20)},
	).AssignAscendingTimestamps(func(b Bid) time.Time { return b.At })
}

// bidsPerMinute is what the examples end with a window function.
func bidsPerMinute(env *stream.Env) *stream.WindowedStream[Bid, string, window.Time] {
	return bids(env).KeyBy(func(b Bid) string { return b.Item }).Window(window.Tumbling(time.Minute))
}

func Example_windowReduce() {
	env := stream.NewEnv().SetParallelism(1)
	bidsPerMinute(env).
		Reduce(func(a, b Bid) Bid {
			if b.Cents > a.Cents {
				return b
			}
			return a
		}).
		Map(func(b Bid) string { return fmt.Sprintf("%s: %s, %d", b.Item, b.Bidder, b.Cents) }).
		Print()
	execute(env)
	// Unordered output:
	// lamp: bob, 700
	// vase: ann, 900
	// vase: eve, 950
}

func Example_windowReduceWith() {
	env := stream.NewEnv().SetParallelism(1)
	bidsPerMinute(env).
		ReduceWith(
			func(best, b *Bid) {
				if b.Cents > best.Cents {
					*best = *b
				}
			},
			func(i window.Info[string, window.Time], best Bid) string {
				return fmt.Sprintf("%s until %s: %d", i.Key, shown(i.Window.End), best.Cents)
			}).
		Print()
	execute(env)
	// Unordered output:
	// lamp until 09:01:00: 700
	// vase until 09:01:00: 900
	// vase until 09:02:00: 950
}

func Example_windowAggregate() {
	env := stream.NewEnv().SetParallelism(1)
	bidsPerMinute(env).
		Aggregate(agg.Avg(func(b Bid) int64 { return b.Cents })).
		Map(func(r window.Result[string, window.Time, float64]) string {
			return fmt.Sprintf("%s until %s: %.1f", r.Key, shown(r.Window.End), r.Value)
		}).
		Print()
	execute(env)
	// Unordered output:
	// lamp until 09:01:00: 616.7
	// vase until 09:01:00: 900.0
	// vase until 09:02:00: 930.0
}

// spread is the difference between the highest and the lowest bid.
type spread struct{}

// bounds is its accumulator.
type bounds struct {
	Low, High int64
	Any       bool
}

func (spread) Create() bounds { return bounds{} }

func (spread) Add(acc *bounds, b Bid) {
	if !acc.Any {
		*acc = bounds{b.Cents, b.Cents, true}
	}
	acc.Low, acc.High = min(acc.Low, b.Cents), max(acc.High, b.Cents)
}

func (s spread) Merge(acc, other *bounds) {
	switch {
	case !other.Any:
	case !acc.Any:
		*acc = *other
	default:
		acc.Low, acc.High = min(acc.Low, other.Low), max(acc.High, other.High)
	}
}

func (spread) Result(acc *bounds) int64 { return acc.High - acc.Low }

func Example_ownAggregate() {
	env := stream.NewEnv().SetParallelism(1)
	bids(env).
		KeyBy(func(b Bid) string { return b.Item }).
		Window(window.Sliding(time.Hour, time.Minute)).
		Aggregate(agg.Regroupable(spread{})). // Merge is exact: windows may share what they have in common
		Filter(func(r window.Result[string, window.Time, int64]) bool {
			return r.Window.End == clock(9, 5, 0).UnixMilli()
		}).
		Map(func(r window.Result[string, window.Time, int64]) string { return fmt.Sprintf("%s: %d", r.Key, r.Value) }).
		Print()
	execute(env)
	// Unordered output:
	// lamp: 200
	// vase: 50
}

func Example_windowFold() {
	env := stream.NewEnv().SetParallelism(1)
	bidsPerMinute(env).
		Fold("", func(line string, b Bid) string { return line + "+" + b.Bidder }).
		Map(func(r window.Result[string, window.Time, string]) string { return r.Key + ": " + r.Value }).
		Print()
	execute(env)
	// Unordered output:
	// lamp: +ann+bob+ann
	// vase: +ann
	// vase: +eve+bob
}

func Example_windowApply() {
	env := stream.NewEnv().SetParallelism(1)
	bidsPerMinute(env).
		Apply(func(i window.Info[string, window.Time], all []Bid, emit func(string)) {
			for n, b := range all[1:] {
				if b.Cents < all[n].Cents {
					emit(fmt.Sprintf("%s: %s offers less than %s", i.Key, b.Bidder, all[n].Bidder))
				}
			}
		}).
		Print()
	execute(env)
	// Unordered output:
	// lamp: ann offers less than bob
	// vase: bob offers less than eve
}

// bestBids compares the best bid of each minute with that of the item's minute before.
type bestBids struct {
	before *state.Value[int64] // of the item, whatever the window
	sudden process.OutputTag[string]
}

func newBestBids(sudden process.OutputTag[string]) func(*window.Runtime) *bestBids {
	return func(rt *window.Runtime) *bestBids {
		return &bestBids{state.NewValue[int64](rt, "before"), sudden}
	}
}

func (b *bestBids) Process(ctx *window.Context[string, window.Time], best []int64, out *process.Collector[string]) error {
	before := b.before.Get()
	if before > 0 && best[0] > before {
		ctx.Emit(b.sudden, fmt.Sprintf("%s went up by %d", ctx.Key(), best[0]-before))
	}
	b.before.Set(best[0])
	out.Collect(fmt.Sprintf("%s until %s: %d", ctx.Key(), shown(ctx.Window().End), best[0]))
	return nil
}

func Example_windowAggregateProcess() {
	env := stream.NewEnv().SetParallelism(1)
	sudden := process.NewOutputTag[string]("sudden")
	best := bidsPerMinute(env).
		AggregateProcess(agg.Max(func(b Bid) int64 { return b.Cents }), newBestBids(sudden)).UID("best bids")
	best.Print()
	best.SideOutput(sudden).Print()
	execute(env)
	// Unordered output:
	// lamp until 09:01:00: 700
	// vase until 09:01:00: 900
	// vase until 09:02:00: 950
	// vase went up by 50
}

// corrections numbers the results of each window, and forgets the number when the window is gone.
type corrections struct {
	firings *state.Value[int]
}

func newCorrections(rt *window.Runtime) *corrections {
	return &corrections{state.NewValue[int](rt.PerWindow(), "firings")}
}

func (c *corrections) Process(ctx *window.Context[string, window.Time], count []int64, out *process.Collector[string]) error {
	n := c.firings.Get() + 1
	c.firings.Set(n)
	out.Collect(fmt.Sprintf("%s until %s: %d, result no. %d", ctx.Key(), shown(ctx.Window().End), count[0], n))
	return nil
}

func (c *corrections) Clear(*window.Context[string, window.Time]) error {
	c.firings.Clear()
	return nil
}

func Example_perWindowState() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(
		Bid{"lamp", "ann", 500, clock(9, 0, 10)}, Bid{"lamp", "bob", 700, clock(9, 1, 10)}, Bid{"lamp", "eve", 600, clock(9, 0, 50)},
	).
		AssignTimestampsAndWatermarks(watermark.Punctuated(func(_ Bid, ms int64) (int64, bool) { return ms, true }).
			WithTimestamps(func(b Bid) time.Time { return b.At })).
		KeyBy(func(b Bid) string { return b.Item }).
		Window(window.Tumbling(time.Minute)).
		AllowedLateness(time.Hour).
		AggregateProcess(agg.Count[Bid](), newCorrections).UID("counts").
		Print()
	execute(env)
	// Output:
	// lamp until 09:01:00: 1, result no. 1
	// lamp until 09:01:00: 2, result no. 2
	// lamp until 09:02:00: 1, result no. 1
}

// Position is where a car is, and how fast.
type Position struct {
	Car    int
	Speed  int     // km/h
	Metres float64 // since the start
	At     time.Time
}

func Example_topSpeed() {
	env := stream.NewEnv().SetParallelism(1)
	// A car tells its speed and way each second; it accelerates up to 140 km/h and then brakes.
	positions := env.FromSeq(func(yield func(Position) bool) {
		p := Position{Car: 1, At: clock(8, 0, 0)}
		for second := range 14 {
			p.Speed = 140 - 20*max(7-second, second-7)
			p.Metres += float64(p.Speed) / 3.6
			p.At = p.At.Add(time.Second)
			if !yield(p) {
				return
			}
		}
	})
	// Every 50 metres, the top speed of the last 5 seconds.
	positions.
		AssignAscendingTimestamps(func(p Position) time.Time { return p.At }).
		KeyBy(func(p Position) int { return p.Car }).
		Window(window.GlobalWindows()).
		Evictor(window.TimeEvictor(5 * time.Second)).
		TriggerBy(window.DeltaTrigger(50, func(before, now Position) float64 { return now.Metres - before.Metres })).
		MaxBy(func(p Position) int { return p.Speed }).
		Map(func(p Position) string {
			return fmt.Sprintf("top speed %d km/h at %s", p.Speed, p.At.Format(time.TimeOnly))
		}).
		Print()
	execute(env)
	// Output:
	// top speed 80 km/h at 08:00:05
	// top speed 120 km/h at 08:00:07
	// top speed 140 km/h at 08:00:08
	// top speed 140 km/h at 08:00:08
}

func Example_countWindowSliding() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1, 2, 3, 4, 5, 6).
		CountWindowAll(3, 2).
		Apply(func(_ window.Global, last []int, emit func(string)) { emit(strings.Trim(fmt.Sprint(last), "[]")) }).
		Print()
	execute(env)
	// Output:
	// 1 2
	// 2 3 4
	// 4 5 6
}
