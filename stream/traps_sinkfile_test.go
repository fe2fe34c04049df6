package stream_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/stream"
)

// fileNames are the names in a folder, sorted.
func fileNames(t *testing.T, disk vfs.FS, dir string) (names []string) {
	t.Helper()
	entries, err := disk.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// What was written since the last checkpoint is visible when a bounded job has finished, with checkpoints and without them, where
// some subtasks have nothing, and when the last commit fails once.
func TestB054LastFilesAreVisibleAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		name   string
		every  time.Duration // 0: no checkpoints
		broken vfs.Op
	}{
		{"hourly checkpoints", time.Hour, ""},
		{"no checkpoints", 0, ""},
		{"hourly checkpoints, a commit fails", time.Hour, vfs.OpRename},
		{"no checkpoints, a commit fails", 0, vfs.OpRename},
		{"hourly checkpoints, the folder is not synced", time.Hour, vfs.OpSyncDir},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var broken atomic.Bool
				disk := vfs.NewFaulty(vfs.NewMem())
				e := stream.NewEnv().SetParallelism(4).SetRestartStrategy(stream.FixedDelayRestart(2, time.Millisecond))
				if c.every > 0 {
					e.EnableCheckpointing(c.every)
				}
				rows := e.FromSequence(1, 10).Parallelism(1).PartitionCustom(func(x int64, _ int) int { return int(x % 2) }, func(x int64) int64 { return x })
				rows.Map(func(x int64) int64 {
					if x == 10 && c.broken != "" && !broken.Swap(true) {
						disk.Fail(c.broken, 1, syscall.EIO)
					}
					return x
				}).CommitTo(filesink.New("/out", file.TextEncoding[int64]("\n")).NoBuckets().On(disk, fileIDs()))
				if _, err := e.Execute(t.Context(), "ten rows"); err != nil {
					t.Fatal(err)
				}
				lines, names := visibleOn(t, disk, "/out"), fileNames(t, disk, "/out")
				if want := []string{"1", "10", "2", "3", "4", "5", "6", "7", "8", "9"}; !slices.Equal(lines, want) {
					t.Errorf("visible: %q", lines)
				}
				if len(names) != 2 || slices.ContainsFunc(names, func(n string) bool { return !strings.HasPrefix(n, "part-") }) {
					t.Errorf("files: %q", names)
				}
			})
		})
	}
}

// bigFile is a program that writes 7 MB and a byte and then some, one file in all.
func bigFile(e *stream.Env, disk vfs.FS, look func(i int64) error) {
	const rows, bytes = 20, 350_000
	e.FromGenerator(rows, func(i int64) int64 { return i }, 1000).UID("rows").
		TryMap(func(_ context.Context, i int64) (string, error) {
			return strings.Repeat(fmt.Sprint(i%10), bytes+int(i%2)), look(i)
		}).CommitTo(filesink.New("/out", file.TextEncoding[string]("\n")).NoBuckets().RolloverInterval(0).MaxPartSize(0).InactivityInterval(0).On(disk, fileIDs())).UID("file")
}

// hashOf is what lies visible in the folder, in one number.
func hashOf(t *testing.T, disk vfs.FS) string {
	t.Helper()
	h := sha256.New()
	for _, line := range visibleOn(t, disk, "/out") {
		fmt.Fprintln(h, line)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// A file of many megabytes that is open over a failure, or over a savepoint that ends the job, has all its bytes in the end: what a
// snapshot covers is not thrown away when the task closes its files. A commit that fails is tried again and fails the job in the
// end; one that was done already is a success.
func TestB056OpenFilesOutliveFailuresAndSavepoints(t *testing.T) {
	run := func(name string, f func(t *testing.T, disk *vfs.Faulty)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, vfs.NewFaulty(vfs.NewMem())) }) })
	}
	begin := func(t *testing.T, disk vfs.FS, look func(int64) error, opts ...stream.Option) *stream.Job {
		e := stream.NewEnv(opts...).SetParallelism(1).SetRestartStrategy(stream.FixedDelayRestart(1, time.Millisecond)).EnableCheckpointing(10 * time.Millisecond)
		bigFile(e, disk, look)
		job, err := e.ExecuteAsync(t.Context(), "big file")
		if err != nil {
			t.Fatal(err)
		}
		return job
	}
	var want string
	run("undisturbed", func(t *testing.T, disk *vfs.Faulty) {
		if _, err := begin(t, disk, never).Wait(); err != nil {
			t.Fatal(err)
		}
		want = hashOf(t, disk)
	})
	run("a failure", func(t *testing.T, disk *vfs.Faulty) {
		var failed atomic.Bool
		job := begin(t, disk, func(i int64) error {
			if i == 15 && !failed.Swap(true) {
				return errors.New("a bad row")
			}
			return nil
		})
		if _, err := job.Wait(); err != nil || !failed.Load() || hashOf(t, disk) != want {
			t.Errorf("other bytes, or %v", err)
		}
	})
	run("a savepoint, and two restores of it", func(t *testing.T, disk *vfs.Faulty) {
		job := begin(t, disk, never)
		time.Sleep(12 * time.Millisecond)
		at, err := job.StopWithSavepoint(t.Context(), t.TempDir(), false)
		if err != nil {
			t.Fatal(err)
		}
		first := len(visibleOn(t, disk, "/out"))
		job = begin(t, disk, never, stream.WithSavepoint(at))
		job.Cancel()
		<-job.Done() // what the savepoint covers is there for the next one
		if _, err := begin(t, disk, never, stream.WithSavepoint(at)).Wait(); err != nil || hashOf(t, disk) != want {
			t.Errorf("%d rows were visible after the savepoint; other bytes, or %v", first, err)
		}
	})
	run("a commit fails once", func(t *testing.T, disk *vfs.Faulty) {
		disk.Fail(vfs.OpRename, 1, syscall.EAGAIN)
		if _, err := begin(t, disk, never).Wait(); err != nil || hashOf(t, disk) != want {
			t.Errorf("other bytes, or %v", err)
		}
	})
	run("commits fail for ever", func(t *testing.T, disk *vfs.Faulty) {
		disk.FailFrom(vfs.OpRename, 1, syscall.EIO)
		_, err := begin(t, disk, never).Wait()
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "part-0-0") || len(visibleOn(t, disk, "/out")) > 0 {
			t.Errorf("got %v", err)
		}
	})
	run("a commit whose answer is lost", func(t *testing.T, disk *vfs.Faulty) {
		disk.Fail(vfs.OpSyncDir, 3, syscall.EIO) // the file may have its name already when this fails
		if _, err := begin(t, disk, never).Wait(); err != nil || hashOf(t, disk) != want {
			t.Errorf("other bytes, or %v", err)
		}
	})
}
