package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
)

// folder keeps one value per key, into which elements are folded, and emits it after each.
type folder[T, R any] struct {
	rolling
	f    func(acc R, x T) R
	init R
	acc  R
}

// Rolling returns the driver of a rolling fold: every key begins with a copy of init. out is the handle of R.
func Rolling[T, R any](in, out *frame.Type, key *operator.Key, init R, f func(acc R, x T) R) operator.Operator {
	o := &folder[T, R]{rolling: newRolling(in, out, key, "fold", out.Handle), init: init, f: f}
	o.fill = o.copied
	if out.Layout == serde.Fixed {
		o.fill = o.inPlace
	}
	return o
}

// inPlace is for layouts whose slots are the value.
func (o *folder[T, R]) inPlace(r *frame.Run, _ unsafe.Pointer) error {
	slots, fresh, err := o.first(r.N)
	if err != nil {
		return err
	}
	xs, out := frame.Values[T](r), frame.Fill[R](o.buf, r.N)
	at := r.Hand()
	for i, x := range xs {
		*at = i
		acc := (*R)(slots[i])
		if fresh[i] {
			*acc = o.init
		}
		v := o.f(*acc, x)
		*acc, out[i] = v, v
	}
	*at = frame.Passed
	return nil
}

// copied is for layouts that pack or encode values: what f gets is its own, so it may change slices and maps in it.
func (o *folder[T, R]) copied(r *frame.Run, _ unsafe.Pointer) error {
	xs, out := frame.Values[T](r), frame.Fill[R](o.buf, r.N)
	acc := unsafe.Pointer(&o.acc)
	var zero R
	at := r.Hand()
	for i, x := range xs {
		*at = i
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
	*at = frame.Passed
	return nil
}
