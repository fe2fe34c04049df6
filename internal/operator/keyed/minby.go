package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
)

// elements keeps one element per key and emits it after each element: it is changed in place by every further one (sum,
// min and max of a field), or one that is chosen takes its place (min-by, max-by). It is written once for all types:
// what it does to elements is given as functions of addresses.
type elements struct {
	operator.Unary
	cells
	change  func(acc, x unsafe.Pointer)
	choose  func(acc, x unsafe.Pointer) bool
	buf     *frame.Column
	run     frame.Run
	scratch unsafe.Pointer
}

// Change returns the driver of a rolling aggregate that keeps the first element of each key and lets change alter it by
// every further one.
func Change(typ *frame.Type, key *operator.Key, change func(acc, x unsafe.Pointer)) operator.Operator {
	o := newElements(typ, key)
	o.change = change
	return o
}

// Choose returns the driver of a rolling aggregate that keeps an element of each key and takes a further one in its
// place when choose answers true.
func Choose(typ *frame.Type, key *operator.Key, choose func(acc, x unsafe.Pointer) bool) operator.Operator {
	o := newElements(typ, key)
	o.choose = choose
	return o
}

func newElements(typ *frame.Type, key *operator.Key) *elements {
	return &elements{Unary: operator.Unary{In: typ, Out: operator.NewOutput(typ)}, cells: cells{keyer: keyer{key: key}}}
}

// Inputs implements operator.Operator.
func (o *elements) Inputs() []operator.Input { return []operator.Input{o} }

// Open implements operator.Operator.
func (o *elements) Open(rt *operator.Runtime) error {
	if err := o.Unary.Open(rt); err != nil {
		return err
	}
	o.buf, o.scratch = frame.NewColumn(o.In, frame.MaxLen), o.In.New()
	return o.open(rt, "element", o.In.Handle)
}

// Close implements operator.Operator.
func (o *elements) Close() error { return o.close() }

// Push implements operator.Input.
func (o *elements) Push(r *frame.Run) error { return o.each(r, o.push) }

// push writes the results over copies of the elements, which have the elements' timestamps.
func (o *elements) push(r *frame.Run) error {
	if _, err := o.begin(r); err != nil {
		return err
	}
	o.buf.Append(r, 0, r.N)
	o.run = o.buf.Run()
	var err error
	switch {
	case o.In.Layout == serde.Fixed:
		err = o.inPlace(r)
	case o.change != nil:
		err = o.changeCopies(r)
	default:
		err = o.chooseCopies(r)
	}
	if err == nil {
		err = o.Out.Push(&o.run)
	}
	o.buf.Reset()
	return err
}

// inPlace is for layouts whose slots are the value.
func (o *elements) inPlace(r *frame.Run) error {
	size := o.In.Size
	slots, fresh, err := o.first(o.run.N)
	if err != nil {
		return err
	}
	at := r.Hand()
	for i, acc := range slots {
		*at = i
		x := o.run.At(i)
		if fresh[i] || o.choose != nil && o.choose(acc, x) {
			copyPlain(acc, x, size)
			continue
		}
		if o.change != nil {
			o.change(acc, x)
		}
		copyPlain(x, acc, size)
	}
	*at = frame.Passed
	return nil
}

func copyPlain(dst, src unsafe.Pointer, n uintptr) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}

func (o *elements) changeCopies(r *frame.Run) error {
	at := r.Hand()
	for i := range o.run.N {
		*at = i
		acc := o.run.At(i)
		found, err := o.table.Load(i, acc)
		if err != nil {
			return err
		}
		if found {
			o.change(acc, r.At(i))
		}
		if err := o.table.Save(i, acc); err != nil {
			return err
		}
	}
	*at = frame.Passed
	return nil
}

func (o *elements) chooseCopies(r *frame.Run) error {
	at := r.Hand()
	for i := range o.run.N {
		*at = i
		x := o.run.At(i)
		found, err := o.table.Load(i, o.scratch)
		if err != nil {
			return err
		}
		if !found || o.choose(o.scratch, x) {
			err = o.table.Save(i, x)
		} else {
			_, err = o.table.Load(i, x)
		}
		if err != nil {
			return err
		}
	}
	*at = frame.Passed
	return nil
}
