package keyed

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// Number is what can be added up.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Sum returns the driver of a running total of sel per key; a nil sel counts elements. value is the handle of N, out
// that of KeyValue[K, N].
func Sum[T, K any, N Number](in, out *frame.Type, value *serde.Handle, key *operator.Key, sel func(T) N) operator.Operator {
	o := newRolling(in, out, key, "total", value)
	o.fill = func(r *frame.Run, p unsafe.Pointer) error {
		slots, _, err := o.first(r.N)
		if err != nil {
			return err
		}
		keys := unsafe.Slice((*K)(p), r.N)
		out := frame.Fill[process.KeyValue[K, N]](o.buf, r.N)
		slots = slots[:len(out)]
		if sel == nil {
			for i := range out {
				total := (*N)(slots[i])
				*total++
				out[i].Key, out[i].Value = keys[i], *total
			}
			return nil
		}
		xs := frame.Values[T](r)
		at := r.Hand()
		for i := range out {
			*at = i
			x := sel(xs[i])
			total := (*N)(slots[i])
			*total += x
			out[i].Key, out[i].Value = keys[i], *total
		}
		*at = frame.Passed
		return nil
	}
	return &o
}

// Fold is Sum with another way to combine: min, max. The first value of a key is taken as it is.
func Fold[T, K any, N Number](in, out *frame.Type, value *serde.Handle, key *operator.Key, sel func(T) N, fold func(acc, x N) N) operator.Operator {
	o := newRolling(in, out, key, "total", value)
	o.fill = func(r *frame.Run, p unsafe.Pointer) error {
		slots, fresh, err := o.first(r.N)
		if err != nil {
			return err
		}
		xs, keys := frame.Values[T](r), unsafe.Slice((*K)(p), r.N)
		out := frame.Fill[process.KeyValue[K, N]](o.buf, r.N)
		at := r.Hand()
		for i := range out {
			*at = i
			x := sel(xs[i])
			acc := (*N)(slots[i])
			if !fresh[i] {
				x = fold(*acc, x)
			}
			*acc = x
			out[i].Key, out[i].Value = keys[i], x
		}
		*at = frame.Passed
		return nil
	}
	return &o
}
