package windowing

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

// aggregator drives an incremental window function without a context.
type aggregator struct {
	operator.Unary
	engine
	k       *windows.Incremental
	sides   *operator.Sides
	emitter operator.Emitter
}

// Aggregate returns the driver of an incremental window function: reduce, aggregate, fold. With an evictor it keeps the
// elements and folds those that are left when a window fires; if none is left, nothing is emitted.
func Aggregate[T any, W window.Window](spec windows.Spec, d Definition[T, W], k *windows.Incremental) operator.Operator {
	return newAggregator(spec, bind(d), k)
}

func newAggregator(spec windows.Spec, b binding, k *windows.Incremental) *aggregator {
	o := &aggregator{
		Unary: operator.Unary{In: spec.In, Out: operator.NewOutput(spec.Out)}, k: k, sides: operator.NewSides(spec.Sides),
	}
	o.engine.init(spec, b, folded(&b, spec.In, k, o.emit), o, spec.Key)
	return o
}

// folded are the contents of an incremental function that emits by emit.
func folded(b *binding, in *frame.Type, k *windows.Incremental, emit func(w *view, acc unsafe.Pointer) error) contents {
	switch {
	case b.evict != nil:
	case k.Acc.Layout == serde.Encoded:
		return &logged{k: k, in: in, emit: emit}
	default:
		return &accumulators{k: k, emit: emit}
	}
	acc := k.Accs.New(1)
	return &elements{types: []*frame.Type{in}, evict: b.evict, apply: func(w *view, shown []frame.Run) error {
		run := &shown[0]
		if run.N == 0 {
			return nil
		}
		for i := range run.N {
			k.Add(acc, i == 0, run, i)
		}
		err := emit(w, acc)
		k.Accs.Zero(acc, 1)
		return err
	}}
}

// Inputs implements operator.Operator.
func (o *aggregator) Inputs() []operator.Input { return []operator.Input{o} }

// Output implements operator.Operator.
func (o *aggregator) Output(tag string) *operator.Output {
	if tag == "" {
		return &o.Out
	}
	return o.sides.Output(tag)
}

// Open implements operator.Operator.
func (o *aggregator) Open(rt *operator.Runtime) error {
	if err := o.Unary.Open(rt); err != nil {
		return err
	}
	o.sides.Open(rt)
	o.emitter.Open(&o.Out)
	return o.engine.open(rt, o.sides)
}

// Close implements operator.Operator.
func (o *aggregator) Close() error { return o.engine.close() }

// Push implements operator.Input.
func (o *aggregator) Push(r *frame.Run) error { return o.keys.Each(r, o.pieces[0]) }

// Mark implements operator.Input.
func (o *aggregator) Mark(m frame.Mark) error {
	if m.Kind == frame.Watermark {
		if err := o.advance(m.Value); err != nil {
			return err
		}
	}
	if err := o.sides.Mark(m); err != nil {
		return err
	}
	return o.Out.Mark(m)
}

// emit writes the result of an accumulator.
func (o *aggregator) emit(w *view, acc unsafe.Pointer) error {
	key, err := o.key()
	if err != nil {
		return err
	}
	if o.emitter.Column.Room() == 0 {
		if err := o.emitter.Flush(); err != nil {
			return err
		}
	}
	o.k.Emit(o.emitter.Column, key, w.p, acc, w.max)
	return nil
}

func (o *aggregator) clear(*view) error { return nil }

func (o *aggregator) flush() error {
	if err := o.emitter.Flush(); err != nil {
		return err
	}
	return o.sides.Flush()
}
