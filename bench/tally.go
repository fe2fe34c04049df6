package main

import (
	"sync/atomic"

	"github.com/flott-dev/flott/connector"
)

// tally is a sink that adds up what sum makes of each run. Every subtask has its own writer, so that no two of them
// share memory.
type tally[T any] struct {
	sum   func(xs []T) uint64
	end   func() // called by each subtask at the end of its input; nil: nothing
	total *atomic.Uint64
}

func newTally[T any](sum func([]T) uint64) tally[T] {
	return tally[T]{sum: sum, total: new(atomic.Uint64)}
}

// Writer implements connector.Sink.
func (t tally[T]) Writer(connector.WriterContext) (connector.Writer[T], error) {
	return &tallyWriter[T]{tally: t}, nil
}

type tallyWriter[T any] struct {
	tally[T]
	n uint64
}

// WriteRun implements connector.RunWriter.
func (w *tallyWriter[T]) WriteRun(xs []T, _ []int64) error {
	w.n += w.sum(xs)
	return nil
}

func (w *tallyWriter[T]) Write(x T, _ connector.ElementContext) error { return w.WriteRun([]T{x}, nil) }

func (w *tallyWriter[T]) Flush(endOfInput bool) error {
	w.total.Add(w.n)
	w.n = 0
	if endOfInput && w.end != nil {
		w.end()
	}
	return nil
}

func (w *tallyWriter[T]) Close() error { return nil }
