package windowing

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	"github.com/flott-dev/flott/internal/operator/windows"
)

// user is the side of a driver that knows the user's function.
type user interface {
	// outputs makes what the function emits to; the main output is bound.
	outputs(rt *operator.Runtime)
	// open makes the function; the engine is open.
	open() error
	// clear calls the function's hook for a window that is gone.
	clear(w *view) error
	// flush pushes what was emitted.
	flush() error
	// close closes the function, if there is one.
	close() error
}

// driver is a windowed operator with one input.
type driver struct {
	operator.Unary
	engine
	sides *operator.Sides
}

func newDriver(spec windows.Spec) *driver {
	return &driver{
		Unary: operator.Unary{In: spec.In, Out: operator.NewOutput(spec.Out)}, sides: operator.NewSides(spec.Sides),
	}
}

// drive completes a driver.
func (o *driver) drive(spec windows.Spec, b binding, c contents, u user) operator.Operator {
	o.engine.init(spec, b, c, u, spec.Key)
	return o
}

// Inputs implements operator.Operator.
func (o *driver) Inputs() []operator.Input { return []operator.Input{o} }

// Output implements operator.Operator.
func (o *driver) Output(tag string) *operator.Output {
	if tag == "" {
		return &o.Out
	}
	return o.sides.Output(tag)
}

// Open implements operator.Operator.
func (o *driver) Open(rt *operator.Runtime) error {
	if err := o.Unary.Open(rt); err != nil {
		return err
	}
	return o.engine.open(rt, o.sides)
}

// Close implements operator.Operator.
func (o *driver) Close() error { return o.engine.close() }

// Push implements operator.Input.
func (o *driver) Push(r *frame.Run) error { return o.keys.Each(r, o.pieces[0]) }

// Mark implements operator.Input.
func (o *driver) Mark(m frame.Mark) error {
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

// joint is a windowed operator with two inputs.
type joint struct {
	co.Joint
	engine
	sides *operator.Sides
}

func newJoint(spec windows.Spec, in co.Inputs) *joint {
	o := &joint{sides: operator.NewSides(spec.Sides)}
	o.Join(in, spec.Out, o,
		func(r *frame.Run) error { return o.keys.Each(r, o.pieces[0]) },
		func(r *frame.Run) error { return o.keys.Each(r, o.pieces[1]) })
	return o
}

// Output implements operator.Operator.
func (o *joint) Output(tag string) *operator.Output {
	if tag == "" {
		return &o.Out
	}
	return o.sides.Output(tag)
}

// Open implements operator.Operator.
func (o *joint) Open(rt *operator.Runtime) error {
	if err := o.Joint.Open(rt); err != nil {
		return err
	}
	return o.engine.open(rt, o.sides)
}

// Close implements operator.Operator.
func (o *joint) Close() error { return o.engine.close() }

// Advance implements co.Hooks.
func (o *joint) Advance(watermark int64) error { return o.advance(watermark) }

// Forward implements co.Hooks.
func (o *joint) Forward(m frame.Mark) error {
	if err := o.sides.Mark(m); err != nil {
		return err
	}
	return o.Out.Mark(m)
}
