package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// Number is what can be added up.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// totals keeps one number per key and emits it with the key after each element.
type totals[T, K any, N Number] struct {
	operator.Unary
	keyer
	value *serde.Handle
	sel   func(T) N // nil: count
	fold  func(acc, x N) N
	buf   *frame.Column
	run   frame.Run
	times []int64
	table statebackend.Table
	slots []unsafe.Pointer
	fresh []bool
}

// Sum returns the driver of a running total of sel per key; a nil sel counts elements. value is the handle of N, out
// that of KeyValue[K, N].
func Sum[T, K any, N Number](in, out *frame.Type, value *serde.Handle, key *operator.Key, sel func(T) N) operator.Operator {
	return newTotals[T, K](in, out, value, key, sel, nil)
}

// Fold is Sum with another way to combine: min, max. The first value of a key is taken as it is.
func Fold[T, K any, N Number](in, out *frame.Type, value *serde.Handle, key *operator.Key, sel func(T) N, fold func(acc, x N) N) operator.Operator {
	return newTotals[T, K](in, out, value, key, sel, fold)
}

func newTotals[T, K any, N Number](in, out *frame.Type, value *serde.Handle, key *operator.Key, sel func(T) N, fold func(acc, x N) N) operator.Operator {
	return &totals[T, K, N]{
		Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, keyer: keyer{key: key}, value: value, sel: sel, fold: fold,
		slots: make([]unsafe.Pointer, frame.MaxLen), fresh: make([]bool, frame.MaxLen),
	}
}

func (o *totals[T, K, N]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *totals[T, K, N]) Open(rt *operator.Runtime) (err error) {
	if err = o.Unary.Open(rt); err != nil {
		return err
	}
	if err = o.open(rt); err != nil {
		return err
	}
	o.buf = frame.NewColumn(o.Out.Type, frame.MaxLen)
	o.table, err = o.store.Table(statebackend.TableSpec{Name: "total", Value: o.value})
	return err
}

func (o *totals[T, K, N]) Close() error { return o.close() }

func (o *totals[T, K, N]) Push(r *frame.Run) error { return o.each(r, o.push) }

func (o *totals[T, K, N]) push(r *frame.Run) error {
	col, err := o.begin(r)
	if err != nil {
		return err
	}
	n := r.N
	if err := o.table.Slots(0, n, o.slots[:n], o.fresh[:n]); err != nil {
		return err
	}
	keys := unsafe.Slice((*K)(col.P), n)
	out := frame.Fill[process.KeyValue[K, N]](o.buf, n)
	switch {
	case o.sel == nil:
		count(keys, o.slots[:n], out)
	case o.fold == nil:
		sum(frame.Values[T](r), keys, o.slots[:n], out, o.sel)
	default:
		o.foldAll(frame.Values[T](r), keys, out)
	}
	o.run = o.buf.Run()
	o.times = operator.LendTimes(&o.run, r, 0, o.times)
	err = o.Out.Push(&o.run)
	o.buf.Reset()
	return err
}

func count[K any, N Number](keys []K, slots []unsafe.Pointer, out []process.KeyValue[K, N]) {
	for i := range out {
		total := (*N)(slots[i])
		*total++
		out[i].Key, out[i].Value = keys[i], *total
	}
}

func sum[T, K any, N Number](xs []T, keys []K, slots []unsafe.Pointer, out []process.KeyValue[K, N], sel func(T) N) {
	for i := range out {
		x := sel(xs[i])
		total := (*N)(slots[i])
		*total += x
		out[i].Key, out[i].Value = keys[i], *total
	}
}

func (o *totals[T, K, N]) foldAll(xs []T, keys []K, out []process.KeyValue[K, N]) {
	for i := range out {
		x := o.sel(xs[i])
		acc := (*N)(o.slots[i])
		if !o.fresh[i] {
			x = o.fold(*acc, x)
		}
		*acc = x
		out[i].Key, out[i].Value = keys[i], x
	}
}
