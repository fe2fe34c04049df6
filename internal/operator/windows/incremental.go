package windows

import (
	"unsafe"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

// Incremental are the kernels of a window function that keeps one accumulator per window: reduce, aggregate, fold.
// Accumulators, keys and windows are given by address. acc is always that of an accumulator that the caller owns.
type Incremental struct {
	// Acc is the accumulator's type as state. Accs, Keys and Windows make and move arrays.
	Acc                 *serde.Handle
	Accs, Keys, Windows Memory
	// Regroupable: results are exactly the same if groups of elements are folded apart and merged in order.
	Regroupable bool

	// Add folds element i of r into the accumulator; fresh says that it is not one yet: its memory is zero.
	Add func(acc unsafe.Pointer, fresh bool, r *frame.Run, i int)
	// Merge folds other, which is spoiled, into acc, whose elements came first; nil: accumulators can't be merged (fold).
	Merge func(acc, other unsafe.Pointer)
	// Subtract takes back from acc what was merged from other; nil: it can't be taken back exactly.
	Subtract func(acc, other unsafe.Pointer)
	// Emit appends the result of an accumulator to out, which has room, with the timestamp ts.
	Emit func(out *frame.Column, key, window, acc unsafe.Pointer, ts int64)

	// AddColumn folds elements [from, from+len(ids)) of r, each into the accumulator ids[i] of the array accs; fresh as
	// for Add. An id may come several times: it is fresh at most at the first.
	AddColumn func(accs unsafe.Pointer, ids []uint32, fresh []bool, r *frame.Run, from int)
	// MergeColumn merges accumulator ids[i] of other into that of accs, for all i.
	MergeColumn func(accs, other unsafe.Pointer, ids []uint32)
	// SubtractColumn is Subtract for accumulators ids[i]; nil as Subtract.
	SubtractColumn func(accs, other unsafe.Pointer, ids []uint32)
	// EmitColumn appends the results of the accumulators ids[i] with the keys ids[i] to out, which has room.
	EmitColumn func(out *frame.Column, keys, window, accs unsafe.Pointer, ids []uint32, ts int64)
}

// Program is an incremental window function in the user's types.
type Program[T, K any, W window.Window, A, R, X any] struct {
	Aggregate agg.Aggregate[T, A, R]
	// First makes the accumulator of a window's first element in place of Create and Add (reduce). nil: there is no
	// difference.
	First func(acc *A, x *T)
	// NoMerge says that Merge must not be called (fold).
	NoMerge bool
	// Emit makes an element of the result.
	Emit func(x *X, info *window.Info[K, W], r R)
}

// Incremental compiles the kernels. acc is the accumulator's type.
func (p Program[T, K, W, A, R, X]) Incremental(acc *serde.Handle) *Incremental {
	k := &Incremental{
		Acc: acc, Accs: MemoryOf[A](), Keys: MemoryOf[K](), Windows: MemoryOf[W](),
		Regroupable: !p.NoMerge && agg.IsRegroupable(p.Aggregate),
		Add: func(acc unsafe.Pointer, fresh bool, r *frame.Run, i int) {
			p.add((*A)(acc), fresh, (*T)(r.At(i)))
		},
		AddColumn: func(accs unsafe.Pointer, ids []uint32, fresh []bool, r *frame.Run, from int) {
			xs := frame.Values[T](r)[from : from+len(ids)]
			for i := range xs {
				p.add((*A)(unsafe.Add(accs, uintptr(ids[i])*unsafe.Sizeof(*(*A)(accs)))), fresh[i], &xs[i])
			}
		},
		Emit: func(out *frame.Column, key, w, acc unsafe.Pointer, ts int64) {
			info := window.Info[K, W]{Key: *(*K)(key), Window: *(*W)(w)}
			var x X
			p.Emit(&x, &info, p.Aggregate.Result((*A)(acc)))
			frame.Add(out, x, ts)
		},
	}
	p.columns(k)
	return k
}

func (p *Program[T, K, W, A, R, X]) add(acc *A, fresh bool, x *T) {
	if fresh {
		if p.First != nil {
			p.First(acc, x)
			return
		}
		*acc = p.Aggregate.Create()
	}
	p.Aggregate.Add(acc, *x)
}

// columns compiles what merges and emits many accumulators.
func (p Program[T, K, W, A, R, X]) columns(k *Incremental) {
	at := func(accs unsafe.Pointer, id uint32) *A {
		return (*A)(unsafe.Add(accs, uintptr(id)*unsafe.Sizeof(*(*A)(accs))))
	}
	k.EmitColumn = func(out *frame.Column, keys, w, accs unsafe.Pointer, ids []uint32, ts int64) {
		for _, id := range ids {
			k.Emit(out, k.Keys.At(keys, int(id)), w, unsafe.Pointer(at(accs, id)), ts)
		}
	}
	if p.NoMerge {
		return
	}
	k.Merge = func(acc, other unsafe.Pointer) { p.Aggregate.Merge((*A)(acc), (*A)(other)) }
	k.MergeColumn = func(accs, other unsafe.Pointer, ids []uint32) {
		for _, id := range ids {
			p.Aggregate.Merge(at(accs, id), at(other, id))
		}
	}
	inverse, ok := agg.Inverse[A](p.Aggregate)
	if !ok {
		return
	}
	k.Subtract = func(acc, other unsafe.Pointer) { inverse.Subtract((*A)(acc), (*A)(other)) }
	k.SubtractColumn = func(accs, other unsafe.Pointer, ids []uint32) {
		for _, id := range ids {
			inverse.Subtract(at(accs, id), at(other, id))
		}
	}
}
