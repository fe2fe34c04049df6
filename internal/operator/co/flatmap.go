package co

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
)

// flatMapper calls a function of its own for the elements of each input, with an emit function that is made once.
type flatMapper[A, B, R any] struct {
	Joint
	f       func(A, func(R))
	g       func(B, func(R))
	emitter operator.Emitter
	out     *process.Collector[R]
	emit    func(R)
}

// FlatMap returns the driver of co-flat-map.
func FlatMap[A, B, R any](in Inputs, out *frame.Type, f func(A, func(R)), g func(B, func(R))) operator.Operator {
	o := &flatMapper[A, B, R]{f: f, g: g}
	o.Join(in, out, o, o.push1, o.push2)
	return o
}

func (o *flatMapper[A, B, R]) Open(rt *operator.Runtime) error {
	err := o.Joint.Open(rt)
	o.emitter.Open(&o.Out)
	o.out = process.NewCollector[R](o.emitter.Column, o.emitter.Flush)
	o.emit = o.out.Collect
	return err
}

func (o *flatMapper[A, B, R]) push1(r *frame.Run) error {
	at := r.Hand()
	for i, x := range frame.Values[A](r) {
		*at = i
		o.out.SetTime(r.Time(i))
		o.f(x, o.emit)
	}
	*at = frame.Passed
	return o.out.Flush()
}

func (o *flatMapper[A, B, R]) push2(r *frame.Run) error {
	at := r.Hand()
	for i, x := range frame.Values[B](r) {
		*at = i
		o.out.SetTime(r.Time(i))
		o.g(x, o.emit)
	}
	*at = frame.Passed
	return o.out.Flush()
}
