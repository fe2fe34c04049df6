package stream_test

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// The second of two sensors is silent: no window behind them can fire, and the report says why.
func ExampleJob_Watermarks() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	env := stream.NewEnv().SetParallelism(2)
	env.FromParallelFunc("sensors", func(ctx context.Context, sc *stream.SourceContext[int64]) error {
		if sc.Info().Subtask == 0 {
			sc.Collect(time.Date(2024, 3, 1, 12, 0, 5, 0, time.UTC).UnixMilli())
		}
		<-ctx.Done()
		return nil
	}).
		AssignTimestampsAndWatermarks(watermark.Punctuated(func(_, ms int64) (int64, bool) { return ms, true }).
			WithMillis(func(x int64) int64 { return x })).
		WindowAll(window.Tumbling(time.Minute)).Count().Name("per minute").Discard()
	job, err := env.ExecuteAsync(ctx, "stuck")
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		for _, report := range job.Watermarks() {
			if report.Operator != "per minute" || len(report.HeldBy) == 0 {
				continue
			}
			root := report.HeldBy[len(report.HeldBy)-1]
			if root.Subtask == 0 {
				continue // the first sensor has not been heard yet
			}
			fmt.Println(report)
			fmt.Println(root.Source, root.Subtask, root.Reason == stream.HeldWithoutElements)
			return
		}
		runtime.Gosched()
	}
	// Output:
	// operator "per minute" subtask 1 of 1: no watermark yet, held back by "Timestamps/Watermarks" subtask 2 at "Source: sensors", which has had no element and sent no watermark yet; if it may be silent for long, mark it idle: watermark.Strategy.WithIdleness
	// Source: sensors 1 true
}
