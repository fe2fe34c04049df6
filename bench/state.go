package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/flott-dev/flott/stream"
)

// The suite state measures what checkpoints, restores and exactly-once files cost. There is no loop to compare with: each
// line has the floors of its minute beside its figures, what the disk takes to write and sync as many bytes and how long
// the machine stops an empty loop. Every job's answer is checked.
//
// Figures are medians of -n rounds. -size is the size of the keyed state, keys and values as they are; the window of each
// observation is some seconds, or as long as its checkpoints need. A line that fails does not keep the others from being
// measured.

// stateWorkload is one line of the suite.
type stateWorkload struct {
	name    string
	remark  string
	measure func(ctx context.Context, o stateOptions) (stateLine, error)
}

// stateOptions are the options of the program as the suite needs them.
type stateOptions struct {
	options
	folder string // of what is written, in a disk's file system
	keys   int    // that have the state of the wanted size
}

// span is the length of an observation that is d at full size.
func (o stateOptions) span(d time.Duration) time.Duration {
	return max(min(d, 100*time.Millisecond), d/time.Duration(o.shrink))
}

func stateSuite() []stateWorkload {
	return []stateWorkload{
		{"pause", "uniform updates at half of full speed, incremental checkpoints every second; gaps are those of a subtask's output within 50 ms of a barrier", pause},
		{"pause-windows", "sliding windows of six slices and sessions of as many keys: how long a task stands still for a full checkpoint", pauseWindows},
		{"hot-keys", "99 % of updates to 1 % of the keys, at full speed, incremental checkpoints every second", hotKeys},
		{"full-checkpoints", "back to back, uniform updates; gaps are those of a subtask's output within 50 ms of a barrier", fullCheckpoints},
		{"backpressure-aligned", "full checkpoints back to back, with a sink that takes 100,000 elements a second, against no load", backpressure()},
		{"backpressure-timeout", "the same, unaligned after 100 ms", backpressure(
			stream.EnableUnalignedCheckpoints(), stream.AlignedCheckpointTimeout(100*time.Millisecond))},
		{"backpressure-unaligned", "the same, unaligned at once", backpressure(stream.EnableUnalignedCheckpoints())},
		{"restore", "from a savepoint, until each subtask brings out its first element; the files are not in memory where the system can be asked to drop them", restore},
		{"exactly-once-files", "open loop, from when an element was due until its file is visible; checkpoints every 100 ms", exactlyOnceFiles},
		{"pebble-0.99", "state on disk of ten times its memory, keys as frequent as Zipf's of exponent 0.99, against the same job whose function reads and writes Pebble itself in as much memory", onDisk(0.99)},
		{"pebble-1.1", "the same with exponent 1.1", onDisk(1.1)},
		{"latency", "open loop, from when an element was due until it comes out", latency(0)},
		{"latency-checkpoints", "the same with incremental checkpoints every second", latency(time.Second)},
	}
}

// figure is a measured value with what is asked for.
type figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	AtMost float64 `json:"at_most,omitempty"` // 0: nothing is asked for
	// AtLeast is what is asked for where more is better; 0: nothing is.
	AtLeast float64 `json:"at_least,omitempty"`
	// Missed says that the value is not what is asked for.
	Missed bool `json:"missed,omitempty"`
}

func inMillis(name string, d time.Duration, atMost float64) figure {
	return figure{Name: name, Value: float64(d.Microseconds()) / 1000, Unit: "ms", AtMost: atMost}
}

func percent(name string, share, atMost float64) figure {
	return figure{Name: name, Value: share * 100, Unit: "%", AtMost: atMost}
}

func multiple(name string, ratio, atMost float64) figure {
	return figure{Name: name, Value: ratio, Unit: "x", AtMost: atMost}
}

// perSecond is a figure of elements per second.
func perSecond(name string, rate float64) figure {
	return figure{Name: name, Value: rate / 1e6, Unit: "M/s"}
}

func (f *figure) judge() {
	f.Missed = f.AtMost != 0 && f.Value > f.AtMost || f.AtLeast != 0 && f.Value < f.AtLeast
}

// stateLine is the result of a workload, as -json prints it.
type stateLine struct {
	Name        string   `json:"name"`
	Parallelism int      `json:"parallelism"`
	Elements    uint64   `json:"elements"`
	Checksum    uint64   `json:"checksum"`
	StateBytes  int      `json:"state_bytes"` // of keys and values as they are
	DiskBytes   int64    `json:"disk_bytes"`  // of a checkpoint, savepoint or file
	RawWriteMs  float64  `json:"raw_write_ms"`
	JitterMs    float64  `json:"jitter_ms"`
	Figures     []figure `json:"figures"`
	Remark      string   `json:"remark"`
}

// floors measures what the machine itself does in this minute.
func (l *stateLine) floors(o stateOptions, bytes int64) (raw time.Duration, err error) {
	l.DiskBytes = bytes
	raw, err = rawWrite(o.folder, bytes)
	l.RawWriteMs = float64(raw.Microseconds()) / 1000
	l.JitterMs = float64(jitter(o.span(time.Second)).Microseconds()) / 1000
	return raw, err
}

// add adds the outcome of a job.
func (l *stateLine) add(n, digest uint64, err error) error {
	l.Elements += n
	l.Checksum += digest
	return err
}

func measureState(ctx context.Context, o options, out io.Writer) (err error) {
	folder, err := os.MkdirTemp(o.disk, "flott-bench-")
	if err != nil {
		return fmt.Errorf("make a folder for the suite: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(stateWorkers))
	so := stateOptions{options: o, folder: folder, keys: max(1000, o.mib<<20/accountBytes/o.shrink)}
	chosen := chooseLines(stateSuite(), o.only)
	if len(chosen) == 0 {
		return fmt.Errorf("choose workloads: no name contains %q", o.only)
	}
	return measureLines(ctx, chosen, so, out)
}

// measureLines measures lines. One that fails is told and becomes part of the error.
func measureLines(ctx context.Context, chosen []stateWorkload, so stateOptions, out io.Writer) error {
	var failed []error
	start := time.Now()
	for i, w := range chosen {
		so.note("%s: %d of %d, after %.0f s", w.name, i+1, len(chosen), time.Since(start).Seconds())
		l, err := w.rounds(ctx, so)
		if err != nil {
			failed = append(failed, fmt.Errorf("measure %s: %w", w.name, err))
			so.note("%v", failed[len(failed)-1])
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if err := l.print(out, so.json); err != nil {
			return fmt.Errorf("print the result of %s: %w", w.name, err)
		}
	}
	so.note("done after %.0f s", time.Since(start).Seconds())
	return errors.Join(failed...)
}

// note tells whoever waits what is going on.
func (o stateOptions) note(format string, args ...any) {
	_, _ = fmt.Fprintf(o.notes, "bench: "+format+"\n", args...)
}

// chooseLines are the lines whose names contain one of the words between commas.
func chooseLines(all []stateWorkload, only string) (chosen []stateWorkload) {
	for _, w := range all {
		if slices.ContainsFunc(strings.Split(only, ","), func(word string) bool { return strings.Contains(w.name, word) }) {
			chosen = append(chosen, w)
		}
	}
	return chosen
}

// rounds measures as often as is asked for.
func (w *stateWorkload) rounds(ctx context.Context, o stateOptions) (stateLine, error) {
	var all []stateLine
	for range o.runs {
		settle()
		l, err := w.measure(ctx, o)
		if err != nil {
			return l, err
		}
		all = append(all, l)
	}
	l := middleLine(all)
	l.Name, l.Remark, l.Parallelism = w.name, w.remark, stateWorkers
	return l, nil
}

// middleLine has the medians of all figures, and the rest from the last line: jobs run for a time, so that every round has
// another number of elements.
func middleLine(all []stateLine) stateLine {
	middle := func(of func(*stateLine) *float64) float64 {
		xs := make([]float64, 0, len(all))
		for i := range all {
			xs = append(xs, *of(&all[i]))
		}
		slices.SortFunc(xs, cmp.Compare)
		return xs[len(xs)/2]
	}
	l := all[len(all)-1]
	l.Figures = slices.Clone(l.Figures)
	l.RawWriteMs = middle(func(l *stateLine) *float64 { return &l.RawWriteMs })
	l.JitterMs = middle(func(l *stateLine) *float64 { return &l.JitterMs })
	for i := range l.Figures {
		l.Figures[i].Value = middle(func(l *stateLine) *float64 { return &l.Figures[i].Value })
		l.Figures[i].judge()
	}
	return l
}

func (l *stateLine) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(l)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d workers, %d elements, %.0f MiB of state; %s\n", l.Name, l.Parallelism, l.Elements, float64(l.StateBytes)/(1<<20), l.Remark)
	fmt.Fprintf(&b, "  floors: write and sync %.2f MiB %.1f ms, longest stop of an empty loop %.2f ms\n", float64(l.DiskBytes)/(1<<20), l.RawWriteMs, l.JitterMs)
	for _, f := range l.Figures {
		fmt.Fprintf(&b, "  %-40s %10.2f %-4s", f.Name, f.Value, f.Unit)
		switch {
		case f.AtMost != 0:
			fmt.Fprintf(&b, " (at most %.4g)", f.AtMost)
		case f.AtLeast != 0:
			fmt.Fprintf(&b, " (at least %.4g)", f.AtLeast)
		}
		if f.Missed {
			b.WriteString(" missed")
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}
