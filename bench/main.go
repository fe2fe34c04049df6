// Command bench measures Flott's public API, embedded in this process, against hand-written loops (package bench/loops)
// over the same data. Loop and engine take turns within one process, so that both see the same state of the machine;
// ratios hold where absolute figures don't. Every run's answer is checked against the loop's: a wrong one ends the
// program with an error. Nothing imports this package.
//
//	go run ./bench -suite core|windows|nexmark|state [-json] [-run substring] [-n runs] [-text folder] [-cpuprofile file]
//	       [-size MiB] [-disk folder]
//
// Both sides get as many processors as the workload has workers (its parallelism), so "per core" means one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/flott-dev/flott/bench/loops"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		log.Fatalf("bench: %v", err)
	}
}

// options are the program's flags.
type options struct {
	only   string
	runs   int
	json   bool
	text   string
	shrink int // divides the size of all data; for tests
	mib    int // of keyed state, in the suite state
	disk   string
	notes  io.Writer // what is going on
}

func run(ctx context.Context, args []string, out, notes io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	suite := flags.String("suite", "core", "which `suite`: core is the data plane and the keyed operators, windows are windows and the interval join, nexmark is that benchmark, state is checkpoints, restores and exactly-once files")
	o := options{notes: notes}
	flags.StringVar(&o.only, "run", "", "run the workloads whose name contains this; in the suite state, or one of these, between commas")
	flags.IntVar(&o.runs, "n", 5, "counted runs of each side; medians are printed; in the suite state 1 is the default")
	flags.BoolVar(&o.json, "json", false, "print a line of JSON for each workload")
	flags.StringVar(&o.text, "text", "", "`folder` of *.go files for the word count (default: the Go tree's own)")
	profile := flags.String("cpuprofile", "", "write a CPU profile to `file`: go tool pprof -tagfocus=side=ours file")
	flags.IntVar(&o.shrink, "shrink", 1, "divide the size of all data by this")
	flags.IntVar(&o.mib, "size", 1024, "`MiB` of keyed state in the suite state; what is asked for holds for 1024")
	flags.StringVar(&o.disk, "disk", "", "`folder` for what the suite state writes (default: the system's for temporary files)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	counted := false
	flags.Visit(func(f *flag.Flag) { counted = counted || f.Name == "n" })
	if *suite == "state" && !counted {
		o.runs = 1
	}
	suites := map[string]func(context.Context, options, io.Writer) error{
		"core": measuring(core), "windows": measuring(windowSuite), "nexmark": measuring(auctionSuite), "state": measureState,
	}
	switch {
	case suites[*suite] == nil:
		return fmt.Errorf("choose a suite: there is no %q, but %s", *suite, strings.Join(slices.Sorted(maps.Keys(suites)), ", "))
	case o.runs < 1 || o.shrink < 1 || o.mib < 1:
		return errors.New("read the flags: -n, -shrink and -size must be at least 1")
	}
	if *profile == "" {
		return suites[*suite](ctx, o, out)
	}
	return profiled(*profile, func() error { return suites[*suite](ctx, o, out) })
}

// measuring measures a suite whose lines are all of one form.
func measuring(suite func() []workload) func(context.Context, options, io.Writer) error {
	return func(ctx context.Context, o options, out io.Writer) error { return measureAll(ctx, suite(), o, out) }
}

// profiled writes a CPU profile of f to a file.
func profiled(path string, f func() error) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create the profile: %w", err)
	}
	if err = pprof.StartCPUProfile(file); err == nil {
		err = f()
		pprof.StopCPUProfile()
	}
	if e := file.Close(); err == nil && e != nil {
		err = fmt.Errorf("write the profile: %w", e)
	}
	return err
}

func measureAll(ctx context.Context, suite []workload, o options, out io.Writer) error {
	print := printer(out, o.json)
	ran := false
	for _, w := range suite {
		if !strings.Contains(w.name, o.only) {
			continue
		}
		ran = true
		l, err := w.measure(ctx, o)
		if err != nil {
			return fmt.Errorf("measure %s: %w", w.name, err)
		}
		if err := print(l); err != nil {
			return fmt.Errorf("print the result of %s: %w", w.name, err)
		}
	}
	if !ran {
		return fmt.Errorf("choose workloads: no name contains %q", o.only)
	}
	return nil
}

// files are the inputs of the word count.
func (o options) files(ctx context.Context) ([]string, error) {
	folder := o.text
	if folder == "" {
		root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
		if err != nil {
			return nil, fmt.Errorf("find the Go tree: %w", err)
		}
		folder = filepath.Join(strings.TrimSpace(string(root)), "src")
	}
	files := loops.GoFiles(folder)
	if len(files) == 0 {
		return nil, fmt.Errorf("list the text in %s: no *.go file", folder)
	}
	return files[:max(1, len(files)/o.shrink)], nil
}
