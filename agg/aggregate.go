// Package agg has the aggregate functions of windows, keyed streams and state: their contract and the usual ones, built
// from selectors. It keeps no state and knows no windows; whoever calls it owns the accumulators. Built-in aggregates are
// values without fields that change: all goroutines may share them.
//
// Integers wrap around on overflow, as Go's operators do.
package agg

// Aggregate folds elements of type T into an accumulator A and makes a result R of it. Its methods are called on one
// goroutine per subtask, but all subtasks of a process share the Aggregate: it must not have state of its own.
//
// An accumulator without pointers (numbers, arrays and structs of them) is kept in place by the state backend and costs
// least; one with slices or maps is encoded at every change.
type Aggregate[T, A, R any] interface {
	// Create makes the accumulator of no element.
	Create() A
	// Add adds an element to the accumulator at acc, which must not be kept.
	Add(acc *A, x T)
	// Merge adds everything that was added to other to the accumulator at acc; what was added to acc came first. other may
	// be changed and is not used again.
	Merge(acc, other *A)
	// Result is the result so far. The accumulator goes on to be used: the result must share no memory with it that Add or
	// Merge change.
	Result(acc *A) R
}

// Subtractor is implemented by aggregates that can take back: Subtract removes from the accumulator at acc everything
// that was added to other, exactly, as if it had never been added. other stays as it is. Sliding windows use it; see
// Inverse.
type Subtractor[A any] interface {
	Subtract(acc, other *A)
}

// Inverse gives the aggregate's Subtractor, if it has one that is exact: an aggregate with a method Invertible() bool
// that returns false has none (sums of floats).
func Inverse[A any](a any) (Subtractor[A], bool) {
	if d, ok := a.(interface{ declared() any }); ok {
		a = d.declared()
	}
	if i, ok := a.(interface{ Invertible() bool }); ok && !i.Invertible() {
		return nil, false
	}
	s, ok := a.(Subtractor[A])
	return s, ok
}

// IsRegroupable says whether elements may be added in groups that are merged later, in order, with exactly the same
// result: the engine may then share the work of overlapping windows. It is false for aggregates that don't say so with
// a method Regroupable() bool; see Regroupable.
func IsRegroupable(a any) bool {
	r, ok := a.(interface{ Regroupable() bool })
	return ok && r.Regroupable()
}

// Regroupable declares a user's aggregate to be exact under regrouping: for all splits of a sequence of elements into
// groups, adding each group to an accumulator of its own and merging these in order gives the result of adding all
// elements to one. Merge must not depend on how the groups were cut. If the order of elements does not matter, either, the
// aggregate should say so with a method Commutative() bool: keys with elements out of order then cost sliding windows no
// more than others.
func Regroupable[T, A, R any](a Aggregate[T, A, R]) Aggregate[T, A, R] {
	return regroupable[T, A, R]{a}
}

type regroupable[T, A, R any] struct{ Aggregate[T, A, R] }

func (regroupable[T, A, R]) Regroupable() bool { return true }
func (r regroupable[T, A, R]) declared() any   { return r.Aggregate }
func (r regroupable[T, A, R]) Commutative() bool {
	c, ok := r.Aggregate.(interface{ Commutative() bool })
	return ok && c.Commutative()
}
