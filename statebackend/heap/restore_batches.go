package heap

import (
	"encoding/binary"
	"iter"
	"unsafe"

	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// leastBatch is the number of rows from which a batch is taken in as it is. Smaller ones, which come where changes lie over a
// table, are collected first.
const leastBatch = 32

// batches puts batches of rows of a table of values of fixed layout into the table. Keys are not copied, and values only once if
// their encoding is their Go memory.
func (r *refill) batches(all iter.Seq2[*statebackend.RowBatch, error]) error {
	for b, err := range all {
		if err == nil {
			err = r.batch(b)
		}
		if err != nil {
			return err
		}
	}
	return r.flush()
}

func (r *refill) batch(b *statebackend.RowBatch) error {
	if err := r.checkWidth(b.Keys.Width); err != nil {
		return err
	}
	if b.N < leastBatch {
		return r.oneByOne(b, 0, b.N)
	}
	if err := r.flush(); err != nil {
		return err
	}
	for from := 0; from < b.N; from += block {
		to := min(from+block, b.N)
		var err error
		if r.times(b, from, to) {
			err = r.piece(b, from, to)
		} else if err = r.oneByOne(b, from, to); err == nil {
			err = r.flush()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// times finds out when the values of rows [from,to) were written; it says whether none of them has expired since.
func (r *refill) times(b *statebackend.RowBatch, from, to int) bool {
	if r.spec.TTL == nil && r.old == nil {
		return true
	}
	for i := from; i < to; i++ {
		at, expired := r.written(writtenAt(b, i))
		if expired {
			return false
		}
		r.at[i-from] = at
	}
	return true
}

// writtenAt is the time that row i bears, if rows bear one.
func writtenAt(b *statebackend.RowBatch, i int) int64 {
	if len(b.Times.B) == 0 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(b.Times.At(i)))
}

// oneByOne takes rows [from,to) along.
func (r *refill) oneByOne(b *statebackend.RowBatch, from, to int) error {
	var row statebackend.Row
	for i := from; i < to; i++ {
		row.Key, row.Value, row.At = b.Keys.At(i), b.Values.At(i), writtenAt(b, i)
		if err := r.row(&row); err != nil {
			return err
		}
	}
	return nil
}

// piece puts rows [from,to), whose times are there, into the table.
func (r *refill) piece(b *statebackend.RowBatch, from, to int) error {
	defer func() { r.n, r.values, r.stride = 0, r.buffer, roundUp(r.spec.Value.Size) }()
	if r.plain && uintptr(b.Values.Width) == r.spec.Value.Size {
		r.values, r.stride = unsafe.Pointer(&b.Values.At(from)[0]), uintptr(b.Values.Stride)
		r.n = to - from
	} else {
		for i := from; i < to; i++ {
			if err := r.value(b.Values.At(i)); err != nil {
				return err
			}
			r.n++
		}
	}
	r.canon = serde.Canon{N: r.n, P: unsafe.Pointer(&b.Keys.At(from)[0]), Width: r.s.Key.Width, Stride: uintptr(b.Keys.Stride)}
	return r.adopt()
}
