package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
)

// reducer combines each element with what its key has so far and emits the result (Flink: rolling reduce). The state is
// an element. It is written once for all types: its kernels call the user.
type reducer struct {
	operator.Unary
	cells
	inPlace func(r *frame.Run, slots []unsafe.Pointer, fresh []bool) // layouts whose slots are the value
	combine func(acc unsafe.Pointer, r *frame.Run, i int)            // acc becomes the result, and element i, too
	own     operator.Writable
	acc     unsafe.Pointer
}

// Reduce returns the driver of a rolling reduce whose f changes acc in place.
func Reduce[T any](typ *frame.Type, key *operator.Key, f func(acc *T, x *T)) operator.Operator {
	o := newReducer(typ, key)
	o.inPlace = func(r *frame.Run, slots []unsafe.Pointer, fresh []bool) {
		xs := frame.Values[T](r)
		slots, fresh = slots[:len(xs)], fresh[:len(xs)]
		at := r.Hand()
		for i := range xs {
			*at = i
			acc := (*T)(slots[i])
			if fresh[i] {
				*acc = xs[i]
				continue
			}
			f(acc, &xs[i])
			xs[i] = *acc
		}
		*at = frame.Passed
	}
	o.combine = func(acc unsafe.Pointer, r *frame.Run, i int) {
		x := (*T)(r.At(i))
		f((*T)(acc), x)
		*x = *(*T)(acc)
	}
	return o
}

func newReducer(typ *frame.Type, key *operator.Key) *reducer {
	return &reducer{Unary: operator.Unary{In: typ, Out: operator.NewOutput(typ)}, cells: cells{keyer: keyer{key: key}}}
}

// Inputs implements operator.Operator.
func (o *reducer) Inputs() []operator.Input { return []operator.Input{o} }

// Open implements operator.Operator.
func (o *reducer) Open(rt *operator.Runtime) error {
	if err := o.Unary.Open(rt); err != nil {
		return err
	}
	o.acc = o.In.New()
	return o.open(rt, "reduce", o.In.Handle)
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
	o.RT.Run = r
	if _, err := o.begin(r); err != nil {
		return err
	}
	if o.In.Layout == serde.Fixed {
		slots, fresh, err := o.first(r.N)
		if err != nil {
			return err
		}
		o.inPlace(r, slots, fresh)
	} else if err := o.copied(r); err != nil {
		return err
	}
	return o.Out.Push(r)
}

// copied is for layouts that pack or encode values.
func (o *reducer) copied(r *frame.Run) error {
	at := r.Hand()
	for i := range r.N {
		*at = i
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
	*at = frame.Passed
	return nil
}
