// Package heap is the state backend that keeps state in memory: hash tables in pages without Go pointers, grown by
// splitting one page at a time, so that neither the garbage collector nor a growing table stops the stream. It owns the
// pages, rows and arenas of one subtask's state and accounts for their memory. It never sees user types other than by
// layout (package serde), starts no goroutine and reads no clock but Options.Now. The engine opens it and keyed operators
// and package state call it through the contracts of package statebackend.
//
// Two kinds of tables carry everything: wordIndex keeps keys of up to 8 bytes and small values in its pages; rowIndex
// keeps anything else (text and wide keys, namespaces, lists, maps) as rows of a slab that never move, found by a paged
// index of tags. Strings, encoded values, list blocks and text keys lie in arenas.
//
// A snapshot takes hold of pages (shadow): Freeze copies the list of pages, and before an entry is changed afterwards it is
// copied, with a few neighbours, for the snapshot. The goroutine that reads the rows never waits for the subtask's; that one
// waits no longer than for the microseconds of reading one page. What has changed since a snapshot on which others may build
// is noted by a bit per entry (tracker, base).
package heap

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Backend keeps state in memory. Its zero value is ready; configuration calls it "heap".
type Backend struct{}

// Name is "heap".
func (Backend) Name() string { return "heap" }

// Open makes an empty store.
func (Backend) Open(o statebackend.Options) (statebackend.Store, error) {
	if o.Key == nil {
		return nil, errors.New("open heap state: no key type")
	}
	if r, ok := o.Restored.(statebackend.RestoredFiles); ok {
		if files := r.Files(); len(files) > 0 {
			return nil, fmt.Errorf("open heap state of %s: the checkpoint has it in files of the format %q, of another state backend: "+
				"restore with that one, or from a savepoint", o.Operator, files[0].Format)
		}
	}
	return &store{Options: o, names: map[string]any{}}, nil
}

// store is the state of one subtask.
type store struct {
	statebackend.Options
	names  map[string]any // valueTable, listTable or mapTable by name
	tables []keeper
	run    source
	kept   []*keptTable // of Restored, not opened; read at the first Freeze
	frozen bool         // Freeze was called

	open      []*frozen // snapshots that have not been seen to be released, in order
	snapshots uint64
	idle      int   // runs since the last one was open, up to idleRuns
	failed    error // of an access that could not return it
	held      int64
	buf       []byte   // encodings on their way into an arena
	spare     []uint64 // the copy of a page that is being split
}

// keeper is what a table does between runs.
type keeper interface {
	begin(n int) // a run of n keys begins
	upkeep()     // one bounded step of removing what expired and of compacting arenas
	close()      // drops everything
	spec() *statebackend.TableSpec
	pages() []tracked // of its indexes
	// expect says how many rows of a snapshot are about to come, with none left out.
	expect(n int64)
	// adopt takes rows of a snapshot in.
	adopt(a *arrivals) error
	// freeze begins a snapshot and puts its rows, for another goroutine, into a table that is described. No address that was
	// handed out is used afterwards.
	freeze(f *frozen, how statebackend.Freezing, table *statebackend.FrozenTable)
	SetNamespace(canonical []byte)
}

// BeginRun implements statebackend.Store.
func (s *store) BeginRun(keys *serde.Canon, hashes []uint64) {
	s.run.set(keys, hashes)
	if len(s.open) > 0 {
		s.reap()
		s.idle = 0
	} else if s.idle <= idleRuns {
		s.rest()
	}
	for _, t := range s.tables {
		t.begin(keys.N)
		t.upkeep()
	}
}

// idleRuns is the number of runs without a snapshot after which what was kept for the next one is dropped.
const idleRuns = 4096

// rest counts runs without a snapshot.
func (s *store) rest() {
	if s.idle++; s.idle <= idleRuns {
		return
	}
	for _, t := range s.tables {
		for _, p := range t.pages() {
			p.forgetSpare()
		}
	}
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
func open[T keeper](s *store, spec *statebackend.TableSpec, fresh func(*store, *statebackend.TableSpec) (T, error)) (t T, err error) {
	if err := spec.Check(); err != nil {
		return t, err
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
	if t, err = fresh(s, spec); err != nil {
		return t, err
	}
	if err := s.refill(t); err != nil {
		t.close()
		return t, err
	}
	s.names[spec.Name] = t
	s.tables = append(s.tables, t)
	t.begin(s.run.canon.N)
	return t, nil
}

// MemoryBytes implements statebackend.Store.
func (s *store) MemoryBytes() int64 {
	n := s.held
	for _, f := range s.open {
		n += f.held.Load()
	}
	return n
}

// Close implements statebackend.Store.
func (s *store) Close() error {
	for _, t := range s.tables {
		t.close()
	}
	for _, k := range s.kept {
		k.close()
	}
	s.names, s.tables, s.kept, s.spare, s.buf = nil, nil, nil, nil, nil
	return nil
}

// errTooMany is the error of a table whose addresses are used up.
func (s *store) errTooMany(state string) error {
	return fmt.Errorf("operator %q: state %q: more entries than one subtask can hold: raise the parallelism", s.Operator, state)
}

// errKeyTooLong is the error of a text key that no reference can describe.
func (s *store) errKeyTooLong(state string, n int) error {
	return fmt.Errorf("operator %q: state %q: a key of %d bytes: keys have at most %d", s.Operator, state, n, maxText)
}

// spareWords gives scratch of at least n words.
func (s *store) spareWords(n int) []uint64 {
	if len(s.spare) < n {
		s.spare = make([]uint64, n)
	}
	return s.spare[:n]
}
