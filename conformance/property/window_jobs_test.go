package property

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/stream"
)

// windowScript makes what one subtask of a source does: elements at least 2 ms beyond the last watermark, so that none is
// late and none touches a session that has fired.
func windowScript(seed uint64) *flotttest.Script[record] {
	rng := rand.New(rand.NewPCG(seed, 3))
	s := flotttest.NewScript[record]()
	watermark := int64(-200)
	for range 50 + rng.IntN(200) {
		switch rng.IntN(10) {
		case 0:
			watermark += rng.Int64N(60)
			s.Watermark(watermark)
		case 1:
			s.Cut()
		default:
			s.EmitElements(flotttest.At(newRecord(rng.Int64N(12), rng.Int64N(100)), watermark+2+rng.Int64N(80)))
		}
	}
	return s
}

// job runs the program's windows in a layout and returns the results.
func (p *windowProgram) job(t *testing.T, l layout, general bool) []string {
	t.Helper()
	var opts []stream.Option
	if l.isolated {
		opts = append(opts, flotttest.Isolated())
	}
	if general {
		opts = append(opts, stream.WithGeneralWindows())
	}
	env := stream.NewEnv(opts...).SetParallelism(l.parallelism)
	if !l.chained {
		env.DisableOperatorChaining()
	}
	var scripts []*flotttest.Script[record]
	for i := range 1 + p.seed%3 {
		scripts = append(scripts, windowScript(p.seed*10+i))
	}
	var out []string
	for _, e := range flotttest.Collect(t, env, p.build(flotttest.FromScripts(env, scripts...))) {
		out = append(out, e.String())
	}
	slices.Sort(out)
	return out
}

// TestLayoutsOfWindowsGiveTheSameResults: whatever the parallelism, the chains and the path, for functions that don't ask
// for the order of elements.
func TestLayoutsOfWindowsGiveTheSameResults(t *testing.T) {
	anyOrder := []string{"count", "sum", "average", "min", "max", "distinct"}
	first := number("FLOTT_SEED", 1)
	for seed := first; seed < first+12*number("FLOTT_SOAK", 1); seed++ {
		p := newWindowProgram(seed)
		p.processing, p.lateness = false, 0
		p.function = anyOrder[seed%uint64(len(anyOrder))]
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			want := p.job(t, layout{1, true, 1024, false}, true)
			if len(want) == 0 {
				t.Fatalf("%v: no results", p)
			}
			for _, l := range []layout{{1, true, 1024, false}, {2, true, 1024, false}, {4, false, 1024, false}, {2, false, 1024, true}} {
				for _, general := range []bool{false, true} {
					if got := p.job(t, l, general); !slices.Equal(got, want) {
						t.Errorf("%v\nin layout %v, general %v:", p, l, general)
						flotttest.Same(t, got, want)
					}
				}
			}
		})
	}
}
