package watermark_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

type Reading struct {
	Sensor string
	At     time.Time
	Last   bool
}

func (r Reading) Time() time.Time { return r.At }

var readings = []Reading{
	{Sensor: "a", At: time.UnixMilli(1000)},
	{Sensor: "a", At: time.UnixMilli(4000), Last: true},
	{Sensor: "a", At: time.UnixMilli(3000)},
	{Sensor: "a", At: time.UnixMilli(9000)},
}

// show prints the timestamps that a strategy gives to the readings, with the watermark that each of them sees.
func show(s watermark.Strategy[Reading]) error {
	env := stream.NewEnv().SetParallelism(1).SetAutoWatermarkInterval(time.Hour) // so that only punctuated ones come
	env.FromSlice(readings).AssignTimestampsAndWatermarks(s).
		AddSink(func(_ context.Context, _ Reading, at connector.ElementContext) error {
			if at.Watermark == math.MinInt64 {
				fmt.Println(at.Timestamp, "without watermark")
				return nil
			}
			fmt.Println(at.Timestamp, "after watermark", at.Watermark)
			return nil
		})
	_, err := env.Execute(context.Background(), "readings")
	return err
}

func ExampleBoundedOutOfOrderness() {
	// Readings may come five seconds late; a sensor without readings for a minute is not waited for.
	s := watermark.BoundedOutOfOrderness(5*time.Second, Reading.Time).WithIdleness(time.Minute)
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(readings).AssignTimestampsAndWatermarks(s).Map(func(r Reading) string { return r.Sensor }).Print()
	if _, err := env.Execute(context.Background(), "readings"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// a
	// a
	// a
	// a
}

func ExampleAscending() {
	s := watermark.Ascending(Reading.Time).OnViolation(watermark.FailOnViolation)
	err := show(s)
	fmt.Println(err != nil && strings.Contains(err.Error(), "timestamp 3000 after 4000"))
	// Output:
	// 1000 without watermark
	// 4000 without watermark
	// true
}

func ExamplePunctuated() {
	// The sensor says which of its readings is the last of a batch.
	s := watermark.Punctuated(func(r Reading, ms int64) (int64, bool) { return ms, r.Last }).
		WithTimestamps(Reading.Time)
	if err := show(s); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1000 without watermark
	// 4000 without watermark
	// 3000 after watermark 4000
	// 9000 after watermark 4000
}

func ExamplePunctuatedPtr() {
	// A watermark after each element, two seconds behind it.
	s := watermark.PunctuatedPtr(func(_ *Reading, ms int64) (int64, bool) { return watermark.Add(ms, -2000), true }).
		WithTimestampsPtr(func(r *Reading) time.Time { return r.At })
	if err := show(s); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1000 without watermark
	// 4000 after watermark -1000
	// 3000 after watermark 2000
	// 9000 after watermark 2000
}

func ExampleNoWatermarks() {
	s := watermark.NoWatermarks[Reading]().WithMillis(func(r Reading) int64 { return r.At.UnixMilli() / 1000 })
	if err := show(s); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1 without watermark
	// 4 without watermark
	// 3 without watermark
	// 9 without watermark
}

func ExampleStrategy_WithTimestampAssigner() {
	// The assigner sees the timestamp that an element has so far: here none.
	s := watermark.NoWatermarks[Reading]().WithTimestampAssigner(func(r Reading, record int64) int64 {
		if record != math.MinInt64 {
			return record
		}
		return r.At.UnixMilli() + 1
	})
	if err := show(s); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1001 without watermark
	// 4001 without watermark
	// 3001 without watermark
	// 9001 without watermark
}

func ExampleStrategy_Err() {
	s := watermark.ForBoundedOutOfOrderness[Reading](-time.Second)
	fmt.Println(s.Err()) // Execute returns it with the place where the strategy was used
	fmt.Println(watermark.ForMonotonousTimestamps[Reading]().Err())
	// Output:
	// watermark: out-of-orderness of -1000 ms is negative
	// <nil>
}

func ExampleStrategy_WithAlignment() {
	// Sources of the group "plant" stop reading while they are more than ten seconds ahead of the slowest.
	s := watermark.ForBoundedOutOfOrderness[Reading](time.Second).WithAlignment("plant", 10*time.Second, 500*time.Millisecond)
	fmt.Println(s.Spec().Alignment)
	// Output: {plant 10000 500}
}

// slowest keeps a watermark for each sensor.
type slowest struct{ at map[string]int64 }

func (g *slowest) OnEvent(r *Reading, ms int64, _ *watermark.Emitter) { g.at[r.Sensor] = ms }

func (g *slowest) OnPeriodic(out *watermark.Emitter) {
	first, least := true, int64(0)
	for _, ms := range g.at {
		if first || ms < least {
			first, least = false, ms
		}
	}
	if !first {
		out.Watermark(least - 1)
	}
}

func ExamplePeriodic() {
	fresh := func() watermark.Generator[Reading] { return &slowest{at: map[string]int64{}} }
	s := watermark.Periodic(fresh).WithTimestamps(Reading.Time)

	// What a subtask does with it:
	g, out := s.Spec().Generator(), watermark.NewEmitter()
	g.OnEvent(&Reading{Sensor: "a"}, 100, out)
	g.OnEvent(&Reading{Sensor: "b"}, 70, out)
	g.OnPeriodic(out)
	ms, grown, _ := out.Take()
	fmt.Println(ms, grown)
	// Output: 69 true
}
