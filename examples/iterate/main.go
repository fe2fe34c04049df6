// Command iterate finds the shortest way from one town to all others, with a feedback loop: whoever reaches a town on a
// better way than known sends travellers on to its neighbours, and they enter the loop again. The best way to each town is
// keyed state inside the loop. The job ends by itself when nobody is under way any more; no number of rounds is given.
//
//	go run ./examples/iterate [-parallelism n] [-from town]
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// Road connects two towns, in both directions.
type Road struct {
	A, B string
	Km   int
}

// Visit is a traveller who has come to a town: the element of the loop.
type Visit struct {
	Town string
	Km   int    // travelled so far
	From string // the town before
}

// better is an order of visits to one town. It is a total one, so that the result does not depend on who comes first.
func (v Visit) better(than Visit) bool {
	return cmp.Or(cmp.Compare(v.Km, than.Km), cmp.Compare(v.From, than.From)) < 0
}

func main() {
	parallelism := flag.Int("parallelism", 2, "subtasks of each operator")
	from := flag.String("from", "Ulm", "where to begin")
	flag.Parse()
	roads := []Road{
		{"Ulm", "Augsburg", 85},
		{"Ulm", "Stuttgart", 92},
		{"Augsburg", "Munich", 80},
		{"Munich", "Nuremberg", 170},
		{"Augsburg", "Nuremberg", 140},
		{"Stuttgart", "Nuremberg", 210},
		{"Stuttgart", "Frankfurt", 205},
		{"Nuremberg", "Frankfurt", 225},
		{"Nuremberg", "Leipzig", 280},
		{"Frankfurt", "Leipzig", 395},
		{"Leipzig", "Berlin", 190},
		{"Hamburg", "Bremen", 125},
	}
	if err := run(context.Background(), roads, *from, *parallelism, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run writes a line for each town that can be reached, the nearest first.
func run(ctx context.Context, roads []Road, from string, parallelism int, out io.Writer, opts ...stream.Option) error {
	next := map[string][]Road{}
	for _, r := range roads {
		next[r.A] = append(next[r.A], r)
		next[r.B] = append(next[r.B], Road{r.B, r.A, r.Km})
	}
	env := stream.NewEnv(opts...).SetParallelism(parallelism)
	found := process.NewOutputTag[Visit]("found")

	loop := stream.Iterate(env.FromElements(Visit{Town: from}))
	onwards := loop.KeyBy(func(v Visit) string { return v.Town }).
		Process(func(rt *process.Runtime) *town { return newTown(rt, next, found) }).UID("towns")
	loop.CloseWith(onwards)

	best := map[string]Visit{} // a town's ways come in order: the last one is the best
	onwards.SideOutput(found).ForEach(func(v Visit) { best[v.Town] = v }).Parallelism(1)
	if _, err := env.Execute(ctx, "iterate"); err != nil {
		return err
	}
	byDistance := func(a, b Visit) int { return cmp.Or(cmp.Compare(a.Km, b.Km), cmp.Compare(a.Town, b.Town)) }
	for _, v := range slices.SortedFunc(maps.Values(best), byDistance) {
		if v.From != "" {
			fmt.Fprintf(out, "%4d km to %s, by %s\n", v.Km, v.Town, v.From)
		}
	}
	return nil
}

// town is the body of the loop: it keeps the best way to the town at hand.
type town struct {
	process.NoTimers[string, Visit]
	next  map[string][]Road // never changed
	found process.OutputTag[Visit]
	best  *state.Value[Visit]
}

func newTown(rt *process.Runtime, next map[string][]Road, found process.OutputTag[Visit]) *town {
	return &town{next: next, found: found, best: state.NewValue[Visit](rt, "best")}
}

// ProcessElement sends travellers on if v is the best who has come so far.
func (t *town) ProcessElement(ctx *process.KeyedContext[string], v Visit, out *process.Collector[Visit]) error {
	if best, ok := t.best.Lookup(); ok && !v.better(best) {
		return nil
	}
	t.best.Set(v)
	ctx.Emit(t.found, v)
	for _, road := range t.next[v.Town] {
		out.Collect(Visit{Town: road.B, Km: v.Km + road.Km, From: v.Town})
	}
	return nil
}
