//go:build !race && !invariants

package interval

import (
	"testing"

	"github.com/flott-dev/flott/internal/frame"
)

// TestJoinAllocatesNothingPerElement looks at buffers of steady size. Texts lie in chunks, which come and go with them.
func TestJoinAllocatesNothingPerElement(t *testing.T) {
	l := load{keys: 1000, matches: 3, lag: 1000}
	for _, c := range []struct {
		name  string
		f     *feeder
		bound float64
	}{
		{"fixed", newFeeder(t, l, newFixedEvent, fixedEvent.key), 0.001},
		{"text", newFeeder(t, l, newTextEvent, textEvent.key), 0.005},
	} {
		for c.f.next < 1<<18 {
			c.f.step(t)
		}
		got := testing.AllocsPerRun(20, func() { c.f.step(t) }) / (2 * frame.DefaultLen)
		t.Logf("%s: %.4f allocations per element", c.name, got)
		if got >= c.bound {
			t.Errorf("%s: %.4f allocations per element, want less than %v", c.name, got, c.bound)
		}
	}
}
