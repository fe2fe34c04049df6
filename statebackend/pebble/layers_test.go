package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

// model is a table of numbers beside what it should hold.
type model struct {
	*counts
	want map[int64]int64
	r    *rand.Rand
}

const modelKeys = 25_000

// step adds to the numbers of some keys and deletes others.
func (m *model) step() {
	keys := make([]int64, 400)
	for i := range keys {
		keys[i] = m.r.Int64N(modelKeys)
	}
	m.add(1, keys...)
	for _, k := range keys {
		m.want[k]++
	}
	for i := range keys {
		if m.r.IntN(8) == 0 {
			fatal(m.tb, m.table.Delete(i))
			delete(m.want, keys[i])
		}
	}
}

// check compares all numbers, read one by one.
func (m *model) check(when string) {
	m.tb.Helper()
	for from := int64(0); from < modelKeys; from += 500 {
		m.begin(span(from, from+500)...)
		for i := range 500 {
			var n int64
			ok, err := m.table.Load(i, unsafe.Pointer(&n))
			fatal(m.tb, err)
			if want, is := m.want[from+int64(i)]; ok != is || n != want {
				m.tb.Fatalf("%s: key %d has %d, %v, want %d, %v", when, from+int64(i), n, ok, want, is)
			}
		}
	}
}

// scanned compares all numbers as Range shows them, which writes what is changed.
func (m *model) scanned(when string) {
	m.tb.Helper()
	got := map[int64]int64{}
	fatal(m.tb, m.table.Range(func(e *statebackend.Entry) bool {
		var n int64
		fatal(m.tb, e.Load(unsafe.Pointer(&n)))
		got[int64(binary.LittleEndian.Uint64(e.Key))] = n
		return true
	}))
	if !reflect.DeepEqual(got, m.want) {
		m.tb.Fatalf("%s: %d keys are shown, want %d", when, len(got), len(m.want))
	}
}

// Rows are read through layers, after a layer has gone into the tree, when there are too many of them, and after that.
func TestLayersHoldWhatWasWritten(t *testing.T) {
	c := openCounts(t, Backend{CacheBytes: 1 << 20, Folder: t.TempDir()}, statebackend.Options{})
	defer func() { fatal(t, c.store.Close()) }()
	m := &model{counts: c, want: map[int64]int64{}, r: rand.New(rand.NewPCG(1, 2))}
	l := &c.store.cache.layers
	for len(l.all) < 4 {
		m.step()
	}
	m.check("with layers")
	fatal(t, c.store.tree.Compact(context.Background(), []byte{0}, []byte{255}, false))
	m.check("with layers that were merged")
	for merged := l.all[0]; len(l.all) > 0 && l.all[0] == merged; {
		m.step() // ends when the next file is written
	}
	m.check("after layers were forgotten")
	for range 3 {
		m.step()
		m.scanned("with small layers")
	}
	fatal(t, c.store.cache.giveUp())
	if !l.given || len(l.all) > 0 {
		t.Errorf("there are %d layers, which were given up", len(l.all))
	}
	for files := c.store.tree.numbers.Load(); c.store.tree.numbers.Load() < files+2; {
		m.step()
	}
	m.check("after layers were given up")
	fatal(t, c.store.tree.Compact(context.Background(), []byte{0}, []byte{255}, false))
	for len(l.all) == 0 {
		m.step()
	}
	m.check("with new layers")
}

// A snapshot of files has layers, and the store that is restored from it reads them as files like any other.
func TestLayersAreFilesOfSnapshots(t *testing.T) {
	folder, shelf := t.TempDir(), shelf{}
	c := openCounts(t, Backend{CacheBytes: 1 << 20, Folder: folder}, statebackend.Options{})
	m := &model{counts: c, want: map[int64]int64{}, r: rand.New(rand.NewPCG(3, 4))}
	for len(c.store.cache.layers.all) < 3 {
		m.step()
	}
	f := c.freeze(statebackend.Freezing{Anchor: true})
	set, _ := shelf.put(t, f, 0, 127)
	f.Release()
	fatal(t, c.store.Close())
	m.counts = openCounts(t, Backend{CacheBytes: 1 << 20, Folder: folder}, statebackend.Options{Restored: &fileSets{sets: []statebackend.RestoredFileSet{set}}})
	defer func() { fatal(t, m.store.Close()) }()
	m.check("after the restore")
	for len(m.store.cache.layers.all) < 3 {
		m.step()
	}
	m.check("with layers of both")
}

// The memory of layers is the cache's, and goes with them.
func TestLayersTakeMemoryOfTheCache(t *testing.T) {
	p := &purse{}
	c := openCounts(t, Backend{CacheBytes: 1 << 20, Folder: t.TempDir()}, statebackend.Options{Memory: p})
	m := &model{counts: c, want: map[int64]int64{}, r: rand.New(rand.NewPCG(5, 6))}
	k := c.store.cache
	for len(k.layers.all) < 5 {
		m.step()
	}
	if k.layered < 5*layerBytes || k.used() > k.limit+evictBytes {
		t.Errorf("layers take %d bytes, the cache has %d of %d", k.layered, k.used(), k.limit)
	}
	fatal(t, k.giveUp())
	if k.layered != 0 {
		t.Errorf("layers that were given up take %d bytes", k.layered)
	}
	fatal(t, c.store.Close())
	if p.held != 0 {
		t.Errorf("%d bytes are left", p.held)
	}
}

func TestBloomFilters(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{1, 30, 1000, 20_000} {
		f := newBloom(n)
		has := map[uint32]bool{}
		for range n {
			h := r.Uint32()
			has[h] = true
			f.add(h)
		}
		for h := range has {
			if !f.has(h) {
				t.Fatalf("of %d hashes, %x is missing", n, h)
			}
		}
		wrong := 0
		for range 20_000 {
			if h := r.Uint32(); f.has(h) && !has[h] {
				wrong++
			}
		}
		if wrong > 100 {
			t.Errorf("of 20000 other hashes, %d are taken for some of %d", wrong, n)
		}
	}
}

// Rows are sorted as their keys are.
func FuzzOrderOfRows(f *testing.F) {
	f.Add([]byte("\x00\x01\x00\x07key"), []byte("\x00\x01\x00\x07key\x00"))
	f.Add([]byte("\x00\x01\x00\x07a key of many bytes"), []byte("\x00\x01\x00\x07a key of many byteS"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if got, want := rowOf(a).compare(rowOf(b)), bytes.Compare(a, b); got != want {
			t.Errorf("%q and %q compare as %d, want %d", a, b, got, want)
		}
	})
}

// rowOf makes a row without value.
func rowOf(key []byte) news {
	mem := make([]uint64, wordsFor(len(key), 0))
	r := (*row)(unsafe.Pointer(&mem[0]))
	r.klen = uint32(len(key))
	copy(r.key(), key)
	return newsOf(r)
}
