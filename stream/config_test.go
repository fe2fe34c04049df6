package stream_test

import (
	"context"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/stream"
)

// bucketOpener opens URLs of the scheme "bucket".
type bucketOpener struct{ mem *vfs.Mem }

func (bucketOpener) Schemes() []string { return []string{"bucket"} }

func (b bucketOpener) Open(_ context.Context, u *url.URL) (checkpoint.FS, string, error) {
	return b.mem, path.Join("/", u.Host, u.Path), nil
}

// A job that is set up from outside: checkpoints and savepoints in a bucket, restored from its URLs.
func TestConfiguredJobKeepsItsSnapshotsBehindURLs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		bucket := bucketOpener{vfs.NewMem()}
		keys := map[string]string{
			"execution.checkpointing.interval": "20 ms", "state.checkpoints.dir": "bucket://b/cp", "state.savepoints.dir": "bucket://b/sp",
			"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION", "parallelism.default": "2",
			"pipeline.name": "set up",
		}
		env := stream.NewEnv(stream.WithStorage(bucket), stream.WithConfiguration(keys))
		countTo(env, dir, 300, never)
		job, err := env.ExecuteAsync(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if job.Name() != "set up" || len(env.Warnings()) != 0 {
			t.Errorf("name %q, warnings %q", job.Name(), env.Warnings())
		}
		time.Sleep(100 * time.Millisecond)
		at, err := job.StopWithSavepoint(t.Context(), "", false)
		if err != nil || !strings.HasPrefix(at, "bucket://b/sp/savepoint-"+job.ID()[:6]) {
			t.Fatalf("savepoint %s, %v", at, err)
		}
		history := job.Checkpoints()
		if c := history.LatestSavepoint; c == nil || c.Location != at {
			t.Errorf("the latest savepoint is %+v", c)
		}
		if c := history.LatestCompleted; c == nil || !strings.HasPrefix(c.Location, "bucket://b/") {
			t.Errorf("the latest checkpoint is %+v", c)
		}
		keys["parallelism.default"], keys["execution.savepoint.path"] = "3", at
		env = stream.NewEnv(stream.WithStorage(bucket), stream.WithConfiguration(keys))
		countTo(env, dir, 300, never)
		job, err = env.ExecuteAsync(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := job.Wait(); err != nil {
			t.Fatal(err)
		}
		if r := job.Checkpoints().LatestRestored; r == nil || r.Location != at {
			t.Errorf("restored %+v", r)
		}
		checkCounts(t, "from a bucket", dir, 300)
		if entries, err := bucket.mem.ReadDir("/b/cp"); err != nil || len(entries) != 0 {
			t.Errorf("checkpoints are left: %v, %v", entries, err)
		}
	})
}

func TestUnlinkedStorageIsAnErrorThatSaysWhatToWrite(t *testing.T) {
	env := stream.NewEnv().EnableCheckpointing(time.Second).SetCheckpointStorage("s3://bucket/checkpoints")
	countTo(env, t.TempDir(), 1, never)
	_, err := env.Execute(t.Context(), "job")
	if err == nil || !strings.Contains(err.Error(), "stream.NewEnv(stream.WithStorage(s3.Opener{}))") {
		t.Errorf("error %v", err)
	}
}

// largeState keeps n bytes.
func largeState(env *stream.Env, n int) {
	env.FromGenerator(60, func(i int64) int64 { return i }, 1000).UID("numbers").
		KeyBy(func(int64) string { return strings.Repeat("k", n) }).
		Sum(func(int64) int64 { return 1 }).UID("large").Name("large sums").
		PrintTo(discard{})
}

// discard drops what is printed.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func TestSnapshotsInMemoryAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(opts ...stream.Option) error {
			env := stream.NewEnv(opts...).SetParallelism(1).EnableCheckpointing(20 * time.Millisecond)
			largeState(env, 6<<20)
			_, err := env.Execute(t.Context(), "large")
			return err
		}
		err := run()
		for _, want := range []string{"large sums", "or more, and snapshots in memory take 5242880 of each subtask", "SetCheckpointStorage", "WithMemoryStorageLimit"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %.300v, want %q", err, want)
			}
		}
		err = func() error { // what would go into the manifest is state as well
			env := stream.NewEnv(stream.WithMemoryStorageLimit(1000)).SetParallelism(1).EnableCheckpointing(20 * time.Millisecond)
			largeState(env, 5000)
			_, err := env.Execute(t.Context(), "large")
			return err
		}()
		if err == nil || !strings.Contains(err.Error(), "snapshots in memory take 1000 of each subtask") {
			t.Errorf("beyond a small limit: %.300v", err)
		}
		if err := run(stream.WithMemoryStorageLimit(8 << 20)); err != nil {
			t.Errorf("with a higher limit: %.300v", err)
		}
		if err := run(stream.WithConfiguration(map[string]string{"state.memory-storage.limit": "8 mb"})); err != nil {
			t.Errorf("with a higher limit by configuration: %.300v", err)
		}
	})
}

// The savepoint backend "jobmanager" of old keeps savepoints as long as the process lives.
func TestSavepointsInMemoryServeTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		memory := stream.NewMemoryStorage()
		old := stream.WithConfiguration(map[string]string{"savepoints.state.backend": "jobmanager", "state.backend": "jobmanager"})
		var at string
		start := func(env *stream.Env) *stream.Job {
			countTo(env.SetParallelism(2), dir, 300, never)
			job, err := env.ExecuteAsync(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			return job
		}
		stop := func(job *stream.Job) {
			time.Sleep(100 * time.Millisecond)
			var err error
			if at, err = job.StopWithSavepoint(t.Context(), "", false); err != nil || !strings.HasPrefix(at, "jobmanager://savepoints/") {
				t.Fatalf("savepoint %s, %v", at, err)
			}
		}
		env := stream.NewEnv(old, stream.WithStorage(memory))
		stop(start(env))
		stop(start(env.SetSavepoint(at))) // in the same environment
		job := start(stream.NewEnv(old, stream.WithStorage(memory), stream.WithSavepoint(at)))
		if _, err := job.Wait(); err != nil {
			t.Fatal(err)
		}
		checkCounts(t, "from memory", dir, 300)
		other := stream.NewEnv(stream.WithSavepoint(at))
		countTo(other, dir, 300, never)
		if _, err := other.Execute(t.Context(), "job"); err == nil || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), "lost with the process") {
			t.Errorf("another environment's savepoint: %v", err)
		}
	})
}

// A savepoint that the job claims goes once a checkpoint has taken its place; without that it stays.
func TestClaimedSavepointsAreRemoved(t *testing.T) {
	for name, opts := range map[string][]stream.SavepointOption{"not claimed": nil, "claimed": {stream.ClaimSavepoint()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir, saved := t.TempDir(), t.TempDir()
				env := stream.NewEnv().SetParallelism(2)
				countTo(env, dir, 300, never)
				job, err := env.ExecuteAsync(t.Context(), "job")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
				at, err := job.StopWithSavepoint(t.Context(), "file://"+saved, false)
				if err != nil || filepath.Dir(at) != saved {
					t.Fatalf("savepoint %s, %v", at, err)
				}
				env = stream.NewEnv(stream.WithSavepoint(at, opts...)).SetParallelism(3).EnableCheckpointing(20 * time.Millisecond)
				countTo(env, dir, 300, never)
				if _, err := env.Execute(t.Context(), "job"); err != nil {
					t.Fatal(err)
				}
				checkCounts(t, name, dir, 300)
				if _, err := os.Stat(at); os.IsNotExist(err) != (opts != nil) {
					t.Errorf("%s: the savepoint: %v", name, err)
				}
			})
		})
	}
}

func TestConfigurationFilesSetUpJobs(t *testing.T) {
	conf := t.TempDir()
	if err := os.WriteFile(filepath.Join(conf, "config.yaml"), []byte("parallelism:\n  default: 3\nexecution.checkpointing.interval: soon\nmy.key: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := stream.NewEnv(stream.WithConfigurationFile(conf))
	if env.Parallelism() != 3 {
		t.Errorf("parallelism %d", env.Parallelism())
	}
	if w := env.Warnings(); len(w) != 1 || !strings.Contains(w[0], "unknown keys: my.key") {
		t.Errorf("warnings %q", w)
	}
	env.FromElements(1).PrintTo(discard{})
	want := filepath.Join(conf, "config.yaml") + `:3: execution.checkpointing.interval: "soon" is no duration`
	if _, err := env.Execute(t.Context(), "job"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}
