package agg

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

type reading struct {
	Name string
	N    int64
	F    float64
}

func num(r reading) int64     { return r.N }
func float(r reading) float64 { return r.F }
func name(r reading) string   { return r.Name }

// fold adds elements to one accumulator.
func fold[T, A, R any](a Aggregate[T, A, R], xs ...T) R {
	acc := a.Create()
	for _, x := range xs {
		a.Add(&acc, x)
	}
	return a.Result(&acc)
}

var input = [...]reading{
	{"b", 3, 1.5}, {"a", -1, 2}, {"b", 7, math.NaN()}, {"c", 7, -4}, {"a", 0, 0.25},
}

func TestResults(t *testing.T) {
	xs := input[:]
	numbers := append(xs[:2:2], xs[3:]...)
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"sum", fold(Sum(num), xs...), int64(16)},
		{"sum of floats", fold(Sum(float), numbers...), -0.25},
		{"sum wraps", fold(Sum(func(x int8) int8 { return x }), 127, 1), int8(-128)},
		{"sum of nothing", fold(Sum(num)), int64(0)},
		{"count", fold(Count[reading](), xs...), int64(5)},
		{"avg", fold(Avg(num), xs...), 3.2},
		{"avg of small integers", fold(Avg(func(x int8) int8 { return x }), 127, 126), 126.5},
		{"avg of floats", fold(Avg(float), numbers...), -0.0625},
		{"avg of nothing", fold(Avg(num)), 0.0},
		{"min", fold(Min(num), xs...), int64(-1)},
		{"min of texts", fold(Min(name), xs...), "a"},
		{"min skips NaN", fold(Min(float), xs...), -4.0},
		{"min of nothing", fold(Min(num)), int64(0)},
		{"max", fold(Max(num), xs...), int64(7)},
		{"max of numbers", fold(Max(float), numbers...), 2.0},
		{"max of negative", fold(Max(num), reading{N: -5}, reading{N: -3}), int64(-3)},
		{"max is NaN", math.IsNaN(fold(Max(float), xs...)), true},
		{"first", fold(First(name), xs...), "b"},
		{"last", fold(Last(num), xs...), int64(0)},
		{"collect", fold(Collect[int](), 1, 2, 3), []int{1, 2, 3}},
		{"distinct", fold(CountDistinct(name), xs...), int64(3)},
		{"distinct of nothing", fold(CountDistinct(name)), int64(0)},
		{"top", fold(TopN(3, num), numbers...), []reading{xs[3], xs[0], xs[4]}},
		{"top keeps the earlier of equals", names(fold(TopN(2, num), xs...)), []string{"b", "c"}},
		{"top of few", len(fold(TopN(9, num), xs...)), 5},
		{"top none", len(fold(TopN(-1, num), xs...)), 0},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

func names(rs []reading) (out []string) {
	for _, r := range rs {
		out = append(out, r.Name)
	}
	return out
}

func TestRegroupableAggregatesAreExactUnderRegrouping(t *testing.T) {
	checkRegrouping(t, "sum", Sum(num), true)
	checkRegrouping(t, "sum of floats", Sum(float), false)
	checkRegrouping(t, "count", Count[reading](), true)
	checkRegrouping(t, "avg", Avg(num), true)
	checkRegrouping(t, "avg of floats", Avg(float), false)
	checkRegrouping(t, "min", Min(float), true)
	checkRegrouping(t, "max", Max(num), true)
	checkRegrouping(t, "first", First(name), true)
	checkRegrouping(t, "last", Last(name), true)
	checkRegrouping(t, "collect", Collect[reading](), true)
	checkRegrouping(t, "distinct", CountDistinct(name), true)
	checkRegrouping(t, "top", TopN(4, num), true)
}

func checkRegrouping[A, R any](t *testing.T, name string, a Aggregate[reading, A, R], want bool) {
	t.Helper()
	if IsRegroupable(a) != want {
		t.Errorf("%s: IsRegroupable is %v", name, !want)
	}
	if !want {
		return
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		xs := randomReadings(r, 1+r.IntN(40))
		all, part := a.Create(), a.Create()
		for _, x := range xs {
			a.Add(&part, x)
			if r.IntN(4) == 0 {
				a.Merge(&all, &part)
				part = a.Create()
			}
		}
		a.Merge(&all, &part)
		if got, want := fmt.Sprint(a.Result(&all)), fmt.Sprint(fold(a, xs...)); got != want {
			t.Fatalf("%s of %v: regrouped %v, in one %v", name, xs, got, want)
		}
	}
}

func randomReadings(r *rand.Rand, n int) []reading {
	xs := make([]reading, n)
	for i := range xs {
		xs[i] = reading{string(rune('a' + r.IntN(8))), r.Int64N(20) - 10, float64(r.IntN(10))}
		if r.IntN(10) == 0 {
			xs[i].F = math.NaN()
		}
	}
	return xs
}

func TestInverseTakesBackExactly(t *testing.T) {
	checkInverse(t, Sum(num))
	checkInverse(t, Count[reading]())
	checkInverse(t, Avg(num))
	checkInverse(t, Regroupable(Sum(num)))
	for _, a := range []any{Sum(float), Avg(float), Min(num), Collect[reading]()} {
		if _, ok := Inverse[float64](a); ok {
			t.Errorf("%T has an inverse", a)
		}
	}
	if _, ok := Inverse[Average](Avg(float)); ok {
		t.Error("an average of floats has an inverse")
	}
}

func checkInverse[A, R any](t *testing.T, a Aggregate[reading, A, R]) {
	t.Helper()
	inverse, ok := Inverse[A](a)
	if !ok {
		t.Fatalf("%T has no inverse", a)
	}
	xs := randomReadings(rand.New(rand.NewPCG(3, 4)), 30)
	all, head := a.Create(), a.Create()
	for i, x := range xs {
		a.Add(&all, x)
		if i < 12 {
			a.Add(&head, x)
		}
	}
	inverse.Subtract(&all, &head)
	if got, want := a.Result(&all), fold(a, xs[12:]...); !reflect.DeepEqual(got, want) {
		t.Errorf("%T: got %v, want %v", a, got, want)
	}
}

func TestResultsSurviveFurtherElements(t *testing.T) {
	c, top := Collect[int](), TopN(2, func(x int) int { return x })
	list, best := c.Create(), top.Create()
	for x := range 3 {
		c.Add(&list, x)
		top.Add(&best, x)
	}
	collected, ranked := c.Result(&list), top.Result(&best)
	c.Add(&list, 9)
	top.Add(&best, 9)
	_ = append(collected, 100)
	if !slices.Equal(collected, []int{0, 1, 2}) || !slices.Equal(ranked, []int{2, 1}) || list[3] != 9 {
		t.Errorf("results became %v and %v, the list %v", collected, ranked, list)
	}
}

type lastOfAll struct{}

func (lastOfAll) Create() int            { return 0 }
func (lastOfAll) Add(acc *int, x int)    { *acc = x }
func (lastOfAll) Merge(acc, other *int)  { *acc = *other }
func (lastOfAll) Result(acc *int) string { return fmt.Sprint(*acc) }

func TestUserAggregateIsRegroupableWhenDeclared(t *testing.T) {
	if IsRegroupable(lastOfAll{}) {
		t.Error("undeclared")
	}
	a := Regroupable[int, int, string](lastOfAll{})
	if !IsRegroupable(a) || fold(a, 1, 2) != "2" {
		t.Error("declared")
	}
}
