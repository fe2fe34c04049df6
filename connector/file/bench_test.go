package file_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
)

// BenchmarkLines reads 64 MiB of lines of 40 bytes from a file; allocs/64KiB is the promise of the source.
func BenchmarkLines(b *testing.B) {
	const size = 64 << 20
	name := filepath.Join(b.TempDir(), "lines")
	line := []byte("the quick brown fox jumps over a dog 12\n")
	if err := os.WriteFile(name, bytes.Repeat(line, size/len(line)), 0o666); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		d, err := filetest.Start(file.Lines(name), 1, 512, nil)
		if err != nil {
			b.Fatal(err)
		}
		d.Drop = true
		if err := d.Run(); err != nil {
			b.Fatal(err)
		}
		if d.Dropped != size/len(line) {
			b.Fatal(d.Dropped)
		}
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N*size/(64<<10)), "allocs/64KiB")
}

// TestLinesAllocateAtMostOncePer64KiB holds the promise of the source: blocks, and nothing per line.
func TestLinesAllocateAtMostOncePer64KiB(t *testing.T) {
	const size = 8 << 20
	name := filepath.Join(t.TempDir(), "lines")
	line := []byte("the quick brown fox jumps over a dog 12\n")
	if err := os.WriteFile(name, bytes.Repeat(line, size/len(line)), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, src := range []*file.Source[string]{file.Lines(name), file.New(file.Text{Delimiter: "12\n"}, name)} {
		if n, err := filetest.Allocations(src, size); err != nil || n > 1 {
			t.Errorf("%.2f allocations per 64 KiB, %v", n, err)
		}
	}
}

// BenchmarkSmallFiles reads 2000 files of 8 KiB.
func BenchmarkSmallFiles(b *testing.B) {
	const n, size = 2000, 8 << 10
	dir := b.TempDir()
	text := bytes.Repeat([]byte("the quick brown fox jumps over a dog 12\n"), size/40)
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), text, 0o666); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(n * size)
	b.ReportAllocs()
	for b.Loop() {
		d, err := filetest.Start(file.Lines(dir), 1, 512, nil)
		if err != nil {
			b.Fatal(err)
		}
		d.Drop = true
		if err := d.Run(); err != nil {
			b.Fatal(err)
		}
	}
}
