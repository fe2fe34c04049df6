package file

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/flott-dev/flott/connector"
)

// DefaultHorizon is how long a watching source remembers a file that is no longer there.
const DefaultHorizon = 24 * time.Hour

// splitCost is the work of a split besides its bytes, in bytes: opening a file takes as long as reading so many.
const splitCost = 64 << 10

// enumerator finds files and hands out their splits.
type enumerator struct {
	ctx        connector.EnumeratorContext[Split]
	settings   *settings
	splittable bool
	pending    []Split
	cost       int64 // of pending
	waiting    []int // subtasks that asked when there was nothing, in a watching source
	seen       seenFiles
	err        error // of a scan, told at the next call
}

func newEnumerator(ctx connector.EnumeratorContext[Split], s *settings, splittable bool, restored []byte) (*enumerator, error) {
	e := &enumerator{ctx: ctx, settings: s, splittable: splittable, seen: seenFiles{}}
	if restored != nil {
		pending, seen, err := decodeState(restored)
		if err != nil {
			return nil, fmt.Errorf("restore the file enumerator: %w", err)
		}
		e.seen = seen
		e.push(pending)
		return e, nil
	}
	files, err := s.find()
	if err != nil {
		return nil, fmt.Errorf("file source: %w", err)
	}
	e.discover(files)
	return e, nil
}

// Start implements connector.Enumerator. The first scan was made when the enumerator was opened, so that a missing path
// fails the job before it runs.
func (e *enumerator) Start() error {
	if e.settings.watch == 0 {
		return nil
	}
	var found atomic.Pointer[[]located]
	scan := func(context.Context) error {
		files, err := e.settings.find()
		found.Store(&files)
		return err
	}
	e.ctx.Do(max(1, e.settings.watch.Milliseconds()), scan, func(err error) {
		if err != nil {
			e.err = fmt.Errorf("file source: %w", err)
			return
		}
		if files := found.Swap(nil); files != nil {
			e.err = nil
			e.discover(*files)
			e.feed()
		}
	})
	return nil
}

// discover makes splits of the files that are new or changed.
func (e *enumerator) discover(files []located) {
	if e.settings.watch > 0 {
		files = e.seen.news(files, e.settings.horizonScans())
	}
	for _, f := range files {
		e.push(e.cut(f))
	}
}

// cut makes the splits of a file.
func (e *enumerator) cut(f located) []Split {
	if !e.splittable || !f.regular || f.size == 0 || !e.settings.plain(f.path) {
		return []Split{{Path: f.path, Length: -1}}
	}
	var splits []Split
	for at := int64(0); at < f.size; at += e.settings.splitSize {
		splits = append(splits, Split{Path: f.path, Start: at, Length: min(e.settings.splitSize, f.size-at), Position: at})
	}
	return splits
}

func (e *enumerator) push(splits []Split) {
	for i := range splits {
		e.cost += e.weight(&splits[i])
	}
	e.pending = append(e.pending, splits...)
}

func (e *enumerator) weight(s *Split) int64 {
	if s.Length < 0 {
		return e.settings.splitSize + splitCost
	}
	return s.Length + splitCost
}

// Request implements connector.Enumerator.
func (e *enumerator) Request(subtask int) error {
	if e.err != nil {
		return e.err
	}
	switch {
	case len(e.pending) > 0:
		e.assign(subtask)
	case e.settings.watch == 0:
		e.ctx.NoMoreSplits(subtask)
	case !slices.Contains(e.waiting, subtask):
		e.waiting = append(e.waiting, subtask)
	}
	return nil
}

// assign gives a subtask its next splits: several small ones at once, fewer towards the end so that all readers end
// together.
func (e *enumerator) assign(subtask int) {
	share := min(e.cost/int64(4*e.ctx.Parallelism()), e.settings.splitSize)
	n, sum := 0, int64(0)
	for n < len(e.pending) && (n == 0 || sum < share) {
		sum += e.weight(&e.pending[n])
		n++
	}
	e.cost -= sum
	e.ctx.Assign(subtask, e.pending[:n:n]...)
	e.pending = e.pending[n:]
}

// feed serves the subtasks that wait.
func (e *enumerator) feed() {
	for len(e.waiting) > 0 && len(e.pending) > 0 {
		subtask := e.waiting[0]
		e.waiting = e.waiting[1:]
		e.assign(subtask)
	}
}

// AddBack implements connector.Enumerator.
func (e *enumerator) AddBack(subtask int, splits []Split) error {
	e.waiting = slices.DeleteFunc(e.waiting, func(s int) bool { return s == subtask })
	for i := range splits {
		e.cost += e.weight(&splits[i])
	}
	e.pending = slices.Concat(splits, e.pending)
	e.feed()
	return nil
}

// Snapshot implements connector.Enumerator.
func (e *enumerator) Snapshot(int64) ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	return encodeState(e.pending, e.seen), nil
}

// Close implements connector.Enumerator.
func (e *enumerator) Close() error { return nil }
