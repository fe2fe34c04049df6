package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// reducer combines each element with what its key has so far and emits the result (Flink: rolling reduce). The state is
// an element. It is written once for all types: its kernels call the user.
type reducer struct {
	operator.Unary
	keyer
	inPlace func(r *frame.Run, slots []unsafe.Pointer, fresh []bool) // layouts whose slots are the value
	combine func(acc unsafe.Pointer, r *frame.Run, i int)            // acc becomes the result, and element i, too
	own     operator.Writable
	table   statebackend.Table
	slots   []unsafe.Pointer
	fresh   []bool
	acc     unsafe.Pointer
}

// Reduce returns the driver of a rolling reduce whose f changes acc in place.
func Reduce[T any](typ *frame.Type, key *operator.Key, f func(acc *T, x *T)) operator.Operator {
	o := newReducer(typ, key)
	o.inPlace = func(r *frame.Run, slots []unsafe.Pointer, fresh []bool) {
		xs := frame.Values[T](r)
		slots, fresh = slots[:len(xs)], fresh[:len(xs)]
		for i := range xs {
			acc := (*T)(slots[i])
			if fresh[i] {
				*acc = xs[i]
				continue
			}
			f(acc, &xs[i])
			xs[i] = *acc
		}
	}
	o.combine = func(acc unsafe.Pointer, r *frame.Run, i int) {
		x := (*T)(r.At(i))
		f((*T)(acc), x)
		*x = *(*T)(acc)
	}
	return o
}

func newReducer(typ *frame.Type, key *operator.Key) *reducer {
	return &reducer{Unary: operator.Unary{In: typ, Out: operator.NewOutput(typ)}, keyer: keyer{key: key}}
}

// Inputs implements operator.Operator.
func (o *reducer) Inputs() []operator.Input { return []operator.Input{o} }

// Open implements operator.Operator.
func (o *reducer) Open(rt *operator.Runtime) (err error) {
	if err = o.Unary.Open(rt); err != nil {
		return err
	}
	if err = o.open(rt); err != nil {
		return err
	}
	o.slots, o.fresh, o.acc = make([]unsafe.Pointer, frame.MaxLen), make([]bool, frame.MaxLen), o.In.New()
	o.table, err = o.store.Table(statebackend.TableSpec{Name: "reduce", Value: o.In.Handle})
	return err
}

// Close implements operator.Operator.
func (o *reducer) Close() error { return o.close() }

// Push implements operator.Input.
func (o *reducer) Push(r *frame.Run) error {
	if r.Shared {
		return o.own.Each(r, o.push)
	}
	return o.push(r)
}

func (o *reducer) push(r *frame.Run) error { return o.each(r, o.pushPiece) }

func (o *reducer) pushPiece(r *frame.Run) error {
	if _, err := o.begin(r); err != nil {
		return err
	}
	if o.In.Layout == serde.Fixed {
		if err := o.table.Slots(0, r.N, o.slots[:r.N], o.fresh[:r.N]); err != nil {
			return err
		}
		o.inPlace(r, o.slots, o.fresh)
	} else if err := o.copied(r); err != nil {
		return err
	}
	return o.Out.Push(r)
}

// copied is for layouts that pack or encode values.
func (o *reducer) copied(r *frame.Run) error {
	for i := range r.N {
		found, err := o.table.Load(i, o.acc)
		if err != nil {
			return err
		}
		if found {
			o.combine(o.acc, r, i)
		}
		if err := o.table.Save(i, r.At(i)); err != nil {
			return err
		}
	}
	return nil
}
