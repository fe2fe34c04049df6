// Package pebble is the state backend that keeps state on disk: a Pebble store (a log-structured merge tree) behind a
// write-back cache of a bounded size. Rows that are used live in the cache, without pointers; rows that were changed are
// written before they are evicted, sorted with others into a file that Pebble takes over. The tree is scratch memory of one subtask: it has no
// write-ahead log, syncs nothing, lies in a folder of its own and is removed when the store is closed. What survives are
// snapshots. They write nothing at the barrier: they take hold of the cache's segments and of a Pebble snapshot, and are read
// as rows, key group by key group, or as Pebble's own files with the cache's rows on top (docs/formats/pebble-files.md).
//
// It never sees user types other than by layout (package serde) and reads no clock but Options.Now. Pebble compacts in
// goroutines of its own. Programs link it by giving a Backend to the environment; keyed operators and package state call
// its stores through the contracts of package statebackend.
package pebble

import (
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Backend keeps state on disk behind a cache. Its zero value is ready; configuration calls it "pebble".
type Backend struct {
	// Folder is where each store makes a folder of its own, which it removes when it is closed. Default: the system's
	// folder for temporary files. It should be on a local disk: nothing in it is needed after a crash.
	Folder string
	// CacheBytes bounds the cache of one store, that is of one stateful operator's subtask. Default: 64 MiB. Entries whose
	// addresses are in use (a run's, at most) are kept beyond it. A store draws on the process's budget what its cache holds,
	// and 1 MiB for what it writes, up to 17 if it has many timers, both as they grow.
	CacheBytes int64
	// Blocks is the cache for what is read from disk. Default: each store has one of its own, of a quarter of CacheBytes, at
	// most 16 MiB. One that many stores share serves those that read much.
	Blocks *BlockCache
	disk   vfs.FS // nil: the machine's
}

// Name is "pebble".
func (Backend) Name() string { return "pebble" }

// Spills implements statebackend.Spiller.
func (Backend) Spills() bool { return true }

const (
	defaultCache = 64 << 20
	leastCache   = 64 << 10
)

// Open makes an empty store in a new folder.
func (b Backend) Open(o statebackend.Options) (statebackend.Store, error) {
	if o.Key == nil {
		return nil, errors.New("open pebble state: no key type")
	}
	if b.CacheBytes < 0 {
		return nil, fmt.Errorf("open pebble state: a cache of %d bytes", b.CacheBytes)
	}
	if b.CacheBytes == 0 {
		b.CacheBytes = defaultCache
	}
	b.CacheBytes = max(b.CacheBytes, leastCache)
	s := &store{Options: o, names: map[string]keeper{}}
	s.validGroups = keygroup.Validate(o.MaxParallelism, 1)
	s.cache = newCache(s, b.CacheBytes)
	var err error
	if s.tree, err = newTree(&b, &o); err == nil {
		if err = s.adopt(&b); err != nil {
			err = errors.Join(err, s.tree.release())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("operator %q: open pebble state: %w", o.Operator, err)
	}
	return s, nil
}

// store is the state of one subtask.
type store struct {
	statebackend.Options
	validGroups error // what is wrong with the number of key groups
	tree        *tree
	cache       *cache
	names       map[string]keeper
	tables      []keeper // in the order of opening
	timers      []*timerSet
	spaces      uint16 // of the tree that are given out
	kept        []*keptTable
	garbage     []uint16 // spaces that are not used any more
	frozen      bool     // Freeze was called
	keys        *serde.Canon
	hashes      []uint64
	generation  uint32  // counts the snapshots
	views       []*view // of snapshots that may be under way
	failed      error   // of an access that could not return it, or that left the cache without a row
	buf         []byte  // encodings on their way into the cache
}

// keeper is what a store asks of its tables of any kind.
type keeper interface {
	spec() *statebackend.TableSpec
	base() *ledger
	// lapse ends all addresses.
	lapse()
	// begin says that the table has its rows, and the highest number of an entry of a map.
	begin(last uint64)
	// rows gives the rows of a snapshot, for another goroutine.
	rows(f *frozen) iter.Seq2[*statebackend.Row, error]
	// told is what a snapshot of files says of the table.
	told() metaTable
}

// BeginRun implements statebackend.Store.
func (s *store) BeginRun(keys *serde.Canon, hashes []uint64) {
	s.keys, s.hashes = keys, hashes
	for _, t := range s.tables {
		t.lapse()
	}
	s.cache.renew()
	s.fail(s.cache.trim(0))
	s.cache.relax()
}

// Table implements statebackend.Store.
func (s *store) Table(spec statebackend.TableSpec) (statebackend.Table, error) {
	if spec.List || spec.MapKey != nil {
		return nil, fmt.Errorf("state %q: opened as a value, declared as a %s", spec.Name, spec.Kind())
	}
	return open(s, &spec, newValueTable)
}

// List implements statebackend.Store.
func (s *store) List(spec statebackend.TableSpec) (statebackend.ListTable, error) {
	if !spec.List {
		return nil, fmt.Errorf("state %q: opened as a list, declared as a %s", spec.Name, spec.Kind())
	}
	return open(s, &spec, newListTable)
}

// Map implements statebackend.Store.
func (s *store) Map(spec statebackend.TableSpec) (statebackend.MapTable, error) {
	if spec.MapKey == nil {
		return nil, fmt.Errorf("state %q: opened as a map, declared as a %s", spec.Name, spec.Kind())
	}
	return open(s, &spec, newMapTable)
}

// open gives the table of that name, made the first time.
func open[T keeper](s *store, spec *statebackend.TableSpec, fresh func(ledger) T) (t T, err error) {
	if err := spec.Check(); err != nil {
		return t, err
	}
	if s.validGroups != nil {
		return t, fmt.Errorf("operator %q: state %q: %w", s.Operator, spec.Name, s.validGroups)
	}
	if spec.TTL != nil && s.Now == nil {
		return t, fmt.Errorf("state %q: a time to live needs a clock", spec.Name)
	}
	if old, ok := s.names[spec.Name]; ok {
		t, ok = old.(T)
		if !ok || !t.spec().Equal(spec) {
			return t, fmt.Errorf("state %q: declared twice with different types or settings", spec.Name)
		}
		return t, nil
	}
	l, err := newLedger(s, spec)
	if err != nil {
		return t, err
	}
	t = fresh(l)
	if err := s.refill(t); err != nil {
		return t, err
	}
	s.names[spec.Name] = t
	s.tables = append(s.tables, t)
	return t, nil
}

// space gives out a part of the tree: all its keys begin with the number.
func (s *store) space() uint16 {
	if s.spaces == lastSpace {
		s.fail(fmt.Errorf("operator %q: the state has had %d tables: begin with a savepoint", s.Operator, lastSpace))
		return lastSpace
	}
	s.spaces++
	return s.spaces
}

// fail remembers the first error that nobody else is told.
func (s *store) fail(err error) {
	if err != nil && s.failed == nil {
		s.failed = err
	}
}

// MemoryBytes implements statebackend.Store.
func (s *store) MemoryBytes() int64 {
	return s.cache.reserved + s.tree.charged + s.tree.paid + s.tree.copies.Load()
}

// Close implements statebackend.Store.
func (s *store) Close() error {
	for _, v := range s.views {
		v.finish() // the cache's memory goes
	}
	s.views = nil
	err := s.cache.close()
	s.tree.renew()
	s.names, s.tables, s.timers, s.kept, s.buf = nil, nil, nil, nil, nil
	if err = errors.Join(err, s.tree.release()); err != nil {
		return fmt.Errorf("operator %q: close pebble state: %w", s.Operator, err)
	}
	return nil
}
