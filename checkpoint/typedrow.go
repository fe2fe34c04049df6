package checkpoint

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Row is a row of a state by key: a value, an element of a list, an entry of a map, what a window holds. Parts that the state
// does not have are of type struct{}.
type Row[K, N, M, V any] struct {
	// Key is the stream's key.
	Key K
	// Namespace is the window of state in windows (window.Time for most).
	Namespace N
	// MapKey is the key of an entry of a map, the time of a timer, or what else docs/formats/operator-state.md says of the state.
	MapKey M
	// Value is the value, element or accumulator.
	Value V
	// At is when the value was last written (or read), in ms since 1970, if the state expires; else 0.
	At int64
}

// Rows reads any state by key of an operator, given by UID or id, row by row, state in windows included: flott savepoint inspect,
// or Manifest.Tables, tells which types it has. The options are those of the codecs. An error ends it: types that don't fit, a
// damaged file.
func (s *Snapshot) Rows[K, N, M, V any](operator, state string, opts ...serde.Option) iter.Seq2[Row[K, N, M, V], error] {
	return func(yield func(Row[K, N, M, V], error) bool) {
		var row Row[K, N, M, V]
		parts := []rowPart{
			keyPart[K]("key", unsafe.Pointer(&row.Key), opts), keyPart[N]("namespace", unsafe.Pointer(&row.Namespace), opts),
			keyPart[M]("map key", unsafe.Pointer(&row.MapKey), opts), valuePart[V](unsafe.Pointer(&row.Value), opts),
		}
		err := s.rows(operator, state, parts, func(at int64) bool {
			row.At = at
			given := row
			row = Row[K, N, M, V]{}
			return yield(given, nil)
		})
		if err != nil {
			yield(Row[K, N, M, V]{}, fmt.Errorf("read state %q of operator %q from %s: %w", state, operator, s.Folder, err))
		}
	}
}

// rowPart is where a part of a row goes to, and its type in the program: a key or a value.
type rowPart struct {
	name  string
	to    unsafe.Pointer
	typ   reflect.Type
	key   *serde.Key
	value *serde.Handle
	err   error // of making it
}

func keyPart[T any](name string, to unsafe.Pointer, opts []serde.Option) rowPart {
	k, err := serde.KeyOf[T](opts...)
	return rowPart{name: name, to: to, typ: reflect.TypeFor[T](), key: k, err: err}
}

func valuePart[T any](to unsafe.Pointer, opts []serde.Option) rowPart {
	h, err := serde.Of[T](opts...)
	return rowPart{name: "value", to: to, typ: reflect.TypeFor[T](), value: h, err: err}
}

// reader gives what decodes the part of rows whose schema in the snapshot is old; nil: there is no such part.
func (p *rowPart) reader(old *serde.Schema) (func(b []byte) error, error) {
	switch {
	case old == nil && p.typ == reflect.TypeFor[struct{}]():
		return func([]byte) error { return nil }, nil
	case old == nil:
		return nil, fmt.Errorf("it has no %s: ask for struct{}, not %v", p.name, p.typ)
	case p.err != nil:
		return nil, p.err
	case p.key != nil:
		if was, is := old.String(), p.key.Schema().String(); was != is {
			return nil, fmt.Errorf("the snapshot has the %s type %s, the program %s", p.name, was, is)
		}
		return func(b []byte) error { return p.key.Decode(b, p.to) }, nil
	}
	r, err := p.value.Reader(old)
	return func(b []byte) error { return readWhole(r, b, p.to) }, err
}

// rows reads the parts of each row: key, namespace, map key and value.
func (s *Snapshot) rows(operator, state string, parts []rowPart, give func(at int64) bool) error {
	restored, _, err := s.Read(s.FS, operator, s.Readers...)
	if err != nil {
		return err
	}
	table, ok := restored.Table(state)
	if !ok {
		return noSuch("state", restored.Tables())
	}
	var read [4]func([]byte) error
	var errs []error
	for i, old := range []*serde.Schema{table.Key, table.Namespace, table.MapKey, table.Value} {
		read[i], err = parts[i].reader(old)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for row, err := range table.Rows {
		if err == nil {
			err = readRow(read, row)
		}
		if err != nil {
			return err
		}
		if !give(row.At) {
			return nil
		}
	}
	return nil
}

func readRow(read [4]func([]byte) error, row *statebackend.Row) error {
	for i, b := range [][]byte{row.Key, row.Namespace, row.MapKey, row.Value} {
		if err := read[i](b); err != nil {
			return err
		}
	}
	return nil
}
