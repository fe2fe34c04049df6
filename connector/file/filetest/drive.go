// Package filetest drives a source in tests of connectors, without an engine and without goroutines: an enumerator, a
// number of readers in turn, snapshots and restores on demand. It owns no rules of its own; what it does not allow, the
// contract in package connector doesn't either.
package filetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/frame"
)

// Drive is a source being read.
type Drive[T, S any] struct {
	Source connector.Source[T, S]
	// Room is the room of each Poll.
	Room int
	// Counts are the metrics.
	Counts map[string]int64
	// Out are the elements of each subtask, unless Drop is set.
	Out [][]T
	// Drop makes Run count elements in Dropped instead of keeping them, for benchmarks.
	Drop    bool
	Dropped int
	// Woken has a token after a reader called Wake.
	Woken chan struct{}

	enumerator connector.Enumerator[S]
	readers    []connector.Reader[T, S]
	done       []bool
	given      [][]S // the splits of each reader
	requests   []int
	work       []task
	column     *frame.Column
	output     *connector.Output[T]
}

// task is work that the enumerator asked to be repeated.
type task struct {
	work func(context.Context) error
	done func(error)
}

// State is a checkpoint of a Drive.
type State[S any] struct {
	Enumerator []byte // its snapshot
	Splits     []S    // of all readers
}

// Start opens a source with the given number of readers, from a checkpoint if state is not nil.
func Start[T, S any](src connector.Source[T, S], parallelism, room int, state *State[S]) (*Drive[T, S], error) {
	typ, err := frame.TypeOf[T]()
	if err != nil {
		return nil, err
	}
	d := &Drive[T, S]{
		Source: src, Room: room, Counts: map[string]int64{}, Out: make([][]T, parallelism),
		done: make([]bool, parallelism), given: make([][]S, parallelism), column: frame.NewColumn(typ, room), Woken: make(chan struct{}, 1),
	}
	d.output = connector.NewOutput[T](d.column, func(frame.Mark) error { return nil })
	var restored []byte
	if state != nil {
		restored = state.Enumerator
	}
	if d.enumerator, err = src.Enumerator(enumeratorContext[T, S]{d}, restored); err != nil {
		return nil, err
	}
	for i := range parallelism {
		r, err := src.Reader(readerContext[T, S]{d, i})
		if err != nil {
			return nil, err
		}
		d.readers = append(d.readers, r)
	}
	if state != nil {
		for i, s := range state.Splits {
			if err := d.readers[i%parallelism].AddSplits([]S{s}); err != nil {
				return nil, err
			}
		}
	}
	return d, d.enumerator.Start()
}

// Collect reads a bounded source to its end and returns the elements of all subtasks, one subtask after the other.
func Collect[T, S any](src connector.Source[T, S], parallelism, room int) ([]T, error) {
	d, err := Start(src, parallelism, room, nil)
	if err != nil {
		return nil, err
	}
	if err := d.Run(); err != nil {
		return nil, err
	}
	return slices.Concat(d.Out...), d.Close()
}

// Run polls until every reader is done or has nothing to read.
func (d *Drive[T, S]) Run() error {
	for {
		on, err := d.Step()
		if err != nil || !on {
			return err
		}
	}
}

// Step polls every reader once. It reports whether there may be more.
func (d *Drive[T, S]) Step() (bool, error) {
	on := false
	for i := range d.readers {
		if d.done[i] {
			continue
		}
		status, err := d.poll(i)
		if err != nil {
			return false, err
		}
		d.done[i] = status == connector.Done
		on = on || status == connector.More
	}
	for len(d.requests) > 0 {
		subtask := d.requests[0]
		d.requests = d.requests[1:]
		if err := d.enumerator.Request(subtask); err != nil {
			return false, err
		}
		on = true
	}
	return on, nil
}

func (d *Drive[T, S]) poll(i int) (connector.Status, error) {
	d.column.Reset()
	status, err := d.readers[i].Poll(d.output)
	run := d.column.Run()
	if d.Drop {
		d.Dropped += run.N
		return status, err
	}
	d.Out[i] = append(d.Out[i], frame.Values[T](&run)...)
	return status, err
}

// Splits takes all splits that the enumerator has and returns them, before anything is read.
func (d *Drive[T, S]) Splits() ([]S, error) {
	var all []S
	for before := -1; before < len(all); {
		before = len(all)
		if err := d.enumerator.Request(0); err != nil {
			return nil, err
		}
		var err error
		if all, err = d.readers[0].Snapshot(0); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Restart lets the reader of a subtask fail: its output is dropped, a new one takes its place, and the splits that it was
// given since the drive started go back to the enumerator.
func (d *Drive[T, S]) Restart(subtask int) error {
	r, err := d.Source.Reader(readerContext[T, S]{d, subtask})
	if err != nil {
		return err
	}
	back := d.given[subtask]
	d.readers[subtask], d.given[subtask], d.Out[subtask], d.done[subtask] = r, nil, nil, false
	return d.enumerator.AddBack(subtask, back)
}

// Reader is the reader of a subtask.
func (d *Drive[T, S]) Reader(subtask int) connector.Reader[T, S] { return d.readers[subtask] }

// Done reports whether every reader has come to its end.
func (d *Drive[T, S]) Done() bool { return !slices.Contains(d.done, false) }

// Tick lets the enumerator do its repeated work once.
func (d *Drive[T, S]) Tick() {
	for _, t := range d.work {
		t.done(t.work(context.Background()))
	}
}

// Snapshot is a checkpoint.
func (d *Drive[T, S]) Snapshot() (*State[S], error) {
	var s State[S]
	for _, r := range d.readers {
		splits, err := r.Snapshot(1)
		if err != nil {
			return nil, err
		}
		s.Splits = append(s.Splits, splits...)
	}
	var err error
	s.Enumerator, err = d.enumerator.Snapshot(1)
	return &s, err
}

// Close closes all.
func (d *Drive[T, S]) Close() error {
	for i, r := range d.readers {
		if err := r.Close(); err != nil {
			return fmt.Errorf("close reader %d: %w", i, err)
		}
	}
	return d.enumerator.Close()
}

type enumeratorContext[T, S any] struct{ d *Drive[T, S] }

func (c enumeratorContext[T, S]) Context() context.Context { return context.Background() }
func (c enumeratorContext[T, S]) Parallelism() int         { return len(c.d.Out) }

func (c enumeratorContext[T, S]) Assign(subtask int, splits ...S) {
	c.d.given[subtask] = append(c.d.given[subtask], splits...)
	if err := c.d.readers[subtask].AddSplits(splits); err != nil {
		panic(err) // no reader of ours refuses a split
	}
}
func (c enumeratorContext[T, S]) NoMoreSplits(subtask int) { c.d.readers[subtask].NoMoreSplits() }

func (c enumeratorContext[T, S]) Do(_ int64, work func(context.Context) error, done func(error)) {
	c.d.work = append(c.d.work, task{work, done})
}

type readerContext[T, S any] struct {
	d       *Drive[T, S]
	subtask int
}

func (c readerContext[T, S]) Context() context.Context     { return context.Background() }
func (c readerContext[T, S]) Subtask() int                 { return c.subtask }
func (c readerContext[T, S]) Parallelism() int             { return len(c.d.Out) }
func (c readerContext[T, S]) Go(f func())                  { go f() }
func (c readerContext[T, S]) RequestSplit()                { c.d.requests = append(c.d.requests, c.subtask) }
func (c readerContext[T, S]) Counter(name string, n int64) { c.d.Counts[name] += n }

func (c readerContext[T, S]) Wake() {
	select {
	case c.d.Woken <- struct{}{}:
	default:
	}
}

// Allocations reads a bounded source with one reader and returns how many allocations that took for each 64 KiB of the
// size bytes that it reads. Everything counts: opening files, the driver, what else the process does in that time.
func Allocations[T, S any](src connector.Source[T, S], size int64) (float64, error) {
	d, err := Start(src, 1, 512, nil)
	if err != nil {
		return 0, err
	}
	d.Drop = true
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = d.Run()
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / (float64(size) / (64 << 10)), errors.Join(err, d.Close())
}
