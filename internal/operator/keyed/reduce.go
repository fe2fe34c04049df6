package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// reducer combines each element with what its key has so far and emits the result (Flink: rolling reduce). The state is
// an element.
type reducer[T any] struct {
	operator.Unary
	keyer
	f     func(acc *T, x *T) // acc becomes the result
	own   operator.Writable
	table statebackend.Table
	slots []unsafe.Pointer
	fresh []bool
	acc   T
}

// Reduce returns the driver of a rolling reduce whose f changes acc in place.
func Reduce[T any](typ *frame.Type, key *operator.Key, f func(acc *T, x *T)) operator.Operator {
	return &reducer[T]{
		Unary: operator.Unary{In: typ, Out: operator.NewOutput(typ)}, keyer: keyer{key: key}, f: f,
		slots: make([]unsafe.Pointer, frame.MaxLen), fresh: make([]bool, frame.MaxLen),
	}
}

func (o *reducer[T]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *reducer[T]) Open(rt *operator.Runtime) (err error) {
	if err = o.Unary.Open(rt); err != nil {
		return err
	}
	if err = o.open(rt); err != nil {
		return err
	}
	o.table, err = o.store.Table(statebackend.TableSpec{Name: "reduce", Value: o.In.Handle})
	return err
}

func (o *reducer[T]) Close() error { return o.close() }

func (o *reducer[T]) Push(r *frame.Run) error {
	if r.Shared {
		return o.own.Each(r, o.push)
	}
	return o.push(r)
}

func (o *reducer[T]) push(r *frame.Run) error { return o.each(r, o.pushPiece) }

func (o *reducer[T]) pushPiece(r *frame.Run) error {
	if _, err := o.begin(r); err != nil {
		return err
	}
	var err error
	if o.In.Layout == serde.Fixed {
		err = o.inPlace(frame.Values[T](r))
	} else {
		err = o.copied(frame.Values[T](r))
	}
	if err != nil {
		return err
	}
	return o.Out.Push(r)
}

// inPlace is for layouts whose slots are the value.
func (o *reducer[T]) inPlace(xs []T) error {
	slots, fresh := o.slots[:len(xs)], o.fresh[:len(xs)]
	if err := o.table.Slots(0, len(xs), slots, fresh); err != nil {
		return err
	}
	for i := range xs {
		acc := (*T)(slots[i])
		if fresh[i] {
			*acc = xs[i]
			continue
		}
		o.f(acc, &xs[i])
		xs[i] = *acc
	}
	return nil
}

// copied is for layouts that pack or encode values.
func (o *reducer[T]) copied(xs []T) error {
	acc := &o.acc // not a local: its address goes through an interface
	for i := range xs {
		found, err := o.table.Load(i, unsafe.Pointer(acc))
		if err != nil {
			return err
		}
		if found {
			o.f(acc, &xs[i])
			xs[i] = *acc
		}
		if err := o.table.Save(i, unsafe.Pointer(&xs[i])); err != nil {
			return err
		}
	}
	return nil
}
