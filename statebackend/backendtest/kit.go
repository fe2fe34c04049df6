package backendtest

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

const testSeed = 42

// tester is a test of one backend.
type tester struct {
	*testing.T
	open func() statebackend.Backend
}

// Run runs a part of the test.
func (t *tester) Run(name string, f func(t *tester)) {
	t.Helper()
	t.T.Run(name, func(part *testing.T) { f(&tester{part, t.open}) })
}

// kit drives a store with runs of keys of type K.
type kit[K comparable] struct {
	t       *tester
	key     *serde.Key
	store   statebackend.Store
	scratch serde.KeyScratch
	hashes  []uint64
	keys    []K
	canon   serde.Canon
	now     int64
	memory  *budget
	closed  bool
}

// budget is a Budget with a limit. Tests look at held while no other goroutine uses it.
type budget struct {
	mu                sync.Mutex
	held, limit, most int64
}

// Reserve implements statebackend.Budget.
func (b *budget) Reserve(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit > 0 && b.held+n > b.limit {
		return errFull
	}
	b.held += n
	b.most = max(b.most, b.held)
	return nil
}

// Release implements statebackend.Budget.
func (b *budget) Release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
}

// errFull is what the budget and the refusing codec say.
var errFull = errors.New("full")

// newKit opens a store whose options are changed first.
func newKit[K comparable](t *tester, change ...func(*statebackend.Options)) *kit[K] {
	t.Helper()
	key, err := serde.KeyOf[K]()
	ok(t, err)
	k := &kit[K]{t: t, key: key, memory: &budget{}}
	o := statebackend.Options{
		Key: key, Seed: testSeed, MaxParallelism: 128, LastGroup: 127, Operator: "test",
		Memory: k.memory, Now: func() int64 { return k.now },
	}
	for _, f := range change {
		f(&o)
	}
	k.store, err = t.open().Open(o)
	ok(t, err)
	t.Cleanup(func() {
		if !k.closed {
			ok(t, k.store.Close())
		}
	})
	return k
}

// restoredKit is a kit whose store begins with a snapshot.
func restoredKit[K comparable](t *tester, from statebackend.Restored, change ...func(*statebackend.Options)) *kit[K] {
	t.Helper()
	return newKit[K](t, append(change, func(o *statebackend.Options) { o.Restored = from })...)
}

// run begins a run of keys.
func (k *kit[K]) run(keys ...K) {
	k.t.Helper()
	k.keys = append(k.keys[:0], keys...)
	col := serde.Column{P: unsafe.Pointer(unsafe.SliceData(k.keys)), N: len(keys), Stride: unsafe.Sizeof(keys[0])}
	c, err := k.key.Canon(col, &k.scratch)
	ok(k.t, err)
	k.canon = c
	if cap(k.hashes) < len(keys) {
		k.hashes = make([]uint64, len(keys))
	}
	k.hashes = k.hashes[:len(keys)]
	k.key.Hash(&k.canon, testSeed, k.hashes)
	k.store.BeginRun(&k.canon, k.hashes)
}

// decode makes a key of its canonical bytes.
func (k *kit[K]) decode(b []byte) (key K) {
	ok(k.t, k.key.Decode(b, unsafe.Pointer(&key)))
	return key
}

// checkClosed checks that closing gives every byte back.
func (k *kit[K]) checkClosed() {
	k.t.Helper()
	k.checkMemory()
	ok(k.t, k.store.Close())
	k.closed = true
	if k.memory.held != 0 {
		k.t.Errorf("after Close the budget holds %d bytes", k.memory.held)
	}
}

// checkMemory checks that the store tells what it holds.
func (k *kit[K]) checkMemory() {
	k.t.Helper()
	if held := k.memory.held; held != k.store.MemoryBytes() {
		k.t.Errorf("the budget holds %d bytes, the store says %d", held, k.store.MemoryBytes())
	}
}

func handle[V any](t testing.TB) *serde.Handle {
	t.Helper()
	h, err := serde.Of[V]()
	ok(t, err)
	return h
}

func keyOf[K any](t testing.TB) *serde.Key {
	t.Helper()
	k, err := serde.KeyOf[K]()
	ok(t, err)
	return k
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }
