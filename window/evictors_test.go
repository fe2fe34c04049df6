package window_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/flott-dev/flott/window"
)

// left is what an evictor leaves of elements with these times.
func left(e *window.Eviction) (out []int64) {
	for i, ts := range e.Times {
		if !e.Evicted(i) {
			out = append(out, ts)
		}
	}
	return out
}

func TestEvictorsByPositionAndTime(t *testing.T) {
	for _, c := range []struct {
		evictor window.Evictor
		times   []int64
		want    []int64
	}{
		{window.CountEvictor(2), nil, nil},
		{window.CountEvictor(2), []int64{5}, []int64{5}},
		{window.CountEvictor(2), []int64{5, 4}, []int64{5, 4}},
		{window.CountEvictor(2), []int64{5, 4, none, 2}, []int64{none, 2}},
		{window.CountEvictor(math.MaxInt64), []int64{5, 4}, []int64{5, 4}},
		{window.TimeEvictor(10 * ms), nil, nil},
		{window.TimeEvictor(10 * ms), []int64{1, 10, 11, 21, 12, 20}, []int64{21, 12, 20}},
		{window.TimeEvictor(10 * ms), []int64{21, 1, 11, 12}, []int64{21, 12}},
		{window.TimeEvictor(10 * ms), []int64{none, 1, 100}, []int64{none, 1, 100}},
		{window.TimeEvictor(10 * ms), []int64{95, none, 100}, []int64{95, 100}},
		{window.TimeEvictor(10 * ms), []int64{-20, -5, -14, -15}, []int64{-5, -14}},
		{window.TimeEvictor(10 * ms), []int64{math.MinInt64 + 3, math.MinInt64 + 1}, []int64{math.MinInt64 + 3, math.MinInt64 + 1}},
		{window.TimeEvictor(10 * ms), []int64{math.MaxInt64, 0}, []int64{math.MaxInt64}},
	} {
		t.Run(fmt.Sprint(c.evictor, c.times), func(t *testing.T) {
			checked(t, c.evictor)
			var e window.Eviction
			e.Reset(c.times)
			c.evictor.EvictBefore(&e)
			if got := left(&e); !slices.Equal(got, c.want) {
				t.Errorf("left %v, want %v", got, c.want)
			}
			kept := e.Left()
			c.evictor.EvictAfter(&e)
			expect(t, "left after", e.Left(), kept)
		})
	}
}

func TestDeltaEvictorComparesWithTheLastElement(t *testing.T) {
	older := func(x, last float64) float64 { return last - x }
	for _, c := range []struct {
		threshold float64
		xs, want  []float64
	}{
		{2, nil, nil},
		{2, []float64{1, 4}, []float64{4}},
		{2, []float64{1, 2, 2.5, 9, 3.9, 4}, []float64{2.5, 9, 3.9, 4}},
		{2, []float64{math.NaN(), 1, 4}, []float64{math.NaN(), 4}},
		{0, []float64{1, 5, 4}, []float64{5}},
	} {
		t.Run(fmt.Sprint(c.threshold, c.xs), func(t *testing.T) {
			var e window.Eviction
			e.Reset(make([]int64, len(c.xs)))
			window.DeltaEvictor(c.threshold, older).EvictBefore(&e, c.xs)
			var got []float64
			for i, x := range c.xs {
				if !e.Evicted(i) {
					got = append(got, x)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("left %v, want %v", got, c.want)
			}
		})
	}
}

func TestEvictorsAfterTheFunctionDoNothingBefore(t *testing.T) {
	xs := []float64{1, 2, 9}
	delta := window.DeltaEvictor(2, func(x, last float64) float64 { return last - x }).After()
	for name, evictor := range map[string]interface {
		EvictBefore(e *window.Eviction)
		EvictAfter(e *window.Eviction)
	}{
		"count": window.CountEvictor(1).After(),
		"time":  window.TimeEvictor(3 * ms).After(),
		"delta": bound{delta, xs},
	} {
		t.Run(name, func(t *testing.T) {
			var e window.Eviction
			e.Reset([]int64{1, 2, 9})
			evictor.EvictBefore(&e)
			expect(t, "left before", e.Left(), 3)
			evictor.EvictAfter(&e)
			expect(t, "left after", e.Left(), 1)
			expect(t, "the last one is left", e.Evicted(2), false)
		})
	}
}

// bound is an evictor that looks at these elements.
type bound struct {
	e  window.ElementEvictor[float64]
	xs []float64
}

func (b bound) EvictBefore(e *window.Eviction) { b.e.EvictBefore(e, b.xs) }
func (b bound) EvictAfter(e *window.Eviction)  { b.e.EvictAfter(e, b.xs) }

// What another evictor has removed is not there.
func TestEvictorsDoNotCountWhatIsGone(t *testing.T) {
	var e window.Eviction
	gone := func(times []int64, removed ...int) *window.Eviction {
		e.Reset(times)
		for _, i := range removed {
			e.Evict(i)
		}
		return &e
	}
	window.CountEvictor(2).EvictBefore(gone([]int64{1, 2, 3, 4}, 1))
	expect(t, "count", fmt.Sprint(left(&e)), "[3 4]")
	window.TimeEvictor(10 * ms).EvictBefore(gone([]int64{none, 5, 15, 100}, 0, 3))
	expect(t, "time", fmt.Sprint(left(&e)), "[15]")
	xs := []float64{1, 5, 6, 100}
	window.DeltaEvictor(2, func(x, last float64) float64 { return last - x }).EvictBefore(gone([]int64{1, 5, 6, 100}, 3), xs)
	expect(t, "delta", fmt.Sprint(left(&e)), "[5 6]")
}
