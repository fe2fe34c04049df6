package state_test

import (
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
)

const seed = 9

// subtask is what the engine is to state handles: a store, a run, a binder.
type subtask[K comparable] struct {
	t       testing.TB
	key     *serde.Key
	store   statebackend.Store
	run     state.CurrentRun
	scratch serde.KeyScratch
	keys    []K
	canon   serde.Canon
	hashes  []uint64
	now     int64
	errs    []error
	unkeyed bool
}

func newSubtask[K comparable](t testing.TB) *subtask[K] {
	key, err := serde.KeyOf[K]()
	if err != nil {
		t.Fatal(err)
	}
	s := &subtask[K]{t: t, key: key}
	s.store, err = heap.Backend{}.Open(statebackend.Options{
		Key: key, Seed: seed, MaxParallelism: 128, LastGroup: 127, Operator: "test", Now: func() int64 { return s.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.run.Index = state.None
	return s
}

// BindTable implements state.Binder.
func (s *subtask[K]) BindTable(spec statebackend.TableSpec) *state.Cell {
	if s.unkeyed {
		return state.NewUnkeyedCell(spec.Name, &s.run)
	}
	c, err := state.OpenCell(s.store, spec, &s.run)
	if err != nil {
		s.Report(err)
	}
	return c
}

// Report implements state.Binder.
func (s *subtask[K]) Report(err error) { s.errs = append(s.errs, err) }

// begin begins a run; the first key is at hand.
func (s *subtask[K]) begin(keys ...K) {
	s.keys = keys
	col := serde.Column{P: unsafe.Pointer(unsafe.SliceData(keys)), N: len(keys), Stride: unsafe.Sizeof(keys[0])}
	var err error
	if s.canon, err = s.key.Canon(col, &s.scratch); err != nil {
		s.t.Fatal(err)
	}
	if cap(s.hashes) < len(keys) {
		s.hashes = make([]uint64, len(keys))
	}
	s.hashes = s.hashes[:len(keys)]
	s.key.Hash(&s.canon, seed, s.hashes)
	s.store.BeginRun(&s.canon, s.hashes)
	s.run.Index = 0
}

// each calls f with the key at hand for every key of a run.
func (s *subtask[K]) each(keys []K, f func(K)) {
	s.begin(keys...)
	for i, k := range keys {
		s.run.Index = i
		f(k)
	}
}

// check fails the test after a failed access or declaration.
func (s *subtask[K]) check() {
	s.t.Helper()
	if err := s.run.Take(); err != nil {
		s.t.Error(err)
	}
	for _, err := range s.errs {
		s.t.Error(err)
	}
}
