package stream

import (
	"time"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// JoinedStreams are two streams that are being joined by windows: say Where, EqualTo and Window, then Apply. It is an inner
// join: a result for each pair of elements of the two that have equal keys and share a window. Results have the last ms of
// the window as timestamp. For joins without windows see KeyedStream.IntervalJoin.
type JoinedStreams[A, B any] struct{ c [2]*core }

// JoinedWhere is a join whose first stream has its key.
type JoinedWhere[A, B, K any] struct {
	c   [2]*core
	key *operator.Key
}

// JoinedKeys is a join whose streams have their keys.
type JoinedKeys[A, B, K any] struct {
	c    [2]*core
	keys [2]*operator.Key
}

// JoinedWindows is a join with windows. Methods other than Apply and ApplyFlat return a changed copy.
type JoinedWindows[A, B, K any, W window.Window] struct {
	pairing[A, B, K, W]
}

// Join begins a join by windows of this stream with another one.
func (s *Stream[T]) Join[B any](other *Stream[B]) *JoinedStreams[T, B] {
	return &JoinedStreams[T, B]{s.c.with(other.c)}
}

// Where is the key of the elements of the first stream. See Stream.KeyBy for what can be a key.
func (s *JoinedStreams[A, B]) Where[K comparable](key func(A) K) *JoinedWhere[A, B, K] {
	c, k := whereFirst(s.c, key)
	return &JoinedWhere[A, B, K]{c, k}
}

// EqualTo is the key of the elements of the second stream.
func (s *JoinedWhere[A, B, K]) EqualTo[F func(B) K](key F) *JoinedKeys[A, B, K] {
	c, k := equalToSecond[B, K](s.c, key)
	return &JoinedKeys[A, B, K]{c, [2]*operator.Key{s.key, k}}
}

// Window puts the elements of both streams into windows by their time.
func (s *JoinedKeys[A, B, K]) Window[W window.Window](a window.Assigner[W]) *JoinedWindows[A, B, K, W] {
	return &JoinedWindows[A, B, K, W]{pairs[A, B, K](s.c, s.keys, a)}
}

// WindowBy puts the elements of the streams into windows by assigners that look at them. Windows that merge do it as the
// first one says.
func (s *JoinedKeys[A, B, K]) WindowBy[W window.Window](first window.ElementAssigner[A, W], second window.ElementAssigner[B, W]) *JoinedWindows[A, B, K, W] {
	return &JoinedWindows[A, B, K, W]{pairsBy[A, B, K](s.c, s.keys, first, second)}
}

// Trigger is WindowedStream.Trigger, for the elements of both streams.
func (s *JoinedWindows[A, B, K, W]) Trigger(t window.Trigger) *JoinedWindows[A, B, K, W] {
	return &JoinedWindows[A, B, K, W]{s.with(s.w.triggered(t))}
}

// Evictor is WindowedStream.Evictor, over the elements of both streams in the order in which they came.
func (s *JoinedWindows[A, B, K, W]) Evictor(e window.Evictor) *JoinedWindows[A, B, K, W] {
	return &JoinedWindows[A, B, K, W]{s.with(s.w.evicted(e))}
}

// AllowedLateness is WindowedStream.AllowedLateness: a late element joins again with all that its window holds.
func (s *JoinedWindows[A, B, K, W]) AllowedLateness(d time.Duration) *JoinedWindows[A, B, K, W] {
	return &JoinedWindows[A, B, K, W]{s.with(s.w.allow(d))}
}

// SideOutputLeftLateData sends elements of the first stream, the left one, that are too late for their windows to a side
// output of the result, with their own timestamps. Default: they are dropped, and counted by the operator's metric
// numLateRecordsDropped.
func (s *JoinedWindows[A, B, K, W]) SideOutputLeftLateData(tag process.OutputTag[A]) *JoinedWindows[A, B, K, W] {
	return &JoinedWindows[A, B, K, W]{s.with(s.w.lateTo(0, tag.Name()))}
}

// SideOutputRightLateData is SideOutputLeftLateData for the second stream.
func (s *JoinedWindows[A, B, K, W]) SideOutputRightLateData(tag process.OutputTag[B]) *JoinedWindows[A, B, K, W] {
	return &JoinedWindows[A, B, K, W]{s.with(s.w.lateTo(1, tag.Name()))}
}

// Apply emits f of each pair.
func (s *JoinedWindows[A, B, K, W]) Apply[R any](f func(a A, b B) R) *Stream[R] {
	return grouped(&s.pairing, "Window Join", func(_ window.Info[K, W], as []A, bs []B, emit func(R)) {
		for _, a := range as {
			for _, b := range bs {
				emit(f(a, b))
			}
		}
	})
}

// ApplyFlat emits what f emits for each pair.
func (s *JoinedWindows[A, B, K, W]) ApplyFlat[R any](f func(a A, b B, emit func(R))) *Stream[R] {
	return grouped(&s.pairing, "Window Join", func(_ window.Info[K, W], as []A, bs []B, emit func(R)) {
		for _, a := range as {
			for _, b := range bs {
				f(a, b, emit)
			}
		}
	})
}
