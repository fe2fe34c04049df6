package co

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

// processor drives a process.CoFunction.
type processor[A, B, R any] struct {
	Unkeyed[process.CoFunction[A, B, R], R]
	choice
	ctx *process.Context
}

// Process returns the driver of a process function on connected streams that are not keyed.
func Process[A, B, R any](in Inputs, out *frame.Type, sides map[string]*frame.Type, construct func(*process.Runtime) process.CoFunction[A, B, R]) operator.Operator {
	o := &processor[A, B, R]{choice: choice{typed: in.Selects}}
	o.Sides = operator.NewSides(sides)
	o.Join(in, out, o, o.push1, o.push2, construct)
	return o
}

func (o *processor[A, B, R]) Open(rt *operator.Runtime) error {
	err := o.Unkeyed.Open(rt)
	o.choose(o.Fn)
	o.ctx = process.NewContext(o.Services)
	return err
}

func (o *processor[A, B, R]) push1(r *frame.Run) error {
	o.called()
	at := r.Hand()
	for i, x := range frame.Values[A](r) {
		*at = i
		o.at(r.Time(i))
		if err := o.Fn.ProcessElement1(o.ctx, x, o.To); err != nil {
			return err
		}
	}
	*at = frame.Passed
	return o.Flush()
}

func (o *processor[A, B, R]) push2(r *frame.Run) error {
	o.called()
	at := r.Hand()
	for i, x := range frame.Values[B](r) {
		*at = i
		o.at(r.Time(i))
		if err := o.Fn.ProcessElement2(o.ctx, x, o.To); err != nil {
			return err
		}
	}
	*at = frame.Passed
	return o.Flush()
}

// EndInput implements Hooks.
func (o *processor[A, B, R]) EndInput(input int) error {
	o.called()
	return o.Unkeyed.EndInput(input)
}

func (o *processor[A, B, R]) at(t int64) {
	o.ctx.SetTime(t)
	o.To.SetTime(t)
}
