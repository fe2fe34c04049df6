// Command mutate asks the tests whether they would notice: it flips random conditions, one at a time, and runs the tests of
// the package, then, if these stay green, those of the packages that depend on it, the nearest first. What survives is
// either code that nothing checks or a condition that does not matter; both deserve a look. Conditions that are known not to
// matter stand in equivalent.txt beside this file, with the reason, and are not flipped.
//
// Each outcome is printed when it is known, with the summary at the end of the time or at an interrupt: a run that is cut off
// keeps what it found.
//
// The files of the repository are never written to: a flipped file exists in a temporary folder, which the go command
// lays over the real one.
//
//	go run ./internal/lint/mutate -pkg internal/plan -n 20
//	go run ./internal/lint/mutate -for 10m -wide 1m -log /tmp/mutation.log
//	go run ./internal/lint/mutate -again /tmp/mutation.log
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/flott-dev/flott/internal/lint"
)

type options struct {
	dir     string
	n       int
	seed    uint64
	pkg     string
	span    time.Duration
	wide    time.Duration
	min     float64
	timeout time.Duration
	memory  int
	skip    string
	log     string
	again   string
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 200, "how many conditions to flip; 0: all")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "chooses the conditions; printed, so that a run can be repeated")
	flag.StringVar(&o.pkg, "pkg", "", "only packages in or below these `folders`, with commas between them (default: the engine, connectors and backends)")
	flag.DurationVar(&o.span, "for", 0, "flip nothing more after this time; 0: no end")
	flag.DurationVar(&o.wide, "wide", 5*time.Minute, "how long, for one flip that the package's own tests let pass, those of dependents are asked; 0: not at all")
	flag.Float64Var(&o.min, "min", 0, "fail below this `percentage` of flips that turn a test red")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Minute, "for the tests of one package, or longer if they take long as they are; a flip that makes them hang counts as noticed")
	flag.IntVar(&o.memory, "memory", 4096, "address space of one test program in MiB; a flip that exceeds it counts as noticed")
	flag.StringVar(&o.skip, "skip", "", "tests that are not run, as a `pattern` of go test -skip: slow ones, for a first look at a package")
	flag.StringVar(&o.log, "log", "", "append what is printed to this `file`")
	flag.StringVar(&o.again, "again", "", "flip what survived according to this log `file`, and nothing else")
	o.dir = "."
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := logged(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// logged runs and writes what it prints to the log, too.
func logged(ctx context.Context, o options) (err error) {
	if o.log == "" {
		return run(ctx, os.Stdout, o)
	}
	f, err := os.OpenFile(o.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	return run(ctx, io.MultiWriter(os.Stdout, f), o)
}

func run(ctx context.Context, out io.Writer, o options) error {
	root, err := lint.Root(o.dir)
	if err != nil {
		return err
	}
	tree, err := lint.Load(os.DirFS(root))
	if err != nil {
		return err
	}
	chosen, known, err := choose(tree, root, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "seed %d: %d conditions, and %d that are known not to matter\n", o.seed, len(chosen), known)
	if o.n == 0 {
		o.n = len(chosen)
	}
	r, err := newRunner(ctx, root, o, newHouse(tree, root))
	if err != nil {
		return err
	}
	defer r.close()
	var count tally
	if err := flip(ctx, out, r, chosen, o, &count); err != nil {
		return err
	}
	count.print(out)
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted after %d flips", count.total())
	}
	return count.verdict(o.min)
}

// choose gives the conditions to flip, in the order of the seed, and how many are known not to matter.
func choose(tree *lint.Tree, root string, o options) (chosen []site, known int, err error) {
	all := sites(tree, root, "")
	equivalent, err := readEquivalent(root, all)
	if err != nil {
		return nil, 0, err
	}
	if o.pkg != "" {
		all = nil
		for _, folder := range strings.Split(o.pkg, ",") {
			all = append(all, sites(tree, root, strings.TrimSuffix(folder, "/"))...)
		}
	}
	if o.again != "" {
		if all, err = survivors(o.again, all); err != nil {
			return nil, 0, err
		}
	}
	for _, s := range all {
		if equivalent[s.key()] {
			known++
		} else {
			chosen = append(chosen, s)
		}
	}
	rng := rand.New(rand.NewPCG(o.seed, 0))
	rng.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	return chosen, known, nil
}

// flip flips one after the other until enough have been tried, the time is over or the run is interrupted.
func flip(ctx context.Context, out io.Writer, r *runner, chosen []site, o options, count *tally) error {
	start := time.Now()
	for _, s := range chosen {
		if count.total() == o.n || o.span > 0 && time.Since(start) >= o.span {
			break
		}
		began := time.Now()
		res, err := r.try(s)
		if ctx.Err() != nil {
			fmt.Fprintf(out, "interrupted at %s\n", s)
			break
		}
		if err != nil {
			count.print(out)
			return err
		}
		count.note(s, res)
		if res.verdict.counts() {
			fmt.Fprintf(out, "%3d %-8s %5.1fs %s [%s]\n", count.total(), res.verdict, time.Since(began).Seconds(), s, res.why)
		}
	}
	return nil
}
