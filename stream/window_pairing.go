package stream

import (
	"reflect"
	"time"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windowing"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/window"
)

// pairing is what was said of two streams that share windows.
type pairing[A, B, K any, W window.Window] struct {
	c      [2]*core
	keys   [2]*operator.Key
	first  windowing.Definition[A, W]
	second windowing.Definition[B, W]
	w      windowSpec
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
	_, merges := a.(window.Merger[W])
	p := pairing[A, B, K, W]{c: c, keys: keys, w: newWindowSpec(a, merges, reflect.TypeFor[W]())}
	if p.w.unassigned {
		return p
	}
	p.first.Assigner, p.second.Assigner, p.w.domain = a, a, a.Domain()
	return p
}

func pairsBy[A, B, K any, W window.Window](c [2]*core, keys [2]*operator.Key, first window.ElementAssigner[A, W], second window.ElementAssigner[B, W]) pairing[A, B, K, W] {
	_, merges := first.(window.Merger[W])
	p := pairing[A, B, K, W]{c: c, keys: keys, w: newWindowSpec(first, merges, reflect.TypeFor[W]())}
	other := newWindowSpec(second, merges, reflect.TypeFor[W]())
	p.w.mistakes = append(p.w.mistakes, other.mistakes...)
	if p.w.unassigned = p.w.unassigned || other.unassigned; p.w.unassigned {
		return p
	}
	p.first.ElementAssigner, p.second.ElementAssigner, p.w.domain = first, second, first.Domain()
	return p
}

func (p *pairing[A, B, K, W]) trigger(t window.Trigger) pairing[A, B, K, W] {
	d := *p
	d.first.Trigger = t
	d.w.triggered(t)
	return d
}

func (p *pairing[A, B, K, W]) evictor(e window.Evictor) pairing[A, B, K, W] {
	d := *p
	d.first.Evictor = e
	d.w.evicted(e)
	return d
}

func (p *pairing[A, B, K, W]) allowedLateness(l time.Duration) pairing[A, B, K, W] {
	d := *p
	d.w.allow(l)
	return d
}

// grouped adds the operator.
func grouped[A, B, K any, W window.Window, R any](p *pairing[A, B, K, W], name string, f func(info window.Info[K, W], as []A, bs []B, emit func(R))) *Stream[R] {
	in, keys, first, second := inputs(p.c), p.keys, p.first, p.second
	return &Stream[R]{pair(name, p.c, p.w, keys, typeOf[R](p.c[0].env), func(s windows.Spec) operator.Operator {
		return windowing.CoGroup(s, in, keys, first, second, f)
	})}
}
