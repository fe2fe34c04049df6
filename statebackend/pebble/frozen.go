package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// frozen is a snapshot of a store: a Pebble snapshot, and on top of it the rows of the cache that the tree did not have then.
// All but its making belongs to the goroutine that reads it.
type frozen struct {
	tree   *tree
	view   *view
	lower  *pebble.Snapshot
	now    int64 // the moment, by which rows have expired
	tables []statebackend.FrozenTable
	timers []metaTable
	open   map[*pebble.Iterator]bool
	over   bool
	// Of snapshots of files.
	meta     *meta
	folder   string // of the checkpoint
	gathered bool
}

// Freeze implements statebackend.Store. It writes and copies no rows.
func (s *store) Freeze(how statebackend.Freezing) (statebackend.Frozen, error) {
	if s.validGroups != nil {
		return nil, fmt.Errorf("operator %q: freeze state: %w", s.Operator, s.validGroups)
	}
	if err := s.keepUnopened(); err != nil {
		return nil, err
	}
	for _, t := range s.tables {
		t.lapse()
	}
	s.cache.renew()
	s.tree.renew() // it keeps files that were merged
	s.sweep()
	if err := s.tree.broken(); err != nil {
		s.fail(s.cache.errWrite(err))
	}
	if err := errors.Join(s.settleTimers(), s.failed); err != nil {
		return nil, err
	}
	s.tree.retain()
	f := &frozen{tree: s.tree, view: s.cache.view(), lower: s.tree.NewSnapshot(), open: map[*pebble.Iterator]bool{}}
	s.views = append(s.views, f.view)
	if s.Now != nil {
		f.now = s.Now()
	}
	for _, t := range s.tables {
		f.tables = append(f.tables, statebackend.FrozenTable{TableInfo: infoOf(s.Key, t.spec()), Rows: t.rows(f)})
	}
	f.tables = append(f.tables, s.keptFrozen(f)...)
	s.freezeTimers(f)
	if how.Anchor {
		f.base(s)
	}
	return f, nil
}

// base makes it a snapshot that may be asked for files.
func (f *frozen) base(s *store) {
	f.view.tracing = true
	f.meta = &meta{}
	for _, t := range s.tables {
		f.meta.tables = append(f.meta.tables, t.told())
	}
	for _, k := range s.kept {
		f.meta.tables = append(f.meta.tables, metaTable{name: k.Name, shape: k.shape, n: k.n, last: k.last})
	}
	f.meta.tables = append(f.meta.tables, f.timers...)
}

// infoOf describes the rows of a table.
func infoOf(key *serde.Key, spec *statebackend.TableSpec) statebackend.TableInfo {
	info := statebackend.TableInfo{Name: spec.Name, Kind: spec.Kind(), Key: key.Schema(), Value: spec.Value.Schema()}
	if spec.MapKey != nil {
		info.MapKey = spec.MapKey.Schema()
	}
	if spec.Namespace != nil {
		info.Namespace = spec.Namespace.Schema()
	}
	if spec.TTL != nil {
		ttl := *spec.TTL
		info.TTL = &ttl
	}
	return info
}

// Tables implements statebackend.Frozen. Once files were gathered, nothing is to be put on top of them; before, and without
// files, tables are whole.
func (f *frozen) Tables() []statebackend.FrozenTable {
	if !f.gathered {
		return f.tables
	}
	changes := slices.Clone(f.tables)
	for i := range changes {
		changes[i].Changes = true
		changes[i].Rows = func(func(*statebackend.Row, error) bool) {}
	}
	return changes
}

// Release implements statebackend.Frozen. It has no way to say that a folder could not be removed.
func (f *frozen) Release() {
	f.over = true
	for it := range f.open {
		_ = it.Close()
	}
	f.view.release()
	if f.folder != "" {
		_ = f.tree.fs.RemoveAll(f.folder)
	}
	_ = f.lower.Close()
	_ = f.tree.release()
}

// scan calls fn for the rows between two keys until it returns false or the snapshot is released.
func (f *frozen) scan(from, to []byte, fn func(key, value []byte) (bool, error)) error {
	if f.over {
		return errors.New("the snapshot was released")
	}
	if err := f.view.collect(); err != nil {
		return err
	}
	upper := f.view.between(from, to)
	it, err := f.lower.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	f.open[it] = true
	err = f.merge(it, upper, fn)
	if !f.over { // else Release closed the iterator
		delete(f.open, it)
		_ = it.Close() // what it could say was said by Error
		err = errors.Join(err, f.tree.broken())
	}
	return err
}

// merge calls fn for the rows of the tree and of the cache in the order of their keys, the cache's where both have one.
func (f *frozen) merge(it *pebble.Iterator, upper []heldRow, fn func(key, value []byte) (bool, error)) error {
	valid := it.First()
	for valid || len(upper) > 0 {
		side := 1
		if valid {
			side = -1
			if len(upper) > 0 {
				side = bytes.Compare(it.Key(), f.view.key(upper[0]))
			}
		}
		more, err := true, error(nil)
		if side < 0 {
			var value []byte
			if value, err = it.ValueAndErr(); err == nil {
				more, err = fn(it.Key(), value)
			}
		} else if h := upper[0]; h.live {
			more, err = fn(f.view.key(h), f.view.value(h))
		}
		if f.over || !more || err != nil {
			return err
		}
		if side <= 0 {
			valid = it.Next()
		}
		if side >= 0 {
			upper = upper[1:]
		}
	}
	return it.Error()
}
