package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// cells are the values of one table, one per key.
type cells struct {
	keyer
	table statebackend.Table
	slots []unsafe.Pointer
	fresh []bool
}

// open opens the store and the table.
func (c *cells) open(rt *operator.Runtime, name string, value *serde.Handle) (err error) {
	if err = c.keyer.open(rt); err != nil {
		return err
	}
	if value.Layout == serde.Fixed {
		c.slots, c.fresh = make([]unsafe.Pointer, frame.MaxLen), make([]bool, frame.MaxLen)
	}
	c.table, err = c.store.Table(statebackend.TableSpec{Name: name, Value: value})
	return err
}

// first are the values of the run's first n elements, for layouts whose slots are the values; fresh says which are new.
func (c *cells) first(n int) (slots []unsafe.Pointer, fresh []bool, err error) {
	slots, fresh = c.slots[:n], c.fresh[:n]
	return slots, fresh, c.table.Slots(0, n, slots, fresh)
}

// rolling keeps one value per key and emits a result after each element, with the element's timestamp. It is written once
// for all types: fill calls the user.
type rolling struct {
	operator.Unary
	cells
	name  string
	value *serde.Handle
	fill  func(r *frame.Run, keys unsafe.Pointer) error // updates the values and writes the results into buf
	buf   *frame.Column
	run   frame.Run
	times []int64
}

func newRolling(in, out *frame.Type, key *operator.Key, name string, value *serde.Handle) rolling {
	return rolling{
		Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, cells: cells{keyer: keyer{key: key}}, name: name, value: value,
	}
}

// Inputs implements operator.Operator.
func (o *rolling) Inputs() []operator.Input { return []operator.Input{o} }

// Open implements operator.Operator.
func (o *rolling) Open(rt *operator.Runtime) error {
	if err := o.Unary.Open(rt); err != nil {
		return err
	}
	o.buf = frame.NewColumn(o.Out.Type, frame.MaxLen)
	return o.open(rt, o.name, o.value)
}

// Close implements operator.Operator.
func (o *rolling) Close() error { return o.close() }

// Push implements operator.Input.
func (o *rolling) Push(r *frame.Run) error { return o.each(r, o.push) }

func (o *rolling) push(r *frame.Run) error {
	col, err := o.begin(r)
	if err != nil {
		return err
	}
	if err = o.fill(r, col.P); err == nil {
		o.run = o.buf.Run()
		o.times = operator.LendTimes(&o.run, r, 0, o.times)
		err = o.Out.Push(&o.run)
	}
	o.buf.Reset()
	return err
}
