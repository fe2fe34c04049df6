package windowing

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
)

// aggregator emits the results of an incremental window function without a context.
type aggregator struct {
	k       *windows.Incremental
	e       *engine
	out     *operator.Output
	sides   *operator.Sides
	emitter operator.Emitter
}

// Aggregate returns the driver of an incremental window function: reduce, aggregate, fold. With an evictor it keeps the
// elements and folds those that are left when a window fires; if none is left, an aggregate or a fold emits the result of
// no element, a reduce nothing.
func Aggregate(spec windows.Spec, d Windows, k *windows.Incremental) operator.Operator {
	o, b, k := newDriver(spec), d.bind(), k.Own()
	a := &aggregator{k: k, e: &o.engine, out: &o.Out, sides: o.sides}
	return o.drive(spec, b, folded(&b, spec.In, k, a.emit), a)
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
		if run.N == 0 { // as Flink: an aggregate of nothing has a result, an element of nothing is none
			if k.Create == nil {
				return nil
			}
			k.Create(acc)
		}
		for i := range run.N {
			k.Add(acc, i == 0, run, i)
		}
		err := emit(w, acc)
		k.Accs.Zero(acc, 1)
		return err
	}}
}

// emit writes the result of an accumulator.
func (a *aggregator) emit(w *view, acc unsafe.Pointer) error {
	key, err := a.e.key()
	if err != nil {
		return err
	}
	if a.emitter.Column.Room() == 0 {
		if err := a.emitter.Flush(); err != nil {
			return err
		}
	}
	a.k.Emit(a.emitter.Column, key, w.p, acc, w.max)
	return nil
}

func (a *aggregator) outputs(rt *operator.Runtime) {
	a.sides.Open(rt)
	a.emitter.Open(a.out)
}

func (a *aggregator) flush() error {
	if err := a.emitter.Flush(); err != nil {
		return err
	}
	return a.sides.Flush()
}

func (*aggregator) open() error       { return nil }
func (*aggregator) clear(*view) error { return nil }
func (*aggregator) close() error      { return nil }
