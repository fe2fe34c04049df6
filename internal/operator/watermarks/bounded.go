package watermarks

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/watermark"
)

// bounded is the built-in rule: the watermark follows the highest timestamp at a fixed distance.
type bounded struct {
	highest  int64
	distance int64
	watch    bool // falls of the timestamps are reported
	fail     bool // the first one is an error
	falls    uint64
}

func newBounded(distance int64, ascending bool, v watermark.Violation) *bounded {
	return &bounded{
		highest:  frame.NoTime,
		distance: distance,
		watch:    ascending && v != watermark.IgnoreViolations,
		fail:     v == watermark.FailOnViolation,
	}
}

// observe takes the timestamps from a position on. It returns the position of a fall that must be reported (the caller
// goes on behind it), -1 if there is none. Elements without a timestamp count for nothing.
func (b *bounded) observe(times []int64, from int) int {
	if b.watch {
		return b.observeAscending(times, from)
	}
	times = times[from:]
	h0, h1, h2, h3 := b.highest, b.highest, b.highest, b.highest
	for len(times) >= 4 {
		h0, h1, h2, h3 = max(h0, times[0]), max(h1, times[1]), max(h2, times[2]), max(h3, times[3])
		times = times[4:]
	}
	for _, t := range times {
		h0 = max(h0, t)
	}
	b.highest = max(h0, h1, h2, h3)
	return -1
}

func (b *bounded) observeAscending(times []int64, from int) int {
	for i := from; i < len(times); i++ {
		switch t := times[i]; {
		case t >= b.highest:
			b.highest = t
		case t == frame.NoTime:
		default:
			// A stream that falls falls often: each power of two is enough to know.
			if b.falls++; b.fail || b.falls&(b.falls-1) == 0 {
				return i
			}
		}
	}
	return -1
}

// watermark is the present watermark, frame.MinWatermark before the first timestamp. It stays below frame.MaxWatermark,
// which would end the stream.
func (b *bounded) watermark() int64 {
	return min(watermark.Add(b.highest, -b.distance), frame.MaxWatermark-1)
}
