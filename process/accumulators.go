package process

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
)

// NewAccumulator declares an accumulator of the user's own, or returns the subtask's if name is declared already. Two
// accumulators of one name in a job must be of one kind; they are merged over all subtasks and operators.
func NewAccumulator[A Accumulator](rt *Runtime, name string, fresh func() A) A {
	a, ok := rt.Accumulator(name, func() Accumulator { return fresh() }).(A)
	if !ok {
		a = fresh()
		rt.Report(fmt.Errorf("declare accumulator %q as %T: it is declared as another kind before", name, a))
	}
	return a
}

// mergeAs checks that two values are of one kind.
func mergeAs[V AccumulatorValue](a V, other AccumulatorValue, merge func(a, b V) V) (AccumulatorValue, error) {
	b, ok := other.(V)
	if !ok {
		return nil, fmt.Errorf("merge accumulators of two kinds: %T and %T", a.Value(), other.Value())
	}
	return merge(a, b), nil
}

// LongCounter is an accumulator that adds up whole numbers; the client sees an int64. Add may be called from any
// goroutine.
type LongCounter struct{ n atomic.Int64 }

// IntCounter is LongCounter under Flink's other name.
type IntCounter = LongCounter

// NewLongCounter declares a counter.
func NewLongCounter(rt *Runtime, name string) *LongCounter {
	return NewAccumulator(rt, name, func() *LongCounter { return &LongCounter{} })
}

// NewIntCounter is NewLongCounter.
func NewIntCounter(rt *Runtime, name string) *IntCounter { return NewLongCounter(rt, name) }

// NewCounter is NewLongCounter. For a counter of the operator's metric group see NewMetricCounter.
func NewCounter(rt *Runtime, name string) *LongCounter { return NewLongCounter(rt, name) }

// Add adds n, which may be negative.
func (c *LongCounter) Add(n int64) { c.n.Add(n) }

// LocalValue is what this subtask has added up.
func (c *LongCounter) LocalValue() int64 { return c.n.Load() }

// Snapshot implements Accumulator.
func (c *LongCounter) Snapshot() AccumulatorValue { return longSum(c.n.Load()) }

type longSum int64

func (v longSum) Value() any { return int64(v) }
func (v longSum) Merge(o AccumulatorValue) (AccumulatorValue, error) {
	return mergeAs(v, o, func(a, b longSum) longSum { return a + b })
}

// float is a float64 that any goroutine may change.
type float struct{ bits atomic.Uint64 }

func (f *float) load() float64 { return math.Float64frombits(f.bits.Load()) }

func (f *float) update(change func(float64) float64) {
	for {
		old := f.bits.Load()
		if f.bits.CompareAndSwap(old, math.Float64bits(change(math.Float64frombits(old)))) {
			return
		}
	}
}

// DoubleCounter is an accumulator that adds up numbers; the client sees a float64. Add may be called from any goroutine.
type DoubleCounter struct{ sum float }

// NewDoubleCounter declares a counter.
func NewDoubleCounter(rt *Runtime, name string) *DoubleCounter {
	return NewAccumulator(rt, name, func() *DoubleCounter { return &DoubleCounter{} })
}

// Add adds x.
func (c *DoubleCounter) Add(x float64) { c.sum.update(func(sum float64) float64 { return sum + x }) }

// LocalValue is what this subtask has added up.
func (c *DoubleCounter) LocalValue() float64 { return c.sum.load() }

// Snapshot implements Accumulator.
func (c *DoubleCounter) Snapshot() AccumulatorValue { return doubleSum(c.sum.load()) }

type doubleSum float64

func (v doubleSum) Value() any { return float64(v) }
func (v doubleSum) Merge(o AccumulatorValue) (AccumulatorValue, error) {
	return mergeAs(v, o, func(a, b doubleSum) doubleSum { return a + b })
}

// Average is an accumulator of the mean of numbers; the client sees a float64, 0 if nothing was added. Add may be called
// from any goroutine.
type Average struct {
	mu sync.Mutex
	v  average
}

// NewAverage declares an average (Flink: AverageAccumulator).
func NewAverage(rt *Runtime, name string) *Average {
	return NewAccumulator(rt, name, func() *Average { return &Average{} })
}

// Add adds x.
func (a *Average) Add(x float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.v.sum += x
	a.v.n++
}

// LocalValue is the mean of what this subtask has added.
func (a *Average) LocalValue() float64 { return a.Snapshot().Value().(float64) }

// Snapshot implements Accumulator.
func (a *Average) Snapshot() AccumulatorValue {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.v
}

type average struct {
	sum float64
	n   int64
}

func (v average) Value() any {
	if v.n == 0 {
		return 0.0
	}
	return v.sum / float64(v.n)
}

func (v average) Merge(o AccumulatorValue) (AccumulatorValue, error) {
	return mergeAs(v, o, func(a, b average) average { return average{a.sum + b.sum, a.n + b.n} })
}
