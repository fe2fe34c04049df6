package slices

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sort"
	"unsafe"

	"github.com/flott-dev/flott/internal/operator/windows"
)

// whole is a window that was taken over from the general driver: what it held then, which can't be cut into slices. What has
// come since is in slices and merged behind it. Once the last of them is gone there is no trace of them.
type whole struct {
	span
	column
}

// wholeOf is that of a window; nil if there is none.
func (h *shelf) wholeOf(w *span) *whole {
	if len(h.wholes) == 0 {
		return nil
	}
	i := sort.Search(len(h.wholes), func(i int) bool { return !h.wholes[i].before(w) })
	if i < len(h.wholes) && !w.before(&h.wholes[i].span) {
		return h.wholes[i]
	}
	return nil
}

// putWhole finds or makes that of a window.
func (o *driver) putWhole(h *shelf, w *span) (*whole, error) {
	if x := h.wholeOf(w); x != nil {
		return x, nil
	}
	c, err := o.columns.make(least, false)
	if err != nil {
		return nil, err
	}
	x := &whole{span: *w, column: c}
	i := sort.Search(len(h.wholes), func(i int) bool { return w.before(&h.wholes[i].span) })
	h.wholes = append(h.wholes, nil)
	copy(h.wholes[i+1:], h.wholes[i:])
	h.wholes[i] = x
	return x, nil
}

// of is the address of the accumulator of an id; nil if there is none.
func (o *driver) of(x *whole, id uint32) unsafe.Pointer {
	if x == nil {
		return nil
	}
	at, ok := o.columns.find(&x.column, id)
	if !ok {
		return nil
	}
	return o.k.Accs.At(x.accs, int(at))
}

// first makes what the whole window has of an id the accumulator at acc, which is none yet; false if there is none.
func (o *driver) first(w *span, id uint32, acc unsafe.Pointer) (bool, error) {
	held := o.of(o.shelf.wholeOf(w), id)
	if held == nil {
		return false, nil
	}
	return true, o.sums.one(acc, held)
}

// emitWith emits the results of the cover and the tangles together with those of the whole window.
func (o *driver) emitWith(x *whole, w *span) error {
	if err := o.columns.leave(&x.column); err != nil { // making a result may change what is behind pointers
		return err
	}
	o.base, o.left = x, o.left[:0]
	o.left = append(o.left, make([]uint64, (o.keys.limit+63)/64)...)
	o.keep(o.left, &x.column)
	err := o.cover.emit()
	if err == nil && o.tangles != nil {
		err = o.tangles.emit(w)
	}
	o.base = nil
	if err != nil {
		return err
	}
	for i, word := range o.left { // those of which nothing has come since
		for ; word != 0; word &= word - 1 {
			id := uint32(i<<6 + bits.TrailingZeros64(word))
			if err := o.sendOne(id, w, o.of(x, id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendWith is send for ids that may be in the whole window.
func (o *driver) sendWith(ids []uint32, accs unsafe.Pointer, at []uint32) error {
	w := o.base.span
	for i, id := range ids {
		acc, held := o.k.Accs.At(accs, int(at[i])), o.of(o.base, id)
		if held != nil {
			o.left[id>>6] &^= 1 << (id & 63)
			if err := o.sums.one(o.acc, held); err != nil {
				return err
			}
			if err := o.sums.mergeOne(o.acc, true, acc); err != nil {
				return err
			}
			acc = o.acc
		}
		err := o.sendOne(id, &w, acc)
		if held != nil {
			o.k.Accs.Zero(o.acc, 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropWholes drops the windows that are gone.
func (o *driver) dropWholes() {
	n := 0
	for ; n < len(o.shelf.wholes) && o.gone(&o.shelf.wholes[n].span); n++ {
		o.columns.free(&o.shelf.wholes[n].column)
		o.shelf.wholes[n] = nil
	}
	if o.shelf.wholes = o.shelf.wholes[n:]; len(o.shelf.wholes) == 0 {
		o.shelf.wholes = nil
	}
}

// unite adds windows that came from another subtask to those that there are.
func (o *driver) unite(came []*whole) error {
	m := &o.k.Accs
	for _, x := range came {
		if err := x.shadows.KeepAll(); err != nil {
			return err
		}
		into, err := o.putWhole(&o.shelf, &x.span)
		if err != nil {
			return err
		}
		for o.cursor.start(); o.cursor.next(&x.column); {
			for i, id := range o.cursor.ids {
				at, fresh, err := o.columns.insert(&into.column, id, o.keys.limit)
				if err == nil {
					err = into.shadows.Keep(at)
				}
				if err != nil {
					return err
				}
				if acc := m.At(x.accs, int(o.cursor.at[i])); fresh {
					m.Move(m.At(into.accs, int(at)), acc, 1)
				} else {
					o.k.Merge(m.At(into.accs, int(at)), acc)
				}
			}
		}
		o.columns.free(&x.column)
	}
	return nil
}

// takeOver puts windows of the general driver in: each is a slice, or, if windows overlap, stays whole.
type takeOver struct {
	*restorer
	e     *epoch
	first int64 // the end of the first window that has not fired
}

func (r *restorer) takeOver() error {
	o := r.o
	to := &takeOver{restorer: r, e: &epoch{until: math.MinInt64}, first: math.MaxInt64}
	if o.tangles != nil {
		to.e.tangles = newTangles(o)
	}
	m := &windows.Moved{Restored: o.RT.Restored, K: o.k, Key: o.spec.Key, Domain: o.domain(), Lateness: o.lateness}
	if err := m.FromGeneral(false, o.In, to.window); err != nil {
		return err
	}
	if len(to.e.shelf.list)+len(to.e.shelf.wholes) == 0 {
		return nil
	}
	if len(r.epochs) > 0 {
		return errors.New("the snapshot has windows of both kinds")
	}
	if to.first <= to.e.until {
		return fmt.Errorf("some subtasks had come to %d when the snapshot was taken, others not yet to %d, which windows that are kept "+
			"together can't have: begin with a savepoint, or with WithGeneralWindows", to.e.until, to.first)
	}
	r.epochs[to.e.until] = to.e
	return nil
}

// window puts a window in.
func (r *takeOver) window(k *windows.Kept) error {
	o, h := r.o, &r.e.shelf
	last := k.Window.MaxTimestamp()
	if k.Fired && o.lateness == 0 {
		return nil // the program keeps it for late elements no more
	}
	t, err := o.grid.at(max(k.Window.Start, math.MinInt64+1))
	if err != nil {
		return err
	}
	if t.gap || t.last.Time != k.Window {
		return fmt.Errorf("the snapshot has the window %v, which the program does not have: keep the windows, or give the operator another UID", k.Window)
	}
	if k.Fired {
		r.e.until = max(r.e.until, last)
	} else {
		r.first = min(r.first, last)
	}
	if err := o.key(k.Key, r.key); err != nil {
		return err
	}
	id, err := o.keys.one(r.key)
	if err != nil {
		return err
	}
	c, err := r.columnOf(h, &t)
	if err != nil {
		return err
	}
	at, fresh, err := o.columns.insert(c, id, o.keys.limit)
	if err != nil {
		return err
	}
	if !fresh {
		return errRow
	}
	o.k.Accs.Move(o.k.Accs.At(c.accs, int(at)), k.Acc, 1)
	return nil
}

// columnOf is where the accumulators of a window go, of which t is the slice that begins with it.
func (r *takeOver) columnOf(h *shelf, t *stretch) (*column, error) {
	o := r.o
	if o.cover != nil {
		x, err := o.putWhole(h, &t.last)
		if err != nil {
			return nil, err
		}
		return &x.column, nil
	}
	s := h.at(t.lo)
	if s == nil {
		s = h.put(*t)
		var err error
		if s.column, err = o.columns.make(least, false); err != nil {
			return nil, err
		}
	}
	return &s.column, nil
}
