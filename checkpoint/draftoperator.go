package checkpoint

import (
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"unsafe"

	"github.com/flott-dev/flott/internal/keygroup"
	"github.com/flott-dev/flott/internal/murmur"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// DraftOperator is an operator of a Draft. The rows of the states that are set or updated are held in memory, encoded, until
// the draft is written; states that are kept are not.
type DraftOperator struct {
	// Name is for people.
	Name string
	// MaxParallelism is the number of key groups, which must be that of the operator in the job: DefaultMaxParallelism, or
	// that of the snapshot from which the draft was made.
	MaxParallelism int

	id, uid string
	draft   *Draft
	kept    *Operator // what the snapshot holds of it; nil: nothing
	order   []string
	states  map[string]*draftState // those that are set, by name; nil: dropped
}

// SetUID makes another operator of it: the one that has this UID in the job.
func (o *DraftOperator) SetUID(uid string) {
	id := murmur.Sum128([]byte(uid))
	o.uid, o.id = uid, hex.EncodeToString(id[:])
}

// changed says whether a state or list is not kept as it was.
func (o *DraftOperator) changed(name string) bool {
	_, ok := o.states[name]
	return ok
}

func (o *DraftOperator) set(name string, s *draftState) {
	if !o.changed(name) {
		o.order = append(o.order, name)
	}
	o.states[name] = s
}

// Drop takes a state or list, timers included, out of the operator. It is no error if there is none.
func (o *DraftOperator) Drop(state string) { o.set(state, nil) }

// SetValues makes the state one with these values (state.Value, or the accumulators of Reducing and Aggregating), in the place
// of what it held. A key that comes twice is an error of Draft.Write. The options are those of the codecs of K and V.
func (o *DraftOperator) SetValues[K, V any](state string, entries iter.Seq2[K, V], opts ...serde.Option) error {
	b, err := newDraftState(state, typesOf[K, V](opts))
	if err != nil {
		return err
	}
	for key, value := range entries {
		if err := b.add(unsafe.Pointer(&key), nil, unsafe.Pointer(&value)); err != nil {
			return err
		}
	}
	o.set(state, b)
	return nil
}

// SetLists makes the state one with these lists (state.List), as SetValues does.
func (o *DraftOperator) SetLists[K, V any](state string, entries iter.Seq2[K, []V], opts ...serde.Option) error {
	b, err := newDraftState(state, listsOf[K, V](opts))
	if err != nil {
		return err
	}
	for key, values := range entries {
		b.next()
		for i := range values {
			if err := b.add(unsafe.Pointer(&key), nil, unsafe.Pointer(&values[i])); err != nil {
				return err
			}
		}
	}
	o.set(state, b)
	return nil
}

// SetMaps makes the state one with these maps (state.Map), as SetValues does.
func (o *DraftOperator) SetMaps[K any, M comparable, V any](state string, entries iter.Seq2[K, map[M]V], opts ...serde.Option) error {
	b, err := newDraftState(state, mapsOf[K, M, V](opts))
	if err != nil {
		return err
	}
	for key, values := range entries {
		b.next()
		for mapKey, value := range values {
			if err := b.add(unsafe.Pointer(&key), unsafe.Pointer(&mapKey), unsafe.Pointer(&value)); err != nil {
				return err
			}
		}
	}
	o.set(state, b)
	return nil
}

// Update passes all rows of a state through f: the value of each key, each element of each list, each value of each map, of
// state in windows as well. It puts the value that f gives in the place of the old one, or takes the row away if keep is
// false. Old is the type of the values in the snapshot, which may have changed as schemas may; New is that of the program.
func (o *DraftOperator) Update[K, Old, New any](state string, f func(key K, value Old) (now New, keep bool), opts ...serde.Option) error {
	from, to := typesOf[K, Old](opts), typesOf[K, New](opts)
	if err := errors.Join(from.err, to.err); err != nil {
		return fmt.Errorf("update state %q of operator %q: %w", state, o.Name, err)
	}
	err := o.update(state, from, to, func(r *rowUpdate) error {
		var key K
		var value Old
		if err := r.read(unsafe.Pointer(&key), unsafe.Pointer(&value)); err != nil {
			return err
		}
		if now, keep := f(key, value); keep {
			return r.write(unsafe.Pointer(&now))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("update state %q of operator %q: %w", state, o.Name, err)
	}
	return nil
}

// rowUpdate is a row on its way through an update.
type rowUpdate struct {
	row    *statebackend.Row
	key    *serde.Key
	reader *serde.Reader
	value  *serde.Handle
	to     *draftState
}

func (r *rowUpdate) read(key, value unsafe.Pointer) error {
	if err := r.key.Decode(r.row.Key, key); err != nil {
		return err
	}
	return readWhole(r.reader, r.row.Value, value)
}

func (r *rowUpdate) write(value unsafe.Pointer) (err error) {
	row := draftRow{
		key: r.to.keep(r.row.Key), namespace: r.to.keep(r.row.Namespace), mapKey: r.to.keep(r.row.MapKey), at: r.row.At, entry: r.to.entry,
	}
	r.to.memory, err = r.value.Append(r.to.room(), value)
	if err != nil {
		return err
	}
	row.value = r.to.taken()
	r.to.all = append(r.to.all, row)
	return nil
}

func (o *DraftOperator) update(state string, from, to *types, each func(*rowUpdate) error) error {
	info, rows, err := o.now(state)
	if err != nil {
		return err
	}
	if was, is := info.Key.String(), from.key.Schema().String(); was != is {
		return keysDiffer(was, is)
	}
	if info.Value == nil {
		return errors.New("only its operator knows what its values are")
	}
	r := &rowUpdate{key: from.key, value: to.value, to: &draftState{info: info}}
	if r.reader, err = from.value.Reader(info.Value); err != nil {
		return err
	}
	r.to.info.Value = to.value.Schema()
	for row, err := range rows {
		if err != nil {
			return err
		}
		r.row = row
		if err := each(r); err != nil {
			return err
		}
	}
	o.set(state, r.to)
	return nil
}

// now is a state as it is at the moment.
func (o *DraftOperator) now(state string) (info statebackend.TableInfo, rows iter.Seq2[*statebackend.Row, error], err error) {
	if s, ok := o.states[state]; ok && s != nil && s.list == nil {
		if err := s.sort(o.draft.HashSeed, o.MaxParallelism); err != nil {
			return info, nil, err
		}
		return s.info, s.rows(keygroup.Range{Last: o.MaxParallelism - 1}), nil
	} else if !ok && o.kept != nil {
		all := o.kept.Tables()
		if i := slices.IndexFunc(all, func(t TableSummary) bool { return t.Name == state }); i >= 0 {
			r := o.restored(keygroup.Range{Last: o.kept.MaxParallelism - 1})
			return all[i].TableInfo, r.rows(all[i].TableInfo), nil
		}
	}
	return info, nil, noSuch("state", o.tableNames())
}

// tableNames are the states by key that the operator has at the moment.
func (o *DraftOperator) tableNames() (names []string) {
	if o.kept != nil {
		for _, t := range o.kept.Tables() {
			if !o.changed(t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	for _, name := range o.order {
		if s := o.states[name]; s != nil && s.list == nil {
			names = append(names, name)
		}
	}
	return names
}

// SetItems makes the list one with these elements (state.OperatorList), in the place of what it held. With Broadcast each
// subtask has them all. The options are those of the codec of T.
func (o *DraftOperator) SetItems[T any](list string, mode Mode, items iter.Seq[T], opts ...serde.Option) error {
	h, err := serde.Of[T](opts...)
	if err != nil {
		return fmt.Errorf("list %q: %w", list, err)
	}
	l := &List{Name: list, Mode: mode, Schema: h.Schema()}
	for x := range items {
		b, err := h.Append(nil, unsafe.Pointer(&x))
		if err != nil {
			return fmt.Errorf("list %q: %w", list, err)
		}
		l.Items = append(l.Items, b)
	}
	o.set(list, &draftState{list: l})
	return nil
}
