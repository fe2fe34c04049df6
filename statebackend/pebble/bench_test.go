package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
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
	benchKeys   = 1_200_000 // 163 MiB of keys and values
	benchMemory = 16 << 20  // a tenth of it, for all that either has: rows, blocks, memory tables
	benchBlocks = benchMemory / 8
	// benchCache leaves room for what a tree has at least, and for spare segments.
	benchCache = (benchMemory - benchBlocks - leastTree) * 9 / 10
	benchRun   = 512
)

// total is the state of a key. Its numbers are small ones, so that it can be compressed to about a half.
type total [16]int64

// spread scatters numbers over all keys.
func spread(n uint64) int64 { return int64(n * 0x9e3779b97f4a7c15 >> 20) }

// zipf draws ranks whose frequencies are 1/rank^theta: YCSB's way, with 0.99 as its default there. (rand.Zipf wants more than 1.)
type zipf struct {
	r                    *rand.Rand
	theta, sum, eta, low float64
}

func newZipf(theta float64) *zipf {
	z := &zipf{r: rand.New(rand.NewPCG(1, 2)), theta: theta, low: 1 + math.Pow(0.5, theta)}
	for i := range benchKeys {
		z.sum += math.Pow(float64(i+1), -theta)
	}
	z.eta = (1 - math.Pow(2/float64(benchKeys), 1-theta)) / (1 - z.low/z.sum)
	return z
}

// draw gives keys, those that are frequent scattered over all.
func (z *zipf) draw(keys []int64) {
	for i := range keys {
		rank := uint64(0)
		switch u := z.r.Float64(); {
		case u*z.sum < 1:
		case u*z.sum < z.low:
			rank = 1
		default:
			rank = min(benchKeys-1, uint64(benchKeys*math.Pow(z.eta*u-z.eta+1, 1/(1-z.theta))))
		}
		keys[i] = spread(rank)
	}
}

func thetas(b *testing.B, f func(b *testing.B, z *zipf)) {
	for _, theta := range []float64{0.99, 1.2} {
		b.Run(fmt.Sprint("zipf ", theta), func(b *testing.B) { f(b, newZipf(theta)) })
	}
}

// fill makes the state that a key begins with.
func (t *total) fill(r *rand.Rand) {
	for i := range t {
		t[i] = r.Int64N(1000)
	}
}

// bench opens a store with a table of totals of all keys.
func bench(b *testing.B) (*store, *valueTable, func(keys []int64)) {
	key, err := serde.KeyOf[int64]()
	fatal(b, err)
	value, err := serde.Of[total]()
	fatal(b, err)
	opened, err := Backend{CacheBytes: benchCache, Blocks: NewBlockCache(benchBlocks)}.Open(statebackend.Options{
		Key: key, MaxParallelism: 128, LastGroup: 127, Operator: "bench",
	})
	fatal(b, err)
	s := opened.(*store)
	b.Cleanup(func() { fatal(b, s.Close()) })
	opened2, err := s.Table(statebackend.TableSpec{Name: "totals", Value: value})
	fatal(b, err)
	table := opened2.(*valueTable)
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
	load(b, table, run)
	return s, table, run
}

// load gives all keys a state, past the cache, and merges all levels.
func load(b *testing.B, table *valueTable, run func(keys []int64)) {
	s := table.store
	r := rand.New(rand.NewPCG(3, 4))
	var state total
	bulk := newBulk(s.tree)
	keys := make([]int64, benchRun)
	for from := uint64(0); from < benchKeys; from += benchRun {
		for i := range keys {
			keys[i] = spread(from + uint64(i))
		}
		run(keys)
		for i := range min(benchRun, benchKeys-from) {
			state.fill(r)
			value, err := table.encode(unsafe.Pointer(&state))
			fatal(b, err)
			fatal(b, bulk.add(table.compose(table.shape.spaces[0], int(i)), value))
			table.n++
		}
	}
	fatal(b, bulk.finish())
	fatal(b, s.tree.Compact(context.Background(), []byte{0}, []byte{255}, false))
}

// perKey measures what a run costs per key: time, and time of all processors, in the background as well.
func perKey(b *testing.B, run func()) {
	for range 600 {
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

// updater gives a way to add to the states of keys.
func updater(b *testing.B, table *valueTable, run func(keys []int64)) func(keys []int64) {
	out, fresh := make([]unsafe.Pointer, benchRun), make([]bool, benchRun)
	return func(keys []int64) {
		run(keys)
		fatal(b, table.Slots(0, benchRun, out, fresh))
		for _, p := range out {
			(*total)(p)[0]++
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	thetas(b, func(b *testing.B, z *zipf) {
		s, table, run := bench(b)
		update := updater(b, table, run)
		keys := make([]int64, benchRun)
		perKey(b, func() {
			z.draw(keys)
			update(keys)
		})
		b.ReportMetric(float64(benchKeys)/float64(cached(s)), "keys/cached")
		if n := s.MemoryBytes(); n > benchMemory {
			b.Errorf("the store has %d bytes, it may have %d", n, benchMemory)
		}
	})
}

// BenchmarkUpdateOneByOne asks for each slot by itself, as process functions do.
func BenchmarkUpdateOneByOne(b *testing.B) {
	thetas(b, func(b *testing.B, z *zipf) {
		_, table, run := bench(b)
		var out [1]unsafe.Pointer
		var fresh [1]bool
		keys := make([]int64, benchRun)
		perKey(b, func() {
			z.draw(keys)
			run(keys)
			for i := range keys {
				fatal(b, table.Slots(i, i+1, out[:], fresh[:]))
				(*total)(out[0])[0]++
			}
		})
	})
}

// BenchmarkBarePebble reads, adds and writes without a cache of rows, in the same memory: Pebble takes memory tables out of
// what its cache of blocks has. The rest is as Pebble has it by itself, with filters.
func BenchmarkBarePebble(b *testing.B) {
	thetas(b, func(b *testing.B, z *zipf) {
		db := benchBare(b)
		keys := make([]int64, benchRun)
		var state total
		memory := bytesAt(unsafe.Pointer(&state), unsafe.Sizeof(state))
		key := make([]byte, 8)
		perKey(b, func() {
			z.draw(keys)
			for _, k := range keys {
				binary.LittleEndian.PutUint64(key, uint64(k))
				v, closer, err := db.Get(key)
				fatal(b, err)
				copy(memory, v)
				fatal(b, closer.Close())
				state[0]++
				fatal(b, db.Set(key, memory, pebble.NoSync))
			}
		})
	})
}

// benchBare opens a Pebble store with the states of all keys.
func benchBare(b *testing.B) *pebble.DB {
	blocks := pebble.NewCache(benchMemory)
	defer blocks.Unref()
	o := &pebble.Options{
		Cache: blocks, MemTableSize: benchMemory / 8, DisableWAL: true, FormatMajorVersion: pebble.FormatNewest, Logger: silent{},
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(b.TempDir(), o)
	fatal(b, err)
	b.Cleanup(func() { fatal(b, db.Close()) })
	keys := make([]uint64, benchKeys)
	for i := range keys {
		keys[i] = bits.ReverseBytes64(uint64(spread(uint64(i))))
	}
	slices.Sort(keys)
	r := rand.New(rand.NewPCG(3, 4))
	var state total
	for _, k := range keys {
		state.fill(r)
		fatal(b, db.Set(binary.BigEndian.AppendUint64(nil, k), bytesAt(unsafe.Pointer(&state), unsafe.Sizeof(state)), pebble.NoSync))
	}
	fatal(b, errors.Join(db.Flush(), db.Compact(context.Background(), []byte{0}, []byte{255}, false)))
	return db
}

// BenchmarkFreeze measures the pause at a barrier: a cache of 64 MiB whose rows are all dirty, or nearly.
func BenchmarkFreeze(b *testing.B) {
	c := openCounts(b, Backend{}, statebackend.Options{})
	defer func() { fatal(b, c.store.Close()) }()
	const rows = 700_000
	dirt := func() {
		for from := int64(0); from < rows; from += 1024 {
			c.add(1, span(from, from+1024)...)
		}
	}
	dirt()
	for b.Loop() {
		b.StopTimer()
		dirt()
		b.StartTimer()
		f, err := c.store.Freeze(statebackend.Freezing{})
		b.StopTimer()
		fatal(b, err)
		f.Release()
		b.StartTimer()
	}
	b.ReportMetric(float64(cached(c.store)), "rows")
}

// BenchmarkRestoreAfterCheckpoints restores the last of many checkpoints, before each of which the same hot keys have changed. What a
// restore reads is the tree of that moment and the cache's rows, however many checkpoints there were.
func BenchmarkRestoreAfterCheckpoints(b *testing.B) {
	const keys, hot, cache = 500_000, 5_000, 8 << 20
	for _, checkpoints := range []int{1, 16, 300} {
		b.Run(fmt.Sprint(checkpoints), func(b *testing.B) {
			folder, shelf := b.TempDir(), shelf{}
			c := openCounts(b, Backend{CacheBytes: cache, Folder: folder}, statebackend.Options{})
			for from := int64(0); from < keys; from += 1000 {
				c.add(1, span(from, from+1000)...)
			}
			var set statebackend.RestoredFileSet
			for range checkpoints {
				for from := int64(0); from < hot; from += 1000 {
					c.add(1, span(from, from+1000)...)
				}
				f := c.freeze(statebackend.Freezing{Anchor: true})
				set, _ = shelf.put(b, f, 0, 127)
				f.Release()
			}
			fatal(b, c.store.Close())
			size := int64(0)
			for i := range set.Files {
				size += set.Files[i].Size
			}
			for b.Loop() {
				r := openCounts(b, Backend{CacheBytes: cache, Folder: folder}, statebackend.Options{
					Restored: &fileSets{sets: []statebackend.RestoredFileSet{set}},
				})
				b.StopTimer()
				if r.table.Len() != keys {
					b.Fatalf("%d keys", r.table.Len())
				}
				fatal(b, r.store.Close())
				b.StartTimer()
			}
			b.ReportMetric(float64(len(set.Files)), "files")
			b.ReportMetric(float64(size)/keys, "bytes/key")
		})
	}
}

func fatal(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		tb.Fatal(err)
	}
}
