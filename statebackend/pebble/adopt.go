package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/flott-dev/flott/statebackend"
)

// adopt takes over the files that a snapshot has for the store: a single set as it is, several by their rows, within the
// bounds of the key groups. It opens the tree.
func (s *store) adopt(b *Backend) error {
	var sets []statebackend.RestoredFileSet
	if r, ok := s.Restored.(statebackend.RestoredFiles); ok {
		sets = r.Files()
	}
	for i := range sets {
		if sets[i].Format != Format {
			return fmt.Errorf("the snapshot has state in files of the format %q, and this backend, pebble, reads %q only: "+
				"restore it with the backend that wrote it, take a savepoint, and begin with that", sets[i].Format, Format)
		}
	}
	if len(sets) == 1 {
		return s.adoptOne(&sets[0])
	}
	if err := s.tree.open(); err != nil {
		return err
	}
	for i := range sets {
		if err := s.merge(b, &sets[i]); err != nil {
			return err
		}
	}
	return nil
}

// lay copies the files of a set into the folder of the tree and opens it.
func (t *tree) lay(set *statebackend.FileSet) (*meta, error) {
	m, err := decodeMeta(set.Meta)
	if err != nil {
		return nil, err
	}
	files := map[string]*statebackend.File{}
	for i := range set.Files {
		files[set.Files[i].Name] = &set.Files[i]
	}
	for i := range m.files {
		f := &m.files[i]
		from := files[f.name]
		if f.name != "" && from == nil {
			return nil, fmt.Errorf("the snapshot has no file %q of the disk store", f.name)
		}
		if f.name != "" && f.local != m.overlay {
			t.names[f.local] = f.name
		}
		folder := t.home()
		if f.local == m.overlay {
			folder = t.folder
		}
		if err := t.copy(filepath.Join(folder, f.local), from, f.body); err != nil {
			return nil, fmt.Errorf("copy file %q of the disk store: %w", f.local, err)
		}
	}
	if err := errors.Join(t.broken(), t.open()); err != nil {
		return nil, err
	}
	if m.overlay == "" {
		return m, nil
	}
	err = t.Ingest(context.Background(), []string{filepath.Join(t.folder, m.overlay)})
	return m, errors.Join(err, t.broken())
}

// copy writes a file.
func (t *tree) copy(path string, from *statebackend.File, body []byte) (err error) {
	to, err := t.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if from == nil {
		_, err = to.Write(body)
		return err
	}
	r, err := from.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	n, err := io.Copy(to, r)
	if err == nil && n != from.Size {
		err = fmt.Errorf("it has %d bytes and should have %d", n, from.Size)
	}
	return err
}

// adoptOne opens the tree with the files of a set and takes away what is not the store's.
func (s *store) adoptOne(set *statebackend.RestoredFileSet) error {
	m, err := s.tree.lay(&set.FileSet)
	if err != nil {
		return err
	}
	used := map[uint16]bool{}
	for i := range m.tables {
		t := &m.tables[i]
		k, err := keptOf(t, set)
		if err != nil {
			return err
		}
		for _, space := range t.used() {
			used[space] = true
			s.spaces = max(s.spaces, space)
			if t.kind == keptRows {
				continue // few have rows of other groups, which are left out when they are read
			}
			clipped, err := s.clip(space, set.FirstGroup, set.LastGroup)
			if err != nil {
				return err
			}
			if clipped {
				k.n = -1
			}
		}
		if err := noChanges(set, t.name); err != nil {
			return err
		}
		s.kept = append(s.kept, k)
	}
	return s.clearUnused(used)
}

// clip deletes the rows of a space that are of other key groups, and says whether there were any.
func (s *store) clip(space uint16, first, last int) (clipped bool, err error) {
	from, to := bounds(space)
	low, high := groupBounds(space, first, last)
	for _, span := range [][2][]byte{{from, low}, {high, to}} {
		some, err := s.wipe(span[0], span[1])
		if err != nil {
			return clipped, err
		}
		clipped = clipped || some
	}
	return clipped, nil
}

// wipe deletes the rows between two keys, and says whether there were any.
func (s *store) wipe(from, to []byte) (some bool, err error) {
	err = scan(s.tree, from, to, func(_, _ []byte) (bool, error) { some = true; return false, nil })
	if some && err == nil {
		err = s.tree.DeleteRange(from, to, pebble.NoSync)
	}
	return some, err
}

// clearUnused deletes what was written to the tree for tables that the snapshot does not have.
func (s *store) clearUnused(used map[uint16]bool) error {
	for from := 1; from <= lastSpace; from++ {
		if used[uint16(from)] {
			continue
		}
		to := from + 1
		for to <= lastSpace && !used[uint16(to)] {
			to++
		}
		low, _ := bounds(uint16(from))
		high := binary.BigEndian.AppendUint16(nil, uint16(to))
		if _, err := s.wipe(low, high); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// keptOf is a table of a set as a store keeps it until it is opened.
func keptOf(t *metaTable, set *statebackend.RestoredFileSet) (*keptTable, error) {
	for i := range set.Tables {
		if info := set.Tables[i].TableInfo; info.Name == t.name {
			return &keptTable{TableInfo: info, shape: t.shape, n: t.n, last: t.last}, nil
		}
	}
	return nil, fmt.Errorf("the snapshot does not say what state %q is, which its files have", t.name)
}

// noChanges checks that nothing is to be put on top of the files: this backend's snapshots have all in the files.
func noChanges(set *statebackend.RestoredFileSet, name string) error {
	for i := range set.Tables {
		if set.Tables[i].Name != name || set.Tables[i].Rows == nil {
			continue
		}
		for _, err := range set.Tables[i].Rows {
			if err != nil {
				return err
			}
			return fmt.Errorf("state %q: the snapshot has changes to the files of the disk store, which this version never writes", name)
		}
	}
	return nil
}

// merge copies the rows of a set that are the store's into the tree.
func (s *store) merge(b *Backend, set *statebackend.RestoredFileSet) (err error) {
	other, err := newTree(b, &s.Options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.release()) }()
	m, err := other.lay(&set.FileSet)
	if err != nil {
		return err
	}
	bulk := newBulk(s.tree)
	for i := range m.tables {
		t := &m.tables[i]
		k, err := keptOf(t, set)
		if err = errors.Join(err, noChanges(set, t.name)); err != nil {
			return err
		}
		into := s.part(k)
		into.last = max(into.last, k.last)
		for j, space := range t.used() {
			from, to := groupBounds(space, set.FirstGroup, set.LastGroup)
			if t.kind == keptRows {
				from, to = bounds(space)
			}
			if err := s.move(other, bulk, from, to, into, j, set); err != nil {
				return err
			}
		}
	}
	return bulk.finish()
}

// part gives the kept table that takes the rows of k: one whose rows lie alike, or a new one.
func (s *store) part(k *keptTable) *keptTable {
	for _, old := range s.kept {
		if old.Name == k.Name && old.like(k.shape) && old.kind != keptRows {
			return old
		}
	}
	c := *k
	c.n, c.last = -1, 0
	for i := range c.used() {
		c.spaces[i] = s.space()
	}
	s.kept = append(s.kept, &c)
	return &c
}

// move copies rows between two keys to space j of a kept table.
func (s *store) move(from *tree, to *bulk, low, high []byte, into *keptTable, j int, set *statebackend.RestoredFileSet) error {
	space := into.spaces[j]
	var row statebackend.Row
	var moved []byte
	return scan(from, low, high, func(key, value []byte) (bool, error) {
		if into.kind == keptRows {
			if err := readRow(value, &row); err != nil {
				return false, err
			}
			if row.Group < set.FirstGroup || row.Group > set.LastGroup {
				return true, nil
			}
		}
		moved = append(binary.BigEndian.AppendUint16(moved[:0], space), key[spaceBytes:]...)
		return true, to.add(moved, value)
	})
}

// Files reads the files that stores of this package write into checkpoints, without a store: tools pass it to package
// checkpoint as a FileReader. It makes a folder for the time of reading, in Folder as a Backend does.
type Files struct{ Folder string }

// Formats implements checkpoint.FileReader.
func (Files) Formats() []string { return []string{Format} }

// Rows implements checkpoint.FileReader.
func (f Files) Rows(set *statebackend.FileSet, table statebackend.TableInfo, first, last int) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		if err := f.read(set, &table, first, last, yield); err != nil {
			yield(nil, fmt.Errorf("read state %q in files of the disk store: %w", table.Name, err))
		}
	}
}

func (f Files) read(set *statebackend.FileSet, table *statebackend.TableInfo, first, last int, yield func(*statebackend.Row, error) bool) (err error) {
	if set.Format != Format {
		return fmt.Errorf("they are of the format %q, this is a reader of %q", set.Format, Format)
	}
	t, err := newTree(&Backend{Folder: f.Folder}, &statebackend.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.release()) }()
	m, err := t.lay(set)
	if err != nil {
		return err
	}
	var parts []iter.Seq2[*statebackend.Row, error]
	for i := range m.tables {
		if m.tables[i].name == table.Name {
			g := &reading{
				shape: m.tables[i].shape, first: first, last: last, scan: scanOf(t), wrap: func(err error) error { return err },
			}
			parts = append(parts, g.rows())
		}
	}
	if len(parts) == 0 {
		return nil
	}
	for row, err := range together(parts) {
		if err != nil {
			return err
		}
		if !yield(row, nil) {
			return nil
		}
	}
	return nil
}
