// Command sensoraverages computes what each sensor measured on average in each minute of event time. Readings that come
// when their minute is over correct its average for another minute (allowed lateness); later ones go to a side output. It
// is examples/sensors with windows.
//
//	go run ./examples/sensoraverages [-parallelism n] [file, default examples/sensoraverages/readings.csv]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// Reading is a line of the file.
type Reading struct {
	Sensor  string    `csv:"sensor"`
	At      time.Time `csv:"at"`
	Celsius float64   `csv:"celsius"`
}

// Average is what a sensor measured in the minute that began at Start.
type Average struct {
	Sensor     string
	Start      time.Time
	Celsius    float64
	Correction int // 0 for the first result of the minute, 1, 2 ... for those that correct it
}

func (a Average) String() string {
	s := fmt.Sprintf("%s from %s: %.2f", a.Sensor, a.Start.Format(time.TimeOnly), a.Celsius)
	if a.Correction > 0 {
		s += fmt.Sprintf(" (correction %d)", a.Correction)
	}
	return s
}

func main() {
	parallelism := flag.Int("parallelism", 2, "subtasks of each operator")
	flag.Parse()
	path := "examples/sensoraverages/readings.csv"
	if flag.NArg() > 0 {
		path = flag.Arg(0)
	}
	if err := run(context.Background(), path, *parallelism, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run writes a line for each average and each reading that came too late to out.
func run(ctx context.Context, path string, parallelism int, out io.Writer, opts ...stream.Option) error {
	env := stream.NewEnv(opts...).SetParallelism(parallelism)
	late := process.NewOutputTag[Reading]("late")
	// One subtask reads the file, so that its order decides what is late.
	averages := env.FromSource(file.New(csv.Format[Reading](csv.Header()), path), "Readings").Parallelism(1).
		AssignTimestampsAndWatermarks(tenSecondsBehind()).Parallelism(1).
		KeyBy(func(r Reading) string { return r.Sensor }).
		Window(window.Tumbling(time.Minute)).
		AllowedLateness(time.Minute).
		SideOutputLateData(late).
		AggregateProcess(agg.Avg(func(r Reading) float64 { return r.Celsius }), newAverages).UID("averages")

	averages.Map(Average.String).
		Union(averages.SideOutput(late).Map(func(r Reading) string {
			return fmt.Sprintf("too late: %s at %s", r.Sensor, r.At.UTC().Format(time.TimeOnly))
		})).
		PrintTo(out).Parallelism(1)
	_, err := env.Execute(ctx, "sensor averages")
	return err
}

// tenSecondsBehind lets readings come up to ten seconds late. A watermark follows each reading: periodic strategies, as
// watermark.BoundedOutOfOrderness, would make their first one when a small file has long been read, and nothing were late.
func tenSecondsBehind() watermark.Strategy[Reading] {
	return watermark.Punctuated(func(_ Reading, ms int64) (int64, bool) { return watermark.Add(ms, -10_001), true }).
		WithTimestamps(func(r Reading) time.Time { return r.At })
}

// averages numbers the results of each minute.
type averages struct {
	results *state.Value[int] // of the sensor and the minute at hand
}

func newAverages(rt *window.Runtime) *averages {
	return &averages{state.NewValue[int](rt.PerWindow(), "results")}
}

// Process is given the average of a minute each time its window fires.
func (a *averages) Process(ctx *window.Context[string, window.Time], avg []float64, out *process.Collector[Average]) error {
	n := a.results.Get()
	a.results.Set(n + 1)
	out.Collect(Average{ctx.Key(), time.UnixMilli(ctx.Window().Start).UTC(), avg[0], n})
	return nil
}

// Clear forgets a minute that can't be corrected any more.
func (a *averages) Clear(*window.Context[string, window.Time]) error {
	a.results.Clear()
	return nil
}
