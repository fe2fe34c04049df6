package element

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// filter drops elements in place: branch-free, since a branch on the user's answer is mispredicted half of the time.
type filter[T any, F func(T) bool | func(*T) bool] struct {
	operator.Unary
	byValue func(T) bool
	byPtr   func(*T) bool
	own     operator.Writable // for shared runs
}

// Filter returns the driver of filter.
func Filter[T any, F func(T) bool | func(*T) bool](typ *frame.Type, f F) operator.Operator {
	o := &filter[T, F]{Unary: operator.Unary{In: typ, Out: operator.NewOutput(typ)}}
	switch f := any(f).(type) {
	case func(T) bool:
		o.byValue = f
	case func(*T) bool:
		o.byPtr = f
	}
	return o
}

func (o *filter[T, F]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *filter[T, F]) Push(r *frame.Run) error {
	if r.Shared {
		return o.own.Each(r, o.push)
	}
	return o.push(r)
}

func (o *filter[T, F]) push(r *frame.Run) error {
	xs := frame.Values[T](r)
	if o.byPtr != nil {
		r.N = keepByPtr(xs, r.Times, o.byPtr)
	} else {
		r.N = keepByValue(xs, r.Times, o.byValue)
	}
	if r.Times != nil {
		r.Times = r.Times[:r.N]
	}
	return o.Out.Push(r)
}

func keepByValue[T any](xs []T, times []int64, f func(T) bool) int {
	n := 0
	if times == nil {
		i := 0
		for ; i+4 <= len(xs); i += 4 {
			a, b, c, d := f(xs[i]), f(xs[i+1]), f(xs[i+2]), f(xs[i+3])
			xs[n] = xs[i]
			n += bit(a)
			xs[n] = xs[i+1]
			n += bit(b)
			xs[n] = xs[i+2]
			n += bit(c)
			xs[n] = xs[i+3]
			n += bit(d)
		}
		for ; i < len(xs); i++ {
			keep := f(xs[i])
			xs[n] = xs[i]
			n += bit(keep)
		}
		return n
	}
	for i, x := range xs {
		keep := f(x)
		xs[n], times[n] = x, times[i]
		n += bit(keep)
	}
	return n
}

func keepByPtr[T any](xs []T, times []int64, f func(*T) bool) int {
	n := 0
	if times == nil {
		for i := range xs {
			keep := f(&xs[i])
			xs[n] = xs[i]
			n += bit(keep)
		}
		return n
	}
	for i := range xs {
		keep := f(&xs[i])
		xs[n], times[n] = xs[i], times[i]
		n += bit(keep)
	}
	return n
}

// bit is compiled to one instruction.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// updater changes elements in place.
type updater[T any] struct {
	operator.Unary
	f   func(*T)
	own operator.Writable
}

// Update returns the driver of update.
func Update[T any](typ *frame.Type, f func(*T)) operator.Operator {
	return &updater[T]{Unary: operator.Unary{In: typ, Out: operator.NewOutput(typ)}, f: f}
}

func (o *updater[T]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *updater[T]) Push(r *frame.Run) error {
	if r.Shared {
		return o.own.Each(r, o.push)
	}
	return o.push(r)
}

func (o *updater[T]) push(r *frame.Run) error {
	xs, f := frame.Values[T](r), o.f
	i := 0
	for ; i+4 <= len(xs); i += 4 {
		f(&xs[i])
		f(&xs[i+1])
		f(&xs[i+2])
		f(&xs[i+3])
	}
	for ; i < len(xs); i++ {
		f(&xs[i])
	}
	return o.Out.Push(r)
}
