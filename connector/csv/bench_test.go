package csv_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/file/filetest"
)

type trade struct {
	Symbol string
	ID     int64
	Price  float64
	Size   int32
	Buy    bool
}

// BenchmarkRows reads 32 MiB of rows with five fields; allocs/64KiB is the promise of the source.
func BenchmarkRows(b *testing.B) {
	for name, row := range map[string]string{
		"plain":   "ACME,1234567890,101.25,500,true\n",
		"quoted":  "\"ACME\",\"1234567890\",101.25,500,true\n",
		"doubled": "\"A \"\"C\"\" E\",1234567890,101.25,500,true\n",
	} {
		b.Run(name, func(b *testing.B) {
			const size = 32 << 20
			path := filepath.Join(b.TempDir(), "rows")
			if err := os.WriteFile(path, bytes.Repeat([]byte(row), size/len(row)), 0o666); err != nil {
				b.Fatal(err)
			}
			src := file.New(csv.Format[trade](), path)
			b.SetBytes(size)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for b.Loop() {
				d, err := filetest.Start(src, 1, 512, nil)
				if err != nil {
					b.Fatal(err)
				}
				d.Drop = true
				if err := d.Run(); err != nil {
					b.Fatal(err)
				}
				if d.Dropped != size/len(row) {
					b.Fatal(d.Dropped)
				}
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N*size/(64<<10)), "allocs/64KiB")
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N*(size/len(row))), "ns/row")
		})
	}
}

// TestRowsAllocateAtMostOncePer64KiB holds the promise of the source: nothing per row or field, quoted or not.
func TestRowsAllocateAtMostOncePer64KiB(t *testing.T) {
	const size = 8 << 20
	for _, row := range []string{"ACME,1234567890,101.25,500,true\n", "\"A \"\"C\"\"\nE\",\"123456789\",-1e3,500,false\n"} {
		path := filepath.Join(t.TempDir(), "rows")
		if err := os.WriteFile(path, bytes.Repeat([]byte(row), size/len(row)), 0o666); err != nil {
			t.Fatal(err)
		}
		if n, err := filetest.Allocations(file.New(csv.Format[trade](), path), size); err != nil || n > 1 {
			t.Errorf("%q: %.2f allocations per 64 KiB, %v", row, n, err)
		}
	}
}
