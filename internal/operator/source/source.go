// Package source holds the drivers of sources: collections, sequences, iterators, functions and the split readers of
// connectors.
package source

import (
	"fmt"
	"iter"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// head is embedded by sources: one output, no input.
type head struct {
	Out operator.Output
	rt  *operator.Runtime
	run frame.Run
}

func (h *head) Inputs() []operator.Input { return nil }

func (h *head) Output(tag string) *operator.Output {
	if tag == "" {
		return &h.Out
	}
	return nil
}

func (h *head) Open(rt *operator.Runtime) error {
	h.rt = rt
	h.Out.Bind(rt)
	return nil
}

func (h *head) Close() error { return nil }

// slice lends the user's own memory, read-only: elements are immutable once they are in a stream. It is written once for
// all types.
type slice struct {
	head
	first unsafe.Pointer
	len   int
	queued
}

// Slice returns the driver of a source of the elements of xs; each subtask takes a contiguous part.
func Slice[T any](typ *frame.Type, xs []T) operator.Operator {
	return newSlice(typ, unsafe.Pointer(unsafe.SliceData(xs)), len(xs))
}

func newSlice(typ *frame.Type, first unsafe.Pointer, n int) operator.Operator {
	return &slice{head: head{Out: operator.NewOutput(typ)}, first: first, len: n}
}

func (s *slice) Open(rt *operator.Runtime) error {
	parts, restored, err := restoreStretches(rt, cutRange)
	if err != nil {
		return err
	}
	if s.rest = parts; !restored {
		s.rest = []stretch{{int64(s.len * rt.Subtask / rt.Parallelism), int64(s.len*(rt.Subtask+1)/rt.Parallelism) - 1}}
	}
	for _, p := range s.rest {
		if p.from <= p.to && (p.from < 0 || p.to >= int64(s.len)) {
			return fmt.Errorf("restore the position of a source: elements %d to %d of a collection that has %d", p.from, p.to, s.len)
		}
	}
	return s.head.Open(rt)
}

// Snapshot implements operator.Snapshotter.
func (s *slice) Snapshot(o *operator.Snapshot) error {
	snapshotStretches(o, s.rt, s.rest)
	return nil
}

func (s *slice) Poll() (operator.Status, error) {
	at, ok := s.next()
	if !ok {
		return operator.Done, nil
	}
	n := at.upTo(s.rt.RunLen)
	s.run = frame.Run{Type: s.Out.Type, P: unsafe.Add(s.first, uintptr(at.from)*s.Out.Type.Size), N: n, Shared: true}
	at.pass(n)
	if err := s.Out.Push(&s.run); err != nil {
		return operator.Done, err
	}
	return operator.More, nil
}

// sequence counts.
type sequence struct {
	head
	from, to int64 // both included; empty when from > to
	queued
	col *frame.Column
}

// Sequence returns the driver of a source of the numbers from ... to, both included; each subtask takes a contiguous
// part. typ is the handle of int64.
func Sequence(typ *frame.Type, from, to int64) operator.Operator {
	return &sequence{head: head{Out: operator.NewOutput(typ)}, from: from, to: to}
}

func (s *sequence) Open(rt *operator.Runtime) error {
	s.col = frame.NewColumn(s.Out.Type, frame.DefaultLen)
	parts, restored, err := restoreStretches(rt, cutRange)
	if err != nil {
		return err
	}
	s.rest = parts
	if own, ok := cutRange(stretch{s.from, s.to}, 0, rt.Subtask, rt.Parallelism); ok && !restored {
		s.rest = []stretch{own}
	}
	return s.head.Open(rt)
}

// Snapshot implements operator.Snapshotter.
func (s *sequence) Snapshot(o *operator.Snapshot) error {
	snapshotStretches(o, s.rt, s.rest)
	return nil
}

// part is the i-th of p contiguous parts of from ... to. There may be 2^64 numbers: parts are cut in unsigned arithmetic
// on last indices, which are one less than counts.
func part(from, to int64, i, p uint64) (first, last int64) {
	end := uint64(to) - uint64(from)
	size, rest := end/p, end%p+1 // count = p*size + rest, 1 <= rest <= p
	start := i*size + min(i, rest)
	switch {
	case i < rest: // these have one more
		end = start + size
	case size > 0:
		end = start + size - 1
	default:
		return 1, 0
	}
	return int64(uint64(from) + start), int64(uint64(from) + end)
}

func (s *sequence) Poll() (operator.Status, error) {
	at, ok := s.next()
	if !ok {
		return operator.Done, nil
	}
	n := at.upTo(min(s.rt.RunLen, s.col.Cap()))
	xs := frame.Fill[int64](s.col, n)
	for i := range xs {
		xs[i] = at.from + int64(i)
	}
	s.run = s.col.Run()
	if err := s.Out.Push(&s.run); err != nil {
		return operator.Done, err
	}
	at.pass(n)
	return operator.More, nil
}

// seq drains an iterator in a coroutine that fills a whole column before it yields.
type seq[T any] struct {
	head
	open func(subtask, parallelism int) iter.Seq[T]
	col  *frame.Column
	next func() (struct{}, bool)
	stop func()
	sent int64 // elements so far
	skip int64 // elements that were sent before the snapshot
}

// Seq returns the driver of a source of the iterator that open gives each subtask. The iterator runs on the subtask's
// goroutine and must not wait for long.
func Seq[T any](typ *frame.Type, open func(subtask, parallelism int) iter.Seq[T]) operator.Operator {
	return &seq[T]{head: head{Out: operator.NewOutput(typ)}, open: open}
}

func (s *seq[T]) Open(rt *operator.Runtime) error {
	if err := s.restore(rt); err != nil {
		return err
	}
	s.col = frame.NewColumn(s.Out.Type, s.Out.Type.FrameLen(frame.Bytes))
	elements := s.open(rt.Subtask, rt.Parallelism)
	s.next, s.stop = iter.Pull(func(yield func(struct{}) bool) {
		for x := range elements {
			if s.skip > 0 {
				s.skip--
				continue
			}
			frame.Add(s.col, x, frame.NoTime)
			if (s.col.Room() == 0 || s.col.Len() >= s.rt.RunLen) && !yield(struct{}{}) {
				return
			}
		}
	})
	return s.head.Open(rt)
}

// restore says how many elements the iterator has yielded before the snapshot.
func (s *seq[T]) restore(rt *operator.Runtime) error {
	all, _, err := positions(rt)
	for _, p := range all {
		if p.parallelism != rt.Parallelism {
			return fmt.Errorf("restore the position of an iterator: it was one of %d subtasks, there are %d now: an iterator can't be divided anew", p.parallelism, rt.Parallelism)
		}
		if p.subtask == rt.Subtask && len(p.parts) == 1 {
			s.sent = p.parts[0].from
		}
	}
	s.skip = s.sent
	return err
}

// Snapshot implements operator.Snapshotter: the number of elements, which are left out after a restore.
func (s *seq[T]) Snapshot(o *operator.Snapshot) error {
	snapshotStretches(o, s.rt, []stretch{{from: s.sent}})
	return nil
}

func (s *seq[T]) Close() error {
	if s.stop != nil {
		s.stop()
	}
	return nil
}

func (s *seq[T]) Poll() (operator.Status, error) {
	_, more := s.next()
	s.run = s.col.Run()
	s.sent += int64(s.run.N)
	err := s.Out.Push(&s.run)
	s.col.Reset()
	if err != nil || !more {
		return operator.Done, err
	}
	return operator.More, nil
}
