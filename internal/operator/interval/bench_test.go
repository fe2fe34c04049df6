package interval

import (
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
)

// load is a stream of elements without end for both inputs of a join, in turn a run for each. Element i has time i ms.
type load struct {
	keys    uint64
	matches int64 // pairs that each element makes, about
	lag     int64 // of the watermark behind the elements, ms
	offset  int64 // of the interval's middle
}

// bounds are wide enough: a key has an element on one side every 2*keys ms.
func (l load) bounds() Bounds {
	half := l.matches * int64(l.keys)
	return Bounds{Lower: l.offset - half, Upper: l.offset + half}
}

// feeder gives runs of the load to a join.
type feeder struct {
	in    []operator.Input
	load  load
	cols  [2]*frame.Column
	make  func(c *frame.Column, key, i int64)
	next  int64
	run   frame.Run
	pairs *operator.Output
}

func newFeeder[X any](tb testing.TB, l load, make func(key, i int64) X, key func(X) int64) *feeder {
	tb.Helper()
	typ := kit.TypeOf[X](tb)
	k := kit.KeyOf(tb, key)
	op := JoinPtr(co.Inputs{First: typ, Second: typ}, kit.TypeOf[int64](tb), Config{Bounds: l.bounds(), Keys: [2]*operator.Key{k, k}},
		func(a, b *X) int64 { return key(*a) })
	rt := kit.Runtime()
	out := op.Output("")
	kit.Must(tb, out.Connect(kit.Null{Of: out.Type}, rt))
	kit.Must(tb, op.Open(rt))
	tb.Cleanup(func() { kit.Must(tb, op.Close()) })
	f := &feeder{in: op.Inputs(), load: l, pairs: out, make: func(c *frame.Column, key, i int64) { frame.Add(c, make(key, i), i) }}
	for side := range f.cols {
		f.cols[side] = frame.NewColumn(typ, frame.DefaultLen)
	}
	return f
}

// step gives a run to each input, and then a watermark to both.
func (f *feeder) step(tb testing.TB) {
	for side, c := range f.cols {
		c.Reset()
		for n := range int64(frame.DefaultLen) {
			i := f.next + 2*n + int64(side)
			key := uint64(i>>1) * 0x9e3779b97f4a7c15 >> 16 % f.load.keys
			f.make(c, int64(key), i)
		}
		f.run = c.Run()
		kit.Must(tb, f.in[side].Push(&f.run))
	}
	f.next += 2 * frame.DefaultLen
	for _, in := range f.in {
		kit.Must(tb, in.Mark(kit.Watermark(f.next-f.load.lag)))
	}
}

// fill brings the buffers to their steady size.
func (f *feeder) fill(tb testing.TB) {
	reach := max(f.load.bounds().reach(left), f.load.bounds().reach(right))
	for f.next < 2*(reach+f.load.lag) {
		f.step(tb)
	}
}

type fixedEvent struct{ Key, Value, Time int64 }

func newFixedEvent(key, i int64) fixedEvent { return fixedEvent{key, i, i} }

func (e fixedEvent) key() int64 { return e.Key }

type textEvent struct {
	Key  int64
	Text string
}

func newTextEvent(key, _ int64) textEvent { return textEvent{key, "a text of some length"} }

func (e textEvent) key() int64 { return e.Key }

func BenchmarkIntervalJoin(b *testing.B) {
	for _, c := range []struct {
		name string
		load load
		text bool
	}{
		{"100k keys, 3 matches", load{keys: 100_000, matches: 3, lag: 1000}, false},
		{"100k keys, 3 matches, text", load{keys: 100_000, matches: 3, lag: 1000}, true},
		{"1k keys, 3 matches", load{keys: 1000, matches: 3, lag: 1000}, false},
		{"1 key, 100 matches", load{keys: 1, matches: 100, lag: 100}, false},
		{"1 key, 3 matches, watermark far behind", load{keys: 1, matches: 3, lag: 20_000}, false},
		{"1 key, 3 matches, interval far away", load{keys: 1, matches: 3, lag: 100, offset: 20_000}, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := newFeeder(b, c.load, newFixedEvent, fixedEvent.key)
			if c.text {
				f = newFeeder(b, c.load, newTextEvent, textEvent.key)
			}
			f.fill(b)
			pairs := f.pairs.Count.Load()
			n := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				f.step(b)
				n += 2 * frame.DefaultLen
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/element")
			b.ReportMetric(float64(f.pairs.Count.Load()-pairs)/float64(n), "pairs/element")
		})
	}
}
