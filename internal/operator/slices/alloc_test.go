//go:build !race && !invariants

package slices

import (
	"testing"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/frame"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
)

// Windows come and go and late elements fire them, and nothing is allocated for an element or a result.
func TestNothingIsAllocatedPerElement(t *testing.T) {
	count := kernels(t, agg.Count[reading]())
	least := kernels(t, agg.Min(func(e reading) int64 { return e.Val }))
	last := kernels(t, agg.Last(func(e reading) int64 { return e.Val }))
	for _, c := range []struct {
		name           string
		disorder       int64
		size, slide    int64
		lateness, late int64 // of the watermark behind what is in order
		k              *windows.Incremental
	}{
		{"tumbling", 0, 1000, 1000, 0, 0, count},
		{"tumbling, some late", 500, 1000, 1000, 2000, 0, count},
		{"sliding, totals", 0, 6000, 500, 0, 0, count},
		{"sliding, totals, out of order", 500, 6000, 500, 0, 500, count},
		{"sliding, totals, some late", 500, 6000, 500, 2000, 0, count},
		{"sliding, stacks", 0, 6000, 500, 0, 0, least},
		{"sliding, stacks, some late", 500, 6000, 500, 2000, 0, least},
		{"sliding, in order of arrival", 0, 6000, 500, 0, 0, last},
	} {
		f := newFeeder(t, load{1000, 50_000, c.disorder}, c.size, c.slide, c.lateness, c.k)
		step := func() {
			r, now := f.fill()
			kit.Must(t, f.in.Push(r))
			kit.Must(t, f.in.Mark(kit.Watermark(now-c.late)))
		}
		for range 1000 {
			step()
		}
		const runs = 600
		got := testing.AllocsPerRun(1, func() {
			for range runs {
				step()
			}
		}) / (runs * frame.MaxLen)
		t.Logf("%s: %.6f allocations per element", c.name, got)
		if got >= 0.001 {
			t.Errorf("%s: %.6f allocations per element", c.name, got)
		}
		if f.out.Count.Load() == 0 {
			t.Errorf("%s: no results", c.name)
		}
	}
}
