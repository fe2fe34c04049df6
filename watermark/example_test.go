package watermark_test

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/watermark"
)

type Reading struct {
	Sensor string
	At     time.Time
	Last   bool
}

func (r Reading) Time() time.Time { return r.At }

func ExampleBoundedOutOfOrderness() {
	s := watermark.BoundedOutOfOrderness(5*time.Second, Reading.Time).WithIdleness(time.Minute)
	fmt.Println(s.Err())
	// Output: <nil>
}

func ExampleAscending() {
	s := watermark.Ascending(Reading.Time).OnViolation(watermark.FailOnViolation)
	fmt.Println(s.Err())
	// Output: <nil>
}

func ExamplePunctuated() {
	// The sensor says which of its readings is the last of a batch.
	s := watermark.Punctuated(func(r Reading, ms int64) (int64, bool) { return ms, r.Last }).
		WithTimestamps(Reading.Time)
	fmt.Println(s.Err())
	// Output: <nil>
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
