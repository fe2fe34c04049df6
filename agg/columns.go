package agg

import "unsafe"

// The engine's windows keep the accumulators of many keys in columns. An aggregate may have, beside what Aggregate asks
// for, methods that fold into whole columns; accs and other are the first accumulators of arrays that have all those that
// ids, into and from name.
//
//	AddColumn(accs *A, ids []uint32, xs []T)                // Add xs[i] to accumulator ids[i], for all i in order
//	MergeColumn(accs, other *A, into, from []uint32)        // Merge accumulator from[i] of other into into[i]
//	SubtractColumn(accs, other *A, into, from []uint32)     // Subtract likewise
//
// An aggregate with AddColumn promises that Create gives zero memory, so that memory that is zero can be added to and merged
// into, that taking back all that was added leaves zero memory, and that Merge and Subtract leave other as it is.
//
// Commutative says that, besides, elements and groups of them may come in any order: see Regroupable.

// cell is accumulator id of an array.
func cell[A any](accs *A, id uint32) *A {
	return (*A)(unsafe.Add(unsafe.Pointer(accs), uintptr(id)*unsafe.Sizeof(*accs)))
}

func addColumn[N Number](accs, other *N, into, from []uint32) {
	from = from[:len(into)]
	for i, id := range into {
		*cell(accs, id) += *cell(other, from[i])
	}
}

func subtractColumn[N Number](accs, other *N, into, from []uint32) {
	from = from[:len(into)]
	for i, id := range into {
		*cell(accs, id) -= *cell(other, from[i])
	}
}
