package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// aggregator keeps one accumulator per key and emits the key with the result so far after each element.
type aggregator[T, K, A, R any] struct {
	rolling
	agg agg.Aggregate[T, A, R]
	acc A
}

// Aggregate returns the driver of a rolling aggregate. value is the handle of the accumulator, out that of
// KeyValue[K, R].
func Aggregate[T, K, A, R any](in, out *frame.Type, value *serde.Handle, key *operator.Key, a agg.Aggregate[T, A, R]) operator.Operator {
	o := &aggregator[T, K, A, R]{rolling: newRolling(in, out, key, "accumulator", value), agg: a}
	o.fill = o.copied
	if value.Layout == serde.Fixed {
		o.fill = o.inPlace
	}
	return o
}

// views are a run's elements and keys, and where their results go.
func (o *aggregator[T, K, A, R]) views(r *frame.Run, keys unsafe.Pointer) ([]T, []K, []process.KeyValue[K, R]) {
	return frame.Values[T](r), unsafe.Slice((*K)(keys), r.N), frame.Fill[process.KeyValue[K, R]](o.buf, r.N)
}

// inPlace is for layouts whose slots are the accumulator.
func (o *aggregator[T, K, A, R]) inPlace(r *frame.Run, p unsafe.Pointer) error {
	slots, fresh, err := o.first(r.N)
	if err != nil {
		return err
	}
	xs, keys, out := o.views(r, p)
	at := r.Hand()
	for i, x := range xs {
		*at = i
		acc := (*A)(slots[i])
		if fresh[i] {
			*acc = o.agg.Create()
		}
		o.agg.Add(acc, x)
		out[i].Key, out[i].Value = keys[i], o.agg.Result(acc)
	}
	*at = frame.Passed
	return nil
}

// copied is for layouts that pack or encode accumulators.
func (o *aggregator[T, K, A, R]) copied(r *frame.Run, p unsafe.Pointer) error {
	xs, keys, out := o.views(r, p)
	acc := unsafe.Pointer(&o.acc)
	var zero A
	at := r.Hand()
	for i, x := range xs {
		*at = i
		found, err := o.table.Load(i, acc)
		if err != nil {
			return err
		}
		if !found {
			o.acc = o.agg.Create()
		}
		o.agg.Add(&o.acc, x)
		if err := o.table.Save(i, acc); err != nil {
			return err
		}
		out[i].Key, out[i].Value = keys[i], o.agg.Result(&o.acc)
		o.acc = zero // the result may hold on to its memory
	}
	*at = frame.Passed
	return nil
}
