package windowing

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// accumulators are contents that are folded as elements come.
type accumulators struct {
	chosen
	k       *windows.Incremental
	emit    func(w *view, acc unsafe.Pointer) error
	e       *engine
	table   statebackend.Table
	inPlace bool // the table's slots are the accumulators
	slot    [1]unsafe.Pointer
	fresh   [1]bool
	acc     unsafe.Pointer // two accumulators on their way to and from the table
	other   unsafe.Pointer
}

func (c *accumulators) open(e *engine) (err error) {
	c.e, c.typ = e, e.windows.namespace()
	if e.merging != nil && c.k.Merge == nil {
		return errFold
	}
	c.inPlace = c.k.Acc.Layout == serde.Fixed
	c.acc = c.k.Accs.New(2)
	c.other = c.k.Accs.At(c.acc, 1)
	c.table, err = e.keys.Store().Table(statebackend.TableSpec{Name: contentsName, Value: c.k.Acc, Namespace: c.typ})
	return err
}

func (c *accumulators) choose(state *view) {
	if c.differs(state.b) {
		c.table.SetNamespace(c.at)
	}
}

func (c *accumulators) add(_ int, r *frame.Run, i int) (bool, error) {
	if !c.inPlace {
		return c.addCopied(r, i)
	}
	if err := c.table.Slots(i, i+1, c.slot[:], c.fresh[:]); err != nil {
		return false, err
	}
	c.k.Add(c.slot[0], c.fresh[0], r, i)
	return !c.fresh[0], nil
}

func (c *accumulators) addCopied(r *frame.Run, i int) (bool, error) {
	found, err := c.table.Load(i, c.acc)
	if err != nil {
		return false, err
	}
	c.k.Add(c.acc, !found, r, i)
	err = c.table.Save(i, c.acc)
	c.k.Accs.Zero(c.acc, 1) // the next one is not to share its memory
	return found, err
}

func (c *accumulators) fire(w *view) error {
	i := c.e.run.Index
	if c.inPlace {
		if p := c.table.Find(i); p != nil {
			return c.emit(w, p)
		}
		return nil
	}
	found, err := c.table.Load(i, c.acc)
	if found && err == nil {
		err = c.emit(w, c.acc)
	}
	c.k.Accs.Zero(c.acc, 1)
	return err
}

func (c *accumulators) clear() error { return c.table.Delete(c.e.run.Index) }

func (c *accumulators) merge(into *view, from *row) error {
	if from.n == 0 {
		c.choose(into)
		return nil
	}
	i := c.e.run.Index
	c.choose(into)
	all, err := c.table.Load(i, c.acc)
	for k := 0; k < from.n && err == nil; k++ {
		v := from.view(&c.e.windows, k)
		c.choose(&v)
		var found bool
		if found, err = c.table.Load(i, c.other); err != nil || !found {
			continue
		}
		if all {
			c.k.Merge(c.acc, c.other)
		} else {
			c.k.Accs.Move(c.acc, c.other, 1)
		}
		all = true
		c.k.Accs.Zero(c.other, 1)
		err = c.table.Delete(i)
	}
	c.choose(into)
	if all && err == nil {
		err = c.table.Save(i, c.acc)
	}
	c.k.Accs.Zero(c.acc, 2)
	return err
}
