package jobmanager

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestLagIsHeldAtTheEndsOfTime(t *testing.T) {
	for _, c := range []struct {
		at, furthest int64
		want         time.Duration
	}{
		{5, 8, 3 * time.Millisecond},
		{8, 5, 0},
		{5, 5, 0},
		{math.MinInt64, 5, 0},
		{5, math.MaxInt64, 0},
		{0, math.MaxInt64 / int64(time.Millisecond), math.MaxInt64 / time.Millisecond * time.Millisecond},
		{0, math.MaxInt64/int64(time.Millisecond) + 1, math.MaxInt64},
		{math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64},
	} {
		if got := (WatermarkReport{Watermark: c.at, Furthest: c.furthest}).Lag(); got != c.want {
			t.Errorf("%d behind %d: %v, want %v", c.at, c.furthest, got, c.want)
		}
	}
}

func TestWatermarksArePointsInTime(t *testing.T) {
	for ms, want := range map[int64]string{
		math.MinInt64:     "no watermark yet",
		math.MaxInt64:     "the end",
		-1:                "watermark 1969-12-31T23:59:59.999Z",
		0:                 "watermark 1970-01-01T00:00:00.000Z",
		253402300799999:   "watermark 9999-12-31T23:59:59.999Z",
		253402300800000:   "watermark 253402300800000",
		-62167219200000:   "watermark 0000-01-01T00:00:00.000Z",
		-62167219200001:   "watermark -62167219200001",
		math.MaxInt64 - 1: "watermark 9223372036854775806",
	} {
		if got := point(ms); got != want {
			t.Errorf("%d is %q, want %q", ms, got, want)
		}
	}
}

func TestHoldersAreNamedWithTheirReasons(t *testing.T) {
	for want, h := range map[string]WatermarkHolder{
		`"a" subtask 1`:                {Operator: "a"},
		`"a" subtask 2 (and one more)`: {Operator: "a", Subtask: 1, Others: 1},
		`"a" subtask 2 (and 5 more) at "Source: s" with split "p", which is at watermark 1970-01-01T00:00:00.001Z`: {
			Operator: "a", Subtask: 1, Others: 5, Source: "Source: s", Split: "p", Watermark: 1, Reason: HeldBehind,
		},
		`"a" subtask 1, which has had no element and sent no watermark yet`: {Operator: "a", Reason: HeldWithoutElements},
		`"a" subtask 1, which has emitted 7 elements and no watermark`:      {Operator: "a", Elements: 7, Reason: HeldWithoutStrategy},
		`"a" subtask 1, which has made no watermark of 7 elements`:          {Operator: "a", Elements: 7, Reason: HeldWithoutWatermarks},
		`"a" subtask 1, which has got a later watermark than no watermark yet and waits before it sends it on`: {
			Operator: "a", Watermark: math.MinInt64, Reason: HeldInside,
		},
		`"a" subtask 1, which has sent the end, which was not handled yet (frames on the way: 3)`: {
			Operator: "a", Watermark: math.MaxInt64, Waiting: 3, Reason: HeldOnTheWay,
		},
	} {
		if got := h.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestReportSaysWhatCanBeDone(t *testing.T) {
	for reason, want := range map[HoldReason]string{
		HeldBefore:            "",
		HeldWithoutElements:   "WithIdleness",
		HeldWithoutStrategy:   "AssignTimestampsAndWatermarks",
		HeldWithoutWatermarks: "auto watermark interval",
		HeldBehind:            "WithIdleness",
		HeldInside:            "",
		HeldOnTheWay:          "backpressured",
	} {
		r := WatermarkReport{Operator: "w", Parallelism: 1, HeldBy: []WatermarkHolder{{Operator: "a"}, {Operator: "b"}, {Operator: "c", Reason: reason}}}
		_, advice, found := strings.Cut(r.String(), "; ")
		if found != (want != "") || !strings.Contains(advice, want) {
			t.Errorf("reason %d: %v", reason, r)
		}
		if s := r.String(); !strings.Contains(s, `held back by "a" subtask 1, behind which is "c"`) || strings.Contains(s, `"b"`) {
			t.Errorf("the way is told as %v, want its ends", r)
		}
	}
}

func TestReportNamesInputsWhereThereAreSeveral(t *testing.T) {
	r := WatermarkReport{
		Operator: "w", Parallelism: 2, Watermark: 1, Furthest: 3, Input: 1, HeldBy: []WatermarkHolder{{Operator: "a"}},
		Inputs: []WatermarkInput{{Channels: 1, Silent: 1}, {Channels: 3, Silent: 2}},
	}
	want := `operator "w" subtask 1 of 2: watermark 1970-01-01T00:00:00.001Z, 2 of 3 channels of input 2 idle, 2ms behind, held back of input 2 by "a" subtask 1`
	if got := r.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
