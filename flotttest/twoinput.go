package flotttest

import (
	"testing"

	"github.com/flott-dev/flott/stream"
)

// TwoInputHarness drives an operator with two inputs; it is otherwise like Harness. The operator's event time is the
// smaller of its inputs'.
type TwoInputHarness[A, B, R any] struct {
	*Control
	*Recorder[R]
	// First and Second are the two inputs.
	First  *Input[A]
	Second *Input[B]
}

// Input is one input of an operator.
type Input[T any] struct{ in *entry[T] }

// NewTwoInputHarness opens the operator that build makes of two streams, by Connect for example. It is closed at the end
// of the test if the test did not close it.
func NewTwoInputHarness[A, B, R any](t testing.TB, build func(a *stream.Stream[A], b *stream.Stream[B]) *stream.Stream[R], opts ...Option) *TwoInputHarness[A, B, R] {
	t.Helper()
	c := newConfig(opts)
	env := c.environment()
	jg := c.capture(t, env, func() {
		first := env.FromSlice[A](nil)
		second := env.FromSlice[B](nil)
		build(first, second).ForEach(func(R) {})
	})
	h := &TwoInputHarness[A, B, R]{}
	h.Control, h.Recorder = open[R](t, c, jg, 2)
	h.First = &Input[A]{newEntry[A](h.Control, 0)}
	h.Second = &Input[B]{newEntry[B](h.Control, 1)}
	return h
}

// ProcessElement gives v with a timestamp (ms since 1970, NoTime for none) to the input.
func (i *Input[T]) ProcessElement(v T, ms int64) {
	i.in.c.t.Helper()
	i.in.c.check(i.TryProcessElement(v, ms))
}

// TryProcessElement is ProcessElement with the operator's error.
func (i *Input[T]) TryProcessElement(v T, ms int64) error { return i.in.push(At(v, ms)) }

// ProcessElements gives elements to the input as one run, as they come out of a frame.
func (i *Input[T]) ProcessElements(elements ...Element[T]) {
	i.in.c.t.Helper()
	i.in.c.check(i.TryProcessElements(elements...))
}

// TryProcessElements is ProcessElements with the operator's error.
func (i *Input[T]) TryProcessElements(elements ...Element[T]) error { return i.in.push(elements...) }

// ProcessWatermark raises the event time of the input to ms since 1970.
func (i *Input[T]) ProcessWatermark(ms int64) {
	i.in.c.t.Helper()
	i.in.c.check(i.TryProcessWatermark(ms))
}

// TryProcessWatermark is ProcessWatermark with the operator's error.
func (i *Input[T]) TryProcessWatermark(ms int64) error { return i.in.watermark(ms) }

// SetIdle says that the input has no elements for now, or, with false, that it has some again.
func (i *Input[T]) SetIdle(idle bool) {
	i.in.c.t.Helper()
	i.in.c.check(i.in.idle(idle))
}

// EndInput ends the input.
func (i *Input[T]) EndInput() {
	i.in.c.t.Helper()
	i.in.c.check(i.TryEndInput())
}

// TryEndInput is EndInput with the operator's error.
func (i *Input[T]) TryEndInput() error { return i.in.end() }
