package co

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// processor drives a process.CoFunction.
type processor[A, B, R any] struct {
	Sided[process.CoFunction[A, B, R], R]
	construct func(*process.Runtime) process.CoFunction[A, B, R]
	services  *operator.Services
	ctx       *process.Context
	run       state.CurrentRun
}

// Process returns the driver of a process function on connected streams that are not keyed.
func Process[A, B, R any](in Inputs, out *frame.Type, sides map[string]*frame.Type, construct func(*process.Runtime) process.CoFunction[A, B, R]) operator.Operator {
	o := &processor[A, B, R]{construct: construct, run: state.CurrentRun{Index: state.None}}
	o.Sides = operator.NewSides(sides)
	o.Join(in, out, o, o.push1, o.push2)
	return o
}

func (o *processor[A, B, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Sided.Open(rt); err != nil {
		return err
	}
	o.services = operator.NewServices(rt, o.Sides)
	o.ctx = process.NewContext(o.services)
	o.Fn, err = operator.Construct(rt, nil, &o.run, o.construct)
	return err
}

func (o *processor[A, B, R]) push1(r *frame.Run) error {
	for i, x := range frame.Values[A](r) {
		o.at(r.Time(i))
		if err := o.Fn.ProcessElement1(o.ctx, x, o.To); err != nil {
			return err
		}
	}
	return o.flush()
}

func (o *processor[A, B, R]) push2(r *frame.Run) error {
	for i, x := range frame.Values[B](r) {
		o.at(r.Time(i))
		if err := o.Fn.ProcessElement2(o.ctx, x, o.To); err != nil {
			return err
		}
	}
	return o.flush()
}

func (o *processor[A, B, R]) at(t int64) {
	o.ctx.SetTime(t)
	o.To.SetTime(t)
}

// flush ends a stretch of user calls: failed accesses first, then what was emitted.
func (o *processor[A, B, R]) flush() error {
	if err := o.run.Take(); err != nil {
		return err
	}
	return o.Send()
}

// Advance implements Hooks.
func (o *processor[A, B, R]) Advance(watermark int64) error {
	o.services.Current = watermark
	return nil
}

// EndInput implements Hooks.
func (o *processor[A, B, R]) EndInput(input int) error {
	if err := o.Ended(input); err != nil {
		return err
	}
	return o.flush()
}

// Finish implements Hooks.
func (o *processor[A, B, R]) Finish() error {
	if err := o.Finished(); err != nil {
		return err
	}
	return o.flush()
}
