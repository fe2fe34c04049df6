package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"
)

// workload is one line of a suite. Either it compares, or it measures in its own way.
type workload struct {
	name        string
	parallelism int
	must        float64 // least ratio; 0: no goal
	mustRate    float64 // least elements per second; 0: no goal
	compare     func(ctx context.Context, o options) (*pair, error)
	own         func(ctx context.Context, o options) (line, error)
}

// pair is a workload with its data: the two sides that are compared.
type pair struct {
	elements int
	loop     func() uint64 // the checksum of the right answer
	ours     func(ctx context.Context) (uint64, error)
	// digest is what ours must return, given the loop's answer; nil: the loop's checksum. Streams of rolling results add
	// up to something else than final results do.
	digest func() uint64
	// exact runs the job once more, outside the clock, and returns the checksum of its final results; nil: ours does.
	exact func(ctx context.Context) (uint64, error)
}

// sample is one timed run.
type sample struct {
	seconds float64
	cpu     float64 // seconds of all processors; 0: not known
	allocs  float64
}

// timed runs f on a clean heap. Profiles know its samples, and those of goroutines that it starts, by the label side.
func timed(ctx context.Context, side string, f func(context.Context) error) (s sample, err error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start, cpu := time.Now(), cpuSeconds()
	pprof.Do(ctx, pprof.Labels("side", side), func(ctx context.Context) { err = f(ctx) })
	s = sample{seconds: time.Since(start).Seconds(), cpu: cpuSeconds() - cpu}
	runtime.ReadMemStats(&after)
	s.allocs = float64(after.Mallocs - before.Mallocs)
	return s, err
}

func (w *workload) measure(ctx context.Context, o options) (line, error) {
	defer runtime.GC() // the data of this workload
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(w.parallelism))
	l := line{Name: w.name, Parallelism: w.parallelism, Must: w.must, MustRate: w.mustRate}
	if w.own != nil {
		own, err := w.own(ctx, o)
		own.Name, own.Parallelism, own.Must = l.Name, l.Parallelism, l.Must
		return own, err
	}
	p, err := w.compare(ctx, o)
	if err != nil {
		return l, err
	}
	c, err := p.race(ctx, o.runs)
	if err != nil {
		return l, err
	}
	l.Elements, l.Checksum = p.elements, c.checksum
	l.fill(c)
	return l, nil
}

// comparison is the outcome of a race: medians of each side's figures.
type comparison struct {
	checksum   uint64
	loop, ours sample
}

// race checks both answers once, then lets loop and engine take turns.
func (p *pair) race(ctx context.Context, runs int) (comparison, error) {
	var c comparison
	c.checksum = p.loop()
	want := c.checksum
	if p.digest != nil {
		want = p.digest()
	}
	if p.exact != nil {
		got, err := p.exact(ctx)
		if err != nil {
			return c, err
		}
		if got != c.checksum {
			return c, fmt.Errorf("compare the final results: checksum %d, the loop's is %d", got, c.checksum)
		}
	}
	ours := func(ctx context.Context) error {
		got, err := p.ours(ctx)
		if err == nil && got != want {
			err = fmt.Errorf("compare the results: checksum %d, want %d", got, want)
		}
		return err
	}
	if err := ours(ctx); err != nil { // warm-up
		return c, err
	}
	var loop, engine []sample
	for range runs {
		s, err := timed(ctx, "loop", func(context.Context) error {
			if got := p.loop(); got != c.checksum {
				return fmt.Errorf("repeat the loop: checksum %d, it was %d", got, c.checksum)
			}
			return nil
		})
		if err != nil {
			return c, err
		}
		loop = append(loop, s)
		if s, err = timed(ctx, "ours", ours); err != nil {
			return c, err
		}
		engine = append(engine, s)
	}
	c.loop, c.ours = medians(loop), medians(engine)
	return c, nil
}

// medians are those of each figure by itself.
func medians(all []sample) sample {
	middle := func(figure func(sample) float64) float64 {
		xs := make([]float64, 0, len(all))
		for _, s := range all {
			xs = append(xs, figure(s))
		}
		slices.Sort(xs)
		return xs[len(xs)/2]
	}
	return sample{
		seconds: middle(func(s sample) float64 { return s.seconds }),
		cpu:     middle(func(s sample) float64 { return s.cpu }),
		allocs:  middle(func(s sample) float64 { return s.allocs }),
	}
}
