package stream

import (
	"time"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// CoGroupedStreams are two streams that are being grouped together by windows: say Where, EqualTo and Window, then Apply.
// The function gets, for each key and window that has an element of either stream, the elements of both. Results have the
// last ms of the window as timestamp.
type CoGroupedStreams[A, B any] struct{ c [2]*core }

// CoGroupedWhere is a co-group whose first stream has its key.
type CoGroupedWhere[A, B, K any] struct {
	c   [2]*core
	key *operator.Key
}

// CoGroupedKeys is a co-group whose streams have their keys.
type CoGroupedKeys[A, B, K any] struct {
	c    [2]*core
	keys [2]*operator.Key
}

// CoGroupedWindows is a co-group with windows. Methods other than Apply return a changed copy.
type CoGroupedWindows[A, B, K any, W window.Window] struct {
	pairing[A, B, K, W]
}

// CoGroup begins a co-group by windows of this stream with another one.
func (s *Stream[T]) CoGroup[B any](other *Stream[B]) *CoGroupedStreams[T, B] {
	return &CoGroupedStreams[T, B]{s.c.with(other.c)}
}

// Where is the key of the elements of the first stream. See Stream.KeyBy for what can be a key.
func (s *CoGroupedStreams[A, B]) Where[K comparable](key func(A) K) *CoGroupedWhere[A, B, K] {
	c, k := whereFirst(s.c, key)
	return &CoGroupedWhere[A, B, K]{c, k}
}

// EqualTo is the key of the elements of the second stream.
func (s *CoGroupedWhere[A, B, K]) EqualTo[F func(B) K](key F) *CoGroupedKeys[A, B, K] {
	c, k := equalToSecond[B, K](s.c, key)
	return &CoGroupedKeys[A, B, K]{c, [2]*operator.Key{s.key, k}}
}

// Window is JoinedKeys.Window.
func (s *CoGroupedKeys[A, B, K]) Window[W window.Window](a window.Assigner[W]) *CoGroupedWindows[A, B, K, W] {
	return &CoGroupedWindows[A, B, K, W]{pairs[A, B, K](s.c, s.keys, a)}
}

// WindowBy is JoinedKeys.WindowBy.
func (s *CoGroupedKeys[A, B, K]) WindowBy[W window.Window](first window.ElementAssigner[A, W], second window.ElementAssigner[B, W]) *CoGroupedWindows[A, B, K, W] {
	return &CoGroupedWindows[A, B, K, W]{pairsBy[A, B, K](s.c, s.keys, first, second)}
}

// Trigger is WindowedStream.Trigger, for the elements of both streams.
func (s *CoGroupedWindows[A, B, K, W]) Trigger(t window.Trigger) *CoGroupedWindows[A, B, K, W] {
	return &CoGroupedWindows[A, B, K, W]{s.with(s.w.triggered(t))}
}

// Evictor is WindowedStream.Evictor, over the elements of both streams in the order in which they came.
func (s *CoGroupedWindows[A, B, K, W]) Evictor(e window.Evictor) *CoGroupedWindows[A, B, K, W] {
	return &CoGroupedWindows[A, B, K, W]{s.with(s.w.evicted(e))}
}

// AllowedLateness is WindowedStream.AllowedLateness.
func (s *CoGroupedWindows[A, B, K, W]) AllowedLateness(d time.Duration) *CoGroupedWindows[A, B, K, W] {
	return &CoGroupedWindows[A, B, K, W]{s.with(s.w.allow(d))}
}

// SideOutputLeftLateData is JoinedWindows.SideOutputLeftLateData.
func (s *CoGroupedWindows[A, B, K, W]) SideOutputLeftLateData(tag process.OutputTag[A]) *CoGroupedWindows[A, B, K, W] {
	return &CoGroupedWindows[A, B, K, W]{s.with(s.w.lateTo(0, tag.Name()))}
}

// SideOutputRightLateData is JoinedWindows.SideOutputRightLateData.
func (s *CoGroupedWindows[A, B, K, W]) SideOutputRightLateData(tag process.OutputTag[B]) *CoGroupedWindows[A, B, K, W] {
	return &CoGroupedWindows[A, B, K, W]{s.with(s.w.lateTo(1, tag.Name()))}
}

// Apply hands the elements of both streams that share key and window to f, those of each in the order of arrival; one of
// the slices may be empty. They are valid during the call, their elements for ever.
func (s *CoGroupedWindows[A, B, K, W]) Apply[R any](f func(info window.Info[K, W], as []A, bs []B, emit func(R))) *Stream[R] {
	return grouped(&s.pairing, "Window Co-Group", f)
}
