package parquet_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/connector/parquet"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/stream"
)

const numbers = 4000

// failing is a job that takes checkpoints and fails five times, after a sixth of the rows each.
func failing[T, S any](t *testing.T, src connector.Source[T, S], number func(T) int64, sink *filesink.Sink[T]) {
	t.Helper()
	var failures, calls atomic.Int64
	env := stream.NewEnv().SetParallelism(2).EnableCheckpointing(100 * time.Millisecond).
		SetRestartStrategy(stream.FixedDelayRestart(10, time.Millisecond))
	env.FromSource(src, "rows").TryMap(func(ctx context.Context, x T) (T, error) {
		time.Sleep(time.Millisecond)
		c := calls.Add(1)
		if n := failures.Load(); n < 5 && c >= numbers/6*(n+1) && failures.CompareAndSwap(n, n+1) {
			return x, fmt.Errorf("out of order at %d", number(x))
		}
		return x, nil
	}).CommitTo(sink)
	if _, err := env.Execute(context.Background(), "rows"); err != nil {
		t.Fatal(err)
	}
	if failures.Load() != 5 || calls.Load() > 2*numbers { // or it began again each time
		t.Errorf("%d failures, %d rows were read", failures.Load(), calls.Load())
	}
}

// TestJobsThatAreRestartedWriteAndReadEachRowOnce writes part files with a job that fails again and again, reads them with
// another one of that kind, which writes them once more, merges the small ones, and looks for each row.
func TestJobsThatAreRestartedWriteAndReadEachRowOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := vfs.NewMem()
		var text []byte
		for i := range numbers {
			text = fmt.Appendln(text, i)
		}
		if err := vfs.WriteFile(m, "numbers", text); err != nil {
			t.Fatal(err)
		}
		format := file.Delimited[reading]{Decode: func(record []byte) (reading, error) {
			var n int
			_, err := fmt.Sscan(string(record), &n)
			return readings(n, n+1)[0], err
		}}
		encoding := parquet.Encoding[reading](parquet.RowGroupSize(1 << 14))
		number := func(r reading) int64 { return r.ID }
		var count atomic.Int64
		id := func() string { return fmt.Sprint(count.Add(1)) }
		failing(t, file.New(format, "numbers").On(m).SplitSize(1<<14), number,
			filesink.NewBulk("first", encoding).NoBuckets().MaxPartSize(1<<17).On(m, id))
		failing(t, parquet.Source[reading]("first").On(m).SplitSize(1<<15), number,
			filesink.NewBulk("second", encoding).BucketBy(func(r reading) string { return r.Sensor[:1] + fmt.Sprint(r.ID%3) }).
				CompactAfter(3).CompactReading(parquet.Format[reading]()).On(m, id))

		got, err := filetest.Collect(parquet.Source[reading]("second/*/*.parquet").On(m), 1, 512)
		if err != nil || len(got) != numbers {
			t.Fatalf("%d rows, %v", len(got), err)
		}
		slices.SortFunc(got, func(a, b reading) int { return int(a.ID - b.ID) })
		for i, r := range got {
			if r.ID != int64(i) || r.Value != float64(i)/4 || len(r.Tags) != i%4 {
				t.Fatalf("row %d is %+v", i, r)
			}
		}
	})
}
