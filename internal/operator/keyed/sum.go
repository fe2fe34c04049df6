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

// totals keeps one number per key and emits it with the key after each element. It is written once for all types: its
// kernel updates the numbers in their slots and fills the output.
type totals struct {
	operator.Unary
	keyer
	value  *serde.Handle
	kernel func(r *frame.Run, keys unsafe.Pointer, slots []unsafe.Pointer, fresh []bool, out *frame.Column)
	buf    *frame.Column
	run    frame.Run
	times  []int64
	table  statebackend.Table
	slots  []unsafe.Pointer
	fresh  []bool
}

// Sum returns the driver of a running total of sel per key; a nil sel counts elements. value is the handle of N, out
// that of KeyValue[K, N].
func Sum[T, K any, N Number](in, out *frame.Type, value *serde.Handle, key *operator.Key, sel func(T) N) operator.Operator {
	o := newTotals(in, out, value, key)
	o.kernel = func(r *frame.Run, p unsafe.Pointer, slots []unsafe.Pointer, _ []bool, col *frame.Column) {
		keys := unsafe.Slice((*K)(p), r.N)
		out := frame.Fill[process.KeyValue[K, N]](col, r.N)
		slots = slots[:len(out)]
		if sel == nil {
			for i := range out {
				total := (*N)(slots[i])
				*total++
				out[i].Key, out[i].Value = keys[i], *total
			}
			return
		}
		xs := frame.Values[T](r)
		for i := range out {
			x := sel(xs[i])
			total := (*N)(slots[i])
			*total += x
			out[i].Key, out[i].Value = keys[i], *total
		}
	}
	return o
}

// Fold is Sum with another way to combine: min, max. The first value of a key is taken as it is.
func Fold[T, K any, N Number](in, out *frame.Type, value *serde.Handle, key *operator.Key, sel func(T) N, fold func(acc, x N) N) operator.Operator {
	o := newTotals(in, out, value, key)
	o.kernel = func(r *frame.Run, p unsafe.Pointer, slots []unsafe.Pointer, fresh []bool, col *frame.Column) {
		xs, keys := frame.Values[T](r), unsafe.Slice((*K)(p), r.N)
		out := frame.Fill[process.KeyValue[K, N]](col, r.N)
		for i := range out {
			x := sel(xs[i])
			acc := (*N)(slots[i])
			if !fresh[i] {
				x = fold(*acc, x)
			}
			*acc = x
			out[i].Key, out[i].Value = keys[i], x
		}
	}
	return o
}

func newTotals(in, out *frame.Type, value *serde.Handle, key *operator.Key) *totals {
	return &totals{Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, keyer: keyer{key: key}, value: value}
}

// Inputs implements operator.Operator.
func (o *totals) Inputs() []operator.Input { return []operator.Input{o} }

// Open implements operator.Operator.
func (o *totals) Open(rt *operator.Runtime) (err error) {
	if err = o.Unary.Open(rt); err != nil {
		return err
	}
	if err = o.open(rt); err != nil {
		return err
	}
	o.buf = frame.NewColumn(o.Out.Type, frame.MaxLen)
	o.slots, o.fresh = make([]unsafe.Pointer, frame.MaxLen), make([]bool, frame.MaxLen)
	o.table, err = o.store.Table(statebackend.TableSpec{Name: "total", Value: o.value})
	return err
}

// Close implements operator.Operator.
func (o *totals) Close() error { return o.close() }

// Push implements operator.Input.
func (o *totals) Push(r *frame.Run) error { return o.each(r, o.push) }

func (o *totals) push(r *frame.Run) error {
	col, err := o.begin(r)
	if err != nil {
		return err
	}
	if err := o.table.Slots(0, r.N, o.slots[:r.N], o.fresh[:r.N]); err != nil {
		return err
	}
	o.kernel(r, col.P, o.slots, o.fresh, o.buf)
	o.run = o.buf.Run()
	o.times = operator.LendTimes(&o.run, r, 0, o.times)
	err = o.Out.Push(&o.run)
	o.buf.Reset()
	return err
}
