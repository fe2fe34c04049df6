package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// aggregator keeps one accumulator per key and emits the key with the result so far after each element.
type aggregator[T, K, A, R any] struct {
	operator.Unary
	keyer
	agg   agg.Aggregate[T, A, R]
	value *serde.Handle
	acc   A
	buf   *frame.Column
	run   frame.Run
	times []int64
	table statebackend.Table
	slots []unsafe.Pointer
	fresh []bool
}

// Aggregate returns the driver of a rolling aggregate. value is the handle of the accumulator, out that of
// KeyValue[K, R].
func Aggregate[T, K, A, R any](in, out *frame.Type, value *serde.Handle, key *operator.Key, a agg.Aggregate[T, A, R]) operator.Operator {
	return &aggregator[T, K, A, R]{
		Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, keyer: keyer{key: key}, value: value, agg: a,
		slots: make([]unsafe.Pointer, frame.MaxLen), fresh: make([]bool, frame.MaxLen),
	}
}

func (o *aggregator[T, K, A, R]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *aggregator[T, K, A, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Unary.Open(rt); err != nil {
		return err
	}
	if err = o.open(rt); err != nil {
		return err
	}
	o.buf = frame.NewColumn(o.Out.Type, frame.MaxLen)
	o.table, err = o.store.Table(statebackend.TableSpec{Name: "accumulator", Value: o.value})
	return err
}

func (o *aggregator[T, K, A, R]) Close() error { return o.close() }

func (o *aggregator[T, K, A, R]) Push(r *frame.Run) error { return o.each(r, o.push) }

func (o *aggregator[T, K, A, R]) push(r *frame.Run) error {
	col, err := o.begin(r)
	if err != nil {
		return err
	}
	xs, keys := frame.Values[T](r), unsafe.Slice((*K)(col.P), r.N)
	out := frame.Fill[process.KeyValue[K, R]](o.buf, r.N)
	if o.value.Layout == serde.Fixed {
		err = o.inPlace(xs, keys, out)
	} else {
		err = o.copied(xs, keys, out)
	}
	if err == nil {
		o.run = o.buf.Run()
		o.times = operator.LendTimes(&o.run, r, 0, o.times)
		err = o.Out.Push(&o.run)
	}
	o.buf.Reset()
	return err
}

// inPlace is for layouts whose slots are the accumulator.
func (o *aggregator[T, K, A, R]) inPlace(xs []T, keys []K, out []process.KeyValue[K, R]) error {
	slots, fresh := o.slots[:len(xs)], o.fresh[:len(xs)]
	if err := o.table.Slots(0, len(xs), slots, fresh); err != nil {
		return err
	}
	for i, x := range xs {
		acc := (*A)(slots[i])
		if fresh[i] {
			*acc = o.agg.Create()
		}
		o.agg.Add(acc, x)
		out[i].Key, out[i].Value = keys[i], o.agg.Result(acc)
	}
	return nil
}

// copied is for layouts that pack or encode accumulators.
func (o *aggregator[T, K, A, R]) copied(xs []T, keys []K, out []process.KeyValue[K, R]) error {
	acc := unsafe.Pointer(&o.acc)
	var zero A
	for i, x := range xs {
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
	return nil
}
