package stream_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/stream"
)

// A failure after a savepoint goes on from it, not from the older checkpoint, as the sink has committed with it.
func TestB031FailureAfterASavepointGoesOnFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var saved, failed atomic.Bool
		env := stream.NewEnv().SetParallelism(2).EnableCheckpointing(60 * time.Millisecond).
			SetRestartStrategy(stream.FixedDelayRestart(1, time.Millisecond))
		countTo(env, dir, 300, func(int64) error {
			if saved.Load() && !failed.Swap(true) {
				return errors.New("a crash before the next checkpoint")
			}
			return nil
		})
		job, err := env.ExecuteAsync(t.Context(), "savepoint")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // one checkpoint is complete, the next one is due in 20 ms
		at, err := job.TriggerSavepoint(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(visible(t, dir)) < 90 {
			t.Error("the sink has not committed with the savepoint")
		}
		saved.Store(true)
		if _, err := job.Wait(); err != nil {
			t.Fatal(err)
		}
		if r := job.Checkpoints().LatestRestored; r == nil || r.Location != at {
			t.Errorf("restored %+v, want %s", r, at)
		}
		checkCounts(t, "after the crash", dir, 300)
	})
}

// State is found by UID: operators may be renamed, and others put before them; what is lost is named.
func TestB034StateIsFoundByUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		last := map[int64]int64{}
		show := func(kv stream.KeyValue[int64, int64]) {
			mu.Lock()
			defer mu.Unlock()
			last[kv.Key] = max(last[kv.Key], kv.Value)
		}
		program := func(from string, change func(s *stream.Stream[int64]) *stream.Stream[int64], uid, name string, opts ...stream.SavepointOption) (*stream.Job, error) {
			var options []stream.Option
			if from != "" {
				options = append(options, stream.WithSavepoint(from, opts...))
			}
			env := stream.NewEnv(options...).SetParallelism(2)
			numbers := env.FromGenerator(200, func(i int64) int64 { return i }, 1000).UID("numbers")
			change(numbers).KeyBy(func(x int64) int64 { return x % 5 }).
				Sum(func(int64) int64 { return 1 }).UID(uid).Name(name).ForEach(show)
			return env.ExecuteAsync(t.Context(), "uids")
		}
		same := func(s *stream.Stream[int64]) *stream.Stream[int64] { return s }
		job, err := program("", same, "counts", "first name")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		at, err := job.StopWithSavepoint(t.Context(), t.TempDir(), false)
		if err != nil {
			t.Fatal(err)
		}
		more := func(s *stream.Stream[int64]) *stream.Stream[int64] { return s.Map(func(x int64) int64 { return x }) }
		if job, err = program(at, more, "counts", "another name"); err != nil {
			t.Fatal(err)
		}
		if _, err := job.Wait(); err != nil {
			t.Fatal(err)
		}
		for k := range int64(5) {
			if last[k] != 40 {
				t.Errorf("key %d was counted to %d, want 40", k, last[k])
			}
		}
		if _, err := program(at, same, "other counts", ""); err == nil || !strings.Contains(err.Error(), `"counts"`) {
			t.Errorf("lost state: %v", err)
		}
		if job, err = program(at, same, "other counts", "", stream.AllowNonRestored()); err != nil {
			t.Fatal(err)
		}
		if _, err := job.Wait(); err != nil {
			t.Fatal(err)
		}
		if _, err := program(at, same, "numbers", ""); err == nil || !strings.Contains(err.Error(), "numbers") {
			t.Errorf("a UID twice: %v", err)
		}
	})
}

// The max parallelism of state by key can't change, and any parallelism up to it will do.
func TestB035MaxParallelismIsThatOfTheSavepoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 2000
		var mu sync.Mutex
		var last map[int64]int64
		begin := func(from string, parallelism, most int) (*stream.Job, error) {
			var options []stream.Option
			if from != "" {
				options = append(options, stream.WithSavepoint(from))
			}
			last = map[int64]int64{}
			env := stream.NewEnv(options...).SetParallelism(parallelism)
			if most > 0 {
				env.SetMaxParallelism(most)
			}
			env.FromGenerator(6*keys, func(i int64) int64 { return i % keys }, 100_000).UID("numbers").Parallelism(1).
				KeyBy(func(x int64) int64 { return x }).
				Sum(func(int64) int64 { return 1 }).UID("counts").
				ForEach(func(kv stream.KeyValue[int64, int64]) {
					mu.Lock()
					defer mu.Unlock()
					last[kv.Key] = max(last[kv.Key], kv.Value)
				}).UID("show").Parallelism(1)
			return env.ExecuteAsync(context.Background(), "counts")
		}
		job, err := begin("", 2, 128)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(95 * time.Millisecond) // less than five rounds
		at, err := job.StopWithSavepoint(t.Context(), t.TempDir(), false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := begin(at, 2, 256); err == nil || !strings.Contains(err.Error(), "128") || !strings.Contains(err.Error(), "256") {
			t.Errorf("another max parallelism: %v", err)
		}
		for _, parallelism := range []int{1, 3, 128} {
			if job, err = begin(at, parallelism, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := job.Wait(); err != nil {
				t.Fatal(err)
			}
			for k := range int64(keys) {
				if last[k] != 6 {
					t.Fatalf("parallelism %d: key %d was counted to %d, want 6", parallelism, k, last[k])
				}
			}
		}
	})
}
