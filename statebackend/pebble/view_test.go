package pebble

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// counts is a store with a table of numbers by number.
type counts struct {
	tb      testing.TB
	store   *store
	table   statebackend.Table
	key     *serde.Key
	scratch serde.KeyScratch
	canon   serde.Canon
	hashes  []uint64
}

func openCounts(tb testing.TB, b Backend, o statebackend.Options) *counts {
	tb.Helper()
	c, err := tryCounts(tb, b, o)
	fatal(tb, err)
	return c
}

func tryCounts(tb testing.TB, b Backend, o statebackend.Options) (*counts, error) {
	tb.Helper()
	key, err := serde.KeyOf[int64]()
	fatal(tb, err)
	value, err := serde.Of[int64]()
	fatal(tb, err)
	o.Key, o.Operator = key, "counts"
	if o.MaxParallelism == 0 {
		o.MaxParallelism, o.LastGroup = 128, 127
	}
	s, err := b.Open(o)
	if err != nil {
		return nil, err
	}
	c := &counts{tb: tb, store: s.(*store), key: key}
	c.table, err = s.Table(statebackend.TableSpec{Name: "counts", Value: value})
	return c, err
}

// add adds to the numbers of keys.
func (c *counts) add(n int64, keys ...int64) {
	c.tb.Helper()
	fatal(c.tb, c.try(n, keys...))
}

// begin begins a run of keys.
func (c *counts) begin(keys ...int64) {
	c.tb.Helper()
	var err error
	c.canon, err = c.key.Canon(serde.Column{P: unsafe.Pointer(&keys[0]), N: len(keys), Stride: 8}, &c.scratch)
	fatal(c.tb, err)
	c.hashes = append(c.hashes[:0], make([]uint64, len(keys))...)
	c.key.Hash(&c.canon, 0, c.hashes)
	c.store.BeginRun(&c.canon, c.hashes)
}

func (c *counts) try(n int64, keys ...int64) error {
	c.tb.Helper()
	c.begin(keys...)
	out := make([]unsafe.Pointer, len(keys))
	if err := c.table.Slots(0, len(keys), out, make([]bool, len(keys))); err != nil {
		return err
	}
	for _, p := range out {
		*(*int64)(p) += n
	}
	return nil
}

func (c *counts) freeze(how statebackend.Freezing) *frozen {
	c.tb.Helper()
	f, err := c.store.Freeze(how)
	fatal(c.tb, err)
	return f.(*frozen)
}

func span(from, to int64) (out []int64) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

func TestFreezingWritesNothing(t *testing.T) {
	c := openCounts(t, Backend{Folder: t.TempDir()}, statebackend.Options{})
	for from := int64(0); from < 50_000; from += 500 {
		c.add(1, span(from, from+500)...)
	}
	before := c.store.tree.Metrics().MemTable.Size
	f := c.freeze(statebackend.Freezing{})
	if after := c.store.tree.Metrics().MemTable.Size; after != before {
		t.Errorf("the tree's memory table has %d bytes, %d before", after, before)
	}
	if n := len(f.view.rows); n > 0 {
		t.Errorf("%d rows were copied", n)
	}
	f.Release()
	fatal(t, c.store.Close())
}

// TestRowsAreReadWhileTheyChange lets another goroutine read snapshots while all rows change, many are evicted and come
// back, and further snapshots are taken.
func TestRowsAreReadWhileTheyChange(t *testing.T) {
	const keys, rounds = 3000, 12
	c := openCounts(t, Backend{Folder: t.TempDir(), CacheBytes: 128 << 10}, statebackend.Options{})
	all := span(0, keys)
	c.add(1, all...)
	done := make(chan struct{}, rounds)
	for round := range int64(rounds) {
		f := c.freeze(statebackend.Freezing{})
		go func() {
			defer func() { done <- struct{}{} }()
			defer f.Release()
			n := 0
			for r, err := range f.Tables()[0].Rows {
				if err != nil {
					t.Error(err)
					return
				}
				if got := int64(binary.LittleEndian.Uint64(r.Value)); got != round+1 {
					t.Errorf("snapshot %d has %d", round, got)
					return
				}
				n++
			}
			if n != keys {
				t.Errorf("snapshot %d has %d rows", round, n)
			}
		}()
		for from := 0; from < keys; from += 50 {
			c.add(1, all[from:from+50]...)
		}
	}
	for range rounds {
		<-done
	}
	fatal(t, c.store.Close())
}
