// Package bulktest is what the tests of formats of whole files (Parquet, Avro) try with jobs: that jobs which fail and go on
// write and read each row once. It owns no format; a format's tests call it. It is never linked into a program.
package bulktest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/stream"
)

// Format is a format of whole files with rows of type T.
type Format[T any] struct {
	// Encoding writes rows, Reading reads them again. Blocks should be some kilobytes, so that files have several.
	Encoding file.BulkEncoding[T]
	Reading  file.Format[T]
	// Row makes a row of a number, Number is the way back, and Same says whether a row is what Row has made of a number.
	Row    func(n int) T
	Number func(T) int
	Same   func(x T, n int) bool
}

// rows is the number of rows that a job has.
const rows = 4000

// Restarts writes part files with a job that fails again and again, reads them with another one of that kind, which writes them
// once more, merges the small ones, and looks for each row.
func (f Format[T]) Restarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := vfs.NewMem()
		var text []byte
		for i := range rows {
			text = fmt.Appendln(text, i)
		}
		if err := vfs.WriteFile(m, "numbers", text); err != nil {
			t.Fatal(err)
		}
		numbers := file.Delimited[T]{Decode: func(record []byte) (x T, err error) {
			n, err := strconv.Atoi(string(record))
			return f.Row(n), err
		}}
		var count atomic.Int64
		id := func() string { return fmt.Sprint(count.Add(1)) }
		f.failing(t, file.New(numbers, "numbers").On(m).SplitSize(1<<14),
			filesink.NewBulk("first", f.Encoding).NoBuckets().MaxPartSize(1<<17).On(m, id))
		f.failing(t, file.New(f.Reading, "first").On(m).SplitSize(1<<15),
			filesink.NewBulk("second", f.Encoding).BucketBy(func(x T) string { return fmt.Sprint("s", f.Number(x)%3) }).
				CompactAfter(3).CompactReading(f.Reading).On(m, id))

		got, err := filetest.Collect(file.New(f.Reading, "second/*/part-*").On(m), 1, 512)
		if err != nil || len(got) != rows {
			t.Fatalf("%d rows, %v", len(got), err)
		}
		slices.SortFunc(got, func(a, b T) int { return f.Number(a) - f.Number(b) })
		for i, x := range got {
			if !f.Same(x, i) {
				t.Fatalf("row %d is %+v", i, x)
			}
		}
	})
}

// failing is a job that takes checkpoints and fails five times, after a sixth of the rows each.
func (f Format[T]) failing(t *testing.T, src connector.Source[T, file.Split], sink *filesink.Sink[T]) {
	t.Helper()
	var failures, calls atomic.Int64
	env := stream.NewEnv().SetParallelism(2).EnableCheckpointing(100 * time.Millisecond).
		SetRestartStrategy(stream.FixedDelayRestart(10, time.Millisecond))
	env.FromSource(src, "rows").TryMap(func(_ context.Context, x T) (T, error) {
		time.Sleep(time.Millisecond)
		c := calls.Add(1)
		if n := failures.Load(); n < 5 && c >= rows/6*(n+1) && failures.CompareAndSwap(n, n+1) {
			return x, fmt.Errorf("out of order at %d", f.Number(x))
		}
		return x, nil
	}).CommitTo(sink)
	if _, err := env.Execute(context.Background(), "rows"); err != nil {
		t.Fatal(err)
	}
	if failures.Load() != 5 || calls.Load() > 2*rows { // or it began again each time
		t.Errorf("%d failures, %d rows were read", failures.Load(), calls.Load())
	}
}
