package stream_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/flott-dev/flott/stream"
)

// names are "even" or "odd", "small" below 3, and nothing for 0.
func names(x int) []string {
	switch {
	case x == 0:
		return nil
	case x < 3 && x%2 == 0:
		return []string{"even", "small", "even"}
	case x < 3:
		return []string{"odd", "small"}
	case x%2 == 0:
		return []string{"even"}
	}
	return []string{"odd"}
}

func TestSelectTakesEveryElementOfItsNamesOnce(t *testing.T) {
	for _, chained := range []bool{true, false} {
		env := stream.NewEnv().SetParallelism(1)
		if !chained {
			env.DisableOperatorChaining()
		}
		var asked atomic.Int64
		s := env.FromElements(0, 1, 2, 3, 4).Split(func(x int) []string {
			asked.Add(1)
			return names(x)
		})
		var got [6]gather[int]
		s.Select("even").ForEach(got[0].add)
		s.Select("even", "small").ForEach(got[1].add)
		s.Select("small", "odd").Map(func(x int) int { return x * 10 }).ForEach(got[2].add)
		s.Select("unknown").ForEach(got[3].add)
		s.Select("even").Filter(func(x int) bool { return x > 2 }).ForEach(got[4].add) // shares the first one's elements
		s.Select("odd").Union(s.Select("small")).ForEach(got[5].add)
		execute(t, env)
		for i, want := range [][]int{{2, 4}, {1, 2, 4}, {10, 20, 30}, nil, {4}, {1, 1, 2, 3}} {
			if slices.Sort(got[i].xs); !slices.Equal(got[i].xs, want) {
				t.Errorf("chained %v: selection %d is %v, want %v", chained, i, got[i].xs, want)
			}
		}
		if asked.Load() != 5 {
			t.Errorf("the selector was asked %d times", asked.Load())
		}
	}
}

// TestSplitInsideAChain is the rule split_inside_a_chain.
func TestSplitInsideAChain(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	s := env.FromElements(1, 2, 3).Map(func(x int) int { return x }).Split(func(x int) []string {
		if x == 1 {
			return []string{"one"}
		}
		return []string{"other"}
	})
	var a, b, c gather[int]
	id := func(x int) int { return x }
	s.Select("one").Map(id).ForEach(a.add)
	s.Select("one").Map(id).ForEach(b.add)
	s.Select("other").Map(id).ForEach(c.add)
	execute(t, env)
	if !slices.Equal(a.xs, []int{1}) || !slices.Equal(b.xs, []int{1}) || !slices.Equal(c.xs, []int{2, 3}) {
		t.Errorf("got %v, %v, %v", a.xs, b.xs, c.xs)
	}
}

// TestSplitRestrictions is the rule split_restrictions.
func TestSplitRestrictions(t *testing.T) {
	for name, build := range map[string]func(s *stream.Stream[int]){
		"after select": func(s *stream.Stream[int]) { s.Split(names).Select("odd").Split(names).Select("odd").Discard() },
		"after union": func(s *stream.Stream[int]) {
			p := s.Split(names)
			p.Select("odd").Union(p.Select("even")).Split(names).Select("odd").Discard()
		},
		"after key by": func(s *stream.Stream[int]) {
			s.Split(names).Select("odd").KeyBy(func(x int) int { return x }).Stream().Split(names).Select("odd").Discard()
		},
		"after a side output": func(s *stream.Stream[int]) {
			stream.BadRecords(s).Split(func(stream.BadRecord) []string { return nil }).Select("x").Discard()
		},
		"without a name": func(s *stream.Stream[int]) { s.Split(names).Select().Discard() },
	} {
		t.Run(name, func(t *testing.T) {
			env := stream.NewEnv()
			build(env.FromElements(1))
			executeFailing(t, env, "split_test.go:")
		})
	}
	env := stream.NewEnv() // with an operator between it is allowed
	env.FromElements(1).Split(names).Select("odd").Map(func(x int) int { return x }).Split(names).Select("odd").Discard()
	execute(t, env)
}

func TestSplitKeepsTimestamps(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	var g gather[string]
	s := env.FromElements(reading{At: 5, Val: 1}, reading{At: 6, Val: 2}, reading{At: 7, Val: 3}).AssignAscendingTimestamps(reading.Time)
	s.Split(func(r reading) []string { return names(int(r.Val)) }).Select("odd").
		Process(stampOf).ForEach(g.add)
	execute(t, env)
	if !slices.Equal(g.xs, []string{"1@5", "3@7"}) {
		t.Errorf("got %q", g.xs)
	}
}

func BenchmarkSplit(b *testing.B) {
	es := events(4<<20, 10_000)
	low, high := []string{"low"}, []string{"high"}
	run(b, len(es), func(env *stream.Env) {
		env.SetParallelism(1)
		s := env.FromSlice(es).Split(func(e event) []string {
			if e.K&1 == 0 {
				return low
			}
			return high
		})
		s.Select("low").ForEach(func(*event) {})
		s.Select("high").ForEach(func(*event) {})
	})
}

func ExampleStream_Split() {
	env := stream.NewEnv().SetParallelism(1)
	numbers := env.FromElements(1, 2, 3, 4).Split(func(x int) []string {
		if x%2 == 0 {
			return []string{"even"}
		}
		return []string{"odd"}
	})
	numbers.Select("even").Print()
	if _, err := env.Execute(context.Background(), "numbers"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2
	// 4
}
