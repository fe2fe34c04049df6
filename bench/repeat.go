package main

import (
	"github.com/flott-dev/flott/connector"
)

// repeat is a source that reads a slice several times: as many elements as one likes in memory that stays in the cache,
// as the loops have it. Each subtask reads its own part of the slice.
type repeat[T any] struct {
	xs     []T
	rounds int
}

// stretch is the split of a subtask: elements [From, To) of the slice.
type stretch struct{ From, To int }

// Bounded implements connector.Source.
func (s *repeat[T]) Bounded() bool { return true }

// Enumerator implements connector.Source.
func (s *repeat[T]) Enumerator(ctx connector.EnumeratorContext[stretch], _ []byte) (connector.Enumerator[stretch], error) {
	return &dealer{ctx: ctx, n: len(s.xs)}, nil
}

// Reader implements connector.Source.
func (s *repeat[T]) Reader(ctx connector.ReaderContext) (connector.Reader[T, stretch], error) {
	return &repeatReader[T]{ctx: ctx, repeat: s, rounds: s.rounds}, nil
}

// dealer gives each subtask its part.
type dealer struct {
	ctx connector.EnumeratorContext[stretch]
	n   int
}

func (d *dealer) Start() error { return nil }

func (d *dealer) Request(subtask int) error {
	p := d.ctx.Parallelism()
	d.ctx.Assign(subtask, stretch{d.n * subtask / p, d.n * (subtask + 1) / p})
	d.ctx.NoMoreSplits(subtask)
	return nil
}

func (d *dealer) AddBack(int, []stretch) error   { return nil }
func (d *dealer) Snapshot(int64) ([]byte, error) { return nil, nil }
func (d *dealer) Close() error                   { return nil }

type repeatReader[T any] struct {
	*repeat[T]
	ctx    connector.ReaderContext
	part   []T
	next   int
	rounds int // to go
}

func (r *repeatReader[T]) Poll(out *connector.Output[T]) (connector.Status, error) {
	if r.part == nil {
		return connector.Nothing, nil
	}
	for r.rounds > 0 && out.Room() > 0 {
		r.next += out.EmitSlice(r.part[r.next:])
		if r.next == len(r.part) {
			r.next = 0
			r.rounds--
		}
	}
	if r.rounds == 0 {
		return connector.Done, nil
	}
	return connector.More, nil
}

func (r *repeatReader[T]) AddSplits(splits []stretch) error {
	r.part = r.xs[splits[0].From:splits[0].To]
	r.ctx.Wake()
	return nil
}

func (r *repeatReader[T]) NoMoreSplits()                     {}
func (r *repeatReader[T]) Snapshot(int64) ([]stretch, error) { return nil, nil }
func (r *repeatReader[T]) Committed(int64) error             { return nil }
func (r *repeatReader[T]) Close() error                      { return nil }
