package blob_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/storage/blob"
	"github.com/flott-dev/flott/stream"
)

// failing is a job that copies numbers in lines to a sink, takes checkpoints, and fails five times.
func failing(t *testing.T, o checkpoint.Opener, from string, sink *filesink.Sink[string]) {
	t.Helper()
	const numbers = 600
	var failures, calls atomic.Int64
	env := stream.NewEnv(stream.WithStorage(o)).SetParallelism(2).EnableCheckpointing(30 * time.Millisecond).
		SetRestartStrategy(stream.FixedDelayRestart(10, time.Millisecond))
	env.ReadTextFile(from, stream.SplitSize(200)).TryMap(func(_ context.Context, x string) (string, error) {
		time.Sleep(time.Millisecond)
		if n := failures.Load(); n < 5 && calls.Add(1) >= numbers/6*(n+1) && failures.CompareAndSwap(n, n+1) {
			return x, errors.New("out of order")
		}
		return x, nil
	}).CommitTo(sink)
	if _, err := env.Execute(context.Background(), "copy"); err != nil {
		t.Fatal(err)
	}
	if failures.Load() != 5 {
		t.Errorf("it failed %d times", failures.Load())
	}
}

// A job that is restarted again and again reads files of a store and writes files to it, once from each to the next.
func TestFilesInABucketAreReadAndWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := blob.NewOpener()
		var want []string
		for i := range 600 {
			want = append(want, fmt.Sprint(i))
		}
		env := stream.NewEnv(stream.WithStorage(o)).SetParallelism(1)
		env.FromSlice(want).CommitTo(filesink.New("mem://bucket/numbers", file.TextEncoding[string]("\n")).NoBuckets().MaxPartSize(400))
		if _, err := env.Execute(context.Background(), "numbers"); err != nil {
			t.Fatal(err)
		}
		digit := func(x string) string { return "by digit/" + x[:1] }
		failing(t, o, "mem://bucket/numbers", filesink.New("mem://bucket/first%20copy", file.TextEncoding[string]("\n")).BucketBy(digit))
		failing(t, o, "mem://bucket/first%20copy/by%20digit/*/part-*", filesink.New("mem://bucket/second", file.TextEncoding[string]("\n")).
			BucketBy(digit).CompactAfter(4).Compress(filesink.Gzip))

		got := lines(t, o, "mem://bucket/second")
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%d lines came through", len(got))
		}
	})
}

// lines are those of the files in a folder and below, sorted.
func lines(t *testing.T, o checkpoint.Opener, where string) (all []string) {
	t.Helper()
	env := stream.NewEnv(stream.WithStorage(o)).SetParallelism(1)
	all, err := stream.ExecuteAndCollect(t.Context(), env.ReadTextFile(where, stream.Recursive()), "read")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func TestPlacesThatLeadNowhereAreMistakes(t *testing.T) {
	type row struct{ A int }
	for name, c := range map[string]struct {
		build func(env *stream.Env)
		want  string
	}{
		"a sink without a storage": {
			func(env *stream.Env) {
				env.FromElements("a").CommitTo(filesink.New("s3://bucket/out", file.TextEncoding[string]("\n")))
			},
			"no storage for s3: is linked; import github.com/flott-dev/flott/storage/s3",
		},
		"a source without a storage": {
			func(env *stream.Env) { env.ReadTextFile("gs://bucket/in/*.txt").Discard() },
			"no storage for gs: is linked; import github.com/flott-dev/flott/storage/gs",
		},
		"a sink that writes while it runs": {
			func(env *stream.Env) {
				env.FromElements(row{1}).WriteAsCSV("mem://bucket/out", stream.Overwrite, csv.Header())
			},
			"write mem://bucket/out: files that are written to as long as the job runs can only lie on a disk: write with WriteToFiles",
		},
		"paths in two storages": {
			func(env *stream.Env) { env.FromSource(file.Lines("mem://a/x", "mem://b/x"), "files").Discard() },
			"mem://b/x is in another storage than mem://a/x: use two sources, and Union",
		},
		"a path beside a storage": {
			func(env *stream.Env) { env.FromSource(file.Lines("mem://a/x", "/tmp/x"), "files").Discard() },
			"of mem://a/x, /tmp/x some are in a storage and some are not",
		},
		"a file of another machine": {
			func(env *stream.Env) { env.ReadTextFile("file://there/x").Discard() },
			"a file is on this machine, not on there",
		},
		"options for buckets without any": {
			func(env *stream.Env) { env.ReadTextFile("mem://a/x?b=c").Discard() },
			"buckets in memory have no options",
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := stream.NewEnv(stream.WithStorage(blob.NewOpener()))
			c.build(env)
			if _, err := env.Execute(context.Background(), "nowhere"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
