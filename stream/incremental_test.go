package stream_test

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/stream"
)

// hotAndCold sums numbers by key: 2000 keys get most of them. The state is large, so that checkpoints have files.
func hotAndCold(env *stream.Env, n int64, look func(int64) error) {
	env.FromGenerator(n, func(i int64) int64 { return i }, 0).UID("numbers").
		TryMap(func(_ context.Context, x int64) (int64, error) { return x, look(x) }).
		KeyBy(func(x int64) string {
			if x >= 40_000 {
				x %= 2000
			}
			return fmt.Sprintf("key %030d", x)
		}).
		Sum(func(x int64) int64 { return x }).UID("sums").Discard()
}

// files are the chunks below a folder by their path there, with their sizes.
func chunksBelow(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && d.Name() != checkpoint.ManifestName {
			all[path] = info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestIncrementalCheckpointsNameFilesOfEarlierOnes(t *testing.T) {
	dir := t.TempDir()
	env := stream.NewEnv().SetParallelism(2).SetCheckpointStorage(dir).
		EnableCheckpointing(time.Hour, stream.IncrementalCheckpoints(true), stream.ExternalizedCheckpoints(stream.RetainOnCancellation))
	seen := make(chan struct{})
	var count atomic.Int64
	hotAndCold(env, -1, func(x int64) error {
		if n := count.Add(1); n == 100_000 {
			close(seen)
		} else if n > 100_000 && n%100 == 0 {
			time.Sleep(time.Millisecond)
		}
		return nil
	})
	job, err := env.ExecuteAsync(t.Context(), "hot and cold")
	if err != nil {
		t.Fatal(err)
	}
	<-seen
	for range 4 { // by hand: the last one is not the first of a new chain, which would hold everything
		if _, err := job.TriggerCheckpoint(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	var small bool
	for _, c := range job.Checkpoints().History {
		small = small || c.Status == stream.CheckpointCompleted && c.CheckpointedSize*10 < c.StateSize
	}
	if !small {
		t.Errorf("no checkpoint wrote much less than the state is: %+v", job.Checkpoints().History)
	}
	savepoint, err := job.TriggerSavepoint(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	job.Cancel()
	<-job.Done()
	for path := range chunksBelow(t, savepoint) {
		if filepath.Dir(path) != savepoint {
			t.Errorf("the savepoint has %s", path)
		}
	}
	folders := map[string]bool{}
	for path := range chunksBelow(t, dir) {
		folders[filepath.Base(filepath.Dir(path))] = true
	}
	if len(folders) < 2 {
		t.Errorf("the retained checkpoint has files in %v only", folders)
	}
	retained, err := filepath.Glob(filepath.Join(dir, "*", "chk-*", checkpoint.ManifestName))
	if err != nil || len(retained) != 1 {
		t.Fatalf("retained checkpoints: %q, %v", retained, err)
	}
	for _, from := range []string{savepoint, strings.TrimSuffix(retained[0], "/"+checkpoint.ManifestName)} {
		again := stream.NewEnv(stream.WithSavepoint(from)).SetParallelism(3)
		hotAndCold(again, 300_000, never)
		if _, err := again.Execute(t.Context(), "again"); err != nil {
			t.Errorf("start from %s: %v", from, err)
		}
	}
}

func TestRestartsFromIncrementalCheckpointsLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, storage := t.TempDir(), t.TempDir()
		var read, failed atomic.Int64
		env := stream.NewEnv().SetParallelism(3).SetCheckpointStorage(storage).
			EnableCheckpointing(10*time.Millisecond, stream.IncrementalCheckpoints(true), stream.MaxConcurrentCheckpoints(2)).
			SetRestartStrategy(stream.FixedDelayRestart(5, time.Millisecond))
		countTo(env, dir, 500, func(x int64) error {
			if read.Add(1); x%100 == 99 && failed.Add(1) <= 4 {
				return fmt.Errorf("%d is a bad number", x)
			}
			return nil
		})
		if _, err := env.Execute(t.Context(), "ledger"); err != nil {
			t.Fatal(err)
		}
		checkCounts(t, "after four failures", dir, 500)
		if left := chunksBelow(t, storage); len(left) > 0 {
			t.Errorf("files of checkpoints are left: %v", left)
		}
	})
}
