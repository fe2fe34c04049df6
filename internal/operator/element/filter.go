package element

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// changer drops or changes elements in place; a shared run is copied first.
type changer struct {
	operator.Unary
	kernel func(r *frame.Run) // may shorten r
	own    operator.Writable
}

func newChanger(typ *frame.Type, kernel func(r *frame.Run)) operator.Operator {
	return &changer{Unary: operator.Unary{In: typ, Out: operator.NewOutput(typ)}, kernel: kernel}
}

// Inputs implements operator.Operator.
func (o *changer) Inputs() []operator.Input { return []operator.Input{o} }

// Push implements operator.Input.
func (o *changer) Push(r *frame.Run) error {
	if r.Shared {
		return o.own.Each(r, o.push)
	}
	return o.push(r)
}

func (o *changer) push(r *frame.Run) error {
	o.RT.Run = r
	o.kernel(r)
	return o.Out.Push(r)
}

// shorten ends a run after its first n elements.
func shorten(r *frame.Run, n int) {
	r.N = n
	if r.Times != nil {
		r.Times = r.Times[:n]
	}
}

// Filter returns the driver of filter: branch-free compaction, since a branch on the user's answer is mispredicted half
// of the time.
func Filter[T any](typ *frame.Type, f func(T) bool) operator.Operator {
	return newChanger(typ, func(r *frame.Run) {
		xs, n, i := frame.Values[T](r), 0, 0
		at := r.Hand()
		if times := r.Times; times != nil {
			for ; i < len(xs); i++ {
				*at = i
				keep := f(xs[i])
				xs[n], times[n] = xs[i], times[i]
				n += bit(keep)
			}
		}
		for ; i+4 <= len(xs); i += 4 {
			*at = i
			a := f(xs[i])
			*at = i + 1
			b := f(xs[i+1])
			*at = i + 2
			c := f(xs[i+2])
			*at = i + 3
			d := f(xs[i+3])
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
			*at = i
			keep := f(xs[i])
			xs[n] = xs[i]
			n += bit(keep)
		}
		*at = frame.Passed
		shorten(r, n)
	})
}

// FilterPtr returns the driver of filter by pointer.
func FilterPtr[T any](typ *frame.Type, f func(*T) bool) operator.Operator {
	return newChanger(typ, func(r *frame.Run) {
		xs, times, n := frame.Values[T](r), r.Times, 0
		at := r.Hand()
		for i := range xs {
			*at = i
			keep := f(&xs[i])
			xs[n] = xs[i]
			if times != nil {
				times[n] = times[i]
			}
			n += bit(keep)
		}
		*at = frame.Passed
		shorten(r, n)
	})
}

// Update returns the driver of update.
func Update[T any](typ *frame.Type, f func(*T)) operator.Operator {
	return newChanger(typ, func(r *frame.Run) {
		xs := frame.Values[T](r)
		at := r.Hand()
		i := 0
		for ; i+4 <= len(xs); i += 4 {
			*at = i
			f(&xs[i])
			*at = i + 1
			f(&xs[i+1])
			*at = i + 2
			f(&xs[i+2])
			*at = i + 3
			f(&xs[i+3])
		}
		for ; i < len(xs); i++ {
			*at = i
			f(&xs[i])
		}
		*at = frame.Passed
	})
}

// bit is compiled to one instruction.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
