package operator

import "github.com/flott-dev/flott/internal/frame"

// Unary is embedded by operators with one input and one main output that pass marks on as they come.
type Unary struct {
	In  *frame.Type
	Out Output
	RT  *Runtime // set by Open
}

// Type implements Input.
func (u *Unary) Type() *frame.Type { return u.In }

// Output implements Operator.
func (u *Unary) Output(tag string) *Output {
	if tag == "" {
		return &u.Out
	}
	return nil
}

// Open implements Operator.
func (u *Unary) Open(rt *Runtime) error {
	u.RT = rt
	u.Out.Bind(rt)
	return nil
}

// Close implements Operator.
func (u *Unary) Close() error { return nil }

// Mark implements Input.
func (u *Unary) Mark(m frame.Mark) error { return u.Out.Mark(m) }
