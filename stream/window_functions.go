package stream

import (
	"cmp"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/fields"
	"github.com/flott-dev/flott/internal/operator/windowing"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/window"
)

// Reduce combines the elements of a window, two at a time in the order of arrival, and emits what is left. f gives the
// combination of two elements, or changes the first one in place. One element is kept per window.
func (s *WindowedStream[T, K, W]) Reduce[F func(a, b T) T | func(acc, x *T)](f F) *Stream[T] {
	return reduced(s, combination[T](f), func(x *T, _ *window.Info[K, W], r T) { *x = r })
}

// ReduceWith is Reduce with a function that makes the result of what is left, its key and its window.
func (s *WindowedStream[T, K, W]) ReduceWith[F func(a, b T) T | func(acc, x *T), R any](f F, result func(window.Info[K, W], T) R) *Stream[R] {
	return reduced(s, combination[T](f), func(x *R, i *window.Info[K, W], r T) { *x = result(*i, r) })
}

// ReduceProcess is Reduce with a window function that is given what is left: it sees key, window, time and state.
func (s *WindowedStream[T, K, W]) ReduceProcess[F func(a, b T) T | func(acc, x *T), P window.Function[K, T, W, R], R any](f F, construct func(*window.Runtime) P) *Stream[R] {
	r := reduction[T](combination[T](f))
	k := windows.Program[T, K, W, T, T, T]{Aggregate: r, First: r.first, Emit: func(*T, *window.Info[K, W], T) {}}
	return processed(s, reducingContents, k.Incremental(s.c.typ.Handle), r.Result, construct)
}

// Aggregate folds the elements of a window by an aggregate, in the order of arrival, and emits its result with key and
// window. One accumulator is kept per window.
func (s *WindowedStream[T, K, W]) Aggregate[A, R any](a agg.Aggregate[T, A, R]) *Stream[window.Result[K, W, R]] {
	return aggregated(s, "Window Aggregate", a, results[K, W, R]())
}

// AggregateWith is Aggregate with a function that makes the result of the aggregate's, its key and its window.
func (s *WindowedStream[T, K, W]) AggregateWith[A, R, X any](a agg.Aggregate[T, A, R], result func(window.Info[K, W], R) X) *Stream[X] {
	return aggregated(s, "Window Aggregate", a, func(x *X, i *window.Info[K, W], r R) { *x = result(*i, r) })
}

// AggregateProcess is Aggregate with a window function that is given the aggregate's result: it sees key, window, time and
// state.
func (s *WindowedStream[T, K, W]) AggregateProcess[A, R any, P window.Function[K, R, W, X], X any](a agg.Aggregate[T, A, R], construct func(*window.Runtime) P) *Stream[X] {
	k := windows.Program[T, K, W, A, R, R]{Aggregate: a, Emit: func(*R, *window.Info[K, W], R) {}}
	return processed(s, aggregatingContents, k.Incremental(typeOf[A](s.c.env).Handle), a.Result, construct)
}

// Fold folds the elements of a window in the order of arrival: f(f(init, x1), x2) ... Each window begins with a copy of
// init of its own; f may change what it gets and return it. Results of a fold can't be merged: windows that merge refuse
// it, as in Flink.
func (s *WindowedStream[T, K, W]) Fold[R any](init R, f func(acc R, x T) R) *Stream[window.Result[K, W, R]] {
	return folded(s, init, f, results[K, W, R]())
}

// FoldWith is Fold with a function that makes the result of the fold's, its key and its window.
func (s *WindowedStream[T, K, W]) FoldWith[R, X any](init R, f func(acc R, x T) R, result func(window.Info[K, W], R) X) *Stream[X] {
	return folded(s, init, f, func(x *X, i *window.Info[K, W], r R) { *x = result(*i, r) })
}

// FoldProcess is Fold with a window function that is given the fold's result: it sees key, window, time and state.
func (s *WindowedStream[T, K, W]) FoldProcess[R any, P window.Function[K, R, W, X], X any](init R, f func(acc R, x T) R, construct func(*window.Runtime) P) *Stream[X] {
	a := folding(s, init, f)
	s = &WindowedStream[T, K, W]{s.c, s.key, s.w.withoutMerging()}
	k := windows.Program[T, K, W, R, R, R]{Aggregate: a, NoMerge: true, Emit: func(*R, *window.Info[K, W], R) {}}
	return processed(s, foldingContents, k.Incremental(typeOf[R](s.c.env).Handle), a.Result, construct)
}

// Apply hands all elements of a window, in the order of arrival, to f, which may emit results. All elements are kept until
// the window is gone. xs is valid during the call, its elements for ever.
func (s *WindowedStream[T, K, W]) Apply[R any](f func(info window.Info[K, W], xs []T, emit func(R))) *Stream[R] {
	return buffered(s, "Window Apply", func(*window.Runtime) window.Function[K, T, W, R] { return &applied[K, T, W, R]{f: f} })
}

// Process hands all elements of a window to a window function that construct makes once per subtask: it sees key, window,
// time and side outputs, and declares state of the key or the window.
func (s *WindowedStream[T, K, W]) Process[P window.Function[K, T, W, R], R any](construct func(*window.Runtime) P) *Stream[R] {
	return buffered(s, "Window Process", func(rt *window.Runtime) window.Function[K, T, W, R] { return construct(rt) })
}

// Sum emits the total of sel of a window's elements. Integers wrap around as in Go.
func (s *WindowedStream[T, K, W]) Sum[N Number](sel func(T) N) *Stream[window.Result[K, W, N]] {
	return aggregated(s, "Window Sum", agg.Sum(sel), results[K, W, N]())
}

// Count emits the number of a window's elements.
func (s *WindowedStream[T, K, W]) Count[N int64]() *Stream[window.Result[K, W, int64]] {
	return aggregated(s, "Window Count", agg.Count[T](), results[K, W, int64]())
}

// Min emits the smallest sel of a window's elements. A NaN is greater than every number.
func (s *WindowedStream[T, K, W]) Min[V cmp.Ordered](sel func(T) V) *Stream[window.Result[K, W, V]] {
	return aggregated(s, "Window Min", agg.Min(sel), results[K, W, V]())
}

// Max emits the largest sel of a window's elements. A NaN is greater than every number.
func (s *WindowedStream[T, K, W]) Max[V cmp.Ordered](sel func(T) V) *Stream[window.Result[K, W, V]] {
	return aggregated(s, "Window Max", agg.Max(sel), results[K, W, V]())
}

// MinBy emits the element of a window with the smallest sel. tie says which one of equals, KeepFirst unless given.
func (s *WindowedStream[T, K, W]) MinBy[V cmp.Ordered](sel func(T) V, tie ...Tie) *Stream[T] {
	return chosenBy(s, sel, -1, tie)
}

// MaxBy is MinBy for the largest.
func (s *WindowedStream[T, K, W]) MaxBy[V cmp.Ordered](sel func(T) V, tie ...Tie) *Stream[T] {
	return chosenBy(s, sel, 1, tie)
}

func chosenBy[T, K any, W window.Window, V cmp.Ordered](s *WindowedStream[T, K, W], sel func(T) V, sign int, tie []Tie) *Stream[T] {
	last := s.c.tie(tie) == KeepLast
	return reduced(s, func(acc, x *T) {
		if d := fields.Compare(sel(*x), sel(*acc)); d == sign || last && d == 0 {
			*acc = *x
		}
	}, func(x *T, _ *window.Info[K, W], r T) { *x = r })
}

// results makes results of values. It is out of line, and a function that gives one, so that element types share it.
//
//go:noinline
func results[K any, W window.Window, R any]() func(x *window.Result[K, W, R], i *window.Info[K, W], r R) {
	return func(x *window.Result[K, W, R], i *window.Info[K, W], r R) {
		x.Key, x.Window, x.Value = i.Key, i.Window, r
	}
}

// combination is a reduce function over addresses.
func combination[T any, F func(a, b T) T | func(acc, x *T)](f F) func(acc, x *T) {
	if g, ok := any(f).(func(acc, x *T)); ok {
		return g
	}
	g := any(f).(func(a, b T) T)
	if g == nil {
		return nil
	}
	return func(acc, x *T) { *acc = g(*acc, *x) }
}

// reduction is a reduce function as an aggregate, whose accumulator is an element.
type reduction[T any] func(acc, x *T)

func (f reduction[T]) first(acc, x *T)     { *acc = *x }
func (f reduction[T]) Create() (zero T)    { return zero }
func (f reduction[T]) Add(acc *T, x T)     { f(acc, &x) }
func (f reduction[T]) Merge(acc, other *T) { f(acc, other) }
func (f reduction[T]) Result(acc *T) T     { return *acc }

// fold is a fold function as an aggregate.
type fold[T, R any] struct {
	init func() R
	f    func(acc R, x T) R
}

func (a fold[T, R]) Create() R       { return a.init() }
func (a fold[T, R]) Add(acc *R, x T) { *acc = a.f(*acc, x) }
func (a fold[T, R]) Merge(_, _ *R)   { panic("merge the results of a fold: they can't be merged") }
func (a fold[T, R]) Result(acc *R) R { return *acc }

// applied calls a plain function.
type applied[K, T any, W window.Window, R any] struct {
	f    func(info window.Info[K, W], xs []T, emit func(R))
	emit func(R)
}

func reduced[T, K any, W window.Window, X any](s *WindowedStream[T, K, W], f func(acc, x *T), emit func(*X, *window.Info[K, W], T)) *Stream[X] {
	r := reduction[T](f)
	k := windows.Program[T, K, W, T, T, X]{Aggregate: r, First: r.first, Fold: f, Emit: emit}
	return &Stream[X]{s.c.window(incremental("Window Reduce", reducingContents, k.Incremental(s.c.typ.Handle), s.w), s.w, s.key, typeOf[X](s.c.env))}
}

func aggregated[T, K any, W window.Window, A, R, X any](s *WindowedStream[T, K, W], name string, a agg.Aggregate[T, A, R], emit func(*X, *window.Info[K, W], R)) *Stream[X] {
	k := windows.Program[T, K, W, A, R, X]{Aggregate: a, Emit: emit}
	return &Stream[X]{s.c.window(incremental(name, aggregatingContents, k.Incremental(typeOf[A](s.c.env).Handle), s.w), s.w, s.key, typeOf[X](s.c.env))}
}

func folded[T, K any, W window.Window, R, X any](s *WindowedStream[T, K, W], init R, f func(acc R, x T) R, emit func(*X, *window.Info[K, W], R)) *Stream[X] {
	w := s.w.withoutMerging()
	k := windows.Program[T, K, W, R, R, X]{Aggregate: folding(s, init, f), NoMerge: true, Emit: emit}
	return &Stream[X]{s.c.window(incremental("Window Fold", foldingContents, k.Incremental(typeOf[R](s.c.env).Handle), w), w, s.key, typeOf[X](s.c.env))}
}

func incremental(name, contents string, k *windows.Incremental, w *windowSpec) windowFunction {
	return windowFunction{name, contents, k, func(s windows.Spec) operator.Operator { return windowing.Aggregate(s, w.define(w), k) }}
}

func processed[T, K any, W window.Window, A, R any, P window.Function[K, R, W, X], X any](s *WindowedStream[T, K, W], contents string, k *windows.Incremental, result func(*A) R, construct func(*window.Runtime) P) *Stream[X] {
	w := s.w
	return &Stream[X]{s.c.window(windowFunction{"Window Process", contents, nil, func(d windows.Spec) operator.Operator {
		return windowing.AggregateProcess(d, w.define(w), k, result, func(rt *window.Runtime) window.Function[K, R, W, X] { return construct(rt) })
	}}, w, s.key, typeOf[X](s.c.env))}
}

func buffered[T, K any, W window.Window, X any](s *WindowedStream[T, K, W], name string, construct func(*window.Runtime) window.Function[K, T, W, X]) *Stream[X] {
	w := s.w
	return &Stream[X]{s.c.window(windowFunction{name, listContents, nil, func(d windows.Spec) operator.Operator {
		return windowing.Process(d, w.define(w), construct)
	}}, w, s.key, typeOf[X](s.c.env))}
}
