package window

import (
	"math"
	"time"

	"github.com/flott-dev/flott/watermark"
)

// RecentEvictor is what TimeEvictor makes. It is immutable.
type RecentEvictor struct {
	span  int64
	after bool
}

// TimeEvictor keeps those elements of a window that fires whose timestamp is later than the latest one among them less d,
// wherever they stand, and drops the others; elements without a timestamp are the earliest. Nothing is dropped if the first
// element has no timestamp. d is truncated to ms and must be positive.
func TimeEvictor(d time.Duration) RecentEvictor { return RecentEvictor{span: millis(d)} }

// After lets elements be dropped after the window function was called, instead of before: it sees them once.
func (r RecentEvictor) After() RecentEvictor {
	r.after = true
	return r
}

// EvictBefore implements Evictor.
func (r RecentEvictor) EvictBefore(e *Eviction) {
	if !r.after {
		r.evict(e)
	}
}

// EvictAfter implements Evictor.
func (r RecentEvictor) EvictAfter(e *Eviction) {
	if r.after {
		r.evict(e)
	}
}

func (r RecentEvictor) evict(e *Eviction) {
	first, latest := true, int64(math.MinInt64)
	for i, ts := range e.Times {
		if e.Evicted(i) {
			continue
		}
		if first && ts == math.MinInt64 {
			return
		}
		first, latest = false, max(latest, ts)
	}
	cut := watermark.Add(latest, -r.span)
	for i, ts := range e.Times {
		if ts <= cut {
			e.Evict(i)
		}
	}
}

// Check says what is wrong with the duration.
func (r RecentEvictor) Check() error { return checkLength("a time evictor", "duration", r.span) }

// String is the evictor as it was written.
func (r RecentEvictor) String() string {
	return "TimeEvictor(" + said(r.span) + ")" + whenEvicted(r.after)
}
