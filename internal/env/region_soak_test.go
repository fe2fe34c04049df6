package env

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/flott-dev/flott/internal/graph"
)

// growRegions makes several programs in one graph, which share nothing but the job: each is a failover region, or some.
func growRegions(t *testing.T, e *Env, seed uint64) []*plant {
	rng := rand.New(rand.NewPCG(seed, 9))
	var all []*plant
	for i := range 2 + rng.IntN(2) {
		p := growKept(t, e, seed*10+uint64(i))
		for _, n := range e.graph.Nodes {
			if n.Parallelism == graph.Unset { // what the next one sets does not concern it
				n.Parallelism = e.Settings.Parallelism
			}
		}
		all = append(all, p)
	}
	return all
}

// Random programs beside each other in one job, which fail at random moments, several of them at once and while others are
// restored, give what loops give, whatever the schedule; and those beside a failure go on untouched.
func TestRandomRegionsThatFailGiveWhatLoopsGive(t *testing.T) {
	first := number(t, "FLOTT_SEED", 1)
	apart := 0
	for seed := first; seed < first+12*number(t, "FLOTT_SOAK", 1); seed++ {
		check := func(how string, plants []*plant) {
			for i, p := range plants {
				p.checkKept(t, fmt.Sprintf("FLOTT_SEED=%d, %s, program %d", seed, how, i))
			}
		}
		for _, schedule := range []uint64{1, 2, 3} {
			e := New()
			plants := growRegions(t, e, uint64(seed))
			e.Settings.FullRestart = schedule == 3
			if _, err := e.Simulate(t.Context(), "random", schedule); err != nil {
				t.Fatalf("FLOTT_SEED=%d, schedule %d: %v\n%s", seed, schedule, err, plants)
			}
			check(fmt.Sprint("schedule ", schedule), plants)
		}
		synctest.Test(t, func(t *testing.T) {
			e := New()
			plants := growRegions(t, e, uint64(seed))
			x, err := e.Start(t.Context(), "random")
			if err != nil {
				t.Fatalf("FLOTT_SEED=%d: %v", seed, err)
			}
			<-x.Done()
			if x.Err() != nil {
				t.Fatalf("FLOTT_SEED=%d, goroutines: %v", seed, x.Err())
			}
			check("goroutines", plants)
			attempts := map[int]bool{}
			for _, s := range x.Tasks() {
				attempts[s.Runtimes()[0].Attempt] = true
			}
			if len(attempts) > 1 {
				apart++
			}
		})
		if t.Failed() {
			return
		}
	}
	if apart == 0 {
		t.Error("no region was ever restarted without the others: the test tests nothing")
	}
}
