package slices

import (
	"math/bits"

	"github.com/flott-dev/flott/internal/frame"
)

// batch is the number of accumulators that are worked on together.
const batch = frame.MaxLen

// cursor goes through the accumulators of a column, a batch at a time.
type cursor struct {
	ids, at []uint32 // of the batch: the ids, and the places of their accumulators
	pos     int      // the next word or place
	most    int      // ids of a batch, but for up to 63
	own     [2][]uint32
}

// newCursor makes a cursor whose batches have up to most ids if that is 64 or more.
func newCursor(most int) cursor {
	return cursor{most: max(1, min(most, batch)-63), own: [2][]uint32{make([]uint32, batch+64), make([]uint32, batch+64)}}
}

// start goes back to the beginning, of whatever column.
func (x *cursor) start() { x.pos = 0 }

// next goes to the next batch; false if there is none.
func (x *cursor) next(c *column) bool {
	if c.dense {
		return x.nextOf(c.bits)
	}
	for x.pos < len(c.ids) {
		to := min(len(c.ids), x.pos+x.most)
		x.ids, x.at = c.ids[x.pos:to], x.own[1][:to-x.pos]
		for i := range x.at {
			x.at[i] = uint32(x.pos + i)
		}
		x.pos = to
		if c.n != len(c.ids) {
			x.skip()
		}
		if len(x.ids) > 0 {
			return true
		}
	}
	return false
}

// skip leaves places out from which accumulators were removed.
func (x *cursor) skip() {
	n, ids := 0, x.own[0]
	for i, id := range x.ids {
		if id != none {
			ids[n], x.at[n] = id, x.at[i]
			n++
		}
	}
	x.ids, x.at = ids[:n], x.at[:n]
}

// nextOf goes to the next batch of ids whose bits are set.
func (x *cursor) nextOf(words []uint64) bool {
	ids, n := x.own[0], 0
	for ; x.pos < len(words) && n < x.most; x.pos++ {
		first, word := uint32(x.pos<<6), words[x.pos]
		if word == ^uint64(0) {
			for i := range ids[n : n+64] {
				ids[n+i] = first + uint32(i)
			}
			n += 64
			continue
		}
		for ; word != 0; word &= word - 1 {
			ids[n] = first + uint32(bits.TrailingZeros64(word))
			n++
		}
	}
	x.ids, x.at = ids[:n], ids[:n]
	return n > 0
}
