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
)

// The suite state measures what checkpoints, restores and exactly-once files cost. There is no loop to compare with: each
// line has the floors of its minute beside its figures, what the disk takes to write and sync as many bytes and how long
// the machine stops an empty loop. Every job's answer is checked.
//
// Figures are medians of -n rounds. -mib is the size of the keyed state, keys and values as they are; the window of each
// observation is 3 s or as long as its checkpoints need.

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

const notIncremental = "measured with full checkpoints: incremental ones are not measured here yet"

func stateSuite() []stateWorkload {
	return []stateWorkload{
		{"full-checkpoints", "back to back, uniform updates; gaps are those of a subtask's output within 50 ms of a barrier", fullCheckpoints},
		{"hot-keys", "every second, 99 % of updates to 1 % of the keys, at full speed; " + notIncremental, hotKeys},
		{"restore", "from a savepoint, until each subtask brings out its first element; the files are not in memory where the system can be asked to drop them", restore},
		{"backpressure", "back to back, with a sink that takes half of what the job could bring, against no load", backpressure(0.5)},
		{"heavy-backpressure", "the same with a sink that takes a hundredth", backpressure(0.01)},
		{"latency", "open loop, from when an element was due until it comes out", latency(0)},
		{"latency-checkpoints", "the same with checkpoints every second; " + notIncremental, latency(time.Second)},
		{"exactly-once-files", "open loop, from when an element was due until its file is visible; checkpoints every 100 ms", exactlyOnceFiles},
	}
}

// figure is a measured value with what is asked for.
type figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	AtMost float64 `json:"at_most,omitempty"` // 0: nothing is asked for
}

func inMillis(name string, d time.Duration, atMost float64) figure {
	return figure{name, float64(d.Microseconds()) / 1000, "ms", atMost}
}

func percent(name string, share, atMost float64) figure {
	return figure{name, share * 100, "%", atMost}
}

func multiple(name string, ratio, atMost float64) figure { return figure{name, ratio, "x", atMost} }

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
	ran := false
	for _, w := range stateSuite() {
		if !strings.Contains(w.name, o.only) {
			continue
		}
		ran = true
		l, err := w.rounds(ctx, so)
		if err != nil {
			return fmt.Errorf("measure %s: %w", w.name, err)
		}
		if err := l.print(out, o.json); err != nil {
			return fmt.Errorf("print the result of %s: %w", w.name, err)
		}
	}
	if !ran {
		return fmt.Errorf("choose workloads: no name contains %q", o.only)
	}
	return nil
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
		if f.AtMost != 0 {
			fmt.Fprintf(&b, " (at most %.4g)", f.AtMost)
			if f.Value > f.AtMost {
				b.WriteString(" above what is asked for")
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}
