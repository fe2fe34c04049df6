package co

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

// Sided is embedded by drivers of process functions with two inputs: the joint, the output that functions collect to, and
// side outputs. F is the function, R what it emits.
type Sided[F, R any] struct {
	Joint
	Fn    F
	Sides *operator.Sides
	To    *process.Collector[R]

	emitter operator.Emitter
}

// Output implements operator.Operator.
func (o *Sided[F, R]) Output(tag string) *operator.Output {
	if tag == "" {
		return &o.Out
	}
	return o.Sides.Output(tag)
}

// Open makes the outputs; the driver constructs Fn.
func (o *Sided[F, R]) Open(rt *operator.Runtime) error {
	err := o.Joint.Open(rt)
	o.Sides.Open(rt)
	o.emitter.Open(&o.Out)
	o.To = process.NewCollector[R](o.emitter.Column, o.emitter.Flush)
	return err
}

// Close closes the function if it can be.
func (o *Sided[F, R]) Close() error {
	if c, ok := any(o.Fn).(process.Closer); ok {
		return c.Close()
	}
	return nil
}

// Send pushes what was emitted.
func (o *Sided[F, R]) Send() error {
	if err := o.To.Flush(); err != nil {
		return err
	}
	return o.Sides.Flush()
}

// Ended calls the function's hook for the end of an input, if it has one; the driver flushes.
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

// Finished calls the function's hook for the end of the operator, if it has one; the driver flushes.
func (o *Sided[F, R]) Finished() error {
	o.To.SetTime(frame.NoTime)
	if f, ok := any(o.Fn).(process.Finisher[R]); ok {
		return f.Finish(o.To)
	}
	return nil
}

// Forward implements Hooks: marks go to side outputs as well.
func (o *Sided[F, R]) Forward(m frame.Mark) error {
	if err := o.Sides.Mark(m); err != nil {
		return err
	}
	return o.Out.Mark(m)
}
