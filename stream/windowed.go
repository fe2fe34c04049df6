package stream

import (
	"fmt"
	"reflect"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/sessions"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// WindowedStream is a keyed stream whose elements are put into windows, per key, that is being described: methods that
// begin with a noun return a changed copy, a window function (Reduce, Aggregate, Fold, Apply, Process ...) adds the
// operator and gives the stream of its results. Results have the last ms of their window as timestamp.
//
// A window begins with its first element and is dropped once time has passed its end and the allowed lateness. It fires
// when its trigger says so: by default once the watermark (or the clock) has reached its end, and again for each element
// that is late and allowed.
type WindowedStream[T, K any, W window.Window] struct {
	c   *core
	key *operator.Key
	w   *windowSpec
}

// Window puts the elements of each key into windows by their time.
func (s *KeyedStream[T, K]) Window[W window.Window](a window.Assigner[W]) *WindowedStream[T, K, W] {
	return windowed[T, K](s.c, s.key, a)
}

// WindowBy puts the elements of each key into windows by an assigner that looks at them.
func (s *KeyedStream[T, K]) WindowBy[W window.Window](a window.ElementAssigner[T, W]) *WindowedStream[T, K, W] {
	return windowedBy[T, K](s.c, s.key, a)
}

// TimeWindow is Window with windows of that size: tumbling, or sliding if a slide is given. They are of event time, or of
// processing time if that is the environment's (SetStreamTimeCharacteristic).
func (s *KeyedStream[T, K]) TimeWindow[D time.Duration](size D, slide ...D) *WindowedStream[T, K, window.Time] {
	return windowed[T, K](s.c, s.key, timeWindows(s.c.env, size, slide))
}

// CountWindow puts n elements of a key after the other into a window, which fires when it is full and is purged. With a
// slide, it fires after each slide elements of the key, with the last n of them. What is left at the end of the input does
// not fire.
func (s *KeyedStream[T, K]) CountWindow[N int](n N, slide ...N) *WindowedStream[T, K, window.Global] {
	return countWindows(windowed[T, K](s.c, s.key, window.Assigner[window.Global](window.GlobalWindows())), int64(n), slide)
}

func timeWindows[D time.Duration](e *Env, size D, slide []D) window.Assigner[window.Time] {
	if len(slide) > 1 {
		e.report(fmt.Errorf("window by time: %d slides, at most one is possible", len(slide)))
	}
	processing := e.time == ProcessingTime
	switch {
	case len(slide) == 0 && processing:
		return window.TumblingProcessingTime(time.Duration(size))
	case len(slide) == 0:
		return window.Tumbling(time.Duration(size))
	case processing:
		return window.SlidingProcessingTime(time.Duration(size), time.Duration(slide[0]))
	}
	return window.Sliding(time.Duration(size), time.Duration(slide[0]))
}

func countWindows[T, K any, N int](s *WindowedStream[T, K, window.Global], n int64, slide []N) *WindowedStream[T, K, window.Global] {
	switch len(slide) {
	case 0:
		return s.Trigger(window.PurgingTrigger(window.CountTrigger(n)))
	case 1:
		return s.Evictor(window.CountEvictor(n)).Trigger(window.CountTrigger(int64(slide[0])))
	}
	w := s.w.copy()
	w.mistake(fmt.Errorf("window by count: %d slides, at most one is possible", len(slide)))
	return &WindowedStream[T, K, window.Global]{s.c, s.key, w}
}

func windowed[T, K any, W window.Window](c *core, key *operator.Key, a window.Assigner[W]) *WindowedStream[T, K, W] {
	return &WindowedStream[T, K, W]{c, key, newTimeSpec(a)}
}

func windowedBy[T, K any, W window.Window](c *core, key *operator.Key, a window.ElementAssigner[T, W]) *WindowedStream[T, K, W] {
	_, merges := a.(window.Merger[W])
	w := newWindowSpec(a, merges, reflect.TypeFor[W](), windowDefinition[T, W])
	if e, ok := a.(window.ElementSessional[T]); ok && isTime(reflect.TypeFor[W]()) {
		w.gap = &sessions.Gap{Of: func(r *frame.Run, i int) int64 { return e.GapOf((*T)(r.At(i))) }}
	}
	return &WindowedStream[T, K, W]{c, key, w}
}

// Trigger replaces the windows' default trigger, which fires at their end: there is no firing then but what t says.
func (s *WindowedStream[T, K, W]) Trigger(t window.Trigger) *WindowedStream[T, K, W] {
	return &WindowedStream[T, K, W]{s.c, s.key, s.w.triggered(t)}
}

// TriggerBy is Trigger with one that looks at elements.
func (s *WindowedStream[T, K, W]) TriggerBy[E window.ElementTrigger[T]](t E) *WindowedStream[T, K, W] {
	return &WindowedStream[T, K, W]{s.c, s.key, s.w.triggered(window.ElementTrigger[T](t)).defined(windowDefinition[T, W])}
}

// Evictor removes elements from a window when it fires, before the window function or after it. Windows with an evictor
// keep all their elements, also for functions that would need one accumulator.
func (s *WindowedStream[T, K, W]) Evictor(e window.Evictor) *WindowedStream[T, K, W] {
	return &WindowedStream[T, K, W]{s.c, s.key, s.w.evicted(e)}
}

// EvictorBy is Evictor with one that looks at elements.
func (s *WindowedStream[T, K, W]) EvictorBy[E window.ElementEvictor[T]](e E) *WindowedStream[T, K, W] {
	return &WindowedStream[T, K, W]{s.c, s.key, s.w.evicted(window.ElementEvictor[T](e)).defined(windowDefinition[T, W])}
}

// AllowedLateness keeps windows of event time for d after their end; default 0. An element that comes meanwhile is late and
// allowed: the window fires again, with it. Windows of processing time know no lateness.
func (s *WindowedStream[T, K, W]) AllowedLateness(d time.Duration) *WindowedStream[T, K, W] {
	return &WindowedStream[T, K, W]{s.c, s.key, s.w.allow(d)}
}

// KeepInMemory lets the windows be held in the memory of the operator also where the state backend keeps state on disk, if their
// path in a job on a backend in memory would be slices or sessions. They are then as fast as there; all windows that are open must
// fit into memory. Default: the backend keeps them. A savepoint fits both.
func (s *WindowedStream[T, K, W]) KeepInMemory() *WindowedStream[T, K, W] {
	w := s.w.copy()
	w.inMemory = true
	return &WindowedStream[T, K, W]{s.c, s.key, w}
}

// SideOutputLateData sends elements that are too late for their windows to a side output of the result, with their own
// timestamps. Default: they are dropped, and counted by the operator's metric numLateRecordsDropped.
func (s *WindowedStream[T, K, W]) SideOutputLateData(tag process.OutputTag[T]) *WindowedStream[T, K, W] {
	return &WindowedStream[T, K, W]{s.c, s.key, s.w.lateTo(0, tag.Name())}
}
