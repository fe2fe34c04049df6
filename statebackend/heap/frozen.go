package heap

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// frozen is a snapshot of a store. The updater is the subtask's goroutine, which goes on using the store; the writer is
// the one that reads the rows and releases the snapshot.
type frozen struct {
	id      uint64 // counts the snapshots of a store
	store   *store // its options only, but for the updater
	now     int64  // the moment, by which rows have expired
	tables  []statebackend.FrozenTable
	shadows []*shadow
	changes []*changes

	held     atomic.Int64 // bytes that are kept for the snapshot
	released atomic.Bool

	mu     sync.Mutex
	chunks int64 // bytes of held that go at Release only: chunks of arenas
}

// Freeze implements statebackend.Store.
func (s *store) Freeze(how statebackend.Freezing) (statebackend.Frozen, error) {
	if err := keygroup.Validate(s.MaxParallelism, 1); err != nil {
		return nil, fmt.Errorf("operator %q: freeze state: %w", s.Operator, err)
	}
	if s.failed != nil {
		return nil, s.failed
	}
	if err := s.keepUnopened(); err != nil {
		return nil, err
	}
	s.reap()
	s.snapshots++
	f := &frozen{id: s.snapshots, store: s}
	if s.Now != nil {
		f.now = s.Now()
	}
	for _, t := range s.tables {
		table := &statebackend.FrozenTable{TableInfo: infoOf(s.Key, t.spec())}
		t.freeze(f, how, table)
		f.tables = append(f.tables, *table)
	}
	for _, k := range s.kept {
		f.tables = append(f.tables, k.freeze(how))
	}
	s.open = append(s.open, f)
	return f, nil
}

// infoOf describes the rows of a table.
func infoOf(key *serde.Key, spec *statebackend.TableSpec) statebackend.TableInfo {
	info := statebackend.TableInfo{Name: spec.Name, Kind: spec.Kind(), Key: key.Schema(), Value: spec.Value.Schema()}
	if spec.MapKey != nil {
		info.MapKey = spec.MapKey.Schema()
	}
	if spec.Namespace != nil {
		info.Namespace = spec.Namespace.Schema()
	}
	if spec.TTL != nil {
		ttl := *spec.TTL
		info.TTL = &ttl
	}
	return info
}

// Tables implements statebackend.Frozen.
func (f *frozen) Tables() []statebackend.FrozenTable { return f.tables }

// Release implements statebackend.Frozen.
func (f *frozen) Release() {
	for _, sh := range f.shadows {
		sh.finish()
	}
	for _, c := range f.changes {
		c.drop(f)
	}
	f.mu.Lock()
	f.released.Store(true)
	n := f.chunks
	f.chunks = 0
	f.mu.Unlock()
	f.release(n)
}

// reserve draws n bytes for the snapshot.
func (f *frozen) reserve(n int64) error {
	if m := f.store.Memory; m != nil {
		if err := m.Reserve(n); err != nil {
			return err
		}
	}
	f.held.Add(n)
	return nil
}

// release gives back n bytes that the snapshot no longer needs.
func (f *frozen) release(n int64) {
	f.held.Add(-n)
	if m := f.store.Memory; m != nil && n != 0 {
		m.Release(n)
	}
}

// keep makes n bytes of the store the snapshot's until it is released; false if it is.
func (f *frozen) keep(n int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.released.Load() {
		return false
	}
	f.held.Add(n)
	f.chunks += n
	return true
}

// reap forgets the snapshots that have been released, and what others have read to the end: entries are not copied any more
// while their rows are on their way to the disk.
func (s *store) reap() {
	n := 0
	for _, f := range s.open {
		released := f.released.Load()
		for _, sh := range f.shadows {
			if released || sh.over.Load() {
				sh.guard.forget(sh)
			}
		}
		if !released {
			s.open[n] = f
			n++
		}
	}
	clear(s.open[n:])
	s.open = s.open[:n]
}
