package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/flott-dev/flott/stream"
)

func TestExecuteAndCollectReturnsAllElements(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	xs, err := stream.ExecuteAndCollect(context.Background(), env.FromSequence(1, 10_000), "numbers")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(xs)
	if len(xs) != 10_000 || xs[0] != 1 || xs[9999] != 10_000 {
		t.Errorf("%d elements", len(xs))
	}
}

func TestExecuteAndCollectLimitEndsAnEndlessJob(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	xs, err := stream.ExecuteAndCollectLimit(context.Background(), env.FromGenerator(-1, func(i int64) int64 { return i }, 0), "numbers", 3)
	if err != nil || !slices.Equal(xs, []int64{0, 1, 2}) {
		t.Errorf("got %v, %v", xs, err)
	}
	few, err := stream.ExecuteAndCollectLimit(context.Background(), env.FromElements(1, 2), "few", 3)
	if err != nil || !slices.Equal(few, []int{1, 2}) {
		t.Errorf("got %v, %v", few, err)
	}
	if _, err := stream.ExecuteAndCollectLimit(context.Background(), env.FromElements(1), "none", 0); err == nil {
		t.Error("a limit of 0 was taken")
	}
}

func TestIterationOverAFailingJobEndsWithItsError(t *testing.T) {
	boom := errors.New("boom")
	env := stream.NewEnv().SetParallelism(1)
	s := env.FromFunc("failing", func(_ context.Context, out *stream.SourceContext[int]) error {
		out.Collect(7)
		return boom
	})
	var got []int
	var last error
	for x, err := range stream.ExecuteAndIterate(context.Background(), s, "failing") {
		if err != nil {
			last = err
			continue
		}
		got = append(got, x)
	}
	if !errors.Is(last, boom) || len(got) > 1 {
		t.Errorf("got %v, %v", got, last)
	}
	for range stream.ExecuteAndIterate(context.Background(), env.FromElements(1).KeyByFields[int]("x").Stream(), "mistaken") {
		last = nil
	}
	if last != nil {
		t.Error("a mistake in the program was not reported")
	}
}

func TestCollectAsyncBesideOtherSinks(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	s := env.FromSequence(1, 5000)
	odd := stream.CollectAsync(s.Filter(func(x int64) bool { return x%2 == 1 }))
	var all gather[int64]
	s.ForEach(all.add)
	job, err := env.ExecuteAsync(context.Background(), "numbers")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for x, err := range odd.All(job) {
		if err != nil || x%2 != 1 {
			t.Errorf("got %d, %v", x, err)
		}
		n++
	}
	if n != 2500 || len(all.xs) != 5000 {
		t.Errorf("%d of %d elements", n, len(all.xs))
	}
}

func TestLeavingTheLoopCancelsTheJob(t *testing.T) {
	env := stream.NewEnv()
	c := stream.CollectAsync(env.FromGenerator(-1, func(i int64) int64 { return i }, 0))
	job, err := env.ExecuteAsync(context.Background(), "endless")
	if err != nil {
		t.Fatal(err)
	}
	for range c.All(job) {
		break
	}
	if job.Status() != "CANCELED" {
		t.Errorf("job is %s", job.Status())
	}
}

func ExampleExecuteAndCollect() {
	env := stream.NewEnv().SetParallelism(1)
	squares := env.FromElements(1, 2, 3).Map(func(x int) int { return x * x })
	xs, err := stream.ExecuteAndCollect(context.Background(), squares, "squares")
	fmt.Println(xs, err)
	// Output: [1 4 9] <nil>
}

func ExampleExecuteAndCollectLimit() {
	env := stream.NewEnv().SetParallelism(1)
	numbers := env.FromGenerator(-1, func(i int64) int64 { return i }, 0)
	xs, err := stream.ExecuteAndCollectLimit(context.Background(), numbers, "first", 2)
	fmt.Println(xs, err)
	// Output: [0 1] <nil>
}

func ExampleExecuteAndIterate() {
	env := stream.NewEnv().SetParallelism(1)
	for x, err := range stream.ExecuteAndIterate(context.Background(), env.FromElements("a", "b"), "letters") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(x)
	}
	// Output:
	// a
	// b
}

func ExampleCollectAsync() {
	env := stream.NewEnv().SetParallelism(1)
	results := stream.CollectAsync(env.FromElements("a", "b"))
	job, err := env.ExecuteAsync(context.Background(), "letters")
	if err != nil {
		fmt.Println(err)
		return
	}
	for x := range results.All(job) {
		fmt.Println(x)
	}
	// Output:
	// a
	// b
}
