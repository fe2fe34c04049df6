// Package flotttest is what programs on Flott are tested with. A harness drives one operator by hand, element by element,
// with the test as its clock: exact, fast and without a goroutine. A scripted source, a collecting sink and a fake clock
// let a whole job run under the test's control. Helpers run an environment and collect, compare results regardless of
// order, and find goroutines that were left behind.
//
// Nothing of it is meant for production. Values belong to the goroutine of the test unless said otherwise.
package flotttest

import (
	"testing"

	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/stream"
)

// Harness drives an operator with one input. Methods that begin with Try return the error of the operator; their
// namesakes fail the test with it. A panic in the operator is such an error. After an error the operator is dead: only
// Close may follow.
//
// At the start the watermark is MinWatermark, the processing time 0 and the output empty.
type Harness[T, R any] struct {
	*Control
	*Recorder[R]
	in *entry[T]
}

// NewHarness opens the operator that build makes of the stream in. Usually that is one operator, with the key before it
// if it needs one; several are run as one chain, whatever lies between them. Elements are not partitioned: they all come to
// this subtask. It is closed at the end of the test if the test did not close it.
func NewHarness[T, R any](t testing.TB, build func(in *stream.Stream[T]) *stream.Stream[R], opts ...Option) *Harness[T, R] {
	t.Helper()
	c := newConfig(opts)
	env := c.environment()
	jg := c.capture(t, env, func() { build(env.FromSlice[T](nil)).ForEach(func(R) {}) })
	h := &Harness[T, R]{}
	h.Control, h.Recorder = open[R](t, c, jg, 1)
	h.in = newEntry[T](h.Control, 0)
	return h
}

// open builds the operators of a captured plan, whose first nodes stand for the inputs and whose last for the output.
func open[R any](t testing.TB, c *config, jg *plan.JobGraph, inputs int) (*Control, *Recorder[R]) {
	t.Helper()
	control := newControl(t, c, jg, inputs)
	last := jg.Graph.Nodes[len(jg.Graph.Nodes)-1]
	rec := newRecorder[R](control, last.Inputs[0].Produces())
	if err := control.connect(last, link[R]{rec}); err != nil {
		t.Fatal(err)
	}
	if err := control.open(); err != nil {
		t.Fatal(err)
	}
	return control, rec
}

// ProcessElement gives v with a timestamp (ms since 1970, NoTime for none) to the operator.
func (h *Harness[T, R]) ProcessElement(v T, ms int64) {
	h.t.Helper()
	h.check(h.TryProcessElement(v, ms))
}

// TryProcessElement is ProcessElement with the operator's error.
func (h *Harness[T, R]) TryProcessElement(v T, ms int64) error { return h.in.push(At(v, ms)) }

// ProcessElements gives elements to the operator as one run, as they come out of a frame.
func (h *Harness[T, R]) ProcessElements(elements ...Element[T]) {
	h.t.Helper()
	h.check(h.TryProcessElements(elements...))
}

// TryProcessElements is ProcessElements with the operator's error.
func (h *Harness[T, R]) TryProcessElements(elements ...Element[T]) error {
	return h.in.push(elements...)
}

// ProcessWatermark raises the event time to ms since 1970.
func (h *Harness[T, R]) ProcessWatermark(ms int64) {
	h.t.Helper()
	h.check(h.TryProcessWatermark(ms))
}

// TryProcessWatermark is ProcessWatermark with the operator's error.
func (h *Harness[T, R]) TryProcessWatermark(ms int64) error { return h.in.watermark(ms) }

// SetIdle says that the input has no elements for now, or, with false, that it has some again.
func (h *Harness[T, R]) SetIdle(idle bool) {
	h.t.Helper()
	h.check(h.in.idle(idle))
}

// EndInput ends the input: hooks for the end run, and what they emit comes before the end.
func (h *Harness[T, R]) EndInput() {
	h.t.Helper()
	h.check(h.TryEndInput())
}

// TryEndInput is EndInput with the operator's error.
func (h *Harness[T, R]) TryEndInput() error { return h.in.end() }
