package stream_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/stream"
)

func parity(x int64) bool { return x%2 == 0 }

func TestFoldEmitsTheValueAfterEachElement(t *testing.T) {
	got := inOrder(t, []int64{1, 2, 3, 4}, func(s *stream.Stream[int64]) *stream.Stream[string] {
		return s.KeyBy(parity).Fold("", func(acc string, x int64) string { return acc + fmt.Sprint(x) })
	})
	if !slices.Equal(got, []string{"1", "2", "13", "24"}) {
		t.Errorf("text values %q", got)
	}
	sums := inOrder(t, []int64{1, 2, 3, 4}, func(s *stream.Stream[int64]) *stream.Stream[int64] {
		return s.KeyBy(parity).Fold(int64(100), func(acc, x int64) int64 { return acc + x })
	})
	if !slices.Equal(sums, []int64{101, 102, 104, 106}) {
		t.Errorf("fixed values %v", sums)
	}
}

// TestFoldBeginsEachKeyWithItsOwnCopy folds by changing the value that it gets.
func TestFoldBeginsEachKeyWithItsOwnCopy(t *testing.T) {
	init := map[int64]bool{-1: true}
	got := inOrder(t, []int64{1, 2, 3}, func(s *stream.Stream[int64]) *stream.Stream[map[int64]bool] {
		return s.KeyBy(parity).Fold(init, func(acc map[int64]bool, x int64) map[int64]bool {
			acc[x] = true
			return acc
		})
	})
	want := []map[int64]bool{{-1: true, 1: true}, {-1: true, 2: true}, {-1: true, 1: true, 3: true}}
	if !reflect.DeepEqual(got, want) || len(init) != 1 {
		t.Errorf("got %v, the initial value is now %v", got, init)
	}
	lists := inOrder(t, []int64{1, 3, 5}, func(s *stream.Stream[int64]) *stream.Stream[[]int64] {
		return s.KeyBy(parity).Fold(make([]int64, 0, 8), func(acc []int64, x int64) []int64 { return append(acc, x) })
	})
	if !reflect.DeepEqual(lists, [][]int64{{1}, {1, 3}, {1, 3, 5}}) {
		t.Errorf("got %v", lists)
	}
}

func TestAggregateEmitsKeyAndResult(t *testing.T) {
	avg := inOrder(t, []int64{1, 2, 3, 4}, func(s *stream.Stream[int64]) *stream.Stream[stream.KeyValue[bool, float64]] {
		return s.KeyBy(parity).Aggregate(agg.Avg(func(x int64) int64 { return x }))
	})
	if want := []stream.KeyValue[bool, float64]{{Value: 1}, {Key: true, Value: 2}, {Value: 2}, {Key: true, Value: 3}}; !slices.Equal(avg, want) {
		t.Errorf("averages %v", avg)
	}
	lists := inOrder(t, []int64{1, 2, 3, 5}, func(s *stream.Stream[int64]) *stream.Stream[stream.KeyValue[bool, []int64]] {
		return s.KeyBy(parity).Aggregate(agg.Collect[int64]())
	})
	want := []stream.KeyValue[bool, []int64]{
		{Value: []int64{1}}, {Key: true, Value: []int64{2}}, {Value: []int64{1, 3}}, {Value: []int64{1, 3, 5}},
	}
	if !reflect.DeepEqual(lists, want) {
		t.Errorf("lists %v", lists)
	}
}

func BenchmarkFold(b *testing.B) {
	es := events(4<<20, 10_000)
	run(b, len(es), func(env *stream.Env) {
		env.SetParallelism(1)
		env.FromSlice(es).KeyBy(event.Key).Fold(int64(0), func(acc int64, x event) int64 { return acc + x.V }).ForEach(func(int64) {})
	})
}

func ExampleKeyedStream_Fold() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("a", "bb", "cc").
		KeyBy(func(w string) int { return len(w) }).
		Fold("words:", func(acc, w string) string { return acc + " " + w }).
		Print()
	if _, err := env.Execute(context.Background(), "words"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// words: a
	// words: bb
	// words: bb cc
}

func ExampleKeyedStream_Aggregate() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("a", "bb", "cc").
		KeyBy(func(w string) int { return len(w) }).
		Aggregate(agg.Count[string]()).
		Print()
	if _, err := env.Execute(context.Background(), "words"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// (1,1)
	// (2,1)
	// (2,2)
}

func ExampleKeyedStream_MinBy() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("pear", "fig", "plum", "kiwi").
		KeyBy(func(string) bool { return true }).
		MinBy(func(w string) int { return len(w) }).
		Print()
	if _, err := env.Execute(context.Background(), "shortest"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// pear
	// fig
	// fig
	// fig
}

func ExampleKeyedStream_MaxBy() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("fig", "pear", "plum").
		KeyBy(func(string) bool { return true }).
		MaxBy(func(w string) int { return len(w) }, stream.KeepLast).
		Print()
	if _, err := env.Execute(context.Background(), "longest"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// fig
	// pear
	// plum
}
