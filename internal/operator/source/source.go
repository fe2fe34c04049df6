// Package source holds the drivers of sources: collections, sequences, iterators, functions and the split readers of
// connectors.
package source

import (
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
	next  int
	end   int
}

// Slice returns the driver of a source of the elements of xs; each subtask takes a contiguous part.
func Slice[T any](typ *frame.Type, xs []T) operator.Operator {
	return newSlice(typ, unsafe.Pointer(unsafe.SliceData(xs)), len(xs))
}

func newSlice(typ *frame.Type, first unsafe.Pointer, n int) operator.Operator {
	return &slice{head: head{Out: operator.NewOutput(typ)}, first: first, len: n}
}

func (s *slice) Open(rt *operator.Runtime) error {
	s.next, s.end = s.len*rt.Subtask/rt.Parallelism, s.len*(rt.Subtask+1)/rt.Parallelism
	return s.head.Open(rt)
}

func (s *slice) Poll() (operator.Status, error) {
	if s.next == s.end {
		return operator.Done, nil
	}
	n := min(s.rt.RunLen, s.end-s.next)
	s.run = frame.Run{Type: s.Out.Type, P: unsafe.Add(s.first, uintptr(s.next)*s.Out.Type.Size), N: n, Shared: true}
	s.next += n
	if err := s.Out.Push(&s.run); err != nil {
		return operator.Done, err
	}
	return operator.More, nil
}

// sequence counts.
type sequence struct {
	head
	from, to int64 // both included; empty when from > to
	col      *frame.Column
}

// Sequence returns the driver of a source of the numbers from ... to, both included; each subtask takes a contiguous
// part. typ is the handle of int64.
func Sequence(typ *frame.Type, from, to int64) operator.Operator {
	return &sequence{head: head{Out: operator.NewOutput(typ)}, from: from, to: to}
}

func (s *sequence) Open(rt *operator.Runtime) error {
	s.col = frame.NewColumn(s.Out.Type, frame.DefaultLen)
	if s.from <= s.to {
		s.from, s.to = part(s.from, s.to, uint64(rt.Subtask), uint64(rt.Parallelism))
	}
	return s.head.Open(rt)
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
	if s.from > s.to {
		return operator.Done, nil
	}
	n := min(s.rt.RunLen, s.col.Cap())
	if left := uint64(s.to) - uint64(s.from); left < uint64(n) {
		n = int(left) + 1
	}
	xs := frame.Fill[int64](s.col, n)
	for i := range xs {
		xs[i] = s.from + int64(i)
	}
	last := xs[n-1]
	s.run = s.col.Run()
	if err := s.Out.Push(&s.run); err != nil {
		return operator.Done, err
	}
	if last == s.to {
		s.from, s.to = 1, 0
	} else {
		s.from = last + 1
	}
	return operator.More, nil
}

// seq drains an iterator in a coroutine that fills a whole column before it yields.
type seq[T any] struct {
	head
	open func(subtask, parallelism int) iter.Seq[T]
	col  *frame.Column
	next func() (struct{}, bool)
	stop func()
}

// Seq returns the driver of a source of the iterator that open gives each subtask. The iterator runs on the subtask's
// goroutine and must not wait for long.
func Seq[T any](typ *frame.Type, open func(subtask, parallelism int) iter.Seq[T]) operator.Operator {
	return &seq[T]{head: head{Out: operator.NewOutput(typ)}, open: open}
}

func (s *seq[T]) Open(rt *operator.Runtime) error {
	s.col = frame.NewColumn(s.Out.Type, s.Out.Type.FrameLen(frame.Bytes))
	elements := s.open(rt.Subtask, rt.Parallelism)
	s.next, s.stop = iter.Pull(func(yield func(struct{}) bool) {
		for x := range elements {
			frame.Add(s.col, x, frame.NoTime)
			if (s.col.Room() == 0 || s.col.Len() >= s.rt.RunLen) && !yield(struct{}{}) {
				return
			}
		}
	})
	return s.head.Open(rt)
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
	err := s.Out.Push(&s.run)
	s.col.Reset()
	if err != nil || !more {
		return operator.Done, err
	}
	return operator.More, nil
}
