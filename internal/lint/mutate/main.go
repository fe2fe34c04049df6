// Command mutate asks the tests whether they would notice: it flips random conditions of floors F1 to F4, one at a time,
// and runs the tests of the package, then, if these stay green, those of everything that depends on it. What survives is
// either code that nothing checks or a condition that does not matter; both deserve a look.
//
// The files of the repository are never written to: a flipped file exists in a temporary folder, which the go command
// lays over the real one.
//
//	go run ./internal/lint/mutate -pkg internal/plan -n 20
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/flott-dev/flott/internal/lint"
)

type options struct {
	dir     string
	n       int
	seed    uint64
	pkg     string
	wide    string
	min     float64
	timeout time.Duration
	memory  int
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 200, "how many conditions to flip")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "chooses the conditions; printed, so that a run can be repeated")
	flag.StringVar(&o.pkg, "pkg", "", "only packages in or below this `folder` (default: all of F1 to F4)")
	flag.StringVar(&o.wide, "wide", "./...", "package `patterns` whose tests see what a package's own tests let pass; empty for none")
	flag.Float64Var(&o.min, "min", 0, "fail below this `percentage` of flips that turn a test red")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Minute, "for the tests of one package, or longer if they take long as they are; a flip that makes them hang counts as noticed")
	flag.IntVar(&o.memory, "memory", 4096, "address space of one test program in MiB; a flip that exceeds it counts as noticed")
	o.dir = "."
	flag.Parse()
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, o options) error {
	root, err := lint.Root(o.dir)
	if err != nil {
		return err
	}
	tree, err := lint.Load(os.DirFS(root))
	if err != nil {
		return err
	}
	all := sites(tree, root, o.pkg)
	fmt.Fprintf(out, "seed %d: %d conditions, flipping up to %d\n", o.seed, len(all), o.n)
	rng := rand.New(rand.NewPCG(o.seed, 0))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })

	r, err := newRunner(root, o)
	if err != nil {
		return err
	}
	defer r.close()
	var count tally
	for _, s := range all {
		if count.total() == o.n {
			break
		}
		v, err := r.try(s)
		if err != nil {
			return err
		}
		count.note(s, v)
		if v == killed || v == survived {
			fmt.Fprintf(out, "%3d %-8s %s:%d: %s\n", count.total(), v, s.file, s.line, s.condition())
		}
	}
	count.print(out)
	if len(count.red) > 0 {
		return fmt.Errorf("tests are red without any flip: %s", strings.Join(count.red, " "))
	}
	if count.total() > 0 && count.rate() < o.min {
		return fmt.Errorf("%.1f%% of the flips were noticed, %.1f%% are wanted", count.rate(), o.min)
	}
	return nil
}

// tally counts the verdicts.
type tally struct {
	verdicts  [verdicts]int
	perPkg    map[string][verdicts]int
	survivors []string
	red       []string // packages whose tests fail as they are
}

func (c *tally) note(s site, v verdict) {
	if c.perPkg == nil {
		c.perPkg = map[string][verdicts]int{}
	}
	c.verdicts[v]++
	row := c.perPkg[s.pkg]
	row[v]++
	c.perPkg[s.pkg] = row
	switch {
	case v == survived:
		c.survivors = append(c.survivors, fmt.Sprintf("%s:%d: %s", s.file, s.line, s.condition()))
	case v == red && !slices.Contains(c.red, s.pkg):
		c.red = append(c.red, s.pkg)
	}
}

func (c *tally) total() int { return c.verdicts[killed] + c.verdicts[survived] }

func (c *tally) rate() float64 { return 100 * float64(c.verdicts[killed]) / float64(c.total()) }

func (c *tally) print(out io.Writer) {
	if c.total() == 0 {
		fmt.Fprintln(out, "nothing was flipped")
		return
	}
	pkgs := make([]string, 0, len(c.perPkg))
	for p := range c.perPkg {
		pkgs = append(pkgs, p)
	}
	slices.Sort(pkgs)
	fmt.Fprintf(out, "\n%-36s %8s %8s\n", "package", "noticed", "survived")
	for _, p := range pkgs {
		fmt.Fprintf(out, "%-36s %8d %8d\n", p, c.perPkg[p][killed], c.perPkg[p][survived])
	}
	if len(c.survivors) > 0 {
		fmt.Fprintf(out, "\nsurvivors:\n  %s\n", strings.Join(c.survivors, "\n  "))
	}
	fmt.Fprintf(out, "\n%d of %d flips were noticed: %.1f%%\n", c.verdicts[killed], c.total(), c.rate())
}
