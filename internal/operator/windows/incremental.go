package windows

import (
	"unsafe"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

// Incremental are the kernels of a window function that keeps one accumulator per window: reduce, aggregate, fold.
// Accumulators, keys and windows are given by address. acc is always that of an accumulator that the caller owns. All
// subtasks share one Incremental, of which each takes its Own.
type Incremental struct {
	// Acc is the accumulator's type as state. Accs, Keys and Windows make and move arrays.
	Acc                 *serde.Handle
	Accs, Keys, Windows Memory
	// Regroupable: results are exactly the same if groups of elements are folded apart and merged in order.
	Regroupable bool
	// Commutative: the order of elements and groups does not matter, either.
	Commutative bool
	// Plain: memory that is zero is an accumulator of nothing, which can be added to and merged into; taking back all that
	// was merged leaves it zero; merging and taking back leave other as it is.
	Plain bool

	// Create makes acc the accumulator of no element; nil: there is none (reduce).
	Create func(acc unsafe.Pointer)
	// Add folds element i of r into the accumulator; fresh says that it is not one yet: its memory is zero.
	Add func(acc unsafe.Pointer, fresh bool, r *frame.Run, i int)
	// Merge folds other, which is spoiled, into acc, whose elements came first; nil: accumulators can't be merged (fold).
	Merge func(acc, other unsafe.Pointer)
	// Subtract takes back from acc what was merged from other, which stays as it is; nil: it can't be taken back exactly.
	Subtract func(acc, other unsafe.Pointer)
	// Emit appends the result of an accumulator to out, which has room, with the timestamp ts.
	Emit func(out *frame.Column, key, window, acc unsafe.Pointer, ts int64)

	// AddColumn folds elements [from, from+len(ids)) of r, each into the accumulator ids[i] of the array accs; fresh as
	// for Add, nil if none is. An id may come several times: it is fresh at most at the first.
	AddColumn func(accs unsafe.Pointer, ids []uint32, fresh []bool, r *frame.Run, from int)
	// MergeColumn merges accumulator at[i] of other into ids[i] of accs, for all i.
	MergeColumn func(accs, other unsafe.Pointer, ids, at []uint32)
	// SubtractColumn is Subtract for many accumulators; nil as Subtract.
	SubtractColumn func(accs, other unsafe.Pointer, ids, at []uint32)
	// EmitColumn appends the results of the accumulators at[i] of accs with the keys ids[i] of keys to out, which has room.
	EmitColumn func(out *frame.Column, keys, window, accs unsafe.Pointer, ids, at []uint32, ts int64)

	// AtHand tells in a failure which key and window a result was being made for, as operator.AtHand does; "" if none was.
	AtHand func() string

	own func(*Incremental) // makes Emit, EmitColumn and AtHand with memory of their own
}

// Own is the kernels of one subtask. Drivers take it, since what makes results has memory of its own.
func (k *Incremental) Own() *Incremental {
	d := *k
	k.own(&d)
	return &d
}

// Program is an incremental window function in the user's types.
type Program[T, K any, W window.Window, A, R, X any] struct {
	Aggregate agg.Aggregate[T, A, R]
	// First makes the accumulator of a window's first element in place of Create and Add (reduce). nil: there is no
	// difference.
	First func(acc *A, x *T)
	// Fold adds an element by its address, which it must not keep, in place of the aggregate's Add; nil: that is called.
	Fold func(acc *A, x *T)
	// NoMerge says that Merge must not be called (fold).
	NoMerge bool
	// Emit makes an element of the result of zero memory at x.
	Emit func(x *X, info *window.Info[K, W], r R)
}

// columnar is what aggregates may have beside what agg.Aggregate asks for: see agg/columns.go.
type columnar[T, A any] interface {
	AddColumn(accs *A, ids []uint32, xs []T)
}

type columnMerger[A any] interface {
	MergeColumn(accs, other *A, ids, at []uint32)
}

type columnSubtractor[A any] interface {
	SubtractColumn(accs, other *A, ids, at []uint32)
}

// Incremental compiles the kernels. acc is the accumulator's type. What does not look at elements is compiled apart, so
// that element types share it.
func (p Program[T, K, W, A, R, X]) Incremental(acc *serde.Handle) *Incremental {
	k := newIncremental[K, W, A](acc)
	adding(k, &adder[T, A]{p.Aggregate, p.First, p.Fold})
	if !p.NoMerge {
		merging[A](k, p.Aggregate, p.First == nil)
	}
	emitting(k, results[A, R](p.Aggregate), p.Emit)
	return k
}

//go:noinline
func newIncremental[K, W, A any](acc *serde.Handle) *Incremental {
	return &Incremental{Acc: acc, Accs: MemoryOf[A](), Keys: MemoryOf[K](), Windows: MemoryOf[W]()}
}

// The parts of agg.Aggregate by what they look at.
type (
	folder[T, A any] interface {
		Create() A
		Add(acc *A, x T)
	}
	merger[A any] interface {
		Merge(acc, other *A)
	}
	results[A, R any] interface {
		Result(acc *A) R
	}
)

// adder folds elements into accumulators.
type adder[T, A any] struct {
	f           folder[T, A]
	first, fold func(acc *A, x *T) // see Program
}

func (a *adder[T, A]) add(acc *A, fresh bool, x *T) {
	if fresh {
		if a.first != nil {
			a.first(acc, x)
			return
		}
		*acc = a.f.Create()
	}
	if a.fold != nil {
		a.fold(acc, x)
		return
	}
	a.f.Add(acc, *x)
}

// cell is accumulator id of an array.
func cell[A any](accs unsafe.Pointer, id uint32) *A {
	return (*A)(unsafe.Add(accs, uintptr(id)*unsafe.Sizeof(*(*A)(accs))))
}

// adding compiles what folds elements.
func adding[T, A any](k *Incremental, a *adder[T, A]) {
	k.Add = func(acc unsafe.Pointer, fresh bool, r *frame.Run, i int) { a.add((*A)(acc), fresh, (*T)(r.At(i))) }
	if a.first == nil {
		k.Create = func(acc unsafe.Pointer) { *(*A)(acc) = a.f.Create() }
	}
	plain := a.first == nil && a.fold == nil
	if c, ok := a.f.(columnar[T, A]); ok && plain {
		k.Plain = true
		k.AddColumn = func(accs unsafe.Pointer, ids []uint32, _ []bool, r *frame.Run, from int) {
			c.AddColumn((*A)(accs), ids, frame.Values[T](r)[from:from+len(ids)])
		}
		return
	}
	k.AddColumn = func(accs unsafe.Pointer, ids []uint32, fresh []bool, r *frame.Run, from int) {
		xs := frame.Values[T](r)[from : from+len(ids)]
		at := r.Hand()
		if !plain {
			for i := range xs {
				*at = from + i
				a.add(cell[A](accs, ids[i]), fresh != nil && fresh[i], &xs[i])
			}
			*at = frame.Passed
			return
		}
		f := a.f
		for i := range xs { // cell is not inlined everywhere
			*at = from + i
			acc := (*A)(unsafe.Add(accs, uintptr(ids[i])*unsafe.Sizeof(*(*A)(accs))))
			if fresh != nil && fresh[i] {
				*acc = f.Create()
			}
			f.Add(acc, xs[i])
		}
		*at = frame.Passed
	}
}

// merging compiles what merges accumulators and takes back. plain: the aggregate creates the accumulators.
//
//go:noinline
func merging[A any](k *Incremental, a merger[A], plain bool) {
	k.Regroupable = agg.IsRegroupable(a)
	if c, ok := a.(interface{ Commutative() bool }); ok && plain {
		k.Commutative = c.Commutative()
	}
	k.Merge = func(acc, other unsafe.Pointer) { a.Merge((*A)(acc), (*A)(other)) }
	k.MergeColumn = func(accs, other unsafe.Pointer, ids, at []uint32) {
		for i, id := range ids {
			a.Merge(cell[A](accs, id), cell[A](other, at[i]))
		}
	}
	if c, ok := a.(columnMerger[A]); ok {
		k.MergeColumn = func(accs, other unsafe.Pointer, ids, at []uint32) { c.MergeColumn((*A)(accs), (*A)(other), ids, at) }
	}
	inverse, ok := agg.Inverse[A](a)
	if !ok {
		return
	}
	k.Subtract = func(acc, other unsafe.Pointer) { inverse.Subtract((*A)(acc), (*A)(other)) }
	k.SubtractColumn = func(accs, other unsafe.Pointer, ids, at []uint32) {
		for i, id := range ids {
			inverse.Subtract(cell[A](accs, id), cell[A](other, at[i]))
		}
	}
	if c, ok := a.(columnSubtractor[A]); ok {
		k.SubtractColumn = func(accs, other unsafe.Pointer, ids, at []uint32) {
			c.SubtractColumn((*A)(accs), (*A)(other), ids, at)
		}
	}
}

// emission is what the function that makes results gets by address: locals would be allocated for each call.
type emission[K any, W window.Window, X any] struct {
	info   window.Info[K, W]
	x      X
	making bool
}

// emitting compiles what makes results.
//
//go:noinline
func emitting[K any, W window.Window, A, R, X any](k *Incremental, a results[A, R], emit func(x *X, info *window.Info[K, W], r R)) {
	k.own = func(k *Incremental) {
		e := new(emission[K, W, X])
		k.AtHand = func() string {
			if !e.making {
				return ""
			}
			return operator.AtHand(operator.Named("key", e.info.Key), operator.Named("window", e.info.Window))
		}
		k.Emit = func(out *frame.Column, key, w, acc unsafe.Pointer, ts int64) {
			e.info, e.making = window.Info[K, W]{Key: *(*K)(key), Window: *(*W)(w)}, true
			emit(&e.x, &e.info, a.Result((*A)(acc)))
			frame.Add(out, e.x, ts)
			*e = emission[K, W, X]{}
		}
		k.EmitColumn = func(out *frame.Column, keys, w, accs unsafe.Pointer, ids, at []uint32, ts int64) {
			e.info.Window, e.making = *(*W)(w), true
			emitColumn(e, a, emit, out, keys, accs, ids, at, ts)
			*e = emission[K, W, X]{}
		}
	}
	k.own(k)
}

func emitColumn[K any, W window.Window, A, R, X any](e *emission[K, W, X], a results[A, R], emit func(x *X, info *window.Info[K, W], r R), out *frame.Column, keys, accs unsafe.Pointer, ids, at []uint32, ts int64) {
	if out.Len() != 0 {
		var zero X
		for i, id := range ids {
			e.info.Key, e.x = *cell[K](keys, id), zero
			emit(&e.x, &e.info, a.Result(cell[A](accs, at[i])))
			frame.Add(out, e.x, ts)
		}
		return
	}
	xs, times := frame.Whole[X](out)
	at = at[:len(ids)]
	for i, id := range ids {
		e.info.Key = *(*K)(unsafe.Add(keys, uintptr(id)*unsafe.Sizeof(e.info.Key)))
		x := &xs[i]
		*x = e.x
		emit(x, &e.info, a.Result((*A)(unsafe.Add(accs, uintptr(at[i])*unsafe.Sizeof(*(*A)(accs))))))
		times[i] = ts
	}
	out.Filled(len(ids), true)
}
