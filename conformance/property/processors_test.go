package property

import (
	"math"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

type (
	context64 = *process.KeyedContext[int64]
	output    = *process.Collector[record]
)

// atEnd sets the timer that fires when nothing follows.
func atEnd(ctx context64) { ctx.RegisterTimer(process.EventTime, math.MaxInt64) }

// fixedTotal keeps its sum in place.
type fixedTotal struct{ sum *state.Value[int64] }

func newFixedTotal(rt *process.Runtime) *fixedTotal {
	return &fixedTotal{state.NewValue[int64](rt, "sum")}
}

func (t *fixedTotal) ProcessElement(ctx context64, r record, _ output) error {
	t.sum.Update(func(v *int64) { *v += r.V })
	atEnd(ctx)
	return nil
}

func (t *fixedTotal) OnTimer(ctx context64, _ process.Timer, out output) error {
	out.Collect(newRecord(ctx.Key(), t.sum.Get()))
	t.sum.Clear()
	return nil
}

// textTotal keeps a record with a text.
type textTotal struct{ sum *state.Value[record] }

func newTextTotal(rt *process.Runtime) *textTotal {
	return &textTotal{state.NewValue[record](rt, "sum")}
}

func (t *textTotal) ProcessElement(ctx context64, r record, _ output) error {
	t.sum.Set(newRecord(r.K, t.sum.Get().V+r.V))
	atEnd(ctx)
	return nil
}

func (t *textTotal) OnTimer(_ context64, _ process.Timer, out output) error {
	out.Collect(t.sum.Get())
	return nil
}

// listTotal keeps all values.
type listTotal struct{ all *state.List[int64] }

func newListTotal(rt *process.Runtime) *listTotal {
	return &listTotal{state.NewList[int64](rt, "all")}
}

func (t *listTotal) ProcessElement(ctx context64, r record, _ output) error {
	t.all.Add(r.V)
	atEnd(ctx)
	return nil
}

func (t *listTotal) OnTimer(ctx context64, _ process.Timer, out output) error {
	sum := int64(0)
	for v := range t.all.All() {
		sum += v
	}
	out.Collect(newRecord(ctx.Key(), sum))
	return nil
}

// interval sums up per interval of time.
type interval struct {
	size int64
	sums *state.Map[int64, int64] // by interval
}

func newInterval(rt *process.Runtime, size int64) *interval {
	return &interval{size, state.NewMap[int64, int64](rt, "sums")}
}

func (t *interval) ProcessElement(ctx context64, r record, _ output) error {
	b := floorDiv(ctx.TimestampMillis(), t.size)
	t.sums.Update(b, func(v *int64) { *v += r.V })
	ctx.RegisterTimer(process.EventTime, (b+1)*t.size-1)
	return nil
}

func (t *interval) OnTimer(ctx context64, timer process.Timer, out output) error {
	b := floorDiv(timer.Millis, t.size)
	out.Collect(newRecord(ctx.Key(), t.sums.Get(b)))
	t.sums.Remove(b)
	return nil
}

// difference is the total of one stream less that of another.
type difference struct{ sum *state.Value[int64] }

func newDifference(rt *process.Runtime) *difference {
	return &difference{state.NewValue[int64](rt, "sum")}
}

func (t *difference) ProcessElement1(ctx context64, r record, _ output) error {
	t.sum.Set(t.sum.Get() + r.V)
	atEnd(ctx)
	return nil
}

func (t *difference) ProcessElement2(ctx context64, r record, _ output) error {
	t.sum.Set(t.sum.Get() - r.V)
	atEnd(ctx)
	return nil
}

func (t *difference) OnTimer(ctx context64, _ process.Timer, out output) error {
	out.Collect(newRecord(ctx.Key(), t.sum.Get()))
	return nil
}

func differenceOf(a, b records) records {
	return a.Connect(b).KeyBy(record.key, record.key).Process(newDifference)
}

func coMap(a, b records) records {
	return a.Connect(b).Map(func(r record) record { return r }, negated)
}

func negated(r record) record { return newRecord(r.K, -r.V) }

func united(a, b records) records { return a.Union(b) }

var _ process.KeyedCoFunction[int64, record, record, record] = (*difference)(nil)
