package flotttest

import (
	"fmt"
	"testing"

	"github.com/flott-dev/flott/stream"
)

// SinkHarness drives a sink by hand; it is otherwise like Harness. What the sink has done is where it writes to.
type SinkHarness[T any] struct {
	*Control
	*Input[T]
}

// NewSinkHarness opens the sink that build puts behind the stream in, with the operators between. It is closed at the end of the
// test if the test did not close it.
func NewSinkHarness[T any](t testing.TB, build func(in *stream.Stream[T]), opts ...Option) *SinkHarness[T] {
	t.Helper()
	c := newConfig(opts)
	c.shape.sink = true
	env := c.environment()
	jg := c.capture(t, env, func() { build(env.FromSlice[T](nil)) })
	h := &SinkHarness[T]{Control: newControl(t, c, jg, 1)}
	if err := h.open(); err != nil {
		t.Fatal(fmt.Errorf("open the sink: %w", err))
	}
	h.Input = &Input[T]{newEntry[T](h.Control, 0)}
	return h
}
