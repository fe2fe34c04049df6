package windowing

import (
	"testing"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

// load is a stream of numbers: keys come in turn with gaps of a prime, each element is a step later than the one before.
type load struct {
	keys, perSecond int64
}

// kernelsOf are those of any aggregate of numbers in windows of time.
func kernelsOf[A, R any](b *testing.B, a agg.Aggregate[number, A, R], size func(R) int64) *windows.Incremental {
	b.Helper()
	h, err := serde.Of[A]()
	kit.Must(b, err)
	return windows.Program[number, int64, window.Time, A, R, number]{
		Aggregate: a, Emit: func(x *number, info *window.Info[int64, window.Time], r R) { *x = number{info.Key, size(r)} },
	}.Incremental(h)
}

func BenchmarkWindows(b *testing.B) {
	in := kit.TypeOf[number](b)
	spec := windows.Spec{In: in, Out: in, Key: kit.KeyOf(b, number.key)}
	process := func(d Definition[number, window.Time]) operator.Operator {
		return Process(spec, d, func(*window.Runtime) window.Function[int64, number, window.Time, number] { return last{} })
	}
	k := numberKernels[window.Time](b)
	tumbles := Definition[number, window.Time]{Assigner: window.Tumbling(10 * time.Second)}
	slides := Definition[number, window.Time]{Assigner: window.Sliding(time.Minute, 10*time.Second)}
	session := Definition[number, window.Time]{Assigner: window.Session(2 * time.Second)}
	counts := Definition[number, window.Global]{Assigner: window.GlobalWindows(), Trigger: window.PurgingTrigger(window.CountTrigger(10))}
	evicts := Definition[number, window.Time]{Assigner: window.Tumbling(10 * time.Second), Evictor: window.CountEvictor(5)}
	few, many, sparse := load{10_000, 200_000}, load{1_000_000, 2_000_000}, load{1_000_000, 100_000}
	for _, c := range []struct {
		name string
		op   func() operator.Operator
		load load
	}{
		{"tumbling sum", func() operator.Operator { return Aggregate(spec, tumbles, k) }, few},
		{"tumbling sum, 1M keys", func() operator.Operator { return Aggregate(spec, tumbles, k) }, many},
		{"sliding sum", func() operator.Operator { return Aggregate(spec, slides, k) }, few},
		{"session sum", func() operator.Operator { return Aggregate(spec, session, k) }, load{100_000, 200_000}},
		{"session sum, busy", func() operator.Operator { return Aggregate(spec, session, k) }, few},
		{"count sum", func() operator.Operator { return Aggregate(spec, counts, numberKernels[window.Global](b)) }, few},
		{"tumbling process", func() operator.Operator { return process(tumbles) }, few},
		{"tumbling process, 1M keys", func() operator.Operator { return process(tumbles) }, many},
		{"sparse sum", func() operator.Operator { return Aggregate(spec, tumbles, k) }, sparse},
		{"sparse process", func() operator.Operator { return process(tumbles) }, sparse},
		{"sliding process", func() operator.Operator { return process(slides) }, few},
		{"session process", func() operator.Operator { return process(session) }, load{100_000, 200_000}},
		{"evicting process", func() operator.Operator { return process(evicts) }, few},
		{"tumbling distinct", func() operator.Operator {
			return Aggregate(spec, tumbles, kernelsOf(b, agg.CountDistinct(func(n number) int64 { return n.N % 1000 }), func(n int64) int64 { return n }))
		}, few},
		{"tumbling distinct, 100 keys", func() operator.Operator {
			return Aggregate(spec, tumbles, kernelsOf(b, agg.CountDistinct(func(n number) int64 { return n.N % 100 }), func(n int64) int64 { return n }))
		}, load{100, 20_000}},
		{"tumbling top 10", func() operator.Operator {
			return Aggregate(spec, tumbles, kernelsOf(b, agg.TopN(10, func(n number) int64 { return n.N }), func(xs []number) int64 { return int64(len(xs)) }))
		}, few},
	} {
		b.Run(c.name, func(b *testing.B) { benchWindows(b, c.op(), c.load) })
	}
}

func benchWindows(b *testing.B, op operator.Operator, l load) {
	const n = 1024
	rt := kit.Runtime()
	kit.Must(b, op.Output("").Connect(kit.Null{Of: op.Output("").Type}, rt))
	kit.Must(b, op.Open(rt))
	to, col, r := op.Inputs()[0], frame.NewColumn(op.Inputs()[0].Type(), n), &frame.Run{}
	i := int64(0)
	step := func() {
		for range n {
			frame.Add(col, number{i * 7919 % l.keys, i / l.keys * 7919}, i*1000/l.perSecond)
			i++
		}
		*r = col.Run()
		kit.Must(b, to.Push(r))
		col.Reset()
		if i%(n*16) == 0 {
			kit.Must(b, to.Mark(kit.Watermark(i*1000/l.perSecond-1)))
		}
	}
	for i < 12*l.perSecond && i < 4_000_000 {
		step()
	}
	b.ResetTimer()
	b.ReportAllocs()
	for range b.N/n + 1 {
		step()
	}
	b.StopTimer()
	kit.Must(b, op.Close())
}
