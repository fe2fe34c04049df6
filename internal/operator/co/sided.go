package co

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

// Sided is embedded by drivers of process functions with two inputs: the joint, the function and what it emits to. F is
// the function, R what it emits. The driver sets Sides before Join; it is its own Hooks, whose Flush ends a stretch of
// user calls.
type Sided[F, R any] struct {
	Joint
	operator.Calls[R]
	Fn F

	driver Driver
}

// Driver is a driver that embeds Sided.
type Driver interface {
	Hooks
	// Flush ends a stretch of user calls: failed accesses first, then what was emitted.
	Flush() error
}

// Join sets the joint up, as Joint's does.
func (o *Sided[F, R]) Join(in Inputs, out *frame.Type, driver Driver, push1, push2 func(*frame.Run) error) {
	o.Joint.Join(in, out, driver, push1, push2)
	o.Init(&o.Out, o.Sides)
	o.driver = driver
}

// Output implements operator.Operator.
func (o *Sided[F, R]) Output(tag string) *operator.Output { return o.Calls.Output(tag) }

// Open makes the outputs; the driver constructs Fn.
func (o *Sided[F, R]) Open(rt *operator.Runtime) error {
	err := o.Joint.Open(rt)
	o.Calls.Open(rt)
	return err
}

// Close closes the function if it can be.
func (o *Sided[F, R]) Close() error { return operator.CloseFunction(o.Fn) }

// Ended calls the function's hook for the end of an input, if it has one.
func (o *Sided[F, R]) Ended(input int) error {
	o.To.SetTime(frame.NoTime)
	if input == 0 {
		if f, ok := any(o.Fn).(process.Input1Ender[R]); ok {
			return f.EndInput1(o.To)
		}
		return nil
	}
	if f, ok := any(o.Fn).(process.Input2Ender[R]); ok {
		return f.EndInput2(o.To)
	}
	return nil
}

// Finished calls the function's hook for the end of the operator, if it has one.
func (o *Sided[F, R]) Finished() error { return o.Calls.Finish(o.Fn) }

// EndInput implements Hooks.
func (o *Sided[F, R]) EndInput(input int) error {
	if err := o.Ended(input); err != nil {
		return err
	}
	return o.driver.Flush()
}

// Finish implements Hooks.
func (o *Sided[F, R]) Finish() error {
	if err := o.Finished(); err != nil {
		return err
	}
	return o.driver.Flush()
}

// Forward implements Hooks: marks go to side outputs as well.
func (o *Sided[F, R]) Forward(m frame.Mark) error { return o.Calls.Forward(m) }
