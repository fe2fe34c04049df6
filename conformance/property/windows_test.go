package property

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// windowProgram is a random windowed operator and what comes to it.
type windowProgram struct {
	seed       uint64
	rng        *rand.Rand
	assigner   string
	function   string
	lateness   int64
	disorder   int64
	keys       int64
	all        bool // over all elements
	size       int64
	slide      int64
	offset     int64
	processing bool
	sideOutput bool
}

func newWindowProgram(seed uint64) *windowProgram {
	rng := rand.New(rand.NewPCG(seed, 7))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	p := &windowProgram{
		seed: seed, rng: rng, keys: 1 + rng.Int64N(20), size: 1 + rng.Int64N(60), all: rng.IntN(6) == 0,
		assigner: pick("tumbling", "sliding", "sliding", "session", "session by", "calendar"),
		disorder: []int64{0, 5, 40, 200}[rng.IntN(4)], processing: rng.IntN(5) == 0, sideOutput: rng.IntN(2) == 0,
	}
	p.slide = 1 + rng.Int64N(p.size)
	if rng.IntN(6) == 0 {
		p.slide = p.size + rng.Int64N(20)
	}
	if p.assigner == "tumbling" {
		p.slide = p.size
	}
	p.offset = rng.Int64N(2*p.slide-1) - p.slide + 1
	if rng.IntN(2) == 0 {
		p.lateness = rng.Int64N(100)
	}
	functions := []string{
		"count", "sum", "float sum", "average", "min", "max", "first", "last", "distinct", "top", "collect", "reduce", "reduce in place",
		"text", "declared text", "max by",
	}
	if !strings.HasPrefix(p.assigner, "session") {
		functions = append(functions, "fold", "fold slices")
	}
	p.function = functions[rng.IntN(len(functions))]
	return p
}

func (p *windowProgram) String() string {
	return fmt.Sprintf("seed %d: %s %d/%d offset %d, processing time %v, %s, lateness %d, disorder %d, keys %d, all %v", p.seed, p.assigner, p.size, p.slide,
		p.offset, p.processing, p.function, p.lateness, p.disorder, p.keys, p.all)
}

func lateTag() process.OutputTag[record] { return process.NewOutputTag[record]("late") }

// build makes the operator, and text of its results.
func (p *windowProgram) build(in *stream.Stream[record]) *stream.Stream[string] {
	if p.all {
		return resultsAll(p, p.finishAll(in))
	}
	return results(p, p.finish(in.KeyBy(record.key)))
}

func (p *windowProgram) windows() window.Assigner[window.Time] {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	switch {
	case p.assigner == "tumbling" && p.processing:
		return window.TumblingProcessingTime(ms(p.size)).Offset(ms(p.offset))
	case p.assigner == "tumbling":
		return window.Tumbling(ms(p.size)).Offset(ms(p.offset))
	case p.assigner == "sliding" && p.processing:
		return window.SlidingProcessingTime(ms(p.size), ms(p.slide)).Offset(ms(p.offset))
	case p.assigner == "sliding":
		return window.Sliding(ms(p.size), ms(p.slide)).Offset(ms(p.offset))
	case p.assigner == "calendar":
		return fewer{p.size, p.processing}
	case p.processing:
		return window.SessionProcessingTime(ms(p.size))
	}
	return window.Session(ms(p.size))
}

// fewer is a grid of windows of unequal length: size, 2 size, size ...
type fewer struct {
	size       int64
	processing bool
}

func (f fewer) period(ts int64) window.Time {
	round := ts / (3 * f.size)
	if ts < 0 && ts%(3*f.size) != 0 {
		round--
	}
	start := round * 3 * f.size
	if ts < start+f.size {
		return window.Time{Start: start, End: start + f.size}
	}
	return window.Time{Start: start + f.size, End: start + 3*f.size}
}

func (f fewer) Assign(dst []window.Time, ts, now int64) ([]window.Time, error) {
	if f.processing {
		ts = now
	}
	return append(dst, f.period(ts)), nil
}

func (f fewer) Domain() process.Domain {
	if f.processing {
		return process.ProcessingTime
	}
	return process.EventTime
}

func (f fewer) DefaultTrigger() window.Trigger {
	if f.processing {
		return window.ProcessingTimeTrigger()
	}
	return window.EventTimeTrigger()
}

func (f fewer) Grid() window.Grid { return window.Grid{Period: f.period} }

func (p *windowProgram) gap(r record) time.Duration {
	return time.Duration(1+(r.V&0xff)%p.size) * time.Millisecond
}

func (p *windowProgram) finish(k *stream.KeyedStream[record, int64]) *stream.WindowedStream[record, int64, window.Time] {
	var s *stream.WindowedStream[record, int64, window.Time]
	switch {
	case p.assigner != "session by":
		s = k.Window(p.windows())
	case p.processing:
		s = k.WindowBy(window.SessionProcessingTimeBy(p.gap))
	default:
		s = k.WindowBy(window.SessionBy(p.gap))
	}
	if p.lateness > 0 {
		s = s.AllowedLateness(time.Duration(p.lateness) * time.Millisecond)
	}
	if p.sideOutput {
		s = s.SideOutputLateData(lateTag())
	}
	return s
}

func (p *windowProgram) finishAll(in *stream.Stream[record]) *stream.AllWindowedStream[record, window.Time] {
	var s *stream.AllWindowedStream[record, window.Time]
	switch {
	case p.assigner != "session by":
		s = in.WindowAll(p.windows())
	case p.processing:
		s = in.WindowAllBy(window.SessionProcessingTimeBy(p.gap))
	default:
		s = in.WindowAllBy(window.SessionBy(p.gap))
	}
	if p.lateness > 0 {
		s = s.AllowedLateness(time.Duration(p.lateness) * time.Millisecond)
	}
	if p.sideOutput {
		s = s.SideOutputLateData(lateTag())
	}
	return s
}

func show[T any](s *stream.Stream[T]) *stream.Stream[string] {
	return s.Map(func(x T) string { return fmt.Sprintf("%+v", x) })
}

func value(r record) int64 { return r.V }

func float(r record) float64 { return float64(r.V) * 0.1 }

func concat(a, b record) record { return record{a.K, a.V*31 + b.V, a.S + "," + b.S} }

func concatPtr(acc, x *record) { *acc = concat(*acc, *x) }

// text is an aggregate for which the order matters. It is right under regrouping, which regroupable declares.
type text struct{}

func (text) Create() string            { return "" }
func (text) Add(acc *string, r record) { *acc += "+" + r.S }
func (text) Merge(acc, other *string)  { *acc += *other }
func (text) Result(acc *string) string { return *acc }

func appended(acc []int64, r record) []int64 { return append(acc, r.V) }

func results(p *windowProgram, s *stream.WindowedStream[record, int64, window.Time]) *stream.Stream[string] {
	switch p.function {
	case "count":
		return show(s.Count())
	case "sum":
		return show(s.Sum(value))
	case "float sum":
		return show(s.Sum(float))
	case "average":
		return show(s.Aggregate(agg.Avg(value)))
	case "min":
		return show(s.Min(value))
	case "max":
		return show(s.Max(func(r record) string { return r.S }))
	case "first":
		return show(s.Aggregate(agg.First(value)))
	case "last":
		return show(s.Aggregate(agg.Last(func(r record) string { return r.S })))
	case "distinct":
		return show(s.Aggregate(agg.CountDistinct(func(r record) int64 { return r.V % 7 })))
	case "top":
		return show(s.Aggregate(agg.TopN(3, value)))
	case "collect":
		return show(s.Aggregate(agg.Collect[record]()))
	case "reduce":
		return show(s.Reduce(concat))
	case "reduce in place":
		return show(s.Reduce(concatPtr))
	case "text":
		return show(s.Aggregate(agg.Aggregate[record, string, string](text{})))
	case "declared text":
		return show(s.Aggregate(agg.Regroupable[record, string, string](text{})))
	case "max by":
		return show(s.MaxBy(func(r record) int64 { return r.V % 5 }))
	case "fold":
		return show(s.Fold(int64(3), func(acc int64, r record) int64 { return acc*31 + r.V }))
	case "fold slices":
		return show(s.Fold([]int64{1}, appended))
	}
	panic("function " + p.function)
}

func resultsAll(p *windowProgram, s *stream.AllWindowedStream[record, window.Time]) *stream.Stream[string] {
	switch p.function {
	case "count":
		return show(s.Count())
	case "sum", "float sum", "average":
		return show(s.Sum(value))
	case "min", "max", "first", "last":
		return show(s.Min(value))
	case "distinct", "top", "collect":
		return show(s.Aggregate(agg.Collect[record]()))
	case "fold", "fold slices":
		return show(s.Fold([]int64{1}, appended))
	}
	return show(s.Reduce(concat))
}

// step lets one thing happen to all harnesses.
func (p *windowProgram) step(hs []*flotttest.Harness[record, string], now, watermark *int64) string {
	switch n := p.rng.IntN(10); {
	case n == 0 && *watermark > -1000:
		*watermark += p.rng.Int64N(1 + p.size)
	case n == 0:
		*watermark = -50 + p.rng.Int64N(100)
	case n == 1 || n == 2 && p.processing:
		*now += p.rng.Int64N(1 + p.size)
		for _, h := range hs {
			h.SetProcessingTime(*now)
		}
		return fmt.Sprintf("processing time %d", *now)
	default:
		return p.elements(hs, *watermark)
	}
	for _, h := range hs {
		h.ProcessWatermark(*watermark)
	}
	return fmt.Sprintf("watermark %d", *watermark)
}

func (p *windowProgram) elements(hs []*flotttest.Harness[record, string], watermark int64) string {
	run := make([]flotttest.Element[record], 1+p.rng.IntN(12))
	base := max(watermark, -60)
	for i := range run {
		ts := base + p.rng.Int64N(2*p.size+1) - p.rng.Int64N(p.disorder+1)
		if i > 0 && p.rng.IntN(4) == 0 {
			ts = run[i-1].Time
		}
		run[i] = flotttest.At(newRecord(p.rng.Int64N(p.keys), p.rng.Int64N(100)), ts)
	}
	for _, h := range hs {
		h.ProcessElements(run...)
	}
	return fmt.Sprint(run)
}

// outcome is what came out since the last step, in the order that is promised: results between two watermarks come in any.
func outcome(h *flotttest.Harness[record, string], late int) (string, int) {
	var out []string
	from := 0
	for _, e := range h.Output() {
		if e.Kind == flotttest.IsWatermark {
			slices.Sort(out[from:])
			from = len(out) + 1
		}
		out = append(out, e.String())
	}
	slices.Sort(out[min(from, len(out)):])
	h.Clear()
	side := h.SideOutput(lateTag())
	for _, e := range side[late:] {
		out = append(out, "late "+e.String())
	}
	return strings.Join(out, "\n"), len(side)
}

// TestWindowsGiveTheSameResultsOnBothPaths: slices and sessions against the general path, every emission.
func TestWindowsGiveTheSameResultsOnBothPaths(t *testing.T) {
	first := number("FLOTT_SEED", 1)
	for seed := first; seed < first+200*number("FLOTT_SOAK", 1); seed++ {
		p := newWindowProgram(seed)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { p.compare(t) })
	}
}

func (p *windowProgram) compare(t *testing.T) {
	open := func(opts ...stream.Option) *flotttest.Harness[record, string] {
		return flotttest.NewHarness(t, p.build, flotttest.WithEnv(opts...), flotttest.WithSideOutput(lateTag()))
	}
	hs := []*flotttest.Harness[record, string]{open(), open(stream.WithGeneralWindows())}
	now, watermark := int64(0), int64(math.MinInt64)
	var late [2]int
	var story []string
	for i := range 60 {
		if i == 59 {
			for _, h := range hs {
				h.ProcessWatermark(math.MaxInt64)
				h.SetProcessingTime(now + 1_000_000)
			}
			story = append(story, "the end")
		} else {
			story = append(story, p.step(hs, &now, &watermark))
		}
		var got [2]string
		for j, h := range hs {
			got[j], late[j] = outcome(h, late[j])
		}
		if got[0] != got[1] {
			t.Fatalf("%v\n%s\nthe path of its own gives\n%s\nthe general path\n%s", p, strings.Join(story, "\n"), got[0], got[1])
		}
		if a, b := hs[0].Metric("numLateRecordsDropped"), hs[1].Metric("numLateRecordsDropped"); a != b {
			t.Fatalf("%v\n%s\nlate elements: %v and %v", p, strings.Join(story, "\n"), a, b)
		}
	}
}
