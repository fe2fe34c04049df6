package pebble

import (
	"errors"
	"fmt"
	"iter"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// frozen is a snapshot of a store: a Pebble snapshot, taken when the cache had been written. All but its making belongs to
// the goroutine that reads it.
type frozen struct {
	tree   *tree
	view   *pebble.Snapshot
	now    int64 // the moment, by which rows have expired
	tables []statebackend.FrozenTable
	open   map[*pebble.Iterator]bool
	over   bool
}

// Freeze implements statebackend.Store. What the cache holds unwritten is written first.
func (s *store) Freeze(statebackend.Freezing) (statebackend.Frozen, error) {
	if s.validGroups != nil {
		return nil, fmt.Errorf("operator %q: freeze state: %w", s.Operator, s.validGroups)
	}
	if err := s.keepUnopened(); err != nil {
		return nil, err
	}
	for _, t := range s.tables {
		t.lapse()
	}
	if err := s.cache.flush(); err != nil {
		return nil, err
	}
	s.tree.retain()
	f := &frozen{tree: s.tree, view: s.tree.NewSnapshot(), open: map[*pebble.Iterator]bool{}}
	if s.Now != nil {
		f.now = s.Now()
	}
	for _, t := range s.tables {
		f.tables = append(f.tables, statebackend.FrozenTable{TableInfo: infoOf(s.Key, t.spec()), Rows: t.rows(f)})
	}
	for _, k := range s.kept {
		f.tables = append(f.tables, statebackend.FrozenTable{TableInfo: k.TableInfo, Rows: k.rows(f)})
	}
	return f, nil
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

// Tables implements statebackend.Frozen.
func (f *frozen) Tables() []statebackend.FrozenTable { return f.tables }

// Release implements statebackend.Frozen. It has no way to say that a folder could not be removed.
func (f *frozen) Release() {
	f.over = true
	for it := range f.open {
		_ = it.Close()
	}
	_ = f.view.Close()
	_ = f.tree.release()
}

// writer makes the rows of a table of a snapshot.
type writer struct {
	statebackend.Row
	l     *ledger
	yield func(*statebackend.Row, error) bool
	v     unsafe.Pointer // a value on its way
	buf   []byte
}

// emit gives out the row with a value as ledger.encode gave it; false ends the iteration.
func (w *writer) emit(value []byte) (more bool, err error) {
	if w.Value, err = w.l.export(value, w.v, w.buf); err != nil {
		return false, err
	}
	if w.l.fixed {
		w.buf = w.Value
	}
	return w.yield(&w.Row, nil), nil
}

// rows gives what emit makes of the rows of a space.
func (f *frozen) rows(l *ledger, space uint16, emit func(key, value []byte, w *writer) (bool, error)) iter.Seq2[*statebackend.Row, error] {
	return func(yield func(*statebackend.Row, error) bool) {
		w := &writer{l: l, yield: yield, v: l.s.Value.New()}
		err := f.scan(space, func(key, value []byte) (bool, error) { return emit(key, value, w) })
		if err != nil {
			yield(nil, l.wrap("snapshot of", err))
		}
	}
}

// scan calls fn for the rows of a space until it returns false or the snapshot is released.
func (f *frozen) scan(space uint16, fn func(key, value []byte) (bool, error)) error {
	if f.over {
		return errors.New("the snapshot was released")
	}
	from, to := bounds(space)
	it, err := f.view.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	f.open[it] = true
	for valid := it.First(); valid; valid = it.Next() {
		value, err := it.ValueAndErr()
		more := false
		if err == nil {
			more, err = fn(it.Key(), value)
		}
		if f.over {
			return err // Release closed the iterator
		}
		if !more || err != nil {
			f.close(it)
			return err
		}
	}
	err = it.Error()
	f.close(it)
	return err
}

func (f *frozen) close(it *pebble.Iterator) {
	delete(f.open, it)
	_ = it.Close() // what it could say was said by Error
}
