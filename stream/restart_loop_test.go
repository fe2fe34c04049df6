package stream_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// stumbling fails once in the first attempt, when it has seen some elements go round.
type stumbling struct {
	attempt int
	seen    int
}

func (s *stumbling) ProcessElement(_ *process.Context, x int, out *process.Collector[int]) error {
	if s.seen++; s.attempt == 0 && s.seen == 20 {
		return errors.New("stumble")
	}
	out.Collect(x - 1)
	return nil
}

// A restarted loop begins empty: nothing of the failed attempt's feedback is left in it.
func TestRestartedLoopBeginsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv(stream.WithRestartStrategy(stream.FixedDelayRestart(1, time.Second))).SetParallelism(2)
		var mu sync.Mutex
		var attempts [2][]int
		loop := stream.Iterate(env.FromElements(3, 4, 5, 6, 7, 8, 9, 10).Rebalance())
		var attempt int
		step := loop.Process(func(rt *process.Runtime) *stumbling {
			mu.Lock()
			defer mu.Unlock()
			attempt = rt.Info().Attempt
			return &stumbling{attempt: attempt}
		})
		loop.CloseWith(step.Filter(func(x int) bool { return x > 0 }))
		step.Filter(func(x int) bool { return x == 0 }).ForEach(func(x int) {
			mu.Lock()
			defer mu.Unlock()
			attempts[attempt] = append(attempts[attempt], x)
		})
		if _, err := env.Execute(context.Background(), "loop"); err != nil {
			t.Fatal(err)
		}
		if want := make([]int, 8); !slices.Equal(attempts[1], want) {
			t.Errorf("the second attempt let %d elements out, want 8", len(attempts[1]))
		}
	})
}
