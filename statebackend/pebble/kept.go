package pebble

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/flott-dev/flott/statebackend"
)

// keptTable is a table of a snapshot, or a part of it with some key groups, whose rows lie in the tree and which the program
// has not opened. It goes from snapshot to snapshot.
type keptTable struct {
	statebackend.TableInfo
	shape
	n    int    // values, lists or map entries; -1: to be counted
	last uint64 // highest number of an entry of a map
}

// keepUnopened reads the tables of the snapshot that nobody has opened, once, and drops timers that nobody has opened.
func (s *store) keepUnopened() error {
	if !s.frozen {
		s.dropTimers()
	}
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

func (s *store) keep(name string) error {
	t, ok := s.Restored.Table(name)
	if !ok || !ofStore(t.Kind) {
		return nil
	}
	k := &keptTable{TableInfo: t.TableInfo, shape: shape{kind: keptRows, namespaced: t.Namespace != nil}}
	k.spaces[0] = s.space()
	b := newBulk(s.tree)
	var key, value []byte
	number := uint64(0)
	for row, err := range t.Rows {
		if err != nil {
			return err
		}
		number++
		key = binary.BigEndian.AppendUint16(key[:0], k.spaces[0])
		key = binary.BigEndian.AppendUint64(key, number)
		value = appendRow(value[:0], row)
		if err := b.add(key, value); err != nil {
			return err
		}
	}
	s.kept = append(s.kept, k)
	return b.finish()
}

// ofStore says whether tables of a kind are those of stores.
func ofStore(kind string) bool { return kind == "value" || kind == "list" || kind == "map" }

// forsake drops what was kept of a table that is open now.
func (s *store) forsake(name string) {
	s.kept = slices.DeleteFunc(s.kept, func(k *keptTable) bool {
		if k.Name == name {
			s.garbage = append(s.garbage, k.used()...)
		}
		return k.Name == name
	})
	s.sweep()
}

// sweep deletes parts of the tree that are not used any more, while no snapshot is under way: its files must have them.
func (s *store) sweep() {
	if s.views = slices.DeleteFunc(s.views, (*view).ended); len(s.views) > 0 {
		return
	}
	for _, space := range s.garbage {
		from, to := bounds(space)
		s.fail(s.tree.DeleteRange(from, to, pebble.NoSync))
	}
	s.garbage = s.garbage[:0]
}

// keptFrozen are the kept tables as a snapshot has them, each once.
func (s *store) keptFrozen(f *frozen) (tables []statebackend.FrozenTable) {
	for i, k := range s.kept {
		if slices.ContainsFunc(s.kept[:i], func(b *keptTable) bool { return b.Name == k.Name }) {
			continue
		}
		var parts []iter.Seq2[*statebackend.Row, error]
		for _, part := range s.kept[i:] {
			if part.Name == k.Name {
				parts = append(parts, part.rows(s, f.now, f.scan))
			}
		}
		tables = append(tables, statebackend.FrozenTable{TableInfo: k.TableInfo, Rows: together(parts)})
	}
	return tables
}

// rows gives the rows that scan finds.
func (k *keptTable) rows(s *store, now int64, scan func(from, to []byte, f func(key, value []byte) (bool, error)) error) iter.Seq2[*statebackend.Row, error] {
	name, key, seed := k.Name, s.Key, s.Seed
	ttl := k.TTL
	if now == 0 {
		ttl = nil // who asks sees to it
	}
	g := &reading{
		shape: k.shape, ttl: ttl, now: now, first: s.FirstGroup, last: s.LastGroup, scan: scan,
		hash: func(b []byte) uint64 { return key.HashOne(b, seed) },
		wrap: func(err error) error { return fmt.Errorf("read state %q, which was kept: %w", name, err) },
	}
	return g.rows()
}

// appendRow appends a row as bytes.
func appendRow(b []byte, r *statebackend.Row) []byte {
	b = binary.AppendUvarint(b, uint64(r.Group))
	b = binary.LittleEndian.AppendUint64(b, r.Hash)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.At))
	dated := byte(0)
	if r.MapKey != nil {
		dated = 1
	}
	b = append(b, dated)
	for _, part := range [][]byte{r.Key, r.Namespace, r.MapKey, r.Value} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// readRow reads what appendRow wrote.
func readRow(b []byte, r *statebackend.Row) error {
	group, n := binary.Uvarint(b)
	if n <= 0 || len(b) < n+17 {
		return errRow
	}
	b = b[n:]
	r.Group = int(group)
	r.Hash = binary.LittleEndian.Uint64(b)
	r.At = int64(binary.LittleEndian.Uint64(b[8:]))
	mapped := b[16] == 1
	b = b[17:]
	for _, part := range []*[]byte{&r.Key, &r.Namespace, &r.MapKey, &r.Value} {
		var err error
		if *part, b, err = cut(0, b); err != nil {
			return err
		}
	}
	if !mapped {
		r.MapKey = nil
	}
	return nil
}
