package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// verdict is what the tests said about one flip.
type verdict int

const (
	invalid  verdict = iota // it does not compile
	noticed                 // a test of the package turned red, hung or ran out of memory
	seen                    // one of another package did
	survived                // all tests that were asked stayed green
	red                     // the package's tests fail without any flip

	verdicts = iota
)

// String implements fmt.Stringer.
func (v verdict) String() string {
	return [verdicts]string{"invalid", "noticed", "seen", "SURVIVED", "red"}[v]
}

// counts reports whether the flip says something about the tests.
func (v verdict) counts() bool { return v == noticed || v == seen || v == survived }

// result is a verdict and who gave it.
type result struct {
	verdict verdict
	why     string // the first test that failed, or who was asked in vain
}

// tally counts the verdicts.
type tally struct {
	verdicts  [verdicts]int
	perPkg    map[string][verdicts]int
	survivors []string
	red       []string // packages whose tests fail as they are
}

func (c *tally) note(s site, r result) {
	if c.perPkg == nil {
		c.perPkg = map[string][verdicts]int{}
	}
	v := r.verdict
	c.verdicts[v]++
	row := c.perPkg[s.pkg]
	row[v]++
	c.perPkg[s.pkg] = row
	switch {
	case v == survived:
		c.survivors = append(c.survivors, fmt.Sprintf("%s [%s]", s, r.why))
	case v == red && !slices.Contains(c.red, s.pkg):
		c.red = append(c.red, s.pkg)
	}
}

func (c *tally) total() int {
	return c.verdicts[noticed] + c.verdicts[seen] + c.verdicts[survived]
}

func (c *tally) rate() float64 {
	return 100 * float64(c.verdicts[noticed]+c.verdicts[seen]) / float64(c.total())
}

// verdict is the error that the run ends with.
func (c *tally) verdict(least float64) error {
	if len(c.red) > 0 {
		return fmt.Errorf("tests are red without any flip: %s", strings.Join(c.red, " "))
	}
	if c.total() > 0 && c.rate() < least {
		return fmt.Errorf("%.1f%% of the flips were noticed, %.1f%% are wanted", c.rate(), least)
	}
	return nil
}

func (c *tally) print(out io.Writer) {
	if c.total() == 0 {
		fmt.Fprintln(out, "nothing was flipped")
		return
	}
	fmt.Fprintf(out, "\n%-36s %8s %8s %8s\n", "package", "noticed", "seen", "survived")
	for _, p := range slices.Sorted(maps.Keys(c.perPkg)) {
		row := c.perPkg[p]
		fmt.Fprintf(out, "%-36s %8d %8d %8d\n", p, row[noticed], row[seen], row[survived])
	}
	if len(c.survivors) > 0 {
		fmt.Fprintf(out, "\nsurvivors:\n  %s\n", strings.Join(c.survivors, "\n  "))
	}
	fmt.Fprintf(out, "\n%d of %d flips were noticed: %.1f%%, %d of them by other packages' tests only\n",
		c.verdicts[noticed]+c.verdicts[seen], c.total(), c.rate(), c.verdicts[seen])
}
