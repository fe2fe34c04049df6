package interval

import (
	"math"
	"math/bits"

	"github.com/flott-dev/flott/watermark"
)

// Bounds are the interval in ms, both ends inclusive: a left element of time t is paired with the right elements of times
// t+Lower ... t+Upper. An interval that is empty pairs nothing.
type Bounds struct{ Lower, Upper int64 }

// of is the range of times that an element of time t looks for on the other side, as far as it lies within time: from is
// behind to if it does not.
func (b Bounds) of(input int, t int64) (from, to int64) {
	lower, upper := b.Lower, b.Upper
	if input == right {
		lower, upper = -b.Upper, -b.Lower
	}
	if (lower > 0 && t > math.MaxInt64-lower) || (upper < 0 && t < math.MinInt64-upper) {
		return 0, -1
	}
	return watermark.Add(t, lower), watermark.Add(t, upper)
}

// reach is how long an element of an input is kept beyond its own time. Elements of the other side may still find it
// until the watermark gets there.
func (b Bounds) reach(input int) int64 {
	if input == left {
		return max(0, b.Upper)
	}
	return max(0, -b.Lower)
}

// shift makes buckets of times, as wide as a power of two, so that any range that is looked for lies in two of them at
// most.
func (b Bounds) shift() uint {
	if b.Lower >= b.Upper {
		return 0
	}
	return uint(bits.Len64(uint64(b.Upper - b.Lower)))
}
