package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Snapshot is a savepoint or checkpoint that is open for reading as Go values: Values, Lists, Maps and Items, with the types of
// the program that took it, which may have changed as schemas may. It may be used by all goroutines.
type Snapshot struct {
	*Manifest
	// FS is where it lies; nil: the machine's file system.
	FS FS
	// Readers read tables that lie in files of state backends, which only checkpoints have.
	Readers []FileReader
}

// Open opens the snapshot in a folder (or by the manifest in it), as Load does. A nil file system is the machine's.
func Open(f FS, location string, readers ...FileReader) (*Snapshot, error) {
	m, err := Load(f, location)
	if err != nil {
		return nil, err
	}
	return &Snapshot{Manifest: m, FS: f, Readers: readers}, nil
}

// Entry is what a state holds for one key.
type Entry[K, V any] struct {
	Key K
	// Value is the value, or all of the list or map.
	Value V
}

// Values reads a state with a value per key (state.Value, Reducing, or the accumulators of Aggregating) of an operator, given
// by UID or id. The options are those of the codecs of K and V. An error ends it: types that don't fit, a damaged file.
func (s *Snapshot) Values[K, V any](operator, state string, opts ...serde.Option) iter.Seq2[Entry[K, V], error] {
	return func(yield func(Entry[K, V], error) bool) {
		var key K
		var value V
		t := typesOf[K, V](opts)
		for _, err := range s.decoded(operator, state, t, unsafe.Pointer(&key), nil, unsafe.Pointer(&value)) {
			if !yield(Entry[K, V]{key, value}, err) || err != nil {
				return
			}
			var nextKey K
			var next V // what was given is the consumer's
			key, value = nextKey, next
		}
	}
}

// Lists reads a state with a list per key (state.List) as Values does.
func (s *Snapshot) Lists[K, V any](operator, state string, opts ...serde.Option) iter.Seq2[Entry[K, []V], error] {
	return func(yield func(Entry[K, []V], error) bool) {
		var key K
		var value V
		var e Entry[K, []V]
		t := listsOf[K, V](opts)
		for first, err := range s.decoded(operator, state, t, unsafe.Pointer(&key), nil, unsafe.Pointer(&value)) {
			if err != nil {
				yield(Entry[K, []V]{}, err)
				return
			}
			if first && e.Value != nil && !yield(e, nil) {
				return
			}
			if first {
				e = Entry[K, []V]{Key: key}
			}
			e.Value = append(e.Value, value)
			var next V
			value = next
		}
		if e.Value != nil {
			yield(e, nil)
		}
	}
}

// Maps reads a state with a map per key (state.Map) as Values does.
func (s *Snapshot) Maps[K any, M comparable, V any](operator, state string, opts ...serde.Option) iter.Seq2[Entry[K, map[M]V], error] {
	return func(yield func(Entry[K, map[M]V], error) bool) {
		var key K
		var mapKey M
		var value V
		var e Entry[K, map[M]V]
		t := mapsOf[K, M, V](opts)
		for first, err := range s.decoded(operator, state, t, unsafe.Pointer(&key), unsafe.Pointer(&mapKey), unsafe.Pointer(&value)) {
			if err != nil {
				yield(Entry[K, map[M]V]{}, err)
				return
			}
			if first && e.Value != nil && !yield(e, nil) {
				return
			}
			if first {
				e = Entry[K, map[M]V]{Key: key, Value: map[M]V{}}
			}
			e.Value[mapKey] = value
			var next V
			var nextKey M
			value, mapKey = next, nextKey
		}
		if e.Value != nil {
			yield(e, nil)
		}
	}
}

// Items reads a list of an operator, given by UID or id, that belongs to no key (state.OperatorList): the elements of all
// subtasks, of broadcast lists those of one.
func (s *Snapshot) Items[T any](operator, list string, opts ...serde.Option) ([]T, error) {
	h, err := serde.Of[T](opts...)
	if err != nil {
		return nil, err
	}
	_, lists, err := s.Read(s.FS, operator, s.Readers...)
	if err != nil {
		return nil, err
	}
	for i := range lists {
		if l := &lists[i]; l.Name == list {
			var items []T
			err := l.decode(h, func(read func(unsafe.Pointer) error) error {
				var x T
				err := read(unsafe.Pointer(&x))
				items = append(items, x)
				return err
			})
			return items, err
		}
	}
	names := make([]string, len(lists))
	for i := range lists {
		names[i] = lists[i].Name
	}
	return nil, fmt.Errorf("read list %q of operator %q from %s: %w", list, operator, s.Folder, noSuch("list", names))
}

// noSuch is the error of a state or list that an operator does not have, with those that it has.
func noSuch(what string, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("there is no such %s, nor any other", what)
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return fmt.Errorf("there is no such %s, but %s", what, strings.Join(quoted, ", "))
}

// decode calls f for each item, with what reads it.
func (l *List) decode(h *serde.Handle, f func(read func(unsafe.Pointer) error) error) error {
	if l.Schema == nil {
		return fmt.Errorf("list %q has no schema: only its operator knows what its items are", l.Name)
	}
	r, err := h.Reader(l.Schema)
	if err != nil {
		return fmt.Errorf("list %q: %w", l.Name, err)
	}
	for _, item := range l.Items {
		err := f(func(v unsafe.Pointer) error { return readWhole(r, item, v) })
		if err != nil {
			return fmt.Errorf("list %q: %w", l.Name, err)
		}
	}
	return nil
}

// readWhole decodes a value that takes all of b.
func readWhole(r *serde.Reader, b []byte, v unsafe.Pointer) error {
	n, err := r.Read(b, v)
	if err == nil && n != len(b) {
		err = fmt.Errorf("a value of %d bytes has %d too many", len(b), len(b)-n)
	}
	return err
}

// types are the types of a state in a program.
type types struct {
	key, mapKey *serde.Key // mapKey is nil but for maps
	value       *serde.Handle
	list        bool
	err         error // of making them
}

// typesOf compiles the types of a key and a value.
func typesOf[K, V any](opts []serde.Option) *types {
	var t types
	var err error
	t.key, err = serde.KeyOf[K](opts...)
	t.value, t.err = serde.Of[V](opts...)
	t.err = errors.Join(err, t.err)
	return &t
}

// listsOf compiles the types of a state of lists.
func listsOf[K, V any](opts []serde.Option) *types {
	t := typesOf[K, V](opts)
	t.list = true
	return t
}

// mapsOf compiles the types of a state of maps.
func mapsOf[K, M, V any](opts []serde.Option) *types {
	t := typesOf[K, V](opts)
	var err error
	t.mapKey, err = serde.KeyOf[M](opts...)
	t.err = errors.Join(t.err, err)
	return t
}

// spec declares a table of the types.
func (t *types) spec(state string) *statebackend.TableSpec {
	return &statebackend.TableSpec{Name: state, Value: t.value, MapKey: t.mapKey, List: t.list}
}

// decoded reads the rows of a state into the memory of a key, a map key and a value, one after the other. first says that the
// row is of another key than the one before.
func (s *Snapshot) decoded(operator, state string, t *types, key, mapKey, value unsafe.Pointer) iter.Seq2[bool, error] {
	return func(yield func(first bool, err error) bool) {
		give := func(first bool) bool { return yield(first, nil) }
		if err := s.decode(operator, state, t, key, mapKey, value, give); err != nil {
			yield(false, fmt.Errorf("read state %q of operator %q from %s: %w", state, operator, s.Folder, err))
		}
	}
}

func (s *Snapshot) decode(operator, state string, t *types, key, mapKey, value unsafe.Pointer, give func(first bool) bool) error {
	if t.err != nil {
		return t.err
	}
	restored, _, err := s.Read(s.FS, operator, s.Readers...)
	if err != nil {
		return err
	}
	table, ok := restored.Table(state)
	if !ok {
		return noSuch("state", restored.Tables())
	}
	reader, err := table.Reader(t.spec(state), t.key)
	if err != nil {
		return err
	}
	var last []byte
	begun := false
	for row, err := range table.Rows {
		if err != nil {
			return err
		}
		first := !begun || !bytes.Equal(last, row.Key)
		if first {
			begun, last = true, append(last[:0], row.Key...)
			err = t.key.Decode(row.Key, key)
		}
		if err == nil && t.mapKey != nil {
			err = t.mapKey.Decode(row.MapKey, mapKey)
		}
		if err == nil {
			err = readWhole(reader, row.Value, value)
		}
		if err != nil {
			return err
		}
		if !give(first) {
			return nil
		}
	}
	return nil
}
