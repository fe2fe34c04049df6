package statebackend

import (
	"errors"
	"fmt"
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
		return nil, fmt.Errorf("%w: keep the type of the field, or give the new state another name", err)
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
	// Rows gives the rows key group by key group in rising order; the elements of a list together and in order, the
	// entries of a map together and in the order of insertion. Expired entries are left out. It is used once. An error ends
	// it.
	Rows iter.Seq2[*Row, error]
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

// Restored is what a snapshot holds for a store: the store's own key groups only. It may have tables that are not the
// store's (TableInfo.Kind).
type Restored interface {
	// Table gives the rows of a table; ok is false if the snapshot has no table of the name. The rows of a table are
	// read at most once.
	Table(name string) (t FrozenTable, ok bool)
	// Tables are the names of all tables.
	Tables() []string
}
