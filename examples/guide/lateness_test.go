package guide

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

func Example_lateness() {
	env := stream.NewEnv().SetParallelism(1)
	// Clicks may be five seconds out of order: these are more. (The watermark follows each element, so that a few show it.)
	clicks := env.FromElements(
		Click{"ann", "/", clock(12, 0, 5)},
		Click{"ann", "/cart", clock(12, 1, 10)}, // event time is 12:01:05 now: the first minute is complete
		Click{"ann", "/help", clock(12, 0, 30)}, // late, but allowed
		Click{"ann", "/pay", clock(12, 1, 40)},  // event time is 12:01:35
		Click{"ann", "/", clock(12, 0, 50)},     // too late
	).AssignTimestampsAndWatermarks(
		watermark.Punctuated(func(_ Click, ms int64) (int64, bool) { return watermark.Add(ms, -5_000), true }).
			WithTimestamps(func(c Click) time.Time { return c.At }))

	late := process.NewOutputTag[Click]("late clicks")
	perMinute := clicks.
		KeyBy(func(c Click) string { return c.User }).
		Window(window.Tumbling(time.Minute)).
		AllowedLateness(30 * time.Second).
		SideOutputLateData(late).
		Count().UID("clicks per minute")
	perMinute.
		Map(func(r window.Result[string, window.Time, int64]) string {
			return fmt.Sprintf("%s from %s: %d", r.Key, shown(r.Window.Start), r.Value)
		}).
		Print()
	perMinute.SideOutput(late).
		Map(func(c Click) string { return "too late: " + c.Page }).
		Print()
	execute(env)
	// Unordered output:
	// ann from 12:00:00: 1
	// ann from 12:00:00: 2
	// too late: /
	// ann from 12:01:00: 2
}

// explain prints which operators wait for event time, and for whom.
func explain(job *stream.Job, out io.Writer) {
	for _, report := range job.Watermarks() {
		if len(report.HeldBy) > 0 {
			fmt.Fprintln(out, report)
		}
	}
}

func TestReportTellsWhyAWindowDoesNotFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(2)
		busy := flotttest.NewScript[Click]().EmitAt(Click{User: "ann"}, 1).Watermark(clock(12, 0, 0).UnixMilli()).Pause("end")
		silent := flotttest.NewScript[Click]().Pause("end")
		flotttest.FromScripts(env, busy, silent).
			KeyBy(Click.user).
			Window(window.Tumbling(time.Minute)).
			Count().
			Discard()
		ctx, cancel := context.WithCancel(t.Context())
		job, err := env.ExecuteAsync(ctx, "stuck")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var out strings.Builder
		explain(job, &out)
		for _, want := range []string{`operator "Window Count`, `held back by "Source: script" subtask 2, which has had no element`, "WithIdleness"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
		cancel()
		<-job.Done()
	})
}
