// Package co holds the drivers of operators with two inputs of their own types: co-map, co-flat-map and the process
// functions of connected streams. It owns how two inputs become one operator: marks are combined, and the operator ends
// when both have ended. Only the loops that call user closures are generic.
package co

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/valve"
)

// Inputs are the types of an operator's two inputs, and how they are combined.
type Inputs struct {
	First, Second *frame.Type
	// Rule says whether an idle input holds the operator's watermark back.
	Rule valve.Rule
	// Selects says that the type of the function has process.InputSelector.
	Selects bool
}

// Hooks are what a driver does between a joint and its outputs. For marks that only pass they are those of Joint.
type Hooks interface {
	// Advance is called when the operator's watermark has risen, before it goes on.
	Advance(watermark int64) error
	// EndInput is called when an input, 0 or 1, has ended.
	EndInput(input int) error
	// Finish is called when both inputs have ended, after the last EndInput.
	Finish() error
	// Forward emits a mark.
	Forward(m frame.Mark) error
}

// Joint is embedded by drivers with two inputs: it makes one operator of them.
type Joint struct {
	Out   operator.Output
	RT    *operator.Runtime // set by Open
	valve *valve.Combined
	sides [2]side
	hooks Hooks
}

// side is one of the inputs.
type side struct {
	joint *Joint
	index int
	typ   *frame.Type
	push  func(*frame.Run) error
}

// Type implements operator.Input.
func (s *side) Type() *frame.Type { return s.typ }

// Push implements operator.Input.
func (s *side) Push(r *frame.Run) error { return s.push(r) }

// Mark implements operator.Input.
func (s *side) Mark(m frame.Mark) error { return s.joint.mark(s.index, m) }

// Join sets the joint up; drivers call it in their constructors. push are what takes the runs of each input.
func (j *Joint) Join(in Inputs, out *frame.Type, hooks Hooks, push1, push2 func(*frame.Run) error) {
	j.Out = operator.NewOutput(out)
	j.valve = valve.NewCombined(2, in.Rule)
	j.hooks = hooks
	j.sides = [2]side{
		{joint: j, index: 0, typ: in.First, push: push1},
		{joint: j, index: 1, typ: in.Second, push: push2},
	}
}

// Inputs implements operator.Operator.
func (j *Joint) Inputs() []operator.Input { return []operator.Input{&j.sides[0], &j.sides[1]} }

// Output implements operator.Operator.
func (j *Joint) Output(tag string) *operator.Output {
	if tag == "" {
		return &j.Out
	}
	return nil
}

// Open implements operator.Operator.
func (j *Joint) Open(rt *operator.Runtime) error {
	j.RT = rt
	j.Out.Bind(rt)
	return nil
}

// Close implements operator.Operator.
func (j *Joint) Close() error { return nil }

// Advance implements Hooks.
func (j *Joint) Advance(int64) error { return nil }

// EndInput implements Hooks.
func (j *Joint) EndInput(int) error { return nil }

// Finish implements Hooks.
func (j *Joint) Finish() error { return nil }

// Forward implements Hooks.
func (j *Joint) Forward(m frame.Mark) error { return j.Out.Mark(m) }

// mark takes a mark of one input through the combination. Those that are not about time or the end pass as they are.
func (j *Joint) mark(input int, m frame.Mark) error {
	switch m.Kind {
	case frame.End:
		if err := j.hooks.EndInput(input); err != nil {
			return err
		}
	case frame.Watermark, frame.Idle, frame.Active:
	default:
		return j.hooks.Forward(m)
	}
	a := j.valve.Step(input, m)
	for _, m := range a.Marks() {
		if err := j.act(m); err != nil {
			return err
		}
	}
	return nil
}

func (j *Joint) act(m frame.Mark) error {
	var err error
	switch m.Kind {
	case frame.Watermark:
		err = j.hooks.Advance(m.Value)
	case frame.End:
		err = j.hooks.Finish()
	}
	if err != nil {
		return err
	}
	return j.hooks.Forward(m)
}
