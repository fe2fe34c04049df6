package process

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// NewMetric declares a metric of the user's own in the operator's metric group, or returns the subtask's if name is
// declared already. Dots in names make groups.
func NewMetric[M Metric](rt *Runtime, name string, fresh func() M) M {
	m, ok := rt.Metric(name, func() Metric { return fresh() }).(M)
	if !ok {
		m = fresh()
		rt.Report(fmt.Errorf("declare metric %q as %T: it is declared as another kind before", name, m))
	}
	return m
}

// MetricCounter is a metric that counts, up and down. It may be used from any goroutine.
type MetricCounter struct{ n atomic.Int64 }

// NewMetricCounter declares a counter in the operator's metric group. It is read as an int64.
func NewMetricCounter(rt *Runtime, name string) *MetricCounter {
	return NewMetric(rt, name, func() *MetricCounter { return &MetricCounter{} })
}

// Inc adds n, which may be negative.
func (c *MetricCounter) Inc(n int64) { c.n.Add(n) }

// Count is the present value.
func (c *MetricCounter) Count() int64 { return c.n.Load() }

// Read implements Metric.
func (c *MetricCounter) Read() any { return c.n.Load() }

// Gauge is a metric with a value that is set. It may be used from any goroutine.
type Gauge[V any] struct{ v atomic.Pointer[V] }

// NewGauge declares a gauge in the operator's metric group. It is read as a V, the zero value until it is set.
func NewGauge[V any](rt *Runtime, name string) *Gauge[V] {
	return NewMetric(rt, name, func() *Gauge[V] { return &Gauge[V]{} })
}

// Set sets the value; v is not changed afterwards.
func (g *Gauge[V]) Set(v V) { g.v.Store(&v) }

// Read implements Metric.
func (g *Gauge[V]) Read() any {
	if p := g.v.Load(); p != nil {
		return *p
	}
	var zero V
	return zero
}

// NewGaugeFunc declares a metric whose value read computes; it is called from other goroutines than the subtask's.
func NewGaugeFunc[V any](rt *Runtime, name string, read func() V) {
	NewMetric(rt, name, func() gaugeFunc[V] { return read })
}

type gaugeFunc[V any] func() V

// Read implements Metric.
func (f gaugeFunc[V]) Read() any { return f() }

// Meter is a metric of a rate: events per second over about the last minute. It may be used from any goroutine.
type Meter struct {
	n       atomic.Int64
	now     func() time.Time
	mu      sync.Mutex
	samples []sample // the oldest is at most meterSpan old, or the only one
}

type sample struct {
	at time.Time
	n  int64
}

const (
	meterSpan = time.Minute
	meterStep = 5 * time.Second // between samples
)

// NewMeter declares a meter in the operator's metric group. It is read as a MeterReading.
func NewMeter(rt *Runtime, name string) *Meter {
	return NewMetric(rt, name, func() *Meter { return newMeter(time.Now) })
}

func newMeter(now func() time.Time) *Meter {
	return &Meter{now: now, samples: []sample{{at: now()}}}
}

// MarkEvent counts n events.
func (m *Meter) MarkEvent(n int64) { m.n.Add(n) }

// MeterReading is what a Meter says.
type MeterReading struct {
	Count int64   // events so far
	Rate  float64 // per second, over the last minute or, if that is shorter, since the meter was made
}

// Read implements Metric.
func (m *Meter) Read() any {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, n := m.now(), m.n.Load()
	for len(m.samples) > 1 && now.Sub(m.samples[1].at) >= meterSpan {
		m.samples = slices.Delete(m.samples, 0, 1)
	}
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	if now.Sub(last.at) >= meterStep {
		m.samples = append(m.samples, sample{now, n})
	}
	r := MeterReading{Count: n}
	if d := now.Sub(first.at).Seconds(); d > 0 {
		r.Rate = float64(n-first.n) / d
	}
	return r
}

// MetricHistogram is a metric of the distribution of the last values. It may be used from any goroutine.
type MetricHistogram struct {
	mu     sync.Mutex
	values []int64 // a ring once it is full
	next   int
	count  int64
}

// NewMetricHistogram declares a histogram of the last 1000 values in the operator's metric group. It is read as a
// HistogramReading.
func NewMetricHistogram(rt *Runtime, name string) *MetricHistogram {
	return NewMetric(rt, name, func() *MetricHistogram { return &MetricHistogram{values: make([]int64, 0, 1000)} })
}

// Update adds a value.
func (h *MetricHistogram) Update(v int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	if len(h.values) < cap(h.values) {
		h.values = append(h.values, v)
		return
	}
	h.values[h.next] = v
	h.next = (h.next + 1) % len(h.values)
}

// HistogramReading is what a MetricHistogram says about the last values.
type HistogramReading struct {
	Count    int64   // of all values ever
	Min, Max int64   // of the last values
	Mean     float64 // of the last values
	StdDev   float64 // of the last values as a sample; 0 for fewer than two
	// P50, P75, P90, P95, P98, P99 and P999 are quantiles, between values in proportion.
	P50, P75, P90, P95, P98, P99, P999 float64
}

// Read implements Metric.
func (h *MetricHistogram) Read() any {
	h.mu.Lock()
	r := HistogramReading{Count: h.count}
	values := slices.Clone(h.values)
	h.mu.Unlock()
	if len(values) == 0 {
		return r
	}
	slices.Sort(values)
	r.Min, r.Max = values[0], values[len(values)-1]
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	n := float64(len(values))
	r.Mean = sum / n
	if n > 1 {
		squares := 0.0
		for _, v := range values {
			squares += (float64(v) - r.Mean) * (float64(v) - r.Mean)
		}
		r.StdDev = math.Sqrt(squares / (n - 1))
	}
	for q, p := range map[float64]*float64{
		0.5: &r.P50, 0.75: &r.P75, 0.9: &r.P90, 0.95: &r.P95, 0.98: &r.P98, 0.99: &r.P99, 0.999: &r.P999,
	} {
		*p = quantile(values, q)
	}
	return r
}

// quantile takes the value at position q*(n+1), counted from 1, of sorted values.
func quantile(sorted []int64, q float64) float64 {
	pos := q * float64(len(sorted)+1)
	switch {
	case pos < 1:
		return float64(sorted[0])
	case pos >= float64(len(sorted)):
		return float64(sorted[len(sorted)-1])
	}
	below := math.Floor(pos)
	a, b := float64(sorted[int(below)-1]), float64(sorted[int(below)])
	return a + (pos-below)*(b-a)
}
