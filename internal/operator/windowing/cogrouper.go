package windowing

import (
	"errors"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/window"
)

// coGrouper hands what two streams have in a window to one function.
type coGrouper[A, B, K any, W window.Window, X any] struct {
	operator.Calls[X]
	e    *engine
	f    func(info window.Info[K, W], as []A, bs []B, emit func(X))
	send func(X)
}

// CoGroup returns the driver of windows over two streams that are keyed alike: f is called when a window of a key fires,
// with the elements of either stream, in order of arrival; one of them may have none. The trigger and the evictor are those
// of left; they see the elements of both streams in the order of their arrival, and may not look at them. Each side has an
// assigner of its own, both of one domain, and windows merge as left's say. The operator's watermark is that of both
// inputs; spec's In, Second and Key are not used.
func CoGroup[A, B, K any, W window.Window, X any](spec windows.Spec, in co.Inputs, keys [2]*operator.Key, left, right Windows, f func(info window.Info[K, W], as []A, bs []B, emit func(X))) operator.Operator {
	o, b := newJoint(spec, in), bindBoth(left.bind(), right.bind())
	g := &coGrouper[A, B, K, W, X]{e: &o.engine, f: f}
	g.Init(&o.Out, o.sides)
	spec.In, spec.Second = in.First, in.Second
	o.engine.init(spec, b, &elements{types: []*frame.Type{in.First, in.Second}, evict: b.evict, apply: g.apply}, g, keys[:]...)
	return o
}

// bindBoth makes one of two bindings.
func bindBoth(left, right binding) binding {
	if right.err != nil {
		left.fail(right.err)
	}
	if left.looks {
		left.fail(errors.New("windows over two streams have no trigger or evictor that looks at elements: they are of two types"))
	}
	left.assign = append(left.assign, right.assign...)
	return left
}

func (g *coGrouper[A, B, K, W, X]) outputs(rt *operator.Runtime) {
	g.Calls.Open(rt)
	g.send = g.To.Collect
}

// apply hands the elements that the engine shows to the function.
func (g *coGrouper[A, B, K, W, X]) apply(w *view, shown []frame.Run) error {
	key, err := g.e.key()
	if err != nil {
		return err
	}
	g.To.SetTime(w.max)
	info := window.Info[K, W]{Key: *(*K)(key), Window: *(*W)(w.p)}
	g.f(info, frame.Values[A](&shown[0]), frame.Values[B](&shown[1]), g.send)
	return nil
}

func (g *coGrouper[A, B, K, W, X]) flush() error    { return g.Send() }
func (*coGrouper[A, B, K, W, X]) open() error       { return nil }
func (*coGrouper[A, B, K, W, X]) clear(*view) error { return nil }
func (*coGrouper[A, B, K, W, X]) close() error      { return nil }
