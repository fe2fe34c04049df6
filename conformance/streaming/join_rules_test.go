package streaming_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// joinRules are the prose rules that concern joins.
func joinRules() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"IntervalJoinOperatorTest/context_timestamps": joinContextHasTimestamps,
		"IntervalJoinITCase/processing_time_rejected": processingTimeJoinIsRefused,
	}
}

// joinTimes emits the timestamps of each pair.
type joinTimes struct{}

func (joinTimes) ProcessElement(ctx *process.JoinContext, a, b string, out *process.Collector[string]) error {
	ts, ok := ctx.Timestamp()
	if !ok || ts.UnixMilli() != ctx.TimestampMillis() {
		return fmt.Errorf("the pair's timestamp is %v, %v; in ms %d", ts, ok, ctx.TimestampMillis())
	}
	if l, r := ctx.LeftTimestamp(), ctx.RightTimestamp(); l.UnixMilli() != ctx.LeftTimestampMillis() || r.UnixMilli() != ctx.RightTimestampMillis() {
		return fmt.Errorf("the timestamps are %v and %v; in ms %d and %d", l, r, ctx.LeftTimestampMillis(), ctx.RightTimestampMillis())
	}
	out.Collect(fmt.Sprintf("%s%s: %d %d %d", a, b, ctx.LeftTimestampMillis(), ctx.RightTimestampMillis(), ctx.TimestampMillis()))
	return nil
}

func joinContextHasTimestamps(t *testing.T) {
	key := func(string) int { return 0 }
	for _, first := range []string{"left", "right"} {
		h := flotttest.NewTwoInputHarness(t, func(a, b *stream.Stream[string]) *stream.Stream[string] {
			return a.KeyBy(key).IntervalJoin(b.KeyBy(key)).Between(-time.Millisecond, time.Millisecond).
				Process(func(*process.Runtime) joinTimes { return joinTimes{} })
		})
		left := func() {
			h.First.ProcessElement("a", 1)
			h.First.ProcessElement("b", 3)
		}
		if first == "left" {
			left()
		}
		h.Second.ProcessElement("x", 1)
		h.Second.ProcessElement("y", 2)
		if first == "right" {
			left()
		}
		got := map[string]bool{}
		for _, e := range h.Elements() {
			got[e.String()] = true
		}
		for _, want := range []string{"ax: 1 1 1@1", "ay: 1 2 2@2", "by: 3 2 3@3"} {
			if !got[want] {
				t.Errorf("%s first: no pair %q in %v", first, want, got)
			}
		}
		if len(got) != 3 {
			t.Errorf("%s first: got %v, want 3 pairs", first, got)
		}
	}
}

func processingTimeJoinIsRefused(t *testing.T) {
	env := stream.NewEnv().SetStreamTimeCharacteristic(stream.ProcessingTime)
	key := func(x int) int { return x }
	s := env.FromElements(1, 2).KeyBy(key)
	s.IntervalJoin(s).Between(0, time.Second).Join(func(a, b int) int { return a + b }).Discard()
	_, err := env.Execute(context.Background(), "processing time")
	if err == nil || !strings.Contains(err.Error(), "it needs event time") {
		t.Errorf("got the error %v", err)
	}
}
