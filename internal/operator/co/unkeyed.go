package co

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// Unkeyed is embedded by drivers of process functions with two inputs that are not keyed.
type Unkeyed[F, R any] struct {
	Sided[F, R]
	Services *operator.Services // set by Open
	Run      state.CurrentRun   // never at a key

	construct func(*process.Runtime) F
}

// Join sets the driver up; construct makes the function.
func (o *Unkeyed[F, R]) Join(in Inputs, out *frame.Type, driver Driver, push1, push2 func(*frame.Run) error, construct func(*process.Runtime) F) {
	o.Sided.Join(in, out, driver, push1, push2)
	o.Run.Index, o.construct = state.None, construct
}

// Open makes outputs, services and the function.
func (o *Unkeyed[F, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Sided.Open(rt); err != nil {
		return err
	}
	o.Services = operator.NewServices(rt, o.Sides)
	o.Fn, err = operator.Construct(rt, nil, &o.Run, o.construct)
	return err
}

// Flush implements Driver.
func (o *Unkeyed[F, R]) Flush() error {
	if err := o.Run.Take(); err != nil {
		return err
	}
	return o.Send()
}

// Advance implements Hooks.
func (o *Unkeyed[F, R]) Advance(watermark int64) error {
	o.Services.Current = watermark
	return nil
}
