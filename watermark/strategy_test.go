package watermark

import (
	"math"
	"strings"
	"testing"
	"time"
)

type reading struct{ at time.Time }

func (r reading) time() time.Time { return r.at }

func TestDistanceOfTheRules(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Strategy[reading]
		want int64
	}{
		{"monotonous", ForMonotonousTimestamps[reading](), 1},
		{"ascending", Ascending(reading.time), 1},
		{"ascending extractor", AscendingTimestampExtractor(reading.time), 1},
		{"bounded", BoundedOutOfOrderness(5*time.Second, reading.time), 5001},
		{"bounded, less than a millisecond", ForBoundedOutOfOrderness[reading](time.Microsecond), 1},
		{"bounded extractor", BoundedOutOfOrdernessTimestampExtractor(5*time.Second, reading.time), 5000},
		{"longest duration", ForBoundedOutOfOrderness[reading](math.MaxInt64), math.MaxInt64/1_000_000 + 1},
	} {
		if err := c.s.Err(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if p := c.s.Spec(); p.Kind != Bounded || p.Distance != c.want {
			t.Errorf("%s: kind %d, distance %d, want %d", c.name, p.Kind, p.Distance, c.want)
		}
	}
}

func TestLastAssignerCounts(t *testing.T) {
	s := ForMonotonousTimestamps[reading]().
		WithTimestamps(reading.time).
		WithTimestampAssigner(func(reading, int64) int64 { return 1 }).
		WithTimestampAssignerPtr(func(*reading, int64) int64 { return 2 }).
		WithMillis(func(reading) int64 { return 3 }).
		WithTimestampsPtr(func(r *reading) time.Time { return r.at })
	p := s.Spec()
	if p.Pointer == nil || p.Millis != nil || p.Assign != nil || p.AssignPointer != nil {
		t.Fatalf("assigners left: %+v", p)
	}
	if got := p.Pointer(&reading{time.UnixMilli(42)}); got != 42 {
		t.Errorf("timestamp %d, want 42", got)
	}
}

func TestStrategyIsAValue(t *testing.T) {
	s := ForMonotonousTimestamps[reading]()
	s.WithIdleness(time.Second).WithAlignment("g", time.Second, 0).OnViolation(FailOnViolation).WithTimestamps(reading.time)
	if p := s.Spec(); p.Idleness != 0 || p.Alignment != (Alignment{}) || p.Violation != LogViolations || p.Millis != nil {
		t.Errorf("a With method changed its receiver: %+v", p)
	}
	if a := s.WithAlignment("g", 2*time.Second, 0).Spec().Alignment; a != (Alignment{"g", 2000, 1000}) {
		t.Errorf("alignment %+v, want an update interval of one second", a)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	ok := ForMonotonousTimestamps[reading]()
	for _, c := range []struct {
		s    Strategy[reading]
		want string
	}{
		{ForBoundedOutOfOrderness[reading](-time.Millisecond), "negative"},
		{ForBoundedOutOfOrderness[reading](-1), "negative"},
		{BoundedOutOfOrdernessTimestampExtractor(-time.Hour, reading.time), "negative"},
		{Punctuated[reading](nil), "without a function"},
		{PunctuatedPtr[reading](nil), "without a function"},
		{Periodic[reading](nil), "without a generator"},
		{ok.WithIdleness(0), "at least 1 ms"},
		{ok.WithIdleness(-time.Second), "at least 1 ms"},
		{ok.WithAlignment("", time.Second, 0), "group name"},
		{ok.WithAlignment("g", -time.Second, 0), `group "g" is negative`},
		{ok.WithAlignment("g", time.Second, time.Microsecond), "at least 1 ms"},
		{ok.OnViolation(9), "unknown"},
	} {
		if err := c.s.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	var zero Strategy[reading]
	if err := zero.Err(); err != nil {
		t.Errorf("zero strategy: %v", err)
	}
}

func TestMillisRoundsDownAndSaturates(t *testing.T) {
	for _, c := range []struct {
		t    time.Time
		want int64
	}{
		{time.Unix(0, 0), 0},
		{time.Unix(1, 999_999), 1000},
		{time.Unix(0, -1), -1},
		{time.Unix(-1, 1), -1000},
		{time.Time{}, -62135596800000},
		{time.Unix(math.MaxInt64/1000-1, 0), (math.MaxInt64/1000 - 1) * 1000},
		{time.Unix(math.MaxInt64/1000+1, 0), math.MaxInt64},
		{time.Unix(1<<60, 0), math.MaxInt64},
		{time.Unix(-1<<60, 0), math.MinInt64},
	} {
		if got := Millis(c.t); got != c.want {
			t.Errorf("Millis(%v s, %d ns) = %d, want %d", c.t.Unix(), c.t.Nanosecond(), got, c.want)
		}
	}
}

func TestAddSaturates(t *testing.T) {
	for _, c := range [][3]int64{
		{1, 2, 3},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64 - 1, 1, math.MaxInt64},
		{math.MinInt64, -1, math.MinInt64},
		{math.MinInt64, math.MaxInt64, -1},
		{math.MinInt64 + 5, -6, math.MinInt64},
		{0, math.MinInt64, math.MinInt64},
	} {
		if got := Add(c[0], c[1]); got != c[2] {
			t.Errorf("Add(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

func TestEmitterKeepsWhatIsNew(t *testing.T) {
	e := NewEmitter()
	if e.Active(); e.Pending() {
		t.Error("pending although nothing was said")
	}
	e.Watermark(5)
	e.Watermark(3)
	if ms, grown, idle := e.Take(); ms != 5 || !grown || idle || e.Pending() {
		t.Errorf("took %d, %v, %v", ms, grown, idle)
	}
	if e.Watermark(5); e.Pending() {
		t.Error("pending although the watermark has not grown")
	}
	e.Idle()
	if _, grown, idle := e.Take(); grown || !idle {
		t.Errorf("grown %v, idle %v", grown, idle)
	}
	e.Watermark(4)
	if _, grown, idle := e.Take(); grown || idle {
		t.Errorf("grown %v, idle %v: any watermark ends idleness", grown, idle)
	}
}
