package process

import "sync"

// Number is what Minimum and Maximum compare.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Minimum is an accumulator of the smallest number; the client sees an N, nil if nothing was added. Add may be called
// from any goroutine.
type Minimum[N Number] struct{ extreme[N] }

// NewMinimum declares a minimum (Flink: IntMinimum, LongMinimum, DoubleMinimum).
func NewMinimum[N Number](rt *Runtime, name string) *Minimum[N] {
	return NewAccumulator(rt, name, func() *Minimum[N] { return &Minimum[N]{} })
}

// Add takes x into account.
func (m *Minimum[N]) Add(x N) { m.add(x, func(a, b N) N { return min(a, b) }) }

// Snapshot implements Accumulator.
func (m *Minimum[N]) Snapshot() AccumulatorValue {
	x, ok := m.LocalValue()
	return minimum[N]{x, ok}
}

// Maximum is an accumulator of the largest number; the client sees an N, nil if nothing was added. Add may be called
// from any goroutine.
type Maximum[N Number] struct{ extreme[N] }

// NewMaximum declares a maximum (Flink: IntMaximum, LongMaximum, DoubleMaximum).
func NewMaximum[N Number](rt *Runtime, name string) *Maximum[N] {
	return NewAccumulator(rt, name, func() *Maximum[N] { return &Maximum[N]{} })
}

// Add takes x into account.
func (m *Maximum[N]) Add(x N) { m.add(x, func(a, b N) N { return max(a, b) }) }

// Snapshot implements Accumulator.
func (m *Maximum[N]) Snapshot() AccumulatorValue {
	x, ok := m.LocalValue()
	return maximum[N]{x, ok}
}

type extreme[N Number] struct {
	mu  sync.Mutex
	x   N
	any bool
}

// LocalValue is the extreme of what this subtask has added; ok is false if it has added nothing.
func (e *extreme[N]) LocalValue() (x N, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.x, e.any
}

func (e *extreme[N]) add(x N, choose func(a, b N) N) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.any {
		x = choose(e.x, x)
	}
	e.x, e.any = x, true
}

type minimum[N Number] struct {
	x   N
	any bool
}

func (v minimum[N]) Value() any { return optional(v.x, v.any) }

func (v minimum[N]) Merge(o AccumulatorValue) (AccumulatorValue, error) {
	return mergeAs(v, o, func(a, b minimum[N]) minimum[N] {
		if a.any && b.any {
			return minimum[N]{min(a.x, b.x), true}
		}
		return minimum[N]{a.x + b.x, a.any || b.any} // what is missing is zero
	})
}

type maximum[N Number] struct {
	x   N
	any bool
}

func (v maximum[N]) Value() any { return optional(v.x, v.any) }

func (v maximum[N]) Merge(o AccumulatorValue) (AccumulatorValue, error) {
	return mergeAs(v, o, func(a, b maximum[N]) maximum[N] {
		if a.any && b.any {
			return maximum[N]{max(a.x, b.x), true}
		}
		return maximum[N]{a.x + b.x, a.any || b.any}
	})
}

func optional[N Number](x N, ok bool) any {
	if !ok {
		return nil
	}
	return x
}
