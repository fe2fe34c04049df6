package heap

import (
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

// These benchmarks measure the processor time of their goroutine's thread, which is what the code costs on a machine that
// others use as well.

// threadTime is the processor time that this thread has had. The goroutine must be locked to it.
func threadTime() time.Duration {
	var t syscall.Timespec
	const clock = 3 // CLOCK_THREAD_CPUTIME_ID
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// account is a value of 96 bytes, as wide as those of the bench suite's state jobs.
type account [12]int64

// accounts is a store with n accounts.
type accounts struct {
	*kit[int64]
	table statebackend.Table
	slots []unsafe.Pointer
	fresh []bool
	n     int
	i     uint64
}

func newAccounts(t testing.TB, n int) *accounts {
	a := &accounts{kit: newKit[int64](t), slots: make([]unsafe.Pointer, block), fresh: make([]bool, block), n: n}
	var err error
	a.table, err = a.store.Table(statebackend.TableSpec{Name: "account", Value: handle[account](t)})
	ok(t, err)
	keys := make([]int64, block)
	for from := 0; from < n; from += block {
		for j := range keys {
			keys[j] = int64(min(from+j, n-1))
		}
		a.update(keys)
	}
	return a
}

// update changes the accounts of a run of keys and says how long it took.
func (a *accounts) update(keys []int64) time.Duration {
	start := threadTime()
	a.run(keys...)
	ok(a.t, a.table.Slots(0, len(keys), a.slots, a.fresh))
	for _, p := range a.slots[:len(keys)] {
		v := (*account)(p)
		v[0]++
		v[v[0]%11+1] = v[0]
	}
	return threadTime() - start
}

// uniform makes a run of keys, all as likely, or all among the first few.
func (a *accounts) uniform(keys []int64, among int) []int64 {
	for j := range keys {
		a.i++
		keys[j] = int64(mix(a.i, among))
	}
	return keys
}

// benchAccounts is 104 MB of keys and values.
const benchAccounts = 1_000_000

// BenchmarkFreezePause measures runs of updates right after a barrier, while nobody reads the snapshot and when it is read:
// the longest, the ones in a hundred and in two, and how much was kept.
func BenchmarkFreezePause(b *testing.B) {
	for name, how := range map[string]statebackend.Freezing{"whole": {}, "changes": {Anchor: true, Changes: true}} {
		for _, read := range []bool{false, true} {
			title := name + "/unread"
			if read {
				title = name + "/read"
			}
			b.Run(title, func(b *testing.B) { benchPause(b, how, read) })
		}
	}
}

func benchPause(b *testing.B, how statebackend.Freezing, read bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a := newAccounts(b, benchAccounts)
	keys := make([]int64, block)
	var runs, pauses []time.Duration
	var kept, held int64
	if how.Anchor {
		f, err := a.store.Freeze(statebackend.Freezing{Anchor: true})
		ok(b, err)
		f.Release()
	}
	b.ResetTimer()
	for range b.N {
		for range 100 {
			a.update(a.uniform(keys, a.n/100))
		}
		start := threadTime()
		f, err := a.store.Freeze(how)
		pauses = append(pauses, threadTime()-start)
		ok(b, err)
		done := make(chan bool, 1)
		if read {
			go func() {
				for _, t := range f.Tables() {
					for range t.Rows {
					}
				}
				done <- true
			}()
		}
		for n, open := 0, true; open; n++ {
			runs = append(runs, a.update(a.uniform(keys, a.n)))
			kept = max(kept, f.(*frozen).held.Load())
			select {
			case <-done:
				open = false
			default:
				open = read || n < 500
			}
		}
		f.Release()
		held = a.table.MemoryBytes()
	}
	b.StopTimer()
	slices.Sort(runs)
	slices.Sort(pauses)
	b.ReportMetric(float64(pauses[len(pauses)/2].Microseconds()), "freeze-us")
	b.ReportMetric(float64(runs[len(runs)-1].Microseconds()), "longest-run-us")
	b.ReportMetric(float64(runs[len(runs)*99/100].Microseconds()), "p99-run-us")
	b.ReportMetric(float64(runs[len(runs)/2].Microseconds()), "median-run-us")
	b.ReportMetric(float64(kept)/float64(held), "kept/state")
}

// BenchmarkRows measures how long it takes to read a row of a snapshot that nobody disturbs.
func BenchmarkRows(b *testing.B) {
	b.Run("account", func(b *testing.B) {
		a := newAccounts(b, benchAccounts)
		benchRows(b, a.kit)
	})
	b.Run("int64", func(b *testing.B) {
		c := newCounter[int64](b)
		keys := make([]int64, block)
		for from := range int64(2_000_000 / block) {
			for j := range keys {
				keys[j] = from*block + int64(j)
			}
			c.count(keys)
		}
		benchRows(b, c.kit)
	})
}

func benchRows(b *testing.B, k *kit[int64]) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := time.Duration(1 << 62)
	rows, bytes := 0, 0
	b.ResetTimer()
	for range b.N {
		f, err := k.store.Freeze(statebackend.Freezing{})
		ok(b, err)
		start := threadTime()
		rows, bytes = 0, 0
		for r, err := range f.Tables()[0].Rows {
			if err != nil {
				b.Fatal(err)
			}
			rows++
			bytes += len(r.Key) + len(r.Value)
		}
		best = min(best, threadTime()-start)
		f.Release()
		k.run(0)
	}
	b.ReportMetric(float64(best)/float64(rows), "ns/row")
	b.ReportMetric(float64(bytes)/1e6/best.Seconds(), "MB/s")
}

// BenchmarkRestoreAccounts measures how fast rows in memory become state.
func BenchmarkRestoreAccounts(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a := newAccounts(b, benchAccounts)
	snap := freeze(b, a.store)
	best := time.Duration(1 << 62)
	b.ResetTimer()
	for range b.N {
		k := restoredKit[int64](b, snap)
		start := threadTime()
		table, err := k.store.Table(*a.table.Spec())
		ok(b, err)
		best = min(best, threadTime()-start)
		if table.Len() != a.n {
			b.Fatalf("%d entries", table.Len())
		}
	}
	b.ReportMetric(float64(best)/benchAccounts, "ns/row")
	b.ReportMetric(benchAccounts*104/1e6/best.Seconds(), "MB/s")
}

// BenchmarkNotedUpdates measures updates of all keys and of the hot hundredth of them, without and with noting what has
// changed, and how long a snapshot of the hot ones' changes takes from Freeze to Release.
func BenchmarkNotedUpdates(b *testing.B) {
	for name, among := range map[string]int{"uniform": benchAccounts, "hot": benchAccounts / 100} {
		for _, noted := range []bool{false, true} {
			title := name + "/plain"
			if noted {
				title = name + "/noted"
			}
			b.Run(title, func(b *testing.B) { benchNoted(b, among, noted) })
		}
	}
}

func benchNoted(b *testing.B, among int, noted bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a := newAccounts(b, benchAccounts)
	keys := make([]int64, block)
	how := statebackend.Freezing{Anchor: true}
	updates, snapshot := time.Duration(1<<62), time.Duration(1<<62)
	b.ResetTimer()
	for range b.N {
		start := threadTime()
		f, err := a.store.Freeze(statebackend.Freezing{Anchor: noted, Changes: how.Changes && noted})
		ok(b, err)
		for _, t := range f.Tables() {
			for range t.Rows {
			}
		}
		f.Release()
		snapshot = min(snapshot, threadTime()-start)
		how.Changes = true
		var spent time.Duration
		for range 1000 {
			spent += a.update(a.uniform(keys, among))
		}
		updates = min(updates, spent)
	}
	b.ReportMetric(float64(updates)/1000/block, "ns/update")
	b.ReportMetric(float64(snapshot.Microseconds())/1000, "snapshot-ms")
}
