package windowing

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// function is a subtask's window function with a context: E is what it is given, X what it emits.
type function[K, E any, W window.Window, X any] struct {
	operator.Calls[X]
	construct func(*window.Runtime) window.Function[K, E, W, X]
	e         *engine
	fn        window.Function[K, E, W, X]
	clearer   window.Clearer[K, W] // nil: there is nothing to clear
	ctx       *window.Context[K, W]
	state     space // per window
}

// AggregateProcess returns the driver of an incremental window function whose result goes through a function with a
// context, which is given a slice of one. With an evictor see Aggregate.
func AggregateProcess[K any, W window.Window, A, R, X any](spec windows.Spec, d Windows, k *windows.Incremental, result func(acc *A) R, construct func(*window.Runtime) window.Function[K, R, W, X]) operator.Operator {
	o, b := newDriver(spec), d.bind()
	f := newFunction(o, construct)
	var one [1]R
	c := folded(&b, spec.In, k, func(w *view, acc unsafe.Pointer) error {
		one[0] = result((*A)(acc))
		err := f.call(w, one[:])
		clear(one[:])
		return err
	})
	return o.drive(spec, b, c, f)
}

// Process returns the driver of a window function that is given all elements.
func Process[T, K any, W window.Window, X any](spec windows.Spec, d Windows, construct func(*window.Runtime) window.Function[K, T, W, X]) operator.Operator {
	o, b := newDriver(spec), d.bind()
	f := newFunction(o, construct)
	return o.drive(spec, b, &elements{types: []*frame.Type{spec.In}, evict: b.evict, apply: f.apply}, f)
}

func newFunction[K, E any, W window.Window, X any](o *driver, construct func(*window.Runtime) window.Function[K, E, W, X]) *function[K, E, W, X] {
	f := &function[K, E, W, X]{construct: construct, e: &o.engine}
	f.Init(&o.Out, o.sides)
	return f
}

func (f *function[K, E, W, X]) outputs(rt *operator.Runtime) { f.Calls.Open(rt) }

func (f *function[K, E, W, X]) open() (err error) {
	e := f.e
	f.ctx = window.NewContext[K, W](e.keys.Services())
	f.state = space{prefix: "window ", typ: e.windows.namespace(), hand: &e.at}
	f.fn, err = operator.Construct(e.rt, e.keys.Store(), e.run, func(rt *process.Runtime) window.Function[K, E, W, X] {
		return f.construct(window.NewRuntime(rt, &perWindow{Binder: rt.Host, space: &f.state, run: e.run, merging: e.merging != nil}))
	})
	f.clearer, _ = f.fn.(window.Clearer[K, W])
	return err
}

// at puts the key and window of the engine at hand.
func (f *function[K, E, W, X]) at(w *view) error {
	key, err := f.e.key()
	if err != nil {
		return err
	}
	f.ctx.Set(*(*K)(key), *(*W)(w.p))
	f.state.choose(w)
	f.To.SetTime(w.max)
	return nil
}

// apply hands the elements that the engine shows to the function.
func (f *function[K, E, W, X]) apply(w *view, shown []frame.Run) error {
	return f.call(w, frame.Values[E](&shown[0]))
}

func (f *function[K, E, W, X]) call(w *view, elements []E) error {
	if err := f.at(w); err != nil {
		return err
	}
	return f.fn.Process(f.ctx, elements, f.To)
}

func (f *function[K, E, W, X]) clear(w *view) error {
	if f.clearer == nil {
		return nil
	}
	if err := f.at(w); err != nil {
		return err
	}
	return f.clearer.Clear(f.ctx)
}

func (f *function[K, E, W, X]) flush() error { return f.Send() }

func (f *function[K, E, W, X]) close() error { return operator.CloseFunction(f.fn) }
