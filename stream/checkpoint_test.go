package stream_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/stream"
)

// countTo builds a program: numbers 0 ... n-1, 1000 a second, summed by their last digit, each sum into files below dir.
func countTo(env *stream.Env, dir string, n int64, look func(int64) error) {
	env.FromGenerator(n, func(i int64) int64 { return i }, 1000).UID("numbers").
		TryMap(func(_ context.Context, x int64) (int64, error) { return x, look(x) }).
		KeyBy(func(x int64) int64 { return x % 10 }).
		Sum(func(int64) int64 { return 1 }).UID("counts").
		Map(func(kv stream.KeyValue[int64, int64]) string { return fmt.Sprint(kv.Key, " ", kv.Value) }).
		CommitTo(filesink.New(dir, file.TextEncoding[string]("\n")).RollOnCheckpoint()).UID("files")
}

// countLines are the lines of such a program, sorted.
func countLines(n int64) (lines []string) {
	seen := map[int64]int64{}
	for x := range n {
		seen[x%10]++
		lines = append(lines, fmt.Sprint(x%10, " ", seen[x%10]))
	}
	slices.Sort(lines)
	return lines
}

func never(int64) error { return nil }

func checkCounts(t *testing.T, what, dir string, n int64) {
	t.Helper()
	if got := visible(t, dir); !slices.Equal(got, countLines(n)) {
		t.Errorf("%s: %d lines, want %d, or others", what, len(got), n)
	}
}

func TestRestartRestoresStateAndPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var read, failed atomic.Int64
		env := stream.NewEnv().SetParallelism(3).EnableCheckpointing(20*time.Millisecond, stream.MaxConcurrentCheckpoints(2)).
			SetRestartStrategy(stream.FixedDelayRestart(5, time.Millisecond))
		countTo(env, dir, 500, func(x int64) error {
			if read.Add(1); x%100 == 99 && failed.Add(1) <= 4 {
				return fmt.Errorf("%d is a bad number", x)
			}
			return nil
		})
		job, err := env.ExecuteAsync(t.Context(), "ledger")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := job.Wait(); err != nil {
			t.Fatal(err)
		}
		checkCounts(t, "after four failures", dir, 500)
		if n := read.Load(); n > 800 {
			t.Errorf("%d numbers were read: restarts began anew", n)
		}
		history := job.Checkpoints()
		if c := history.Counts; c.Restored != 4 || c.Completed < 10 || history.LatestCompleted.Subtasks == 0 {
			t.Errorf("history %+v", c)
		}
	})
}

// Run, stop with a savepoint, change the program, go on at another parallelism.
func TestSavepointWalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, savepoints := t.TempDir(), t.TempDir()
		var opts []stream.Option
		for i, parallelism := range []int{1, 4, 3} {
			env := stream.NewEnv(opts...).SetParallelism(parallelism).EnableCheckpointing(20 * time.Millisecond)
			countTo(env, dir, 600, never)
			job, err := env.ExecuteAsync(t.Context(), "ledger")
			if err != nil {
				t.Fatal(err)
			}
			if i == 2 {
				if _, err := job.Wait(); err != nil {
					t.Fatal(err)
				}
				break
			}
			time.Sleep(105 * time.Millisecond)
			if _, err := job.TriggerSavepoint(t.Context(), savepoints); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
			at, err := job.StopWithSavepoint(t.Context(), savepoints, false)
			if err != nil || job.Status() != "FINISHED" {
				t.Fatal(err, job.Status())
			}
			opts = []stream.Option{stream.WithSavepoint(at)}
		}
		checkCounts(t, "after three runs", dir, 600)
	})
}

func TestRetainedCheckpointStartsAnotherJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, storage := t.TempDir(), t.TempDir()
		env := stream.NewEnv().SetParallelism(2).SetCheckpointStorage(storage).
			EnableCheckpointing(20*time.Millisecond, stream.ExternalizedCheckpoints(stream.RetainOnCancellation))
		countTo(env, dir, 300, never)
		job, err := env.ExecuteAsync(t.Context(), "ledger")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(110 * time.Millisecond)
		job.Cancel()
		<-job.Done()
		left, err := filepath.Glob(filepath.Join(storage, job.ID(), "chk-*"))
		if err != nil || len(left) != 1 {
			t.Fatalf("left %v, %v", left, err)
		}
		again := stream.NewEnv(stream.WithSavepoint(left[0])).SetParallelism(2).EnableCheckpointing(20 * time.Millisecond)
		countTo(again, dir, 300, never)
		if _, err := again.Execute(t.Context(), "ledger"); err != nil {
			t.Fatal(err)
		}
		checkCounts(t, "after a cancellation", dir, 300)
	})
}

func TestBadCheckpointSettingsAreMistakes(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1).SetCheckpointStorage("")
	env.FromElements(1).Print()
	if _, err := env.Execute(t.Context(), "job"); err == nil || !strings.Contains(err.Error(), "checkpoint_test.go") {
		t.Errorf("no folder: %v", err)
	}
	env = stream.NewEnv().SetParallelism(1).EnableCheckpointing(time.Second, stream.CheckpointTimeout(0),
		stream.MinPauseBetweenCheckpoints(-1), stream.TolerableCheckpointFailureNumber(-1), stream.MaxConcurrentCheckpoints(0))
	env.FromElements(1).Print()
	_, err := env.Execute(t.Context(), "job")
	for _, want := range []string{"timeout", "min-pause", "tolerable", "max-concurrent"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
