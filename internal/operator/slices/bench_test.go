package slices

import (
	"fmt"
	"math"
	"math/bits"
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

// reading is the element of the benchmarks, 24 bytes.
type reading struct {
	Key uint64
	TS  int64
	Val int64
}

// load is a stream without end: elements with random keys, rate a second of event time, a tenth of them up to disorder ms out of
// order; all of them if it is negative.
type load struct {
	keys, rate int
	disorder   int64
}

// stream makes the runs of a load again and again.
type stream struct {
	load
	values  []reading // several runs
	delay   []int64
	col     *frame.Column
	next    int64 // element
	at      int
	run     frame.Run
	watered int64
}

const streamRuns = 1024

func newStream(tb testing.TB, l load) *stream {
	s := &stream{load: l, col: frame.NewColumn(kit.TypeOf[reading](tb), frame.MaxLen)}
	x := uint64(88172645463325252)
	for range streamRuns * frame.MaxLen {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		s.values = append(s.values, reading{Key: x % uint64(l.keys) * 7919, Val: 1})
		late := int64(0)
		if l.disorder < 0 || l.disorder > 0 && x>>40%10 == 0 {
			late = int64(x>>20&(1<<40-1)) % l.disorder
		}
		s.delay = append(s.delay, late)
	}
	return s
}

// fill makes the next run; the second result is its greatest time.
func (s *stream) fill() (*frame.Run, int64) {
	xs, times := frame.Whole[reading](s.col)
	xs, times = xs[:frame.MaxLen], times[:frame.MaxLen]
	copy(xs, s.values[s.at:])
	delay := s.delay[s.at:][:frame.MaxLen]
	step := 1000 * (1 << 20) / int64(s.rate)
	t := s.next * step
	for i := range times {
		times[i] = t>>20 - delay[i]
		t += step
	}
	s.next += frame.MaxLen
	if s.at += frame.MaxLen; s.at == len(s.values) {
		s.at = 0
	}
	s.col.Filled(frame.MaxLen, true)
	s.run = s.col.Run()
	return &s.run, t>>20 - 1
}

func kernels[A, R any](tb testing.TB, a agg.Aggregate[reading, A, R]) *windows.Incremental {
	acc, err := serde.Of[A]()
	kit.Must(tb, err)
	return windows.Program[reading, uint64, window.Time, A, R, window.Result[uint64, window.Time, R]]{
		Aggregate: a, Emit: func(x *window.Result[uint64, window.Time, R], i *window.Info[uint64, window.Time], r R) {
			x.Key, x.Window, x.Value = i.Key, i.Window, r
		},
	}.Incremental(acc)
}

// feeder gives a load to a driver.
type feeder struct {
	*stream
	in  operator.Input
	out *operator.Output
	op  *driver
}

func newFeeder(tb testing.TB, l load, size, slide, lateness int64, k *windows.Incremental) *feeder {
	spec := windows.Spec{
		In: kit.TypeOf[reading](tb), Out: kit.TypeOf[window.Result[uint64, window.Time, int64]](tb), Lateness: lateness,
		Key: kit.KeyOf(tb, func(e reading) uint64 { return e.Key }),
	}
	op := New(spec, window.Grid{Size: size, Slide: slide}, process.EventTime, k)
	rt := kit.Runtime()
	f := &feeder{stream: newStream(tb, l), in: op.Inputs()[0], out: op.Output(""), op: op.(*driver)}
	kit.Must(tb, f.out.Connect(kit.Null{Of: f.out.Type}, rt))
	kit.Must(tb, op.Open(rt))
	tb.Cleanup(func() { kit.Must(tb, op.Close()) })
	return f
}

// step pushes a run, and a watermark every 200 ms of event time.
func (f *feeder) step(tb testing.TB) {
	r, now := f.fill()
	kit.Must(tb, f.in.Push(r))
	if now-f.watered >= 200 {
		f.watered = now
		kit.Must(tb, f.in.Mark(kit.Watermark(now-max(f.disorder, -f.disorder))))
	}
}

// table counts per key, as a hand-written loop does: open addressing, keys and counts inline.
type table struct {
	slots []slot
	mask  uint64
	hs    [frame.MaxLen]uint64
	end   int64
	sum   uint64
}

type slot struct {
	key   uint64
	count int64
}

func newTable(keys int) *table {
	size := 1 << bits.Len(uint(keys*3/2))
	return &table{slots: make([]slot, size), mask: uint64(size - 1), end: 10_000}
}

func (t *table) add(b []reading) (touched int64) {
	for i := range b {
		hi, lo := bits.Mul64(b[i].Key^0x9E3779B97F4A7C15, 0xbf58476d1ce4e5b9)
		t.hs[i] = (hi ^ lo) & t.mask
	}
	for i := range b {
		touched += t.slots[t.hs[i]].count & 1
	}
	for i := range b {
		j := t.hs[i]
		for {
			s := &t.slots[j]
			if s.count == 0 {
				*s = slot{b[i].Key, b[i].Val}
				break
			}
			if s.key == b[i].Key {
				s.count += b[i].Val
				break
			}
			j = (j + 1) & t.mask
		}
	}
	return touched
}

func (t *table) tumble(r *frame.Run) {
	xs := frame.Values[reading](r)
	for len(xs) > 0 {
		n := len(xs)
		for n > 0 && r.Times[r.N-len(xs)+n-1] >= t.end {
			n--
		}
		if n == 0 {
			for _, s := range t.slots {
				if s.count != 0 {
					t.sum += s.key*31 + uint64(s.count)*s.key
				}
			}
			clear(t.slots)
			t.end += 10_000
			continue
		}
		t.add(xs[:n])
		xs = xs[n:]
	}
}

// panes counts in windows of 60 s every 1 s by hand.
type panes struct {
	ring   [60][10_000]int32
	totals [10_000]int32
	second int64
	sum    uint64
}

func (p *panes) slide(r *frame.Run) {
	xs := frame.Values[reading](r)
	for i := range xs {
		for r.Times[i]/1000 > p.second {
			for k, n := range &p.totals {
				if n != 0 {
					p.sum += uint64(n) * uint64(k)
				}
			}
			p.second++
			old := &p.ring[p.second%60]
			for k := range old {
				p.totals[k] -= old[k]
			}
			clear(old[:])
		}
		k := xs[i].Key / 7919
		p.ring[p.second%60][k] += int32(xs[i].Val)
		p.totals[k] += int32(xs[i].Val)
	}
}

// measure runs stretches of so many runs and reports the best one: machines have other tenants. allocs counts those of all.
func measure(b *testing.B, runs int, step func()) {
	best := time.Duration(math.MaxInt64)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		for range runs {
			step()
		}
		best = min(best, time.Since(start))
	}
	n := float64(runs * frame.MaxLen)
	b.ReportMetric(float64(best.Nanoseconds())/n, "ns/element")
	b.ReportMetric(n*1000/float64(best.Nanoseconds()), "M/s")
	b.ReportMetric(0, "ns/op")
}

// runsIn is the number of runs in so many ms of event time.
func (l load) runsIn(ms int64) int { return int(ms * int64(l.rate) / 1000 / frame.MaxLen) }

func BenchmarkFill(b *testing.B) {
	s := newStream(b, load{10_000, 200_000, 0})
	measure(b, 2000, func() { s.fill() })
}

func BenchmarkByHand(b *testing.B) {
	for _, keys := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint("tumbling 10s/keys ", keys), func(b *testing.B) {
			s, t := newStream(b, load{keys, 200_000, 0}), newTable(keys)
			measure(b, s.runsIn(10_000), func() {
				r, _ := s.fill()
				t.tumble(r)
			})
		})
	}
	b.Run("sliding 60s 1s", func(b *testing.B) {
		s, p := newStream(b, load{10_000, 10_000, 0}), &panes{}
		measure(b, s.runsIn(60_000), func() {
			r, _ := s.fill()
			p.slide(r)
		})
	})
}

func BenchmarkWindows(b *testing.B) {
	count := kernels(b, agg.Count[reading]())
	sum := kernels(b, agg.Sum(func(e reading) int64 { return e.Val }))
	least := kernels(b, agg.Min(func(e reading) int64 { return e.Val }))
	for _, c := range []struct {
		name                  string
		load                  load
		size, slide, lateness int64
		k                     *windows.Incremental
	}{
		{"tumbling 10s/keys 10000", load{10_000, 200_000, 0}, 10_000, 10_000, 0, count},
		{"tumbling 10s/keys 10000, sum", load{10_000, 200_000, 0}, 10_000, 10_000, 0, sum},
		{"tumbling 10s/keys 10000, min", load{10_000, 200_000, 0}, 10_000, 10_000, 0, least},
		{"tumbling 10s/keys 10000, disorder 2s", load{10_000, 200_000, 2000}, 10_000, 10_000, 0, count},
		{"tumbling 10s/keys 1000000", load{1_000_000, 200_000, 0}, 10_000, 10_000, 0, count},
		{"sliding 60s 1s", load{10_000, 10_000, 0}, 60_000, 1000, 0, count},
		{"sliding 60s 1s, disorder 2s", load{10_000, 10_000, 2000}, 60_000, 1000, 0, count},
		{"sliding 60s 1s, all out of order", load{10_000, 10_000, -5000}, 60_000, 1000, 0, count},
		{"sliding 60s 1s, lateness", load{10_000, 10_000, 0}, 60_000, 1000, 10_000, count},
		{"sliding 60s 1s, min", load{10_000, 10_000, 0}, 60_000, 1000, 0, least},
		{"sliding 60s 1s, 200k a second", load{10_000, 200_000, 0}, 60_000, 1000, 0, count},
		{"sliding 60s 6s", load{10_000, 10_000, 0}, 60_000, 6000, 0, count},
		{"sliding 60s 7.001s", load{10_000, 10_000, 0}, 60_000, 7001, 0, count},
		{"sliding 60s 10s", load{10_000, 10_000, 0}, 60_000, 10_000, 0, count},
		{"sliding 60s 1s, 100k keys", load{100_000, 10_000, 0}, 60_000, 1000, 0, count},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := newFeeder(b, c.load, c.size, c.slide, c.lateness, c.k)
			for f.watered < 2*c.size {
				f.step(b)
			}
			in, out := f.next, f.out.Count.Load()
			measure(b, c.load.runsIn(c.size), func() { f.step(b) })
			b.ReportMetric(float64(f.out.Count.Load()-out)/float64(f.next-in), "results/element")
		})
	}
}
