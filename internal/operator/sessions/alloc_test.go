//go:build !race && !invariants

package sessions

import (
	"testing"

	"github.com/flott-dev/flott/internal/frame"
)

func TestSessionsAllocateNothingPerElement(t *testing.T) {
	for _, l := range loads {
		t.Run(l.name, func(t *testing.T) {
			l.keys /= 10
			if l.perMilli > 20 {
				l.perMilli /= 10
			}
			l.every = min(l.every, 1000)
			o, _ := openTotals(t, l.load)
			f := newFeeder(t, l.load)
			for f.next < rounds/2 {
				f.drive(t, o)
			}
			got := testing.AllocsPerRun(50, func() { f.drive(t, o) }) / frame.DefaultLen
			if got >= 0.001 {
				t.Errorf("%.4f allocations per element", got)
			}
		})
	}
}
