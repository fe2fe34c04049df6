package conformance

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Way is a way to cut the elements between two control steps into runs.
type Way struct {
	Name string
	Seed uint64 // of random cuts; 0 for the others
	next func(left int) int
}

// Next gives the length of the next run when so many elements are left.
func (w Way) Next(left int) int { return w.next(left) }

// Cut gives the lengths of the runs of n elements.
func (w Way) Cut(n int) []int {
	var out []int
	for n > 0 {
		out = append(out, w.next(n))
		n -= out[len(out)-1]
	}
	return out
}

// Ways are the ways in which every case with elements is run: one by one, all together, and random cuts. Seeds are in the
// names.
func Ways() []Way {
	ways := []Way{
		{Name: "one by one", next: func(int) int { return 1 }},
		{Name: "together", next: func(left int) int { return left }},
	}
	first := number("FLOTT_SEED", 1)
	for seed := first; seed < first+3*number("FLOTT_SOAK", 1); seed++ {
		rng := rand.New(rand.NewPCG(seed, 0))
		ways = append(ways, Way{
			Name: fmt.Sprintf("random cuts, seed %d", seed), Seed: seed,
			next: func(left int) int { return 1 + rng.IntN(left) },
		})
	}
	return ways
}

// EachWay runs a case in every way, as subtests.
func EachWay(run func(t *testing.T, c Case, w Way)) Runner {
	return func(t *testing.T, c Case) {
		for _, w := range Ways() {
			t.Run(w.Name, func(t *testing.T) { run(t, c, w) })
		}
	}
}

// number is a setting of the environment.
func number(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil && n > 0 {
		return n
	}
	return otherwise
}
