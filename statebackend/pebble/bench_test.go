package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

const (
	benchMemory = 8 << 20 // of rows and blocks, for either
	benchKeys   = 600_000 // 84 MB of keys and values
	benchRun    = 512
)

// total is the state of a key.
type total [16]int64

// spread scatters numbers over all keys.
func spread(n uint64) int64 { return int64(n * 0x9e3779b97f4a7c15 >> 20) }

// draw gives keys whose frequencies are Zipf's, those that are frequent scattered over all.
func draw(zipf *rand.Zipf, keys []int64) {
	for i := range keys {
		keys[i] = spread(zipf.Uint64())
	}
}

func zipfOf(s float64) *rand.Zipf {
	r := rand.New(rand.NewPCG(1, 2))
	return rand.NewZipf(r, s, 1, benchKeys-1)
}

// bench opens a store with a table of counts of all keys.
func bench(b *testing.B) (*store, statebackend.Table, func(keys []int64)) {
	key, err := serde.KeyOf[int64]()
	fatal(b, err)
	value, err := serde.Of[total]()
	fatal(b, err)
	s, err := Backend{CacheBytes: benchMemory * 3 / 4, Blocks: NewBlockCache(benchMemory / 4)}.Open(statebackend.Options{
		Key: key, MaxParallelism: 128, LastGroup: 127, Operator: "bench",
	})
	fatal(b, err)
	b.Cleanup(func() { fatal(b, s.Close()) })
	table, err := s.Table(statebackend.TableSpec{Name: "counts", Value: value})
	fatal(b, err)
	var scratch serde.KeyScratch
	var canon serde.Canon
	hashes := make([]uint64, benchRun)
	run := func(keys []int64) {
		var err error
		canon, err = key.Canon(serde.Column{P: unsafe.Pointer(&keys[0]), N: len(keys), Stride: 8}, &scratch)
		fatal(b, err)
		key.Hash(&canon, 0, hashes[:len(keys)])
		s.BeginRun(&canon, hashes[:len(keys)])
	}
	out, fresh := make([]unsafe.Pointer, benchRun), make([]bool, benchRun)
	all := make([]int64, benchRun)
	for from := 0; from < benchKeys; from += benchRun {
		for i := range all {
			all[i] = spread(uint64((from + i) % benchKeys))
		}
		run(all)
		fatal(b, table.Slots(0, benchRun, out, fresh))
	}
	return s.(*store), table, run
}

// perKey measures what a run costs per key: time, and time of all processors, in the background as well.
func perKey(b *testing.B, run func()) {
	for range 100 {
		run()
	}
	before := processorTime(b)
	n := 0
	for b.Loop() {
		run()
		n += benchRun
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/key")
	b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(n), "cpu-ns/key")
	b.ReportMetric(0, "ns/op")
}

func processorTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	fatal(b, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// cached counts the rows in the cache.
func cached(s *store) (n int) {
	for _, g := range s.cache.segments {
		if g != nil {
			g.each(func(r *row) {
				if !r.is(dead) {
					n++
				}
			})
		}
	}
	return n
}

func BenchmarkUpdate(b *testing.B) {
	for _, s := range []float64{1.01, 1.2} {
		b.Run(fmt.Sprint("zipf ", s), func(b *testing.B) {
			st, table, run := bench(b)
			zipf := zipfOf(s)
			keys := make([]int64, benchRun)
			out, fresh := make([]unsafe.Pointer, benchRun), make([]bool, benchRun)
			b.ReportMetric(float64(benchKeys)/float64(cached(st)), "keys/cached")
			perKey(b, func() {
				draw(zipf, keys)
				run(keys)
				fatal(b, table.Slots(0, benchRun, out, fresh))
				for _, p := range out {
					(*total)(p)[0]++
				}
			})
		})
	}
}

// BenchmarkBarePebble reads, adds and writes without a cache of rows; the cache of blocks has its memory.
func BenchmarkBarePebble(b *testing.B) {
	for _, s := range []float64{1.01, 1.2} {
		b.Run(fmt.Sprint("zipf ", s), func(b *testing.B) {
			blocks := pebble.NewCache(benchMemory)
			defer blocks.Unref()
			o := &pebble.Options{
				Cache: blocks, MemTableSize: memTable, MemTableStopWritesThreshold: 4, DisableWAL: true,
				FormatMajorVersion: pebble.FormatNewest, Logger: silent{},
			}
			for i := range o.Levels {
				o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
			}
			db, err := pebble.Open(b.TempDir(), o)
			fatal(b, err)
			defer func() { fatal(b, db.Close()) }()
			update := func(k int64) {
				key := binary.LittleEndian.AppendUint64(nil, uint64(k))
				var sum total
				memory := bytesAt(unsafe.Pointer(&sum), unsafe.Sizeof(sum))
				v, closer, err := db.Get(key)
				if err == nil {
					copy(memory, v)
					fatal(b, closer.Close())
				} else if !errors.Is(err, pebble.ErrNotFound) {
					b.Fatal(err)
				}
				sum[0]++
				fatal(b, db.Set(key, memory, pebble.NoSync))
			}
			for i := range uint64(benchKeys) {
				update(spread(i))
			}
			zipf := zipfOf(s)
			keys := make([]int64, benchRun)
			perKey(b, func() {
				draw(zipf, keys)
				for _, k := range keys {
					update(k)
				}
			})
		})
	}
}

func BenchmarkFreeze(b *testing.B) {
	for range b.N {
		b.StopTimer()
		st, _, _ := bench(b)
		b.ReportMetric(float64(cached(st)), "rows")
		b.StartTimer()
		f, err := st.Freeze(statebackend.Freezing{})
		b.StopTimer()
		fatal(b, err)
		f.Release()
	}
}

func fatal(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		tb.Fatal(err)
	}
}
