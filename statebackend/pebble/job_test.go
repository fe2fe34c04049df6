package pebble_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/statebackend/pebble"
	"github.com/flott-dev/flott/stream"
)

const distinct = 700 // keys

// count makes a program of a source: it numbers how often each of the keys came and writes that exactly once into files below
// dir.
func count(in *stream.Stream[int64], dir string) {
	in.UID("numbers").
		KeyBy(func(x int64) string { return fmt.Sprint("key ", x%distinct) }).
		Sum(func(int64) int64 { return 1 }).UID("counts").
		Map(func(kv stream.KeyValue[string, int64]) string { return fmt.Sprint(kv.Key, ": ", kv.Value) }).
		CommitTo(filesink.New(dir, file.TextEncoding[string]("\n")).RollOnCheckpoint()).UID("files")
}

// checkCounts compares the files of such a program with what they must hold.
func checkCounts(t *testing.T, dir string, n int64) {
	t.Helper()
	var got, want []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			return err
		}
		b, err := os.ReadFile(path)
		got = append(got, strings.Fields(strings.ReplaceAll(string(b), "key ", "key-"))...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for x := range n {
		want = append(want, fmt.Sprint("key-", x%distinct, ":"), fmt.Sprint(x/distinct+1))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d words are in the files, want %d, or others", len(got), len(want))
	}
}

func TestRestartsGoOnFromCheckpointsOfStateOnDisk(t *testing.T) {
	t.Run("of rows", func(t *testing.T) { testRestarts(t, false) })
	t.Run("of files", func(t *testing.T) { testRestarts(t, true) })
}

func testRestarts(t *testing.T, incremental bool) {
	dir, folder := t.TempDir(), t.TempDir()
	const n = 6000
	var failed atomic.Int64
	env := stream.NewEnv(stream.WithBackends(pebble.Backend{Folder: folder, CacheBytes: 1})).SetParallelism(2).
		EnableCheckpointing(20*time.Millisecond, stream.IncrementalCheckpoints(incremental)).
		SetRestartStrategy(stream.FixedDelayRestart(5, time.Millisecond))
	count(env.FromGenerator(n, func(i int64) int64 { return i }, 20_000).TryMap(func(_ context.Context, x int64) (int64, error) {
		if x%1000 == 999 && failed.Add(1) <= 3 {
			return 0, fmt.Errorf("%d is a bad number", x)
		}
		return x, nil
	}), dir)
	job, err := env.ExecuteAsync(t.Context(), "ledger")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Wait(); err != nil {
		t.Fatal(err)
	}
	if failed.Load() < 3 {
		t.Error("the job did not fail")
	}
	checkCounts(t, dir, n)
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%d stores are left, %v", len(left), err)
	}
}

// TestSavepointsMoveBetweenBackends goes from memory to disk and back, each time with another parallelism.
func TestSavepointsMoveBetweenBackends(t *testing.T) {
	dir, savepoints := t.TempDir(), t.TempDir()
	disk := stream.WithBackends(pebble.Backend{Folder: t.TempDir()})
	var from []stream.Option
	const n = 9000
	for i, backend := range [][]stream.Option{nil, {disk}, nil} {
		script := flotttest.NewScript[int64]()
		for x := range int64(n) {
			if x%(n/3) == 0 {
				script.Pause(fmt.Sprint(x))
			}
			script.Emit(x)
		}
		for before := range i + 1 {
			script.Resume(fmt.Sprint(before * n / 3))
		}
		env := stream.NewEnv(append(from, backend...)...).SetParallelism(i + 1).EnableCheckpointing(20 * time.Millisecond)
		count(flotttest.FromScripts(env, script), dir)
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
		script.Await(t, fmt.Sprint((i+1)*n/3))
		at, err := job.StopWithSavepoint(t.Context(), savepoints, false)
		if err != nil {
			t.Fatal(err)
		}
		from = []stream.Option{stream.WithSavepoint(at)}
	}
	checkCounts(t, dir, n)
}
