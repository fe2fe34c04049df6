// Command sensors computes, in event time, what each sensor measured on average in each minute, with a keyed process
// function: the sums of the minutes that are not over yet are state, and a timer at the end of each minute emits the
// average. Readings that come when their minute is over go to a side output. (Windows do the same in one line; this is
// what they are made of.)
//
//	go run ./examples/sensors [-parallelism n] [file, default examples/sensors/readings.csv]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// Reading is a line of the file.
type Reading struct {
	Sensor  string    `csv:"sensor"`
	At      time.Time `csv:"at"`
	Celsius float64   `csv:"celsius"`
}

// Average is what a sensor measured in the minute that ended at End.
type Average struct {
	Sensor   string
	End      time.Time
	Celsius  float64
	Readings int64
}

func (a Average) String() string {
	return fmt.Sprintf("%s until %s: %.2f from %d", a.Sensor, a.End.UTC().Format(time.TimeOnly), a.Celsius, a.Readings)
}

func main() {
	parallelism := flag.Int("parallelism", 2, "subtasks of each operator")
	flag.Parse()
	path := "examples/sensors/readings.csv"
	if flag.NArg() > 0 {
		path = flag.Arg(0)
	}
	if err := run(context.Background(), path, *parallelism, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run writes a line for each average and each late reading of the file to out.
func run(ctx context.Context, path string, parallelism int, out io.Writer, opts ...stream.Option) error {
	env := stream.NewEnv(opts...).SetParallelism(parallelism)
	late := process.NewOutputTag[Reading]("late")
	// One subtask reads the file, so that its order decides what is late.
	averages := env.FromSource(file.New(csv.Format[Reading](csv.Header()), path), "Readings").Parallelism(1).
		AssignTimestampsAndWatermarks(tenSecondsBehind()).Parallelism(1).
		KeyBy(func(r Reading) string { return r.Sensor }).
		Process(func(rt *process.Runtime) *minutes { return newMinutes(rt, late) }).UID("minutes")

	averages.Map(Average.String).
		Union(averages.SideOutput(late).Map(func(r Reading) string {
			return fmt.Sprintf("late: %s at %s", r.Sensor, r.At.UTC().Format(time.TimeOnly))
		})).
		PrintTo(out).Parallelism(1)
	_, err := env.Execute(ctx, "sensors")
	return err
}

// tenSecondsBehind lets readings come up to ten seconds late. A watermark follows each reading: periodic strategies, as
// watermark.BoundedOutOfOrderness, would make their first one when a small file has long been read.
func tenSecondsBehind() watermark.Strategy[Reading] {
	return watermark.Punctuated(func(_ Reading, ms int64) (int64, bool) { return watermark.Add(ms, -10_001), true }).
		WithTimestamps(func(r Reading) time.Time { return r.At })
}

// minutes computes the averages of the sensors of one subtask.
type minutes struct {
	late process.OutputTag[Reading]
	sums *state.Map[int64, sum] // of the sensor at hand, by the end (ms) of the minute
}

type sum struct {
	Celsius  float64
	Readings int64
}

func newMinutes(rt *process.Runtime, late process.OutputTag[Reading]) *minutes {
	return &minutes{late: late, sums: state.NewMap[int64, sum](rt, "sums")}
}

// ProcessElement adds the reading to its minute.
func (m *minutes) ProcessElement(ctx *process.KeyedContext[string], r Reading, _ *process.Collector[Average]) error {
	end := r.At.Truncate(time.Minute).Add(time.Minute)
	if ctx.Watermark() >= end.UnixMilli() {
		ctx.Emit(m.late, r)
		return nil
	}
	m.sums.Update(end.UnixMilli(), func(s *sum) {
		s.Celsius += r.Celsius
		s.Readings++
	})
	ctx.RegisterEventTimeTimer(end) // one timer per minute, however often it is registered
	return nil
}

// OnTimer emits the average of a minute that is over.
func (m *minutes) OnTimer(ctx *process.KeyedContext[string], t process.Timer, out *process.Collector[Average]) error {
	s := m.sums.Get(t.Millis)
	m.sums.Remove(t.Millis)
	out.Collect(Average{ctx.Key(), t.Time(), s.Celsius / float64(s.Readings), s.Readings})
	return nil
}
