package windowing

import (
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/window"
)

// function is a subtask's window function: E is what it is given, X what it emits.
type function[K, E any, W window.Window, X any] struct {
	operator.Calls[X]
	construct func(*window.Runtime) window.Function[K, E, W, X]
	e         *engine
	fn        window.Function[K, E, W, X]
	clearer   window.Clearer[K, W] // nil: there is nothing to clear
	ctx       *window.Context[K, W]
	state     space // per window
}

// open constructs the function; the engine must be open.
func (f *function[K, E, W, X]) open(e *engine) (err error) {
	f.e = e
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

// call hands the contents of a window to the function.
func (f *function[K, E, W, X]) call(w *view, elements []E) error {
	if err := f.at(w); err != nil {
		return err
	}
	return f.fn.Process(f.ctx, elements, f.To)
}

// clear calls the function's hook for a window that is gone.
func (f *function[K, E, W, X]) clear(w *view) error {
	if f.clearer == nil {
		return nil
	}
	if err := f.at(w); err != nil {
		return err
	}
	return f.clearer.Clear(f.ctx)
}

// processor drives a window function with a context.
type processor[K, E any, W window.Window, X any] struct {
	operator.Unary
	engine
	function[K, E, W, X]
	one [1]E // the result of an accumulator
}

// AggregateProcess returns the driver of an incremental window function whose result goes through a function with a
// context, which is given a slice of one. With an evictor see Aggregate.
func AggregateProcess[T, K any, W window.Window, A, R, X any](spec windows.Spec, d Definition[T, W], k *windows.Incremental, result func(acc *A) R, construct func(*window.Runtime) window.Function[K, R, W, X]) operator.Operator {
	o := newProcessor(spec, construct)
	b := bind(d)
	o.engine.init(spec, b, folded(&b, spec.In, k, func(w *view, acc unsafe.Pointer) error {
		o.one[0] = result((*A)(acc))
		err := o.call(w, o.one[:])
		clear(o.one[:])
		return err
	}), o, spec.Key)
	return o
}

// Process returns the driver of a window function that is given all elements.
func Process[T, K any, W window.Window, X any](spec windows.Spec, d Definition[T, W], construct func(*window.Runtime) window.Function[K, T, W, X]) operator.Operator {
	o := newProcessor(spec, construct)
	b := bind(d)
	c := &elements{types: []*frame.Type{spec.In}, evict: b.evict, apply: func(w *view, shown []frame.Run) error {
		return o.call(w, frame.Values[T](&shown[0]))
	}}
	o.engine.init(spec, b, c, o, spec.Key)
	return o
}

func newProcessor[K, E any, W window.Window, X any](spec windows.Spec, construct func(*window.Runtime) window.Function[K, E, W, X]) *processor[K, E, W, X] {
	o := &processor[K, E, W, X]{Unary: operator.Unary{In: spec.In, Out: operator.NewOutput(spec.Out)}}
	o.construct = construct
	o.Init(&o.Out, operator.NewSides(spec.Sides))
	return o
}

func (o *processor[K, E, W, X]) Inputs() []operator.Input { return []operator.Input{o} }

func (o *processor[K, E, W, X]) Output(tag string) *operator.Output { return o.Calls.Output(tag) }

func (o *processor[K, E, W, X]) Open(rt *operator.Runtime) error {
	if err := o.Unary.Open(rt); err != nil {
		return err
	}
	o.Calls.Open(rt)
	if err := o.engine.open(rt, o.Sides); err != nil {
		return err
	}
	return o.function.open(&o.engine)
}

func (o *processor[K, E, W, X]) Close() error {
	err := operator.CloseFunction(o.fn)
	if e := o.engine.close(); err == nil {
		err = e
	}
	return err
}

func (o *processor[K, E, W, X]) Push(r *frame.Run) error { return o.keys.Each(r, o.pieces[0]) }

func (o *processor[K, E, W, X]) Mark(m frame.Mark) error {
	if m.Kind == frame.Watermark {
		if err := o.advance(m.Value); err != nil {
			return err
		}
	}
	return o.Forward(m)
}

func (o *processor[K, E, W, X]) clear(w *view) error { return o.function.clear(w) }

func (o *processor[K, E, W, X]) flush() error { return o.Send() }
