// Package statebackend is the contract between the keyed state of a subtask and whoever keeps it: what a backend opens,
// what a table of state can do, and when the addresses that it hands out end. It knows layouts and canonical keys
// (package serde), never user types, streams or snapshot files. Package state's handles and the engine's keyed operators
// call it; the packages below it implement it.
package statebackend

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/serde"
)

// Backend opens the keyed state of subtasks. It is immutable and may be used by all goroutines; user code passes it to
// the environment by value, configuration names it by Name.
type Backend interface {
	// Name is the word that configuration uses, "heap" for example.
	Name() string
	// Open makes an empty store. The store belongs to the goroutine of one subtask.
	Open(Options) (Store, error)
}

// Spiller is implemented by backends whose state may be larger than memory. Windows that could be kept in the memory of their
// operators, which is faster, are kept in the store then.
type Spiller interface {
	Backend
	// Spills says that state goes to disk when memory is used up.
	Spills() bool
}

// Options is what a store needs to know of the subtask that it serves.
type Options struct {
	// Key is the type of the stream's key. Required.
	Key *serde.Key
	// Seed is the job's hash seed, the one that made the hashes given to BeginRun.
	Seed uint64
	// MaxParallelism is the number of key groups; FirstGroup and LastGroup are the subtask's own, both inclusive.
	MaxParallelism, FirstGroup, LastGroup int
	// Memory is the process's budget. Nil means without limit.
	Memory Budget
	// Operator is named in errors.
	Operator string
	// Now is the task's processing time in ms; TTL is measured by it. Nil is allowed while no table has a TTL.
	Now func() int64
	// Yield lets other goroutines have the processor if it is time to. Whoever reads the rows of a snapshot calls it between
	// them; a store that works for long before it has a first row calls it as well, every 100 us or so. Any goroutine may. Nil:
	// nobody waits.
	Yield func()
	// Restored is what the tables begin with: a table that is opened gets the rows of its name. Nil: all begin empty. The
	// store reads it on the subtask's goroutine, a table when it is opened and those that were not opened at the first
	// Freeze; it must be readable until then.
	Restored Restored
}

// Budget is the part of the process's memory accountant that a store draws on. Reserve fails if the process would hold
// more than it may; what was reserved is given back by Release. Both may be called from any goroutine.
type Budget interface {
	Reserve(n int64) error
	Release(n int64)
}

// ErrOutOfMemory is wrapped by the error of a write that the memory budget refuses. The task fails with it.
var ErrOutOfMemory = errors.New("state does not fit into memory")

// ErrChanged is returned by an iteration whose callback changed what it iterates over.
var ErrChanged = errors.New("state was changed while it was being iterated")

// Store is the keyed state of one subtask: tables by name. All calls to a store and its tables come from the goroutine of
// that subtask. Only at the start of a job from a snapshot another one may come before it, which opens the store and its tables,
// so that they are filled before a task runs.
//
// A table that Options.Restored has is filled from it when it is opened. Its values may have changed as schemas may
// (serde.Handle.Reader), its time to live may have changed, begun or ended: what had no time gets that of the restore, and
// what is expired by the table's own time to live stays behind (by the old one if it has none any more). Another kind of
// table, key type, map key type or namespace type is an error that says what to do.
type Store interface {
	// Table opens a table with one value per key. The same name with an equal spec gives the same table again; another
	// spec, or the name of a list or map, is an error.
	Table(spec TableSpec) (Table, error)
	// List opens a table with a list per key; spec.List must be set. Names are shared with Table and Map.
	List(spec TableSpec) (ListTable, error)
	// Map opens a table with a map per key; spec.MapKey must be set. Names are shared with Table and List.
	Map(spec TableSpec) (MapTable, error)
	// BeginRun says which keys the following calls with an index mean: key i of the run is key i of keys, and hashes[i] is
	// its hash with Options.Seed. Both stay as they are until the next BeginRun. The tables' namespaces stay selected.
	BeginRun(keys *serde.Canon, hashes []uint64)
	// Freeze takes hold of what all tables hold now, in microseconds: while the snapshot is open, what changes is copied
	// first, and the copies draw on the budget. It also has the tables of Options.Restored that nobody opened, if they are
	// of a store's kinds (value, list, map): they are kept and go from snapshot to snapshot. All addresses and lookaheads
	// end. Several snapshots may be open; each must be released, also if the store is closed before. A Freeze without Anchor,
	// of a savepoint for example, changes nothing for those with it.
	Freeze(how Freezing) (Frozen, error)
	// MemoryBytes is the memory that the store holds, as it was reserved from the budget; copies for open snapshots are
	// part of it.
	MemoryBytes() int64
	// Close gives the memory back, but for what open snapshots need until they are released. No call may follow.
	Close() error
}

// TableSpec declares a table.
type TableSpec struct {
	// Name is unique in the store and lives on in snapshots.
	Name string
	// Value is the type of the value, of a list's element, or of a map's value. Required.
	Value *serde.Handle
	// MapKey is the type of the keys of a map table.
	MapKey *serde.Key
	// List asks for a list per key.
	List bool
	// Namespace, if set, makes the key of the table a pair: the stream's key and a namespace of this type (a window). The
	// table's SetNamespace chooses the namespace that calls with an index mean.
	Namespace *serde.Key
	// TTL, if set, lets values expire: each value of a table, each element of a list, each entry of a map by itself.
	TTL *TTL
}

// Check reports what makes a spec unusable, naming the table.
func (s *TableSpec) Check() error {
	switch {
	case s.Name == "":
		return errors.New("state table without a name")
	case s.Value == nil:
		return fmt.Errorf("state %q: no value type", s.Name)
	case s.List && s.MapKey != nil:
		return fmt.Errorf("state %q: a table is a list or a map, not both", s.Name)
	case s.TTL != nil && s.TTL.Millis <= 0:
		return fmt.Errorf("state %q: time to live of %d ms: it must be positive", s.Name, s.TTL.Millis)
	}
	return nil
}

// Equal says whether two specs declare the same table: name, types, kind and TTL.
func (s *TableSpec) Equal(o *TableSpec) bool {
	if s.Name != o.Name || s.List != o.List || s.Value.Type != o.Value.Type {
		return false
	}
	if !sameKey(s.MapKey, o.MapKey) || !sameKey(s.Namespace, o.Namespace) || (s.TTL == nil) != (o.TTL == nil) {
		return false
	}
	return s.TTL == nil || *s.TTL == *o.TTL
}

func sameKey(a, b *serde.Key) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type
}

// Kind is the word for the kind of the table: "value", "list" or "map".
func (s *TableSpec) Kind() string {
	switch {
	case s.List:
		return "list"
	case s.MapKey != nil:
		return "map"
	}
	return "value"
}

// TTL is how long state lives, measured in the task's processing time. Time passes while the job is down.
type TTL struct {
	// Millis is the time to live: a value written at t is expired from t+Millis on.
	Millis int64
	// OnRead renews the time by reads as well as by writes.
	OnRead bool
	// ReturnExpired lets a read return an expired value once if nothing has removed it yet.
	ReturnExpired bool
}

// Expired says whether a value stamped at is expired at now. Sums beyond the int64 range never expire.
func (t *TTL) Expired(at, now int64) bool {
	until := at + t.Millis
	if until < at {
		return false
	}
	return until <= now
}
