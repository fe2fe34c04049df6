package flotttest

import (
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/stream"
)

// SourceHarness drives a source by hand, as one subtask; it is otherwise like Harness. What other goroutines do for the source,
// such as reading files, goes on by itself; work that an enumerator repeats is due when the clock is moved.
type SourceHarness[R any] struct {
	*Control
	*Recorder[R]
	source operator.Source
	done   bool
}

// NewSourceHarness opens the source that build makes in the environment, with the operators that build puts behind it. It is closed
// at the end of the test if the test did not close it.
func NewSourceHarness[R any](t testing.TB, build func(env *stream.Env) *stream.Stream[R], opts ...Option) *SourceHarness[R] {
	t.Helper()
	c := newConfig(opts)
	c.shape.source = true
	env := c.environment()
	jg := c.capture(t, env, func() { build(env).ForEach(func(R) {}) })
	h := &SourceHarness[R]{}
	h.Control, h.Recorder = open[R](t, c, jg, 0)
	h.scope.RunLen = 1
	for _, n := range h.order {
		if s, ok := n.op.(operator.Source); ok {
			if h.source != nil {
				t.Fatal("build the source: there are two: drive each in a harness of its own")
			}
			h.source = s
		}
	}
	if h.source == nil {
		t.Fatal("build the source: there is none")
	}
	return h
}

// Poll lets the source emit what it has, an element as a rule, and says whether it has ended: the last watermark and the end have
// come out then.
func (h *SourceHarness[R]) Poll() (ended bool) {
	h.t.Helper()
	ended, err := h.TryPoll()
	h.check(err)
	return ended
}

// TryPoll is Poll with the source's error.
func (h *SourceHarness[R]) TryPoll() (ended bool, err error) {
	_, err = h.poll()
	return h.done, err
}

func (h *SourceHarness[R]) poll() (waits bool, err error) {
	if h.done {
		return false, nil
	}
	err = h.guard(func() error {
		if err := h.letters(); err != nil {
			return err
		}
		h.scope.At = h.order[0].rt
		status, err := h.source.Poll()
		waits = status == operator.Nothing
		if err != nil || status != operator.Done {
			return err
		}
		h.done = true
		out := h.source.Output("")
		if err := out.Mark(frame.Mark{Kind: frame.Watermark, Value: MaxWatermark}); err != nil {
			return err
		}
		return out.Mark(frame.Mark{Kind: frame.End})
	})
	return waits, err
}

// Next polls until n more elements have come out, and waits for what other goroutines have for the source. It says whether they
// have come: a source that ends may have fewer. One that waits for the clock keeps it waiting: move the clock, and Poll.
func (h *SourceHarness[R]) Next(n int) bool {
	h.t.Helper()
	for want := len(h.Elements()) + n; len(h.Elements()) < want; {
		waits, err := h.poll()
		h.check(err)
		if h.done {
			return len(h.Elements()) >= want
		}
		if waits && len(h.Elements()) < want {
			h.scope.Waiter.Wait(host.Idle, host.Forever)
		}
	}
	return true
}
