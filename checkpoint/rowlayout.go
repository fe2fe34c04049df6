package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// rowLayout is how the rows of a table stand in a block. It follows from the table's schemas alone. A field of fixed width
// has no length in front, a field that the table does not have is not there at all.
type rowLayout struct {
	key, namespace, mapKey, value fieldLayout
	// stamped: rows have a time (tables with a TTL).
	stamped bool
	// repeats: rows of one key may follow each other (lists and maps), so that each row begins with a byte that says
	// whether key and namespace are those of the row before.
	repeats bool
	// changes: the rows are changes, each of which begins with a byte that says what it does.
	changes bool
}

// fieldLayout is how one field of a row stands in a block.
type fieldLayout struct {
	absent bool
	width  int // 0: a length and the bytes
}

const (
	rowNew    = 0 // key and namespace follow
	rowRepeat = 1 // they are those of the row before

	// Only in changes, and added to the others.
	rowDeleted = 2 // takes away; there is neither time nor value
	rowCleared = 4 // with rowDeleted, in maps: all entries; there is no map key
)

// changesOf is the layout of the changes of a table; what may lie in files only has none.
func changesOf(t *statebackend.TableInfo) (rowLayout, error) {
	l, err := layoutOf(t)
	if err == nil && !fileable(t.Kind) {
		err = fmt.Errorf("table %q holds %s: only values, lists and maps have changes", t.Name, t.Kind)
	}
	l.changes = true
	return l, err
}

func layoutOf(t *statebackend.TableInfo) (rowLayout, error) {
	if t.Key == nil {
		return rowLayout{}, fmt.Errorf("table %q has no schema of its keys", t.Name)
	}
	l := rowLayout{
		key: keyField(t.Key), namespace: keyField(t.Namespace), mapKey: keyField(t.MapKey),
		stamped: t.TTL != nil, repeats: t.Kind == "list" || t.Kind == "map",
	}
	if t.Value != nil {
		l.value.width = width(t.Value, valueTime)
	}
	return l, nil
}

func keyField(s *serde.Schema) fieldLayout {
	if s == nil {
		return fieldLayout{absent: true}
	}
	return fieldLayout{width: width(s, keyTime)}
}

// The bytes of a time in a key and in a value.
const (
	keyTime   = 12
	valueTime = 16
)

// maxWidth is the most that a field without a length may take.
const maxWidth = 1 << 16

// width is the number of bytes of every encoding under a schema, 0 if they differ, are none or too many.
func width(s *serde.Schema, timeBytes int) int {
	n, ok := fixedWidth(s, timeBytes)
	if !ok || n > maxWidth {
		return 0
	}
	return n
}

func fixedWidth(s *serde.Schema, timeBytes int) (n int, ok bool) {
	switch s.Kind {
	case serde.Bool, serde.Int8, serde.Uint8:
		return 1, true
	case serde.Int16, serde.Uint16:
		return 2, true
	case serde.Int32, serde.Uint32, serde.Float32:
		return 4, true
	case serde.Int64, serde.Uint64, serde.Float64, serde.Complex64:
		return 8, true
	case serde.Complex128:
		return 16, true
	case serde.Time:
		return timeBytes, true
	case serde.Array:
		n, ok = fixedWidth(s.Elem, timeBytes)
		if n > 0 && s.Len > maxWidth/n {
			return 0, false
		}
		return n * s.Len, ok
	case serde.Struct:
		for _, f := range s.Fields {
			m, fixed := fixedWidth(f.Schema, timeBytes)
			if n += m; !fixed || n > maxWidth {
				return 0, false
			}
		}
		return n, true
	}
	return 0, false
}

// lastKey is the key and namespace of the row before, in rows that repeat them.
type lastKey struct {
	valid          bool
	key, namespace []byte
}

var errDeleted = errors.New("a deleted row in a whole table")

// append appends a row. After an error the row must not be used.
func (l *rowLayout) append(dst []byte, r *statebackend.Row, last *lastKey) ([]byte, error) {
	if r.Deleted && !l.changes {
		return dst, errDeleted
	}
	if l.changes || l.repeats {
		how := l.how(r)
		if l.repeats {
			if last.valid && bytes.Equal(r.Key, last.key) && bytes.Equal(r.Namespace, last.namespace) {
				return l.appendRest(append(dst, how|rowRepeat), r)
			}
			last.valid = true
			last.key, last.namespace = append(last.key[:0], r.Key...), append(last.namespace[:0], r.Namespace...)
		}
		dst = append(dst, how)
	}
	dst, ok := l.key.append(dst, r.Key)
	if !ok {
		return dst, l.key.misfit("key", r.Key)
	}
	if dst, ok = l.namespace.append(dst, r.Namespace); !ok {
		return dst, l.namespace.misfit("namespace", r.Namespace)
	}
	return l.appendRest(dst, r)
}

// how is the first byte of a row with key and namespace.
func (l *rowLayout) how(r *statebackend.Row) byte {
	switch {
	case !r.Deleted:
		return rowNew
	case !l.mapKey.absent && r.MapKey == nil:
		return rowDeleted | rowCleared
	}
	return rowDeleted
}

// appendRest appends what follows key and namespace.
func (l *rowLayout) appendRest(dst []byte, r *statebackend.Row) ([]byte, error) {
	ok := true
	if !r.Deleted || r.MapKey != nil || l.mapKey.absent {
		if dst, ok = l.mapKey.append(dst, r.MapKey); !ok {
			return dst, l.mapKey.misfit("map key", r.MapKey)
		}
	}
	if r.Deleted {
		if len(r.Value) > 0 {
			return dst, fmt.Errorf("a deleted row has a value of %d bytes", len(r.Value))
		}
		return dst, nil
	}
	if l.stamped {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(r.At))
	}
	if dst, ok = l.value.append(dst, r.Value); !ok {
		return dst, l.value.misfit("value", r.Value)
	}
	return dst, nil
}

func (f fieldLayout) append(dst, b []byte) (_ []byte, ok bool) {
	if f.width > 0 {
		return append(dst, b...), len(b) == f.width
	}
	if f.absent {
		return dst, len(b) == 0
	}
	if len(b) < 0x80 {
		dst = append(dst, byte(len(b)))
	} else {
		dst = binary.AppendUvarint(dst, uint64(len(b)))
	}
	return append(dst, b...), true
}

func (f fieldLayout) misfit(what string, b []byte) error {
	if f.absent {
		return fmt.Errorf("a row has a %s of %d bytes, but the table has no schema of %ss", what, len(b), what)
	}
	return fmt.Errorf("a row has a %s of %d bytes, where its schema says %d", what, len(b), f.width)
}

// read reads a row from the front of b, which its fields then view, and gives the rest; ok is false if b holds no row. Key
// and Namespace of r are those of the row before or invalid, as fresh says: the first row of a block is fresh.
func (l *rowLayout) read(b []byte, r *statebackend.Row, fresh bool) (rest []byte, ok bool) {
	if l.changes {
		return l.readChange(b, r, fresh)
	}
	if l.repeats {
		if len(b) == 0 || b[0] > rowRepeat || fresh && b[0] == rowRepeat {
			return nil, false
		}
		repeat := b[0] == rowRepeat
		b = b[1:]
		if repeat {
			return l.readRest(b, r)
		}
	}
	if r.Key, b, ok = l.key.read(b); !ok {
		return nil, false
	}
	if r.Namespace, b, ok = l.namespace.read(b); !ok {
		return nil, false
	}
	return l.readRest(b, r)
}

func (l *rowLayout) readRest(b []byte, r *statebackend.Row) (rest []byte, ok bool) {
	if r.MapKey, b, ok = l.mapKey.read(b); !ok {
		return nil, false
	}
	if l.stamped {
		if len(b) < 8 {
			return nil, false
		}
		r.At = int64(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	r.Value, rest, ok = l.value.read(b)
	return rest, ok
}

// readChange is read for changes.
func (l *rowLayout) readChange(b []byte, r *statebackend.Row, fresh bool) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	how := b[0]
	repeat, cleared := how&rowRepeat != 0, how&rowCleared != 0
	r.Deleted = how&rowDeleted != 0
	if how > rowRepeat|rowDeleted|rowCleared || repeat && (fresh || !l.repeats) || cleared && (!r.Deleted || l.mapKey.absent) {
		return nil, false
	}
	b = b[1:]
	if !repeat {
		if r.Key, b, ok = l.key.read(b); !ok {
			return nil, false
		}
		if r.Namespace, b, ok = l.namespace.read(b); !ok {
			return nil, false
		}
	}
	if !r.Deleted {
		return l.readRest(b, r)
	}
	r.MapKey, r.Value, r.At = nil, nil, 0
	if !cleared {
		if r.MapKey, b, ok = l.mapKey.read(b); !ok {
			return nil, false
		}
	}
	return b, true
}

func (f fieldLayout) read(b []byte) (field, rest []byte, ok bool) {
	n := f.width
	if n == 0 {
		if f.absent {
			return nil, b, true
		}
		if n, b, ok = readLength(b); !ok {
			return nil, nil, false
		}
	}
	if n > len(b) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// readLength reads a length in its shortest form, which must not exceed what follows.
func readLength(b []byte) (n int, rest []byte, ok bool) {
	if len(b) > 0 && b[0] < 0x80 {
		return int(b[0]), b[1:], true
	}
	v, used := binary.Uvarint(b)
	if used <= 0 || b[used-1] == 0 || v > uint64(len(b)-used) {
		return 0, nil, false
	}
	return int(v), b[used:], true
}
