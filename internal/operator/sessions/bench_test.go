package sessions

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

// click is an element of the benchmarks.
type click struct{ Key, Value int64 }

func (c click) key() int64 { return c.Key }

// total is a sum of clicks.
type total struct{}

func (total) Create() int64           { return 0 }
func (total) Add(acc *int64, x click) { *acc += x.Value }
func (total) Merge(acc, other *int64) { *acc += *other }
func (total) Result(acc *int64) int64 { return *acc }

type result = window.Result[int64, window.Time, int64]

func totals(tb testing.TB) *windows.Incremental {
	tb.Helper()
	acc, err := serde.Of[int64]()
	kit.Must(tb, err)
	return windows.Program[click, int64, window.Time, int64, int64, result]{
		Aggregate: total{},
		Emit: func(x *result, info *window.Info[int64, window.Time], r int64) {
			*x = result{Key: info.Key, Window: info.Window, Value: r}
		},
	}.Incremental(acc)
}

// load is a stream of clicks without end: perMilli of them a ms, keys at random.
type load struct {
	keys     int64
	perMilli int64
	gap      int64
	late     float64 // the part that is out of order
	delay    int64   // of those at most; the watermark lags as much
	every    int64   // ms of event time from watermark to watermark
}

// rounds is the number of clicks after which keys and delays come again.
const rounds = 1 << 20

// feeder gives runs of a load.
type feeder struct {
	load
	clicks []click
	delays []int64
	times  []int64
	run    frame.Run
	next   int64
	marked int64
}

func newFeeder(tb testing.TB, l load) *feeder {
	rng := rand.New(rand.NewPCG(1, 2))
	f := &feeder{load: l, clicks: make([]click, rounds), delays: make([]int64, rounds), times: make([]int64, frame.DefaultLen)}
	for i := range f.clicks {
		f.clicks[i] = click{rng.Int64N(l.keys), 1}
		if rng.Float64() < l.late {
			f.delays[i] = rng.Int64N(l.delay)
		}
	}
	f.run.Type = kit.TypeOf[click](tb)
	return f
}

// step makes the next run, and says whether a watermark follows.
func (f *feeder) step() (clicks []click, watermark int64, mark bool) {
	from := f.next % rounds
	clicks = f.clicks[from : from+frame.DefaultLen]
	for i, d := range f.delays[from : from+frame.DefaultLen] {
		f.times[i] = 1_700_000_000_000 + (f.next+int64(i))/f.perMilli - d
	}
	f.next += frame.DefaultLen
	now := f.next / f.perMilli
	if mark = now >= f.marked+f.every; mark {
		f.marked = now
	}
	return clicks, 1_700_000_000_000 + now - f.delay - 1, mark
}

// openTotals opens a driver of the load.
func openTotals(tb testing.TB, l load) (*driver, *operator.Runtime) {
	tb.Helper()
	spec := windows.Spec{In: kit.TypeOf[click](tb), Out: kit.TypeOf[result](tb), Key: kit.KeyOf(tb, click.key)}
	o := New(spec, Gap{Millis: l.gap}, process.EventTime, totals(tb)).(*driver)
	rt := kit.Runtime()
	kit.Must(tb, o.Out.Connect(kit.Null{Of: o.Out.Type}, rt))
	kit.Must(tb, o.Open(rt))
	tb.Cleanup(func() { kit.Must(tb, o.Close()) })
	return o, rt
}

// drive gives the next run to the driver.
func (f *feeder) drive(tb testing.TB, o *driver) {
	clicks, watermark, mark := f.step()
	f.run.P, f.run.N, f.run.Times = unsafe.Pointer(unsafe.SliceData(clicks)), len(clicks), f.times
	kit.Must(tb, o.Push(&f.run))
	if mark {
		kit.Must(tb, o.Mark(kit.Watermark(watermark)))
	}
}

var loads = []struct {
	name string
	load
}{
	{"gap 2s, 100k keys, 20k a second", load{keys: 100_000, perMilli: 20, gap: 2000, every: 50}},
	{"gap 10s, 100k keys, 20 percent out of order", load{keys: 100_000, perMilli: 20, gap: 10_000, late: 0.2, delay: 5000, every: 50}},
	{"gap 2s, 1M keys, 200k a second", load{keys: 1_000_000, perMilli: 200, gap: 2000, every: 50}},
	{"gap 2s, 100k keys, a watermark in 50s", load{keys: 100_000, perMilli: 20, gap: 2000, every: 50_000}},
	{"gap 2s, 1M keys, most swept", load{keys: 1_000_000, perMilli: 20, gap: 2000, every: 50}},
	{"gap 1s, 100 keys, out of order", load{keys: 100, perMilli: 20, gap: 1000, late: 0.2, delay: 2000, every: 50}},
}

func BenchmarkSessions(b *testing.B) {
	for _, c := range loads {
		b.Run(c.name, func(b *testing.B) {
			o, _ := openTotals(b, c.load)
			f := newFeeder(b, c.load)
			for f.next < 2*rounds {
				f.drive(b, o)
			}
			n, results := f.next, o.Out.Count.Load()
			b.ReportAllocs()
			for b.Loop() {
				f.drive(b, o)
			}
			n = f.next - n
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/element")
			b.ReportMetric(float64(o.Out.Count.Load()-results)/float64(n), "results/element")
		})
	}
}

// BenchmarkByHand is the loop that one would write for keys that are small numbers and elements in order: a session closes
// when the next element of its key comes.
func BenchmarkByHand(b *testing.B) {
	for _, c := range loads {
		if c.late != 0 {
			continue
		}
		b.Run(c.name, func(b *testing.B) {
			type session struct{ start, end, sum int64 }
			sessions := make([]session, c.keys)
			out := make([]result, 0, frame.DefaultLen)
			f := newFeeder(b, c.load)
			closed := 0
			step := func() {
				clicks, _, _ := f.step()
				for i, x := range clicks {
					ts, s := f.times[i], &sessions[x.Key]
					if ts > s.end {
						if s.end != 0 {
							out = append(out, result{Key: x.Key, Window: window.Time{Start: s.start, End: s.end}, Value: s.sum})
						}
						s.start, s.sum = ts, 0
					}
					s.end = ts + c.gap
					s.sum += x.Value
				}
				closed += len(out)
				out = out[:0]
			}
			for f.next < 2*rounds {
				step()
			}
			n := f.next
			closed = 0
			for b.Loop() {
				step()
			}
			n = f.next - n
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/element")
			b.ReportMetric(float64(closed)/float64(n), "results/element")
		})
	}
}

// filled is a driver with a session of each key.
func filled(b *testing.B, keys int) *driver {
	o, _ := openTotals(b, load{keys: int64(keys), gap: 1_000_000})
	clicks, times := make([]click, frame.MaxLen), make([]int64, frame.MaxLen)
	for from := 0; from < keys; from += len(clicks) {
		for i := range clicks {
			clicks[i].Key = int64((from + i) % keys)
		}
		kit.Must(b, o.Push(kit.Run(b, times, clicks...)))
	}
	return o
}

// BenchmarkSnapshot is how long the subtask stands still.
func BenchmarkSnapshot(b *testing.B) {
	for _, keys := range []int{100_000, 500_000, 1_000_000} {
		b.Run(fmt.Sprint(keys, " sessions"), func(b *testing.B) {
			o := filled(b, keys)
			for b.Loop() {
				s := operator.Snapshot{Groups: 128}
				kit.Must(b, o.Snapshot(&s))
				b.StopTimer()
				s.Release()
				runtime.GC() // as often as not there is one between two checkpoints
				b.StartTimer()
			}
		})
	}
}

// BenchmarkRunsAfterSnapshot is what runs of random keys cost when a snapshot is open: the first, which copies most, the one that
// took longest, and all until each key has come about once; and when there is none.
func BenchmarkRunsAfterSnapshot(b *testing.B) {
	const keys = 500_000
	o := filled(b, keys)
	r := rand.New(rand.NewPCG(1, 2))
	clicks, times := make([]click, frame.MaxLen), make([]int64, frame.MaxLen)
	for _, open := range []bool{false, true} {
		b.Run(fmt.Sprintf("a snapshot is open, %v", open), func(b *testing.B) {
			var first, most, all time.Duration
			for b.Loop() {
				s := operator.Snapshot{Groups: 128}
				if open {
					kit.Must(b, o.Snapshot(&s))
				}
				longest := time.Duration(0)
				for n := range keys / len(clicks) {
					for i := range clicks {
						clicks[i].Key = r.Int64N(keys)
					}
					run := kit.Run(b, times, clicks...)
					start := time.Now()
					kit.Must(b, o.Push(run))
					took := time.Since(start)
					if all += took; n == 0 {
						first += took
					}
					longest = max(longest, took)
				}
				most += longest
				s.Release()
			}
			n := float64(b.N)
			b.ReportMetric(float64(first.Microseconds())/n, "µs/first")
			b.ReportMetric(float64(most.Microseconds())/n, "µs/longest")
			b.ReportMetric(float64(all.Nanoseconds())/n/keys, "ns/element")
			b.ReportMetric(0, "ns/op")
		})
	}
}
