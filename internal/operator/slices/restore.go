package slices

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

// restorer puts the rows of a snapshot into slices again. Rows whose windows had fired up to different times are kept apart:
// they come from a clock that had gone back, or from several subtasks.
type restorer struct {
	o      *driver
	key    unsafe.Pointer
	wholes bool // rows are whole windows
	epochs map[int64]*epoch
	read   func(src []byte, v unsafe.Pointer) error
}

var errRow = errors.New("a row is malformed")

// restore begins with the state of a snapshot.
func (o *driver) restore() error {
	rt := o.RT
	if err := rt.Restored.Without(windows.SessionsTable); err != nil {
		return err
	}
	plain, tangled, whole, err := o.tables()
	if err != nil {
		return err
	}
	r := &restorer{o: o, key: o.k.Keys.New(1), epochs: map[int64]*epoch{}}
	if err := r.table(rt.Restored, &plain, r.slice); err != nil {
		return err
	}
	if err := r.table(rt.Restored, &tangled, r.group); err != nil {
		return err
	}
	if err := r.table(rt.Restored, &whole, r.whole); err != nil {
		return err
	}
	if err := r.takeOver(); err != nil {
		return err
	}
	return r.install()
}

// table puts the rows of a table in.
func (r *restorer) table(from *operator.Restored, want *statebackend.TableInfo, put func(id uint32, t stretch, row *statebackend.Row) error) error {
	t, err := from.Table(want)
	if t == nil {
		return err
	}
	if r.read, err = operator.Decoder(r.o.k.Acc, t.Value); err != nil {
		return fmt.Errorf("%w: keep the function of the windows, or give the operator another UID", err)
	}
	r.wholes = want.Name == windows.WholeTable
	for row, err := range t.Rows {
		if err != nil {
			return err
		}
		if err := r.row(row, put); err != nil {
			return fmt.Errorf("table %q: %w", want.Name, err)
		}
	}
	return nil
}

func (r *restorer) row(row *statebackend.Row, put func(uint32, stretch, *statebackend.Row) error) error {
	if len(row.Namespace) != 16 || len(row.MapKey) < 8 {
		return errRow
	}
	start := int64(binary.LittleEndian.Uint64(row.Namespace))
	t, err := r.o.grid.at(max(start, math.MinInt64+1))
	if err != nil {
		return err
	}
	if of := string(appendSpan(nil, t)); t.gap || of != string(row.Namespace) && !r.wholes {
		return fmt.Errorf("the snapshot has a slice from %d to %d, which the program's windows don't have: keep the windows, or give the operator another UID",
			start, int64(binary.LittleEndian.Uint64(row.Namespace[8:])))
	}
	if err := r.o.key(row.Key, r.key); err != nil {
		return err
	}
	id, err := r.o.keys.one(r.key)
	if err != nil {
		return err
	}
	return put(id, t, row)
}

// key makes the Go value of a canonical key at p.
func (o *driver) key(canonical []byte, p unsafe.Pointer) error {
	key := o.spec.Key
	if key.Width > 0 && len(canonical) != int(key.Width) {
		return fmt.Errorf("a key of %d bytes: %s takes %d", len(canonical), key.Name, key.Width)
	}
	if o.keys.memory.Size == 0 {
		return nil
	}
	return key.Decode(canonical, p)
}

// one gives the id of the key at p.
func (k *roster) one(p unsafe.Pointer) (uint32, error) {
	ids, err := k.identify(serde.Column{P: p, N: 1, Stride: k.memory.Size})
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// epoch is where rows go of which the windows up to a time had fired. There is one of event time, about which subtasks agree,
// and of windows that are one slice, which are gone when they have fired.
func (r *restorer) epoch(row *statebackend.Row) *epoch {
	passed := int64(binary.LittleEndian.Uint64(row.MapKey))
	if r.o.cover == nil && r.o.lateness == 0 && !r.o.clocked {
		passed = math.MinInt64 // what is overtaken by unaligned barriers may be older than all rows
	}
	if !r.o.clocked || r.o.cover == nil {
		for was, e := range r.epochs {
			if was <= passed {
				return e
			}
			delete(r.epochs, was)
			e.until = passed
			r.epochs[passed] = e
			return e
		}
	}
	e := r.epochs[passed]
	if e == nil {
		e = &epoch{until: passed}
		if r.o.tangles != nil {
			e.tangles = newTangles(r.o)
		}
		r.epochs[passed] = e
	}
	return e
}

// slice puts the accumulator of a row into its slice.
func (r *restorer) slice(id uint32, t stretch, row *statebackend.Row) error {
	o, e := r.o, r.epoch(row)
	s := e.shelf.at(t.lo)
	if s == nil {
		s = e.shelf.put(t)
		var err error
		if s.column, err = o.columns.make(least, false); err != nil {
			return err
		}
	}
	at, fresh, err := o.columns.insert(&s.column, id, o.keys.limit)
	if err == nil && !fresh {
		err = errRow
	}
	if err == nil {
		err = r.read(row.Value, o.k.Accs.At(s.accs, int(at)))
	}
	if err == nil && e.tangles != nil {
		if err = e.tangles.reach(o.keys.limit); err == nil {
			e.tangles.newest[id] = max(e.tangles.newest[id], t.lo)
		}
	}
	return err
}

// whole puts the accumulator of a row into its whole window.
func (r *restorer) whole(id uint32, t stretch, row *statebackend.Row) error {
	o := r.o
	w := window.Time{Start: int64(binary.LittleEndian.Uint64(row.Namespace)), End: int64(binary.LittleEndian.Uint64(row.Namespace[8:]))}
	if t.last.Time != w || o.cover == nil {
		return fmt.Errorf("the snapshot has the window %v, which the program does not have: keep the windows, or give the operator another UID", w)
	}
	x, err := o.putWhole(&r.epoch(row).shelf, &t.last)
	if err != nil {
		return err
	}
	at, fresh, err := o.columns.insert(&x.column, id, o.keys.limit)
	if err == nil && !fresh {
		err = errRow
	}
	if err != nil {
		return err
	}
	return r.read(row.Value, o.k.Accs.At(x.accs, int(at)))
}

// group puts the accumulator of a row behind the groups of its key.
func (r *restorer) group(id uint32, t stretch, row *statebackend.Row) error {
	o, e := r.o, r.epoch(row)
	if e.tangles == nil {
		return errors.New("the program's windows don't ask for the order of elements any more: give the operator another UID")
	}
	if e.shelf.at(t.lo) == nil { // all of its slice may be tangled
		s := e.shelf.put(t)
		var err error
		if s.column, err = o.columns.make(least, false); err != nil {
			return err
		}
	}
	return e.tangles.restore(id, t, func(acc unsafe.Pointer) error { return r.read(row.Value, acc) })
}

// restore puts a group behind those of a tangled key.
func (t *tangles) restore(id uint32, s stretch, read func(acc unsafe.Pointer) error) error {
	if err := t.reach(t.o.keys.limit); err != nil {
		return err
	}
	i, ok := t.at[id]
	if !ok {
		i = len(t.list)
		t.at[id] = i
		t.list = append(t.list, &tangle{id: id, mark: t.mark})
		t.newest[id] = tangled
	}
	x := t.list[i]
	if err := t.group(x, s); err != nil {
		return err
	}
	return read(t.o.k.Accs.At(x.accs, len(x.groups)-1))
}

// spread gives a column a place for each key if it has many.
func (r *restorer) spread(c *column) error {
	if c.n < r.o.keys.limit/sparse {
		return nil
	}
	return r.o.columns.widen(c, r.o.keys.limit)
}

// install makes the epochs the driver's, the one that had come least far the present one.
func (r *restorer) install() error {
	o := r.o
	all := make([]epoch, 0, len(r.epochs))
	for _, e := range r.epochs {
		for _, s := range e.shelf.list {
			if err := r.spread(&s.column); err != nil {
				return err
			}
		}
		for _, x := range e.shelf.wholes {
			if err := r.spread(&x.column); err != nil {
				return err
			}
		}
		all = append(all, *e)
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b epoch) int {
		if a.until > b.until {
			return -1
		}
		return 1
	})
	last := len(all) - 1
	o.hidden, o.passed, o.shelf = all[:last:last], all[last].until, all[last].shelf
	if o.tangles != nil {
		o.tangles = all[last].tangles
	}
	o.stale = true
	if o.clocked {
		o.schedule()
	}
	return nil
}
