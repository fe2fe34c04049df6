package fields

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// projector copies fields of each element into an element of another type.
type projector struct {
	operator.Unary
	copier *Copier
	buf    *frame.Column
	run    frame.Run
	times  []int64
}

// Project returns the driver of project: copier copies from elements of in to elements of out.
func Project(in, out *frame.Type, copier *Copier) operator.Operator {
	return &projector{Unary: operator.Unary{In: in, Out: operator.NewOutput(out)}, copier: copier}
}

// Inputs implements operator.Operator.
func (o *projector) Inputs() []operator.Input { return []operator.Input{o} }

// Open implements operator.Operator.
func (o *projector) Open(rt *operator.Runtime) error {
	o.buf = frame.NewColumn(o.Out.Type, o.Out.Type.FrameLen(frame.Bytes))
	return o.Unary.Open(rt)
}

// Push implements operator.Input.
func (o *projector) Push(r *frame.Run) error {
	for from := 0; from < r.N; {
		n := min(r.N-from, o.buf.Cap())
		o.run = o.buf.Fill(n)
		o.copier.Copy(o.run.P, o.Out.Type.Size, r.At(from), r.Type.Size, n)
		o.times = operator.LendTimes(&o.run, r, from, o.times)
		err := o.Out.Push(&o.run)
		o.buf.Reset()
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}
