package heap

import (
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

const testSeed = 42

type pair struct{ A, B int64 }

type textValue struct {
	N    int64
	S    string
	Flag bool
	T    string
}

// kit drives a store with runs of keys of type K.
type kit[K comparable] struct {
	t       testing.TB
	key     *serde.Key
	store   *store
	scratch serde.KeyScratch
	hashes  []uint64
	keys    []K
	canon   serde.Canon
	now     int64
	memory  *budget
}

// budget is a Budget with a limit. Tests look at held while no other goroutine uses it.
type budget struct {
	mu          sync.Mutex
	held, limit int64
}

func (b *budget) Reserve(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit > 0 && b.held+n > b.limit {
		return errFull
	}
	b.held += n
	return nil
}

func (b *budget) Release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
}

var errFull = statebackend.ErrChanged // any sentinel of another place will do

func newKit[K comparable](t testing.TB) *kit[K] {
	key, err := serde.KeyOf[K]()
	if err != nil {
		t.Fatal(err)
	}
	k := &kit[K]{t: t, key: key, memory: &budget{}}
	s, err := Backend{}.Open(statebackend.Options{
		Key: key, Seed: testSeed, MaxParallelism: 128, LastGroup: 127, Operator: "test",
		Memory: k.memory, Now: func() int64 { return k.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	k.store = s.(*store)
	return k
}

// run begins a run of keys.
func (k *kit[K]) run(keys ...K) {
	k.keys = append(k.keys[:0], keys...)
	col := serde.Column{P: unsafe.Pointer(unsafe.SliceData(k.keys)), N: len(keys), Stride: unsafe.Sizeof(keys[0])}
	c, err := k.key.Canon(col, &k.scratch)
	if err != nil {
		k.t.Fatal(err)
	}
	k.canon = c
	if cap(k.hashes) < len(keys) {
		k.hashes = make([]uint64, len(keys))
	}
	k.hashes = k.hashes[:len(keys)]
	k.key.Hash(&k.canon, testSeed, k.hashes)
	k.store.BeginRun(&k.canon, k.hashes)
}

func handle[V any](t testing.TB) *serde.Handle {
	h, err := serde.Of[V]()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// checkClosed checks that closing gives every byte back.
func (k *kit[K]) checkClosed() {
	k.t.Helper()
	if k.memory.held != k.store.MemoryBytes() {
		k.t.Errorf("budget holds %d bytes, store %d", k.memory.held, k.store.MemoryBytes())
	}
	tables := k.store.tables
	kept := int64(0)
	for _, t := range k.store.kept {
		kept += t.log.held
	}
	if sum := heldBy(tables) + kept; sum != k.memory.held {
		k.t.Errorf("budget holds %d bytes, the tables %d", k.memory.held, sum)
	}
	if err := k.store.Close(); err != nil {
		k.t.Error(err)
	}
	if sum := heldBy(tables); sum != 0 {
		k.t.Errorf("after Close the tables hold %d bytes", sum)
	}
	if k.memory.held != 0 || k.store.MemoryBytes() != 0 {
		k.t.Errorf("after Close the budget holds %d bytes, the store %d", k.memory.held, k.store.MemoryBytes())
	}
}

func heldBy(tables []keeper) (sum int64) {
	for _, t := range tables {
		sum += t.(interface{ MemoryBytes() int64 }).MemoryBytes()
	}
	return sum
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }
