package filesink_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/vfs"
)

// BenchmarkMerge makes one file of 64 that have a megabyte each, on the machine's disk. It tells how long an element waits
// at most, and a checkpoint.
func BenchmarkMerge(b *testing.B) {
	run := slices.Repeat([]string{strings.Repeat("x", 1023)}, 1024)
	for name, c := range map[string]*filesink.Sink[string]{
		"records":     filesink.New("", file.TextEncoding[string]("\n")).RollOnCheckpoint(),
		"whole files": filesink.NewBulk("", leaves).CompactReading(leafFormat{}),
	} {
		b.Run(name, func(b *testing.B) {
			var element, checkpoint time.Duration
			for range b.N {
				b.StopTimer()
				dir := filepath.ToSlash(b.TempDir())
				w, err := c.CompactAfter(64).In(dir).On(vfs.OS{}, ids()).Writer(&filetest.WriterContext{})
				if err != nil {
					b.Fatal(err)
				}
				flush := func() {
					start := time.Now()
					if err := w.Flush(false); err != nil {
						b.Fatal(err)
					}
					if _, err := w.(connector.CommittingWriter[string, filesink.Committable]).Prepare(); err != nil {
						b.Fatal(err)
					}
					if _, err := w.(connector.StatefulWriter).Snapshot(1); err != nil {
						b.Fatal(err)
					}
					checkpoint = max(checkpoint, time.Since(start))
				}
				for range 64 {
					if err := w.(connector.RunWriter[string]).WriteRun(run, nil); err != nil {
						b.Fatal(err)
					}
					checkpoint = 0 // that of the last counts, which merges
					flush()
				}
				b.StartTimer()
				for next := int64(1); next > 0; {
					start := time.Now()
					if next, err = w.(connector.TimedWriter).OnTime(0); err != nil {
						b.Fatal(err)
					}
					if next > 1 {
						break // only the clock is to be looked at
					}
					element = max(element, time.Since(start))
				}
				b.StopTimer()
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.N)*64/b.Elapsed().Seconds(), "MB/s")
			b.ReportMetric(element.Seconds()*1000, "ms-element")
			b.ReportMetric(checkpoint.Seconds()*1000, "ms-checkpoint")
		})
	}
}
