package stream

import (
	"reflect"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windowing"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/window"
)

// pairing is what was said of two streams that share windows.
type pairing[A, B, K any, W window.Window] struct {
	c      [2]*core
	keys   [2]*operator.Key
	w      *windowSpec
	second *windowSpec // the assigner of the second stream
}

func whereFirst[A any, K comparable](c [2]*core, key func(A) K) ([2]*core, *operator.Key) {
	k := (&Stream[A]{c[0]}).KeyBy(key)
	return [2]*core{k.c, c[1]}, k.key
}

// equalToSecond keys the second stream; K came with the key of the first one and can be one.
func equalToSecond[B, K any](c [2]*core, key func(B) K) ([2]*core, *operator.Key) {
	k := keyBy[B, K](c[1], extractor(key))
	return [2]*core{c[0], k.c}, k.key
}

func pairs[A, B, K any, W window.Window](c [2]*core, keys [2]*operator.Key, a window.Assigner[W]) pairing[A, B, K, W] {
	w := newTimeSpec(a)
	return pairing[A, B, K, W]{c, keys, w, w}
}

func pairsBy[A, B, K any, W window.Window](c [2]*core, keys [2]*operator.Key, first window.ElementAssigner[A, W], second window.ElementAssigner[B, W]) pairing[A, B, K, W] {
	_, merges := first.(window.Merger[W])
	w := newWindowSpec(first, merges, reflect.TypeFor[W](), windowDefinition[A, W])
	other := newWindowSpec(second, merges, reflect.TypeFor[W](), windowDefinition[B, W])
	w.mistakes = append(w.mistakes, other.mistakes...)
	w.unassigned = w.unassigned || other.unassigned
	return pairing[A, B, K, W]{c, keys, w, other}
}

func (p *pairing[A, B, K, W]) with(w *windowSpec) pairing[A, B, K, W] {
	return pairing[A, B, K, W]{p.c, p.keys, w, p.second}
}

// grouped adds the operator.
func grouped[A, B, K any, W window.Window, R any](p *pairing[A, B, K, W], name string, f func(info window.Info[K, W], as []A, bs []B, emit func(R))) *Stream[R] {
	in, keys, w, second := inputs(p.c), p.keys, p.w, p.second
	return &Stream[R]{pair(name, p.c, w, keys, typeOf[R](p.c[0].env), func(s windows.Spec) operator.Operator {
		return windowing.CoGroup(s, in, keys, w.define(w), second.define(second), f)
	})}
}
