package filesink_test

import (
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/internal/vfs"
)

// nowhere is a file system whose files take all and hold nothing.
type nowhere struct{ vfs.FS }

func (n nowhere) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	w, err := n.FS.Create(name, how)
	return hole{w}, err
}

type hole struct{ vfs.Writer }

func (hole) Write(b []byte) (int, error) { return len(b), nil }

func TestElementsCostNoMemory(t *testing.T) {
	s := filesink.New("out", file.TextEncoding[string]("\n"))
	run, times := make([]string, 512), make([]int64, 512)
	for i := range run {
		run[i], times[i] = strings.Repeat("x", 100), int64(i)*7
	}
	for name, s := range map[string]*filesink.Sink[string]{
		"processing time": s,
		"event time":      s.BucketByEventTime("yyyy-MM-dd--HH", time.UTC),
		"element":         s.BucketBy(func(x *string) string { return (*x)[:1] }),
		"zstd":            s.NoBuckets().Compress(filesink.Zstd),
	} {
		h := byHand(t, nowhere{vfs.NewMem()}, s)
		w := h.w.(connector.RunWriter[string])
		write := func() { h.ok(w.WriteRun(run, times)) }
		for range 200 {
			write()
		}
		if n := testing.AllocsPerRun(500, write); n >= 1 {
			t.Errorf("%s: %v allocations for a run of 512", name, n)
		}
	}
}

func BenchmarkWriteRun(b *testing.B) {
	run, times := make([]string, 512), make([]int64, 512)
	for i := range run {
		run[i], times[i] = strings.Repeat("x", 40), int64(i)*7
	}
	s := filesink.New("out", file.TextEncoding[string]("\n"))
	for name, s := range map[string]*filesink.Sink[string]{
		"processing time": s,
		"event time":      s.BucketByEventTime("yyyy-MM-dd--HH", time.UTC),
		"element":         s.BucketBy(func(x *string) string { return (*x)[:1] }),
	} {
		b.Run(name, func(b *testing.B) {
			w, err := s.On(nowhere{vfs.NewMem()}, ids()).Writer(&filetest.WriterContext{})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := w.(connector.RunWriter[string]).WriteRun(run, times); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/element")
		})
	}
}
