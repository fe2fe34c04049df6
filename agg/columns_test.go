package agg

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// checkColumns folds into columns what it folds into single accumulators.
func checkColumns[A, R any](t *testing.T, name string, a Aggregate[reading, A, R]) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	const n = 7
	columns := a.(interface {
		AddColumn(accs *A, ids []uint32, xs []reading)
	})
	var accs, other [n]A // zero memory is what Create makes
	var want, wantOther [n]A
	for i := range want {
		want[i], wantOther[i] = a.Create(), a.Create()
	}
	for range 20 {
		xs := randomReadings(r, r.IntN(10))
		ids := make([]uint32, len(xs))
		into, intoWant := &accs, &want
		if r.IntN(2) == 0 {
			into, intoWant = &other, &wantOther
		}
		for i := range ids {
			ids[i] = uint32(r.IntN(n))
			a.Add(&intoWant[ids[i]], xs[i])
		}
		columns.AddColumn(&into[0], ids, xs)
	}
	same := func(what string) {
		t.Helper()
		if got, want := fmt.Sprint(accs, other), fmt.Sprint(want, wantOther); got != want {
			t.Errorf("%s, %s: got %s, want %s", name, what, got, want)
		}
	}
	same("adding")
	into, from := []uint32{1, 2, 2, 6}, []uint32{0, 3, 4, 6}
	if m, ok := a.(interface {
		MergeColumn(accs, other *A, into, from []uint32)
	}); ok {
		m.MergeColumn(&accs[0], &other[0], into, from)
	} else {
		for i, id := range into {
			a.Merge(&accs[id], &other[from[i]])
		}
	}
	for i, id := range into {
		a.Merge(&want[id], &wantOther[from[i]])
	}
	same("merging") // other is as it was
	s, ok := a.(interface {
		Subtractor[A]
		SubtractColumn(accs, other *A, into, from []uint32)
	})
	if !ok {
		return
	}
	s.SubtractColumn(&accs[0], &other[0], into, from)
	for i, id := range into {
		s.Subtract(&want[id], &wantOther[from[i]])
	}
	same("taking back")
}

func TestColumnsAreFoldedAsSingleAccumulators(t *testing.T) {
	checkColumns(t, "sum", Sum(num))
	checkColumns(t, "sum of floats", Sum(float))
	checkColumns(t, "count", Count[reading]())
	checkColumns(t, "avg", Avg(num))
	checkColumns(t, "min", Min(float))
	checkColumns(t, "max", Max(name))
	checkColumns(t, "first", First(name))
	checkColumns(t, "last", Last(num))
}

// checkOrder adds elements in two orders, and in groups.
func checkOrder[A, R any](t *testing.T, what string, a Aggregate[reading, A, R], want bool) {
	t.Helper()
	c, ok := a.(interface{ Commutative() bool })
	if got := ok && c.Commutative(); got != want {
		t.Errorf("%s: commutative %v", what, got)
	}
	if !want {
		return
	}
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		xs := randomReadings(r, 2+r.IntN(8))
		for i := range xs {
			if r.IntN(3) == 0 {
				xs[i].N, xs[i].F = 0, math.Copysign(0, float64(r.IntN(2)*2-1))
			}
		}
		one, groups := fold(a, xs...), [2]A{a.Create(), a.Create()}
		r.Shuffle(len(xs), func(i, j int) { xs[i], xs[j] = xs[j], xs[i] })
		for _, x := range xs {
			a.Add(&groups[r.IntN(2)], x)
		}
		a.Merge(&groups[1], &groups[0])
		if got := a.Result(&groups[1]); fmt.Sprint(got) != fmt.Sprint(one) {
			t.Fatalf("%s: %v in one order, %v in another", what, one, got)
		}
	}
}

func TestCommutativeAggregatesDoNotLookAtTheOrder(t *testing.T) {
	checkOrder(t, "sum", Sum(num), true)
	checkOrder(t, "sum of floats", Sum(float), false)
	checkOrder(t, "count", Count[reading](), true)
	checkOrder(t, "avg", Avg(num), true)
	checkOrder(t, "avg of floats", Avg(float), false)
	checkOrder(t, "min", Min(num), true)
	checkOrder(t, "min of floats", Min(float), true)
	checkOrder(t, "max of floats", Max(float), true)
	checkOrder(t, "max of small floats", Max(func(r reading) float32 { return float32(r.F) }), true)
	checkOrder(t, "first", First(name), false)
	checkOrder(t, "last", Last(name), false)
	checkOrder(t, "distinct", CountDistinct(name), true)
	checkOrder(t, "top", TopN(4, num), false)
	checkOrder(t, "collect", Collect[reading](), false)
	checkOrder(t, "declared", Regroupable(Sum(num)), true)
	checkOrder(t, "declared, of order", Regroupable(First(num)), false)
}
