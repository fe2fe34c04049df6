// Package broadcast holds the drivers of functions that read a stream together with a broadcast stream and the state that
// the latter fills. Input 0 is the stream, input 1 the broadcast stream. It owns the broadcast states of a subtask; what
// they are is package state's, how two inputs become one operator is package co's.
package broadcast

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	"github.com/flott-dev/flott/process"
)

// processor drives a process.BroadcastFunction.
type processor[T, B, R any] struct {
	co.Unkeyed[process.BroadcastFunction[T, B, R], R]
	declared []process.BroadcastDescriptor
	reader   *process.ReadOnlyContext
	writer   *process.BroadcastContext
	states   *process.BroadcastStates
}

// Process returns the driver of a broadcast function on a stream that is not keyed.
func Process[T, B, R any](in co.Inputs, out *frame.Type, declared []process.BroadcastDescriptor, sides map[string]*frame.Type, construct func(*process.Runtime) process.BroadcastFunction[T, B, R]) operator.Operator {
	o := &processor[T, B, R]{declared: declared}
	o.Sides = operator.NewSides(sides)
	o.Join(in, out, o, o.push, o.pushBroadcast, construct)
	return o
}

func (o *processor[T, B, R]) Open(rt *operator.Runtime) (err error) {
	if err = o.Unkeyed.Open(rt); err != nil {
		return err
	}
	if o.states, err = openStates(rt, o.declared, o.Run.Fail); err != nil {
		return err
	}
	o.reader = process.NewReadOnlyContext(o.Services, o.states)
	o.writer = process.NewBroadcastContext(o.Services, o.states)
	return nil
}

// Snapshot implements operator.Snapshotter.
func (o *processor[T, B, R]) Snapshot(s *operator.Snapshot) error {
	if err := o.Calls.Snapshot(s); err != nil {
		return err
	}
	return snapshot(s, o.states)
}

func (o *processor[T, B, R]) push(r *frame.Run) error {
	at := r.Hand()
	for i, x := range frame.Values[T](r) {
		*at = i
		t := r.Time(i)
		o.reader.SetTime(t)
		o.To.SetTime(t)
		if err := o.Fn.ProcessElement(o.reader, x, o.To); err != nil {
			return err
		}
	}
	*at = frame.Passed
	return o.Flush()
}

func (o *processor[T, B, R]) pushBroadcast(r *frame.Run) error {
	at := r.Hand()
	for i, x := range frame.Values[B](r) {
		*at = i
		t := r.Time(i)
		o.writer.SetTime(t)
		o.To.SetTime(t)
		if err := o.Fn.ProcessBroadcastElement(o.writer, x, o.To); err != nil {
			return err
		}
	}
	*at = frame.Passed
	return o.Flush()
}
