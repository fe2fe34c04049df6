package stream_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/flott-dev/flott/stream"
)

// keyedJob is a two-stage keyed job whose slow second stage backpressures the first: frames of one element.
func keyedJob(env *stream.Env) *[]string {
	got := &[]string{}
	env.SetParallelism(3).SetBufferTimeout(0)
	env.FromSequence(1, 3000).
		KeyBy(func(x int64) int64 { return x % 17 }).
		Count().
		KeyBy(func(c stream.KeyValue[int64, int64]) int64 { return c.Key % 5 }).
		Sum(func(c stream.KeyValue[int64, int64]) int64 { return c.Value }).
		ForEach(func(c stream.KeyValue[int64, int64]) { *got = append(*got, fmt.Sprint(c)) })
	return got
}

func TestSimulatedRunReplaysFromItsSeed(t *testing.T) {
	simulate := func(seed uint64) (string, []string) {
		env := stream.NewEnv()
		got := keyedJob(env)
		trace, err := env.Simulate(context.Background(), "keyed", seed)
		if err != nil {
			t.Fatal(err)
		}
		return trace, *got
	}
	trace, got := simulate(1)
	if len(got) != 3000 {
		t.Fatalf("%d elements arrived, want 3000", len(got))
	}
	again, gotAgain := simulate(1)
	if trace != again || !slices.Equal(got, gotAgain) {
		t.Error("the same seed gave another run")
	}
	other, gotOther := simulate(2)
	if trace == other {
		t.Error("another seed gave the same schedule: the scheduler chooses nothing")
	}
	slices.Sort(got)
	slices.Sort(gotOther)
	if len(got) != len(gotOther) {
		t.Error("another schedule lost or added elements")
	}
}
