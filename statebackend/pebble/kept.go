package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/flott-dev/flott/statebackend"
)

// keptTable is a table of a snapshot that the program does not open. Its rows lie in the tree, numbered, and go from
// snapshot to snapshot.
type keptTable struct {
	statebackend.TableInfo
	space uint16
}

// keepUnopened reads the tables of the snapshot that nobody has opened, once.
func (s *store) keepUnopened() error {
	if s.frozen || s.Restored == nil {
		s.frozen = true
		return nil
	}
	for _, name := range s.Restored.Tables() {
		if _, opened := s.names[name]; opened {
			continue
		}
		if err := s.keep(name); err != nil {
			return fmt.Errorf("operator %q: keep state %q, which the program does not use: %w", s.Operator, name, err)
		}
	}
	s.frozen = true
	return nil
}

func (s *store) keep(name string) (err error) {
	t, ok := s.Restored.Table(name)
	if !ok || t.Kind != "value" && t.Kind != "list" && t.Kind != "map" {
		return nil
	}
	k := &keptTable{TableInfo: t.TableInfo, space: s.space()}
	b := s.tree.NewBatch()
	defer func() { err = errors.Join(err, b.Close()) }()
	var key, value []byte
	number := uint64(0)
	for row, err := range t.Rows {
		if err != nil {
			return err
		}
		number++
		key = binary.BigEndian.AppendUint16(key[:0], k.space)
		key = binary.BigEndian.AppendUint64(key, number)
		value = appendRow(value[:0], row)
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
		if b.Len() < batchBytes {
			continue
		}
		if err := errors.Join(b.Commit(pebble.NoSync), b.Close()); err != nil {
			return err
		}
		b = s.tree.NewBatch()
	}
	s.kept = append(s.kept, k)
	return b.Commit(pebble.NoSync)
}

// restored gives the rows of a table that nobody has opened yet.
func (s *store) restored(name string) (statebackend.FrozenTable, bool) {
	if s.Restored == nil {
		return statebackend.FrozenTable{}, false
	}
	if !s.frozen {
		return s.Restored.Table(name)
	}
	for _, k := range s.kept {
		if k.Name == name {
			return statebackend.FrozenTable{TableInfo: k.TableInfo, Rows: k.all(func(f func(key, value []byte) (bool, error)) error {
				from, to := bounds(k.space)
				return scan(s.tree, from, to, f)
			})}, true
		}
	}
	return statebackend.FrozenTable{}, false
}

// forsake drops the kept rows of a table that has them now.
func (s *store) forsake(name string) error {
	for i, k := range s.kept {
		if k.Name == name {
			s.kept = append(s.kept[:i:i], s.kept[i+1:]...)
			from, to := bounds(k.space)
			return s.tree.DeleteRange(from, to, pebble.NoSync)
		}
	}
	return nil
}

// rows gives the rows as a snapshot holds them.
func (k *keptTable) rows(f *frozen) iter.Seq2[*statebackend.Row, error] {
	return k.all(func(each func(key, value []byte) (bool, error)) error { return f.scan(k.space, each) })
}

// all gives the rows that scan finds.
func (k *keptTable) all(scan func(func(key, value []byte) (bool, error)) error) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		var r statebackend.Row
		err := scan(func(_, value []byte) (bool, error) {
			readRow(value, &r)
			if k.Namespace == nil {
				r.Namespace = nil
			}
			if k.MapKey == nil {
				r.MapKey = nil
			}
			return yield(&r, nil), nil
		})
		if err != nil {
			yield(nil, fmt.Errorf("read state %q, which was kept: %w", k.Name, err))
		}
	}
}

// appendRow appends a row as bytes.
func appendRow(b []byte, r *statebackend.Row) []byte {
	b = binary.AppendUvarint(b, uint64(r.Group))
	b = binary.LittleEndian.AppendUint64(b, r.Hash)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.At))
	for _, part := range [][]byte{r.Key, r.Namespace, r.MapKey, r.Value} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// readRow reads what appendRow wrote.
func readRow(b []byte, r *statebackend.Row) {
	group, n := binary.Uvarint(b)
	b = b[n:]
	r.Group = int(group)
	r.Hash = binary.LittleEndian.Uint64(b)
	r.At = int64(binary.LittleEndian.Uint64(b[8:]))
	b = b[16:]
	for _, part := range []*[]byte{&r.Key, &r.Namespace, &r.MapKey, &r.Value} {
		size, n := binary.Uvarint(b)
		end := n + int(size)
		*part = b[n:end:end]
		b = b[end:]
	}
}
