package stream_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/stream"
)

// collatzLoop is an iteration whose arrivals are counted by key; it fails after so many steps.
func collatzLoop(env *stream.Env, limit int64, fails []int, step func(n int)) (counts map[int64]int64) {
	var mu sync.Mutex
	counts = map[int64]int64{}
	steps := 0
	it := stream.Iterate(env.FromSequence(1, limit).Map(func(n int64) walk { return walk{Start: n, Now: n} }))
	it.CloseWith(it.Rebalance().Filter(going).TryMap(func(_ context.Context, w walk) (walk, error) {
		mu.Lock()
		steps++
		n, failed := steps, len(fails) > 0 && steps >= fails[0]
		if failed {
			fails = fails[1:]
		}
		mu.Unlock()
		step(n)
		if failed {
			return w, errors.New("a step failed")
		}
		return collatz(w), nil
	}))
	it.Filter(arrived).KeyBy(func(w walk) int64 { return w.Start }).Count().ForEach(func(kv stream.KeyValue[int64, int64]) {
		mu.Lock()
		defer mu.Unlock()
		counts[kv.Key] = max(counts[kv.Key], kv.Value)
	})
	return counts
}

func checkArrivals(t *testing.T, how string, counts map[int64]int64, limit int64) {
	t.Helper()
	if int64(len(counts)) != limit {
		t.Errorf("%s: %d of %d numbers have arrived", how, len(counts), limit)
	}
	for n, c := range counts {
		if c != 1 {
			t.Errorf("%s: %d has arrived %d times", how, n, c)
		}
	}
}

// What is in a loop is part of checkpoints: nothing of it is lost or doubled when the job fails.
func TestIterationsGoOnFromCheckpoints(t *testing.T) {
	restored := int64(0)
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 30))
		synctest.Test(t, func(t *testing.T) {
			env := stream.NewEnv().SetParallelism(1 + rng.IntN(3)).EnableCheckpointing(10 * time.Millisecond)
			env.SetRestartStrategy(stream.FixedDelayRestart(10, time.Millisecond))
			counts := collatzLoop(env, 500, []int{1000 + rng.IntN(10_000), 5000 + rng.IntN(20_000)}, func(n int) {
				if n%20 == 0 {
					time.Sleep(time.Millisecond)
				}
			})
			job, err := env.ExecuteAsync(t.Context(), "loop")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := job.Wait(); err != nil {
				t.Fatal(err)
			}
			restored += job.Checkpoints().Counts.Restored
			checkArrivals(t, "goroutines", counts, 500)
		})
		env := stream.NewEnv().SetParallelism(1 + rng.IntN(3)).EnableCheckpointing(10 * time.Millisecond)
		env.SetRestartStrategy(stream.FixedDelayRestart(10, time.Millisecond))
		counts := collatzLoop(env, 500, []int{1000 + rng.IntN(10_000), 5000 + rng.IntN(20_000)}, func(int) {})
		if _, err := env.Simulate(t.Context(), "loop", seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkArrivals(t, "simulated", counts, 500)
	}
	if restored == 0 {
		t.Error("no job was ever restored from a checkpoint: the test tests nothing")
	}
}

// A savepoint that stops a job has what is in its loops, and another parallelism goes on with it.
func TestIterationsGoOnFromSavepoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, path := t.TempDir(), ""
		all := map[int64]int64{}
		for i, parallelism := range []int{1, 3, 2} {
			var opts []stream.Option
			if path != "" {
				opts = append(opts, stream.WithSavepoint(path))
			}
			env := stream.NewEnv(opts...).SetParallelism(parallelism)
			counts := collatzLoop(env, 500, nil, func(n int) {
				if n%20 == 0 {
					time.Sleep(time.Millisecond)
				}
			})
			job, err := env.ExecuteAsync(t.Context(), "loop")
			if err != nil {
				t.Fatal(err)
			}
			if i < 2 {
				time.Sleep(300 * time.Millisecond)
				if path, err = job.StopWithSavepoint(t.Context(), dir, false); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := job.Wait(); err != nil {
				t.Fatal(err)
			}
			for k, n := range counts {
				all[k] = max(all[k], n)
			}
		}
		checkArrivals(t, "after savepoints", all, 500)
	})
}
