package stream

import (
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// Process implements window.Function.
func (a *applied[K, T, W, R]) Process(ctx *window.Context[K, W], xs []T, out *process.Collector[R]) error {
	if a.emit == nil {
		a.emit = out.Collect
	}
	a.f(window.Info[K, W]{Key: ctx.Key(), Window: ctx.Window()}, xs, a.emit)
	return nil
}

// folding makes every window begin with a copy of init: f may change slices and maps in what it gets.
func folding[T, K any, W window.Window, R any](s *WindowedStream[T, K, W], init R, f func(acc R, x T) R) fold[T, R] {
	h := typeOf[R](s.c.env).Handle
	if !h.Pointers {
		return fold[T, R]{func() R { return init }, f}
	}
	return fold[T, R]{func() R {
		var r R
		if err := h.Clone(unsafe.Pointer(&r), unsafe.Pointer(&init)); err != nil {
			panic(fmt.Errorf("copy the initial value of a fold: %w", err))
		}
		return r
	}, f}
}

// withoutMerging is the description for a fold: windows that merge are a mistake.
//
//go:noinline
func (w *windowSpec) withoutMerging() *windowSpec {
	if !w.merges {
		return w
	}
	w = w.copy()
	w.mistake(fmt.Errorf("fold windows by %s: they merge, and results of a fold can't be merged (use Aggregate)", called(w.assigner)))
	return w
}
