package filesink_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/stream"
)

const numbers = 24_000

// A job that fails again and again between its checkpoints leaves each element once.
func TestJobThatIsRestartedWritesEachElementOnce(t *testing.T) {
	for _, c := range []struct {
		name        string
		parallelism int
		sink        *filesink.Sink[int64]
	}{
		{"one", 1, filesink.New("out", file.TextEncoding[int64]("\n")).NoBuckets()},
		{"three", 3, filesink.New("out", file.TextEncoding[int64]("\n")).BucketBy(func(x int64) string { return fmt.Sprint(x % 2) }).MaxPartSize(3000)},
		{"compacted", 2, filesink.New("out", file.TextEncoding[int64]("\n")).NoBuckets().RollOnCheckpoint().CompactAfter(5)},
		{"gzip", 2, filesink.New("out", file.TextEncoding[int64]("\n")).Compress(filesink.Gzip)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := vfs.NewMem()
				var failures, calls atomic.Int64
				env := stream.NewEnv().SetParallelism(c.parallelism).EnableCheckpointing(10 * time.Millisecond).
					SetRestartStrategy(stream.FixedDelayRestart(10, time.Millisecond))
				env.FromSequence(1, numbers).TryMap(func(ctx context.Context, x int64) (int64, error) {
					time.Sleep(time.Millisecond)
					calls.Add(1)
					if n := failures.Load(); n < 5 && x >= numbers/6*(n+1) && failures.CompareAndSwap(n, n+1) {
						return 0, errors.New("out of order")
					}
					return x, nil
				}).CommitTo(c.sink.On(m, ids()))
				if _, err := env.Execute(context.Background(), "numbers"); err != nil {
					t.Fatal(err)
				}
				lines, files, hidden := contents(t, m, "out")
				var got []int
				for _, l := range lines {
					n, _ := strconv.Atoi(l)
					got = append(got, n)
				}
				slices.Sort(got)
				for i, n := range got {
					if n != i+1 {
						t.Fatalf("the %dth number is %d", i+1, n)
					}
				}
				if calls.Load() > 2*numbers { // it does not begin again each time
					t.Errorf("%d elements were read", calls.Load())
				}
				if len(got) != numbers || len(files) < 2 && c.parallelism > 1 || len(hidden) > 0 || failures.Load() != 5 {
					t.Errorf("%d numbers in %d files after %d failures, hidden: %q", len(got), len(files), failures.Load(), hidden)
				}
			})
		})
	}
}
