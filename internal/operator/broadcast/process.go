// Package broadcast holds the drivers of functions that read a stream together with a broadcast stream and the state that
// the latter fills. Input 0 is the stream, input 1 the broadcast stream. It owns the broadcast states of a subtask; what
// they are is package state's, how two inputs become one operator is package co's.
package broadcast

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// processor drives a process.BroadcastFunction.
type processor[T, B, R any] struct {
	co.Sided[process.BroadcastFunction[T, B, R], R]
	declared  []process.BroadcastDescriptor
	construct func(*process.Runtime) process.BroadcastFunction[T, B, R]
	services  *operator.Services
	reader    *process.ReadOnlyContext
	writer    *process.BroadcastContext
	run       state.CurrentRun
}

// Process returns the driver of a broadcast function on a stream that is not keyed.
func Process[T, B, R any](in co.Inputs, out *frame.Type, declared []process.BroadcastDescriptor, sides map[string]*frame.Type, construct func(*process.Runtime) process.BroadcastFunction[T, B, R]) operator.Operator {
	o := &processor[T, B, R]{declared: declared, construct: construct, run: state.CurrentRun{Index: state.None}}
	o.Sides = operator.NewSides(sides)
	o.Join(in, out, o, o.push, o.pushBroadcast)
	return o
}

func (o *processor[T, B, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Sided.Open(rt); err != nil {
		return err
	}
	o.services = operator.NewServices(rt, o.Sides)
	states := process.NewBroadcastStates(o.declared, o.run.Fail)
	o.reader = process.NewReadOnlyContext(o.services, states)
	o.writer = process.NewBroadcastContext(o.services, states)
	o.Fn, err = operator.Construct(rt, nil, &o.run, o.construct)
	return err
}

func (o *processor[T, B, R]) push(r *frame.Run) error {
	for i, x := range frame.Values[T](r) {
		t := r.Time(i)
		o.reader.SetTime(t)
		o.To.SetTime(t)
		if err := o.Fn.ProcessElement(o.reader, x, o.To); err != nil {
			return err
		}
	}
	return o.flush()
}

func (o *processor[T, B, R]) pushBroadcast(r *frame.Run) error {
	for i, x := range frame.Values[B](r) {
		t := r.Time(i)
		o.writer.SetTime(t)
		o.To.SetTime(t)
		if err := o.Fn.ProcessBroadcastElement(o.writer, x, o.To); err != nil {
			return err
		}
	}
	return o.flush()
}

// flush ends a stretch of user calls: failed accesses first, then what was emitted.
func (o *processor[T, B, R]) flush() error {
	if err := o.run.Take(); err != nil {
		return err
	}
	return o.Send()
}

// Advance implements co.Hooks.
func (o *processor[T, B, R]) Advance(watermark int64) error {
	o.services.Current = watermark
	return nil
}

// EndInput implements co.Hooks.
func (o *processor[T, B, R]) EndInput(input int) error {
	if err := o.Ended(input); err != nil {
		return err
	}
	return o.flush()
}

// Finish implements co.Hooks.
func (o *processor[T, B, R]) Finish() error {
	if err := o.Finished(); err != nil {
		return err
	}
	return o.flush()
}
