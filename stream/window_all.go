package stream

import (
	"cmp"
	"reflect"
	"time"
	"unsafe"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

// AllWindowedStream is a stream whose elements are all put into windows together, whatever their keys: see
// WindowedStream. Its operator runs as one subtask.
type AllWindowedStream[T any, W window.Window] struct {
	w *WindowedStream[T, window.All, W]
}

// WindowAll puts all elements of the stream into windows by their time. The operator runs as one subtask: window a keyed
// stream where that is too few.
func (s *Stream[T]) WindowAll[W window.Window](a window.Assigner[W]) *AllWindowedStream[T, W] {
	return allWindowed(windowed[T, window.All](s.c, s.c.oneKey(), a))
}

// WindowAllBy is WindowAll with an assigner that looks at elements.
func (s *Stream[T]) WindowAllBy[W window.Window](a window.ElementAssigner[T, W]) *AllWindowedStream[T, W] {
	return allWindowed(windowedBy[T, window.All](s.c, s.c.oneKey(), a))
}

// TimeWindowAll is KeyedStream.TimeWindow over all elements together.
func (s *Stream[T]) TimeWindowAll[D time.Duration](size D, slide ...D) *AllWindowedStream[T, window.Time] {
	return allWindowed(windowed[T, window.All](s.c, s.c.oneKey(), timeWindows(s.c.env, size, slide)))
}

// CountWindowAll is KeyedStream.CountWindow over all elements together.
func (s *Stream[T]) CountWindowAll[N int](n N, slide ...N) *AllWindowedStream[T, window.Global] {
	w := windowed[T, window.All](s.c, s.c.oneKey(), window.Assigner[window.Global](window.GlobalWindows()))
	return allWindowed(countWindows(w, int64(n), slide))
}

// oneKey is the key that all elements have.
func (c *core) oneKey() *operator.Key {
	k, err := serde.KeyOfType(reflect.TypeFor[window.All]())
	if err != nil {
		c.env.report(err)
	}
	return &operator.Key{Key: k, Extract: func() func(*frame.Run) serde.Column {
		return func(r *frame.Run) serde.Column {
			return serde.Column{P: unsafe.Pointer(&window.All{}), N: r.N}
		}
	}}
}

func allWindowed[T any, W window.Window](w *WindowedStream[T, window.All, W]) *AllWindowedStream[T, W] {
	w.w.unkeyed = true // w is new
	return &AllWindowedStream[T, W]{w}
}

// Trigger is WindowedStream.Trigger.
func (s *AllWindowedStream[T, W]) Trigger(t window.Trigger) *AllWindowedStream[T, W] {
	return &AllWindowedStream[T, W]{s.w.Trigger(t)}
}

// TriggerBy is WindowedStream.TriggerBy.
func (s *AllWindowedStream[T, W]) TriggerBy[E window.ElementTrigger[T]](t E) *AllWindowedStream[T, W] {
	return &AllWindowedStream[T, W]{s.w.TriggerBy(t)}
}

// Evictor is WindowedStream.Evictor.
func (s *AllWindowedStream[T, W]) Evictor(e window.Evictor) *AllWindowedStream[T, W] {
	return &AllWindowedStream[T, W]{s.w.Evictor(e)}
}

// EvictorBy is WindowedStream.EvictorBy.
func (s *AllWindowedStream[T, W]) EvictorBy[E window.ElementEvictor[T]](e E) *AllWindowedStream[T, W] {
	return &AllWindowedStream[T, W]{s.w.EvictorBy(e)}
}

// AllowedLateness is WindowedStream.AllowedLateness.
func (s *AllWindowedStream[T, W]) AllowedLateness(d time.Duration) *AllWindowedStream[T, W] {
	return &AllWindowedStream[T, W]{s.w.AllowedLateness(d)}
}

// KeepInMemory is WindowedStream.KeepInMemory.
func (s *AllWindowedStream[T, W]) KeepInMemory() *AllWindowedStream[T, W] {
	return &AllWindowedStream[T, W]{s.w.KeepInMemory()}
}

// SideOutputLateData is WindowedStream.SideOutputLateData.
func (s *AllWindowedStream[T, W]) SideOutputLateData(tag process.OutputTag[T]) *AllWindowedStream[T, W] {
	return &AllWindowedStream[T, W]{s.w.SideOutputLateData(tag)}
}

// Reduce is WindowedStream.Reduce.
func (s *AllWindowedStream[T, W]) Reduce[F func(a, b T) T | func(acc, x *T)](f F) *Stream[T] {
	return s.w.Reduce(f)
}

// ReduceWith is WindowedStream.ReduceWith.
func (s *AllWindowedStream[T, W]) ReduceWith[F func(a, b T) T | func(acc, x *T), R any](f F, result func(W, T) R) *Stream[R] {
	return s.w.ReduceWith(f, func(i window.Info[window.All, W], x T) R { return result(i.Window, x) })
}

// ReduceProcess is WindowedStream.ReduceProcess.
func (s *AllWindowedStream[T, W]) ReduceProcess[F func(a, b T) T | func(acc, x *T), P window.Function[window.All, T, W, R], R any](f F, construct func(*window.Runtime) P) *Stream[R] {
	return s.w.ReduceProcess[F, P, R](f, construct)
}

// Aggregate is WindowedStream.Aggregate.
func (s *AllWindowedStream[T, W]) Aggregate[A, R any](a agg.Aggregate[T, A, R]) *Stream[window.AllResult[W, R]] {
	return aggregated(s.w, "Window Aggregate", a, allResult[W, R])
}

// AggregateWith is WindowedStream.AggregateWith.
func (s *AllWindowedStream[T, W]) AggregateWith[A, R, X any](a agg.Aggregate[T, A, R], result func(W, R) X) *Stream[X] {
	return s.w.AggregateWith(a, func(i window.Info[window.All, W], r R) X { return result(i.Window, r) })
}

// AggregateProcess is WindowedStream.AggregateProcess.
func (s *AllWindowedStream[T, W]) AggregateProcess[A, R any, P window.Function[window.All, R, W, X], X any](a agg.Aggregate[T, A, R], construct func(*window.Runtime) P) *Stream[X] {
	return s.w.AggregateProcess[A, R, P, X](a, construct)
}

// Fold is WindowedStream.Fold.
func (s *AllWindowedStream[T, W]) Fold[R any](init R, f func(acc R, x T) R) *Stream[window.AllResult[W, R]] {
	return folded(s.w, init, f, allResult[W, R])
}

// FoldWith is WindowedStream.FoldWith.
func (s *AllWindowedStream[T, W]) FoldWith[R, X any](init R, f func(acc R, x T) R, result func(W, R) X) *Stream[X] {
	return s.w.FoldWith(init, f, func(i window.Info[window.All, W], r R) X { return result(i.Window, r) })
}

// FoldProcess is WindowedStream.FoldProcess.
func (s *AllWindowedStream[T, W]) FoldProcess[R any, P window.Function[window.All, R, W, X], X any](init R, f func(acc R, x T) R, construct func(*window.Runtime) P) *Stream[X] {
	return s.w.FoldProcess[R, P, X](init, f, construct)
}

// Apply is WindowedStream.Apply.
func (s *AllWindowedStream[T, W]) Apply[R any](f func(w W, xs []T, emit func(R))) *Stream[R] {
	return s.w.Apply(func(i window.Info[window.All, W], xs []T, emit func(R)) { f(i.Window, xs, emit) })
}

// Process is WindowedStream.Process.
func (s *AllWindowedStream[T, W]) Process[P window.Function[window.All, T, W, R], R any](construct func(*window.Runtime) P) *Stream[R] {
	return s.w.Process[P, R](construct)
}

// Sum is WindowedStream.Sum.
func (s *AllWindowedStream[T, W]) Sum[N Number](sel func(T) N) *Stream[window.AllResult[W, N]] {
	return aggregated(s.w, "Window Sum", agg.Sum(sel), allResult[W, N])
}

// Count is WindowedStream.Count.
func (s *AllWindowedStream[T, W]) Count[N int64]() *Stream[window.AllResult[W, int64]] {
	return aggregated(s.w, "Window Count", agg.Count[T](), allResult[W, int64])
}

// Min is WindowedStream.Min.
func (s *AllWindowedStream[T, W]) Min[V cmp.Ordered](sel func(T) V) *Stream[window.AllResult[W, V]] {
	return aggregated(s.w, "Window Min", agg.Min(sel), allResult[W, V])
}

// Max is WindowedStream.Max.
func (s *AllWindowedStream[T, W]) Max[V cmp.Ordered](sel func(T) V) *Stream[window.AllResult[W, V]] {
	return aggregated(s.w, "Window Max", agg.Max(sel), allResult[W, V])
}

// MinBy is WindowedStream.MinBy.
func (s *AllWindowedStream[T, W]) MinBy[V cmp.Ordered](sel func(T) V, tie ...Tie) *Stream[T] {
	return chosenBy(s.w, sel, -1, tie)
}

// MaxBy is WindowedStream.MaxBy.
func (s *AllWindowedStream[T, W]) MaxBy[V cmp.Ordered](sel func(T) V, tie ...Tie) *Stream[T] {
	return chosenBy(s.w, sel, 1, tie)
}

func allResult[W window.Window, R any](x *window.AllResult[W, R], i *window.Info[window.All, W], r R) {
	x.Window, x.Value = i.Window, r
}
