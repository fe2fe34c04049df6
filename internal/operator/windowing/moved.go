package windowing

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// taker are contents that may begin with an accumulator.
type taker interface {
	// put makes acc, which is the contents', what the window at hand holds; it holds nothing yet.
	put(acc unsafe.Pointer) error
	kernels() *windows.Incremental
}

// adopt takes over the windows that a snapshot has of a driver with a way of its own, slices or sessions.
func (e *engine) adopt(r *operator.Restored) error {
	if !windows.Has(r, windows.SlicesTable, windows.TangledTable, windows.WholeTable, windows.SessionsTable) {
		return nil
	}
	if err := e.adoptAll(r); err != nil {
		return e.errorf("restore windows that were kept in another way: %w", err)
	}
	return e.keys.Leave()
}

func (e *engine) adoptAll(r *operator.Restored) error {
	c, ok := e.contents.(taker)
	switch {
	case !ok:
		return errors.New("the snapshot has one accumulator for each window, the program's windows keep their elements (for an " +
			"evictor, or a function of all elements): keep the function, or give the operator another UID")
	case !e.binding.byDefault:
		return errors.New("the snapshot's windows fire by their default trigger, the program's by one of its own, which does not know " +
			"what came before: keep the default trigger, or give the operator another UID")
	case windows.Has(r, windows.ContentsTable):
		return errors.New("the snapshot has windows of both kinds")
	}
	m := &windows.Moved{Restored: r, K: c.kernels(), Key: e.spec.Key, Domain: e.domain, Lateness: e.spec.Lateness}
	if windows.Has(r, windows.SessionsTable) {
		if e.merging == nil || !isTime(&e.windows) {
			return errors.New("the snapshot has sessions, which the program's windows are not: keep the windows, or give the operator another UID")
		}
		return m.FromSessions((&adoption{engine: e, c: c}).session)
	}
	a, ok := e.assigner.(window.Assigner[window.Time])
	on, grid := e.assigner.(window.Gridded)
	if !ok || !grid || e.merging != nil {
		return errors.New("the snapshot has slices of windows on a grid, which the program's windows are not: keep the windows, or give the operator another UID")
	}
	return m.FromSlices(a, on.Grid(), (&adoption{engine: e, c: c}).window)
}

// adoption takes windows over.
type adoption struct {
	*engine
	c   taker
	row row // the window at hand
}

func isTime(t *windowType) bool { return t.Type == reflect.TypeFor[window.Time]() }

// hand puts a window at hand.
func (a *adoption) hand(w *window.Time) error {
	if err := a.row.set(&a.windows, unsafe.Pointer(w), 1); err != nil {
		return err
	}
	a.at = a.row.view(&a.windows, 0)
	a.cleanup = a.cleanupTime(a.at.max)
	return nil
}

// begin begins the window at hand, of the key at hand: its contents and its timers.
func (a *adoption) begin(k *windows.Kept) error {
	a.contents.choose(&a.at)
	if err := a.c.put(k.Acc); err != nil {
		return fmt.Errorf("window %v: %w", k.Window, err)
	}
	if !k.Fired {
		a.keys.Register(a.domain, a.at.b, a.at.max)
	}
	if !k.Fired || a.domain == process.EventTime {
		a.setCleanup()
	}
	return nil
}

// window takes over a window that does not merge.
func (a *adoption) window(k *windows.Kept) error {
	a.keys.At(k.Key, k.Hash)
	if err := a.hand(&k.Window); err != nil {
		return err
	}
	return a.begin(k)
}

// session takes over a window that merges. It names its contents itself.
func (a *adoption) session(k *windows.Kept) error {
	a.keys.At(k.Key, k.Hash)
	if err := a.merging.load(0); err != nil {
		return err
	}
	if err := a.merging.add(unsafe.Pointer(&k.Window)); err != nil {
		return err
	}
	if a.merging.merges() > 0 {
		return fmt.Errorf("the snapshot has the session %v beside one that it merges with", k.Window)
	}
	if err := a.hand(&k.Window); err != nil {
		return err
	}
	if err := a.begin(k); err != nil {
		return err
	}
	return a.merging.store(0)
}

// put implements taker.
func (c *accumulators) put(acc unsafe.Pointer) error { return c.table.Save(c.e.run.Index, acc) }

func (c *accumulators) kernels() *windows.Incremental { return c.k }

// put implements taker.
func (c *logged) put(acc unsafe.Pointer) error {
	i := c.e.run.Index
	h, fresh, err := c.head(i)
	if err != nil {
		return err
	}
	if !fresh {
		return errors.New("it is there twice")
	}
	c.k.Accs.Move(c.acc, acc, 1)
	err = c.write(i, h)
	c.k.Accs.Zero(c.acc, 1)
	return err
}

func (c *logged) kernels() *windows.Incremental { return c.k }
