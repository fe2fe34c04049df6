package process

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
)

// bench is a Host that keeps accumulators and metrics.
type bench struct {
	accumulators map[string]Accumulator
	metrics      map[string]Metric
	mistakes     []error
}

func newBench() (*bench, *Runtime) {
	b := &bench{accumulators: map[string]Accumulator{}, metrics: map[string]Metric{}}
	return b, NewRuntime(b)
}

func (b *bench) Accumulator(name string, fresh func() Accumulator) Accumulator {
	if b.accumulators[name] == nil {
		b.accumulators[name] = fresh()
	}
	return b.accumulators[name]
}

func (b *bench) Metric(name string, fresh func() Metric) Metric {
	if b.metrics[name] == nil {
		b.metrics[name] = fresh()
	}
	return b.metrics[name]
}

func (b *bench) Report(err error) { b.mistakes = append(b.mistakes, err) }

func (*bench) BindTable(spec statebackend.TableSpec) *state.Cell {
	return state.NewUnkeyedCell(spec.Name, nil)
}
func (*bench) Info() Info                            { return Info{} }
func (*bench) Context() context.Context              { return context.Background() }
func (*bench) CachedFile(string) (string, error)     { return "", nil }
func (*bench) GlobalParameter(string) (string, bool) { return "", false }
func (*bench) Post(func() error)                     {}
func (*bench) Go(func())                             {}

// declareAll makes one accumulator of each kind and adds to it.
func declareAll(rt *Runtime, x int64) {
	NewLongCounter(rt, "long").Add(x)
	NewIntCounter(rt, "int").Add(x)
	NewCounter(rt, "counter").Add(x)
	NewDoubleCounter(rt, "double").Add(float64(x) / 2)
	NewAverage(rt, "average").Add(float64(x))
	NewMinimum[int64](rt, "min").Add(x)
	NewMaximum[float64](rt, "max").Add(float64(x))
	NewHistogram(rt, "histogram").Add(x)
	NewListAccumulator[int64](rt, "list").Add(x)
}

func TestAccumulatorsAreMerged(t *testing.T) {
	a, rtA := newBench()
	b, rtB := newBench()
	declareAll(rtA, 3)
	declareAll(rtA, 5)
	declareAll(rtB, -1)
	want := map[string]any{
		"long": int64(7), "int": int64(7), "counter": int64(7), "double": 3.5, "average": 7.0 / 3, "min": int64(-1), "max": 5.0,
		"histogram": map[int64]int64{3: 1, 5: 1, -1: 1}, "list": []int64{3, 5, -1},
	}
	for name, acc := range a.accumulators {
		merged, err := acc.Snapshot().Merge(b.accumulators[name].Snapshot())
		if err != nil || !reflect.DeepEqual(merged.Value(), want[name]) {
			t.Errorf("%s: %v, want %v (%v)", name, merged.Value(), want[name], err)
		}
	}
	if len(a.accumulators) != len(want) || len(a.mistakes) != 0 {
		t.Errorf("%d accumulators, mistakes %v", len(a.accumulators), a.mistakes)
	}
}

func TestEmptyExtremesDoNotCount(t *testing.T) {
	_, rt := newBench()
	low, high := NewMinimum[int](rt, "low"), NewMaximum[int](rt, "high")
	if low.Snapshot().Value() != nil || high.Snapshot().Value() != nil {
		t.Error("an extreme of nothing")
	}
	_, other := newBench()
	NewMinimum[int](other, "low").Add(7)
	NewMaximum[int](other, "high").Add(-7)
	for _, c := range []struct{ a, b AccumulatorValue }{
		{low.Snapshot(), NewMinimum[int](other, "low").Snapshot()},
		{NewMinimum[int](other, "low").Snapshot(), low.Snapshot()},
	} {
		if v, err := c.a.Merge(c.b); err != nil || v.Value() != 7 {
			t.Errorf("minimum %v, %v", v.Value(), err)
		}
	}
	if v, err := high.Snapshot().Merge(NewMaximum[int](other, "high").Snapshot()); err != nil || v.Value() != -7 {
		t.Errorf("maximum %v, %v", v.Value(), err)
	}
}

func TestAccumulatorsOfTwoKindsAreAMistake(t *testing.T) {
	b, rt := newBench()
	NewLongCounter(rt, "n").Add(1)
	NewDoubleCounter(rt, "n").Add(1) // works, but counts for nobody
	if len(b.mistakes) != 1 || !strings.Contains(b.mistakes[0].Error(), `"n"`) {
		t.Errorf("mistakes %v", b.mistakes)
	}
	if _, err := longSum(1).Merge(doubleSum(1)); err == nil {
		t.Error("values of two kinds were merged")
	}
}

func TestSnapshotsShareNoMemory(t *testing.T) {
	_, rt := newBench()
	h, l := NewHistogram(rt, "h"), NewListAccumulator[int](rt, "l")
	h.Add(1)
	l.Add(1)
	before, list := h.Snapshot(), l.Snapshot()
	h.Add(1)
	l.Add(2)
	if fmt.Sprint(before.Value(), list.Value()) != "map[1:1] [1]" {
		t.Errorf("snapshots changed: %v, %v", before.Value(), list.Value())
	}
	sum, err := before.Merge(h.Snapshot())
	if err != nil || fmt.Sprint(sum.Value(), before.Value()) != "map[1:3] map[1:1]" {
		t.Errorf("merged %v, the first is now %v (%v)", sum.Value(), before.Value(), err)
	}
}

func TestMetricsAreRead(t *testing.T) {
	b, rt := newBench()
	NewMetricCounter(rt, "c").Inc(3)
	NewMetricCounter(rt, "c").Inc(-1)
	NewGauge[string](rt, "g")
	if got := b.metrics["g"].Read(); got != "" {
		t.Errorf("unset gauge %v", got)
	}
	NewGauge[string](rt, "g").Set("now")
	NewGaugeFunc(rt, "f", func() int { return 7 })
	NewMeter(rt, "m").MarkEvent(4)
	if b.metrics["c"].Read() != int64(2) || b.metrics["g"].Read() != "now" || b.metrics["f"].Read() != 7 || b.metrics["m"].Read().(MeterReading).Count != 4 {
		t.Errorf("metrics %v", b.metrics)
	}
	NewMeter(rt, "c")
	if len(b.mistakes) != 1 || !strings.Contains(b.mistakes[0].Error(), `"c"`) {
		t.Errorf("mistakes %v", b.mistakes)
	}
}

func TestMeterTellsTheRateOfTheLastMinute(t *testing.T) {
	now := time.UnixMilli(0)
	m := newMeter(func() time.Time { return now })
	for second := 1; second <= 300; second++ {
		now = now.Add(time.Second)
		rate := int64(10)
		if second > 150 {
			rate = 2
		}
		m.MarkEvent(rate)
		got := m.Read().(MeterReading).Rate
		if second <= 150 && got != 10 || second > 220 && got != 2 {
			t.Fatalf("second %d: rate %v", second, got)
		}
	}
	if len(m.samples) > 14 {
		t.Errorf("%d samples kept", len(m.samples))
	}
	if r := newMeter(func() time.Time { return now }).Read().(MeterReading); r.Rate != 0 {
		t.Errorf("rate of no time %v", r.Rate)
	}
}

func TestHistogramTellsTheDistributionOfTheLastValues(t *testing.T) {
	b, rt := newBench()
	h := NewMetricHistogram(rt, "h")
	if got := b.metrics["h"].Read(); got != (HistogramReading{}) {
		t.Errorf("empty: %+v", got)
	}
	h.Update(5)
	if got := b.metrics["h"].Read(); got != (HistogramReading{Count: 1, Min: 5, Max: 5, Mean: 5, P50: 5, P75: 5, P90: 5, P95: 5, P98: 5, P99: 5, P999: 5}) {
		t.Errorf("one value: %+v", got)
	}
	for v := int64(1); v <= 2000; v++ {
		h.Update(v)
	}
	r := b.metrics["h"].Read().(HistogramReading)
	if r.Count != 2001 || r.Min != 1001 || r.Max != 2000 || r.Mean != 1500.5 || r.P50 != 1500.5 || r.P99 < 1990 || r.P999 <= r.P99 || r.StdDev < 288 || r.StdDev > 290 {
		t.Errorf("%+v", r)
	}
}
