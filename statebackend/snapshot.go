package statebackend

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/flott-dev/flott/serde"
)

// Row is one entry of a table as snapshots hold it: the value of a key, an element of a list, an entry of a map. All bytes
// are canonical, the same for every backend. A row and its bytes are valid until the next one is asked for.
type Row struct {
	// Group is the key group of Key.
	Group int
	// Key is the canonical key of the stream, Hash its hash with the job's seed.
	Key  []byte
	Hash uint64
	// Namespace is the canonical namespace, nil for tables without one.
	Namespace []byte
	// MapKey is the canonical map key, nil but for maps.
	MapKey []byte
	// At is when the value was last written (or read) in ms, for tables with a TTL.
	At int64
	// Value is the value in the encoding of the table's value type (serde.Handle.Append).
	Value []byte
	// Deleted is set in tables of changes (FrozenTable.Changes) only, for what is there no more: the value of Key, all
	// elements of its list, the entry MapKey of its map, or, without a MapKey, all entries of its map. Value is empty then.
	Deleted bool
}

// TableInfo says what the rows of a table are: enough to read them without the program that wrote them.
type TableInfo struct {
	// Name is the table's, unique among the tables of its operator.
	Name string
	// Kind is "value", "list" or "map" (TableSpec.Kind) for the tables of stores and of no others: "timers", for example,
	// are their operator's own.
	Kind string
	// Key, Value, MapKey and Namespace are schemas; MapKey and Namespace are nil for tables without.
	Key, Value, MapKey, Namespace *serde.Schema
	// TTL is set for tables whose values expire.
	TTL *TTL
}

// Reader checks that rows of a snapshot fit the table that spec declares in a store with keys of that type, and gives the way
// to decode their values, which may have evolved. Backends call it before they take rows over. The error says what does not
// fit, down to the field, and what to do.
func (t *TableInfo) Reader(spec *TableSpec, key *serde.Key) (*serde.Reader, error) {
	if t.Kind != spec.Kind() {
		return nil, fmt.Errorf("the snapshot has a %s, the program declares a %s: give the new state another name", t.Kind, spec.Kind())
	}
	for _, part := range []struct {
		what string
		old  *serde.Schema
		new  *serde.Key
	}{{"key", t.Key, key}, {"map key", t.MapKey, spec.MapKey}, {"namespace", t.Namespace, spec.Namespace}} {
		if was, is := schemaText(part.old), keyText(part.new); was != is {
			return nil, fmt.Errorf("the snapshot has the %s type %s, the program %s: types of keys can't change: "+
				"keep the old one, or give the new state another name", part.what, was, is)
		}
	}
	if t.Value == nil {
		return nil, errors.New("the snapshot does not say what its values are")
	}
	r, err := spec.Value.Reader(t.Value)
	if err != nil {
		return nil, fmt.Errorf("%w: keep the type of the field, give the state a state.Upgrade, or give the new one another name", err)
	}
	return r, nil
}

func schemaText(s *serde.Schema) string {
	if s == nil {
		return "(none)"
	}
	return s.String()
}

func keyText(k *serde.Key) string {
	if k == nil {
		return schemaText(nil)
	}
	return schemaText(k.Schema())
}

// FrozenTable is one table of a snapshot.
type FrozenTable struct {
	TableInfo
	// Changes says that Rows are no whole table but what has changed since an earlier snapshot, to be applied to it in their
	// order: a row puts the value of a key or the entry of a map in the place of the one before, or appends an element to a
	// list; a Deleted row takes away. In a whole table no row is Deleted.
	Changes bool
	// Rows gives the rows key group by key group in rising order, once or (but in a Restored) several times over: stretch by
	// stretch; the elements of a list together and in order, the entries of a map together and in the order of insertion.
	// Expired entries are left out. It is used once. An error ends it.
	Rows iter.Seq2[*Row, error]
	// Batches, if it is not nil, gives what Rows gives, in the same order and in batches: either is used, once. Only tables of
	// values have them, whole ones and changes.
	Batches iter.Seq2[*RowBatch, error]
}

// Frozen is what a store held at one moment. Its rows are read on another goroutine than the subtask's while the store is
// used on; the store sees to it that they are those of the moment.
type Frozen interface {
	// Tables are the tables, in the order in which they were opened.
	Tables() []FrozenTable
	// Release ends the reading, whether all rows were read or not, and gives back what was kept for it. It is called once,
	// on the goroutine that read.
	Release()
}

// Freezing says how a store is to be frozen. The zero value: all of it, for a snapshot on which no other will build.
type Freezing struct {
	// Anchor says that a later Freeze may ask for the changes since this one.
	Anchor bool
	// Changes asks for what has changed since the last Freeze with Anchor, and no more. It is a wish: a table that can't tell,
	// or would have to give more than all of itself, is frozen whole (FrozenTable.Changes). Only after a Freeze with Anchor.
	Changes bool
}

// FrozenFiles is a Frozen of a backend that keeps its state in files of its own and can hand them over in the place of rows.
// It is asked for them if the snapshot was frozen with Anchor; Tables are then the changes to be applied to the files.
type FrozenFiles interface {
	Frozen
	// Files are the files, which stay as they are until Release.
	Files() (*FileSet, error)
}

// FileSet is what a backend writes into snapshots, and later reads, in a way of its own.
type FileSet struct {
	// Format is the Name of the backend, a slash, and the version of what it writes, "pebble/1" for example: who does not know it
	// can't read it.
	Format string
	// Meta is what the backend needs to know beside the files.
	Meta []byte
	// Files are the files.
	Files []File
}

// File is one file of a FileSet. It never changes: two snapshots of one store that have a file of the same name and size have
// the same file, so that the later one names the earlier one's and it is not written again.
type File struct {
	Name string
	Size int64
	// Open opens the file for reading from its beginning.
	Open func() (io.ReadCloser, error)
}

// RestoredFiles is a Restored that has files of a backend for some key groups. A store that knows their format takes them
// over; one that does not returns an error that says so.
type RestoredFiles interface {
	Restored
	// Files are the file sets with rows of the store's key groups. Tables of the names that they hold are not among those that
	// Table gives, except where other sets or rows of other subtasks have them, too.
	Files() []RestoredFileSet
}

// RestoredFileSet is a file set that one subtask wrote.
type RestoredFileSet struct {
	FileSet
	// FirstGroup and LastGroup are the key groups that are to be taken from the set, both inclusive: those that were the
	// writer's and are the store's. The files may hold others.
	FirstGroup, LastGroup int
	// Tables are the changes to be applied to what is in the files, for these key groups. Rows may be Deleted.
	Tables []FrozenTable
}

// Restored is what a snapshot holds for a store: the store's own key groups only. It may have tables that are not the
// store's (TableInfo.Kind).
type Restored interface {
	// Table gives the rows of a table; ok is false if the snapshot has no table of the name. The rows of a table are
	// read at most once.
	Table(name string) (t FrozenTable, ok bool)
	// Tables are the names of all tables.
	Tables() []string
}
