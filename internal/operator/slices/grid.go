package slices

import (
	"fmt"
	"math"

	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// grid cuts time into slices: where a window starts or ends, so that all instants of a slice are in the same windows.
type grid struct {
	size, slide, offset int64 // offset in [0, slide)
	// cut is where a slide is cut: a window ends there, that long after another one has started. 0: at the start.
	cut    int64
	period func(ts int64) window.Time
	// single: a slice is in one window at most.
	single bool
}

func newGrid(g window.Grid) grid {
	if g.Period != nil {
		return grid{period: g.Period, single: true}
	}
	d := grid{size: g.Size, slide: g.Slide, offset: g.Offset % g.Slide, cut: g.Size % g.Slide, single: g.Size <= g.Slide}
	if d.offset < 0 {
		d.offset += d.slide
	}
	if d.size < d.slide {
		d.cut = d.size
	}
	return d
}

// span is a window.
type span struct {
	window.Time
	open bool // it ends beyond time, whatever End says
}

// covers says whether a slice that starts at lo is in the window. The slices of a grid are in it wholly or not at all.
func (w *span) covers(lo int64) bool { return w.Start <= lo && (w.open || lo < w.End) }

// before says whether w is before another window of the grid.
func (w *span) before(o *span) bool {
	return w.Start < o.Start || w.Start == o.Start && (w.End < o.End || w.End == o.End && !w.open && o.open)
}

// stretch is a slice as a stretch of time, [lo, lo+width), and the windows that it is in.
type stretch struct {
	lo    int64
	width uint64 // lo+width is within time, or its very end
	gap   bool   // it is in no window
	// first and last are the windows that end first and start last.
	first, last span
}

func (s *stretch) contains(ts int64) bool { return uint64(ts-s.lo) < s.width }

// at is the slice of an instant.
func (g *grid) at(ts int64) (stretch, error) {
	if g.period != nil {
		return g.periodAt(ts)
	}
	d := g.since(ts)
	from, to := int64(0), g.slide
	if d < g.cut {
		to = g.cut
	} else {
		from = g.cut
	}
	s := between(watermark.Add(ts, from-d), watermark.Add(ts, to-d), ts > math.MaxInt64-(to-d))
	if d >= g.size {
		s.gap = true
		return s, nil
	}
	s.last = g.span(ts, d)
	s.first = g.span(ts, d+(g.size-1-d)/g.slide*g.slide)
	return s, nil
}

// since is how long ts is after the last start of a window, or of a slide.
func (g *grid) since(ts int64) int64 {
	d := ts%g.slide - g.offset
	for d < 0 { // twice at most: both remainders may make it negative
		d += g.slide
	}
	return d
}

// span is the window that began d before ts. Where it reaches beyond time it ends there.
func (g *grid) span(ts, d int64) span {
	return span{window.Time{Start: watermark.Add(ts, -d), End: watermark.Add(ts, g.size-d)}, ts > math.MaxInt64-(g.size-d)}
}

// next is the window after w; false if time ends before it starts.
func (g *grid) next(w *span) (span, bool) {
	if w.Start != math.MinInt64 {
		if w.Start > math.MaxInt64-g.slide {
			return span{}, false
		}
		return g.span(w.Start+g.slide, 0), true
	}
	end := watermark.Add(w.End, g.slide) // w may have started before time
	return span{Time: window.Time{Start: watermark.Add(end, -g.size), End: end}}, true
}

func (g *grid) periodAt(ts int64) (stretch, error) {
	w := g.period(ts)
	open := w.End == math.MaxInt64 // the end of time is in it
	s := between(w.Start, w.End, open)
	if !s.contains(ts) {
		return s, fmt.Errorf("assign windows: the window of time %d is %v, it does not have that time", ts, w)
	}
	s.first = span{w, open}
	s.last = s.first
	return s, nil
}

// between is the stretch [lo, hi), to the end of time if it is open. The first instant of all stands for no timestamp and
// is in no slice.
func between(lo, hi int64, open bool) stretch {
	lo = max(lo, math.MinInt64+1)
	width := uint64(hi) - uint64(lo)
	if open {
		width = 1<<63 - uint64(lo)
	}
	return stretch{lo: lo, width: width}
}
