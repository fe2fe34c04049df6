package heap

import (
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend"
)

// processTime is the processor time that the process has had, in the system as well.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRestoreFromDisk measures what a row of a snapshot on disk costs until it is in its table: processor time of the whole
// process, reading included.
func BenchmarkRestoreFromDisk(b *testing.B) {
	const n = 1_000_000
	b.Run("account", func(b *testing.B) {
		benchFromDisk(b, n, func(i int) int64 { return int64(mix(uint64(i), 1<<40)) }, func(i int) account { return account{int64(i)} })
	})
	b.Run("count", func(b *testing.B) {
		benchFromDisk(b, n, func(i int) int64 { return int64(mix(uint64(i), 1<<40)) }, func(i int) int64 { return int64(i) })
	})
	b.Run("text-count", func(b *testing.B) {
		benchFromDisk(b, n, func(i int) string { return fmt.Sprint("word", i) }, func(i int) int64 { return int64(i) })
	})
	b.Run("text-value", func(b *testing.B) {
		benchFromDisk(b, n, func(i int) int64 { return int64(i) }, func(i int) textValue { return textValue{N: int64(i), S: "somebody with a name"} })
	})
	b.Run("encoded", func(b *testing.B) {
		benchFromDisk(b, n, func(i int) int64 { return int64(i) }, func(i int) []int64 { return []int64{int64(i), 2, 3} })
	})
}

func benchFromDisk[K comparable, V any](b *testing.B, n int, key func(i int) K, value func(i int) V) {
	spec := statebackend.TableSpec{Name: "v", Value: handle[V](b)}
	k := newKit[K](b)
	table, err := k.store.Table(spec)
	ok(b, err)
	keys := make([]K, block)
	for from := 0; from < n; from += block {
		for j := range keys {
			keys[j] = key(min(from+j, n-1))
		}
		k.run(keys...)
		for j := range keys {
			v := value(min(from+j, n-1))
			ok(b, table.Save(j, unsafe.Pointer(&v)))
		}
	}
	m := written(b, k.store, vfs.OS{}, filepath.ToSlash(b.TempDir()))
	ok(b, k.store.Close())
	for _, how := range []string{"rows", "batches"} {
		b.Run(how, func(b *testing.B) {
			var spent time.Duration
			var held int64
			for range b.N {
				restored, _, err := m.Restore(vfs.OS{}, m.Operators[0].ID, 0, 1, 128)
				ok(b, err)
				if how == "rows" {
					restored = byRows{restored}
				}
				runtime.GC()
				start := processTime()
				s := restoredKit[K](b, restored)
				table, err := s.store.Table(spec)
				ok(b, err)
				spent += processTime() - start
				if table.Len() != n {
					b.Fatalf("%d rows of %d", table.Len(), n)
				}
				held = table.MemoryBytes()
				ok(b, s.store.Close())
			}
			b.ReportMetric(float64(spent)/float64(b.N)/float64(n), "cpu-ns/row")
			b.ReportMetric(float64(held)/float64(n), "bytes/row")
		})
	}
}
