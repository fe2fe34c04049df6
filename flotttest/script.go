package flotttest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/flott-dev/flott/stream"
)

// Script is what a subtask of a scripted source does, step by step: elements, watermarks, idleness, and pauses until the
// test lets it go on. Its methods return the script, so that steps can be chained. It is written before the job begins;
// Await and Resume may be called from any goroutine.
type Script[T any] struct {
	steps  []step[T]
	pauses map[string]*pause
}

// step is one line of a script.
type step[T any] struct {
	kind    stepKind
	element Element[T]
	ms      int64
	pause   *pause
}

type stepKind uint8

const (
	stepElement stepKind = iota
	stepWatermark
	stepIdle
	stepCut
	stepPause
)

// pause is a point at which the source waits.
type pause struct {
	reach, resume     sync.Once
	reached, resuming chan struct{}
}

// NewScript returns an empty script: a source that ends at once.
func NewScript[T any]() *Script[T] { return &Script[T]{pauses: map[string]*pause{}} }

// Emit emits elements without timestamps.
func (s *Script[T]) Emit(xs ...T) *Script[T] {
	for _, x := range xs {
		s.EmitElements(Untimed(x))
	}
	return s
}

// EmitAt emits x with a timestamp in ms since 1970.
func (s *Script[T]) EmitAt(x T, ms int64) *Script[T] { return s.EmitElements(At(x, ms)) }

// EmitElements emits elements.
func (s *Script[T]) EmitElements(xs ...Element[T]) *Script[T] {
	for _, x := range xs {
		s.steps = append(s.steps, step[T]{kind: stepElement, element: x})
	}
	return s
}

// Watermark says that no element with a timestamp <= ms follows. The last watermark, MaxWatermark, comes by itself at the
// end.
func (s *Script[T]) Watermark(ms int64) *Script[T] {
	s.steps = append(s.steps, step[T]{kind: stepWatermark, ms: ms})
	return s
}

// Idle says that there may be no element for long; the next one ends that.
func (s *Script[T]) Idle() *Script[T] {
	s.steps = append(s.steps, step[T]{kind: stepIdle})
	return s
}

// Cut ends the run at hand: elements before and after come to operators in runs of their own, and with a buffer timeout
// of 0 in frames of their own.
func (s *Script[T]) Cut() *Script[T] {
	s.steps = append(s.steps, step[T]{kind: stepCut})
	return s
}

// Pause stops the source at a point of that name until Resume. What was emitted before goes on its way.
func (s *Script[T]) Pause(name string) *Script[T] {
	p := &pause{reached: make(chan struct{}), resuming: make(chan struct{})}
	if s.pauses[name] != nil {
		panic(fmt.Sprintf("flotttest: a script has two pauses %q", name))
	}
	s.pauses[name] = p
	s.steps = append(s.steps, step[T]{kind: stepPause, pause: p})
	return s
}

// Await waits until the source has reached the pause. It fails the test if the test's context ends before.
func (s *Script[T]) Await(t testing.TB, name string) {
	t.Helper()
	select {
	case <-s.at(name).reached:
	case <-t.Context().Done():
		t.Fatalf("wait for the script to reach pause %q: %v", name, context.Cause(t.Context()))
	}
}

// Resume lets the source go on from the pause; called before, it will not stop there.
func (s *Script[T]) Resume(name string) {
	p := s.at(name)
	p.resume.Do(func() { close(p.resuming) })
}

func (s *Script[T]) at(name string) *pause {
	p := s.pauses[name]
	if p == nil {
		panic(fmt.Sprintf("flotttest: a script has no pause %q", name))
	}
	return p
}

// FromScripts is the stream of a scripted source with as many subtasks as scripts.
func FromScripts[T any](env *stream.Env, scripts ...*Script[T]) *stream.Stream[T] {
	return env.FromSource(NewSource(scripts...), "script").Parallelism(max(1, len(scripts)))
}
