package windowing

import (
	"errors"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/window"
)

// coGrouper hands what two streams have in a window to one function. The trigger and the evictor see the elements of both
// in the order of their arrival.
type coGrouper[A, B, K any, W window.Window, X any] struct {
	co.Joint
	operator.Calls[X]
	engine
	f    func(info window.Info[K, W], as []A, bs []B, emit func(X))
	send func(X)
}

// CoGroup returns the driver of windows over two streams that are keyed alike: f is called when a window of a key fires,
// with the elements of either stream, in order of arrival; one of them may have none. Triggers and evictors are those of
// left and may not look at elements; each side has an assigner of its own, of one domain, and windows merge as left's say.
// The operator's watermark is that of both inputs; spec's In and Key are not used, and late elements are dropped.
func CoGroup[A, B, K any, W window.Window, X any](spec windows.Spec, in co.Inputs, keys [2]*operator.Key, left Definition[A, W], right Definition[B, W], f func(info window.Info[K, W], as []A, bs []B, emit func(X))) operator.Operator {
	o := &coGrouper[A, B, K, W, X]{f: f}
	o.Init(&o.Out, operator.NewSides(spec.Sides))
	spec.Late = ""
	b := bindBoth(left, right)
	c := &elements{types: []*frame.Type{in.First, in.Second}, evict: b.evict, apply: o.apply}
	o.engine.init(spec, b, c, o, keys[:]...)
	o.Join(in, spec.Out, o, o.push1, o.push2)
	return o
}

// bindBoth binds two definitions to be one.
func bindBoth[A, B any, W window.Window](left Definition[A, W], right Definition[B, W]) binding {
	b, second := bind(left), bind(right)
	if b.err == nil {
		b.err = second.err
	}
	if b.err == nil && (left.ElementTrigger != nil || left.ElementEvictor != nil) {
		b.err = errors.New("windows over two streams have no trigger or evictor that looks at elements: they are of two types")
	}
	b.assign = append(b.assign, second.assign...)
	return b
}

func (o *coGrouper[A, B, K, W, X]) Output(tag string) *operator.Output { return o.Calls.Output(tag) }

func (o *coGrouper[A, B, K, W, X]) Open(rt *operator.Runtime) error {
	if err := o.Joint.Open(rt); err != nil {
		return err
	}
	o.Calls.Open(rt)
	o.send = o.To.Collect
	return o.engine.open(rt, o.Sides)
}

func (o *coGrouper[A, B, K, W, X]) Close() error { return o.engine.close() }

func (o *coGrouper[A, B, K, W, X]) push1(r *frame.Run) error { return o.keys.Each(r, o.pieces[0]) }

func (o *coGrouper[A, B, K, W, X]) push2(r *frame.Run) error { return o.keys.Each(r, o.pieces[1]) }

// apply hands the elements that the engine shows to the function.
func (o *coGrouper[A, B, K, W, X]) apply(w *view, shown []frame.Run) error {
	key, err := o.key()
	if err != nil {
		return err
	}
	o.To.SetTime(w.max)
	info := window.Info[K, W]{Key: *(*K)(key), Window: *(*W)(w.p)}
	o.f(info, frame.Values[A](&shown[0]), frame.Values[B](&shown[1]), o.send)
	return nil
}

// Advance implements co.Hooks.
func (o *coGrouper[A, B, K, W, X]) Advance(watermark int64) error { return o.advance(watermark) }

// Finish implements co.Hooks.
func (o *coGrouper[A, B, K, W, X]) Finish() error { return nil }

// Forward implements co.Hooks.
func (o *coGrouper[A, B, K, W, X]) Forward(m frame.Mark) error { return o.Calls.Forward(m) }

func (o *coGrouper[A, B, K, W, X]) clear(*view) error { return nil }

func (o *coGrouper[A, B, K, W, X]) flush() error { return o.Send() }
