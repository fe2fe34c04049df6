package process

import (
	"maps"
	"slices"
	"sync"
)

// Histogram is an accumulator that counts how often each whole number was added; the client sees a map[int64]int64. Add
// may be called from any goroutine.
type Histogram struct {
	mu sync.Mutex
	m  map[int64]int64
}

// NewHistogram declares a histogram. For one of the operator's metric group see NewMetricHistogram.
func NewHistogram(rt *Runtime, name string) *Histogram {
	return NewAccumulator(rt, name, func() *Histogram { return &Histogram{m: map[int64]int64{}} })
}

// Add counts x.
func (h *Histogram) Add(x int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.m[x]++
}

// LocalValue is what this subtask has counted.
func (h *Histogram) LocalValue() map[int64]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.m)
}

// Snapshot implements Accumulator.
func (h *Histogram) Snapshot() AccumulatorValue { return counts(h.LocalValue()) }

type counts map[int64]int64

func (v counts) Value() any { return map[int64]int64(v) }

func (v counts) Merge(o AccumulatorValue) (AccumulatorValue, error) {
	return mergeAs(v, o, func(a, b counts) counts {
		sum := maps.Clone(a)
		for x, n := range b {
			sum[x] += n
		}
		return sum
	})
}

// ListAccumulator is an accumulator that gathers values; the client sees a []T, in the order of each subtask. It is for
// few values: all of them end up in the client. Add may be called from any goroutine.
type ListAccumulator[T any] struct {
	mu sync.Mutex
	xs []T
}

// NewListAccumulator declares a list.
func NewListAccumulator[T any](rt *Runtime, name string) *ListAccumulator[T] {
	return NewAccumulator(rt, name, func() *ListAccumulator[T] { return &ListAccumulator[T]{} })
}

// Add appends x.
func (l *ListAccumulator[T]) Add(x T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.xs = append(l.xs, x)
}

// LocalValue is what this subtask has gathered.
func (l *ListAccumulator[T]) LocalValue() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.xs)
}

// Snapshot implements Accumulator.
func (l *ListAccumulator[T]) Snapshot() AccumulatorValue { return list[T](l.LocalValue()) }

type list[T any] []T

func (v list[T]) Value() any { return []T(v) }

func (v list[T]) Merge(o AccumulatorValue) (AccumulatorValue, error) {
	return mergeAs(v, o, func(a, b list[T]) list[T] { return slices.Concat(a, b) })
}
