package heap

import (
	"runtime"
	"testing"
	"time"

	"github.com/flott-dev/flott/statebackend"
)

// BenchmarkHotKeys updates one key of a hundred, which lie anywhere among the others, between snapshots of changes: without any,
// while one is open that nobody has read yet, and after it was read, which is timed, too.
func BenchmarkHotKeys(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a := newAccounts(b, 2*benchAccounts)
	keys := make([]int64, block)
	updates := func() (spent time.Duration) {
		const runs = 200
		for range runs {
			for i, key := range a.uniform(keys, a.n/100) {
				keys[i] = key * 100
			}
			spent += a.update(keys)
		}
		return spent / (runs * block)
	}
	const far = time.Duration(1 << 62)
	plain, opened, after, read := far, far, far, far
	for range 5 {
		plain = min(plain, updates())
	}
	how := statebackend.Freezing{Anchor: true}
	rows := 0
	b.ResetTimer()
	for range b.N {
		f, err := a.store.Freeze(how)
		ok(b, err)
		t := updates()
		start := threadTime()
		rows = 0
		if table := f.Tables()[0]; table.Batches != nil {
			for r, err := range table.Batches {
				ok(b, err)
				rows += r.N
			}
		} else {
			for _, err := range table.Rows {
				ok(b, err)
				rows++
			}
		}
		f.Release()
		if how.Changes {
			opened, read = min(opened, t), min(read, threadTime()-start)
		}
		after = min(after, updates())
		how.Changes = true
	}
	b.ReportMetric(float64(plain), "ns/plain")
	b.ReportMetric(float64(opened), "ns/open")
	b.ReportMetric(float64(after), "ns/noted")
	b.ReportMetric(float64(read)/float64(rows), "ns/read")
	b.ReportMetric(float64(rows), "rows")
}
