package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// folder keeps one value per key, into which elements are folded, and emits it after each.
type folder[T, R any] struct {
	operator.Unary
	keyer
	f     func(acc R, x T) R
	init  R
	acc   R
	buf   *frame.Column
	run   frame.Run
	times []int64
	table statebackend.Table
	slots []unsafe.Pointer
	fresh []bool
}

// Rolling returns the driver of a rolling fold: every key begins with a copy of init. out is the handle of R.
func Rolling[T, R any](in, out *frame.Type, key *operator.Key, init R, f func(acc R, x T) R) operator.Operator {
	return &folder[T, R]{
		Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, keyer: keyer{key: key}, init: init, f: f,
		slots: make([]unsafe.Pointer, frame.MaxLen), fresh: make([]bool, frame.MaxLen),
	}
}

func (o *folder[T, R]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *folder[T, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Unary.Open(rt); err != nil {
		return err
	}
	if err = o.open(rt); err != nil {
		return err
	}
	o.buf = frame.NewColumn(o.Out.Type, frame.MaxLen)
	o.table, err = o.store.Table(statebackend.TableSpec{Name: "fold", Value: o.Out.Type.Handle})
	return err
}

func (o *folder[T, R]) Close() error { return o.close() }

func (o *folder[T, R]) Push(r *frame.Run) error { return o.each(r, o.push) }

func (o *folder[T, R]) push(r *frame.Run) (err error) {
	if _, err = o.begin(r); err != nil {
		return err
	}
	xs, out := frame.Values[T](r), frame.Fill[R](o.buf, r.N)
	if o.Out.Type.Layout == serde.Fixed {
		err = o.inPlace(xs, out)
	} else {
		err = o.copied(xs, out)
	}
	if err == nil {
		o.run = o.buf.Run()
		o.times = operator.LendTimes(&o.run, r, 0, o.times)
		err = o.Out.Push(&o.run)
	}
	o.buf.Reset()
	return err
}

// inPlace is for layouts whose slots are the value.
func (o *folder[T, R]) inPlace(xs []T, out []R) error {
	slots, fresh := o.slots[:len(xs)], o.fresh[:len(xs)]
	if err := o.table.Slots(0, len(xs), slots, fresh); err != nil {
		return err
	}
	for i, x := range xs {
		acc := (*R)(slots[i])
		if fresh[i] {
			*acc = o.init
		}
		v := o.f(*acc, x)
		*acc, out[i] = v, v
	}
	return nil
}

// copied is for layouts that pack or encode values: what f gets is its own, so it may change slices and maps in it.
func (o *folder[T, R]) copied(xs []T, out []R) error {
	acc := unsafe.Pointer(&o.acc)
	var zero R
	for i, x := range xs {
		found, err := o.table.Load(i, acc)
		if err == nil && !found {
			err = o.Out.Type.Clone(acc, unsafe.Pointer(&o.init))
		}
		if err != nil {
			return err
		}
		out[i] = o.f(o.acc, x)
		o.acc = zero // what was emitted may hold on to its memory
		if err := o.table.Save(i, unsafe.Pointer(&out[i])); err != nil {
			return err
		}
	}
	return nil
}
