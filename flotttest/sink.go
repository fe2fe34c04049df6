package flotttest

import (
	"slices"
	"sync"
	"testing"

	"github.com/flott-dev/flott/connector"
)

// Sink collects what it is given, with timestamps; use it with SinkTo. It may be given to several streams. Its methods may
// be called from any goroutine.
type Sink[T any] struct {
	mu      sync.Mutex
	arrived *sync.Cond
	all     []Element[T]
	by      map[int][]Element[T]
}

// NewSink returns an empty sink.
func NewSink[T any]() *Sink[T] {
	s := &Sink[T]{by: map[int][]Element[T]{}}
	s.arrived = sync.NewCond(&s.mu)
	return s
}

// Writer implements connector.Sink.
func (s *Sink[T]) Writer(ctx connector.WriterContext) (connector.Writer[T], error) {
	return &sinkWriter[T]{s, ctx.Subtask()}, nil
}

// Elements are the elements so far in the order of arrival: that of the stream for each subtask, none among subtasks.
func (s *Sink[T]) Elements() []Element[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Values are the elements so far without timestamps.
func (s *Sink[T]) Values() []T { return values(s.Elements()) }

// BySubtask are the elements that a subtask of the sink has got so far.
func (s *Sink[T]) BySubtask(subtask int) []Element[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.by[subtask])
}

// Len is the number of elements so far.
func (s *Sink[T]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// Clear forgets the elements so far.
func (s *Sink[T]) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
	clear(s.by)
}

// Await waits until there are n elements and returns them. It fails the test if the test's context ends before, which
// happens with its deadline only: a job that ends without so many elements keeps Await waiting, so await what must come.
func (s *Sink[T]) Await(t testing.TB, n int) []Element[T] {
	t.Helper()
	ctx := t.Context()
	stop := contextWakes(ctx, s.arrived)
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.all) < n && ctx.Err() == nil {
		s.arrived.Wait()
	}
	if len(s.all) < n {
		t.Fatalf("wait for %d elements: %d came: %v", n, len(s.all), ctx.Err())
	}
	return slices.Clone(s.all)
}

func (s *Sink[T]) add(subtask int, xs ...Element[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, xs...)
	s.by[subtask] = append(s.by[subtask], xs...)
	s.arrived.Broadcast()
}

func values[T any](elements []Element[T]) []T {
	var out []T
	for _, e := range elements {
		out = append(out, e.Value)
	}
	return out
}

// sinkWriter is the sink in one subtask.
type sinkWriter[T any] struct {
	sink    *Sink[T]
	subtask int
}

// Write implements connector.Writer.
func (w *sinkWriter[T]) Write(x T, at connector.ElementContext) error {
	w.sink.add(w.subtask, Element[T]{x, at.Timestamp})
	return nil
}

// WriteRun implements connector.RunWriter.
func (w *sinkWriter[T]) WriteRun(xs []T, times []int64) error {
	out := make([]Element[T], len(xs))
	for i, x := range xs {
		out[i] = Untimed(x)
		if times != nil {
			out[i].Time = times[i]
		}
	}
	w.sink.add(w.subtask, out...)
	return nil
}

// Flush implements connector.Writer.
func (*sinkWriter[T]) Flush(bool) error { return nil }

// Close implements connector.Writer.
func (*sinkWriter[T]) Close() error { return nil }
