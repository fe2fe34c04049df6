package operator

import "github.com/flott-dev/flott/internal/frame"

// LendTimes gives out, whose elements are those of in from offset from on (one for one), their timestamps: the same
// memory if in may be changed, else copied to scratch, which is returned for the next call.
func LendTimes(out, in *frame.Run, from int, scratch []int64) []int64 {
	if in.Times == nil {
		out.Times = nil
		return scratch
	}
	times := in.Times[from : from+out.N]
	if in.Shared { // the next operator may shorten the run in place, timestamps included
		scratch = append(scratch[:0], times...)
		times = scratch
	}
	out.Times = times
	return scratch
}
