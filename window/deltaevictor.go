package window

import "fmt"

// DistanceEvictor is what DeltaEvictor makes. It is immutable.
type DistanceEvictor[T any] struct {
	threshold float64
	distance  func(x, last T) float64
	after     bool
}

// DeltaEvictor drops those elements of a window that fires whose distance from the last element is the threshold or more:
// the last one, too, unless its distance from itself is less. A distance of NaN keeps the element. distance must not keep or
// change the elements.
func DeltaEvictor[T any](threshold float64, distance func(x, last T) float64) DistanceEvictor[T] {
	return DistanceEvictor[T]{threshold: threshold, distance: distance}
}

// After lets elements be dropped after the window function was called, instead of before: it sees them once.
func (d DistanceEvictor[T]) After() DistanceEvictor[T] {
	d.after = true
	return d
}

// EvictBefore implements ElementEvictor.
func (d DistanceEvictor[T]) EvictBefore(e *Eviction, xs []T) {
	if !d.after {
		d.evict(e, xs)
	}
}

// EvictAfter implements ElementEvictor.
func (d DistanceEvictor[T]) EvictAfter(e *Eviction, xs []T) {
	if d.after {
		d.evict(e, xs)
	}
}

func (d DistanceEvictor[T]) evict(e *Eviction, xs []T) {
	last := len(xs) - 1
	for last >= 0 && e.Evicted(last) {
		last--
	}
	for i := 0; i <= last; i++ {
		if !e.Evicted(i) && d.distance(xs[i], xs[last]) >= d.threshold {
			e.Evict(i)
		}
	}
}

// Check says what is wrong with threshold and distance.
func (d DistanceEvictor[T]) Check() error {
	return checkDelta("a delta evictor", d.threshold, d.distance == nil)
}

// String is the evictor as it was written.
func (d DistanceEvictor[T]) String() string {
	return fmt.Sprintf("DeltaEvictor(%v)%s", d.threshold, whenEvicted(d.after))
}
