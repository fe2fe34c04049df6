package operator

import "github.com/flott-dev/flott/process"

// Selector is an operator with several inputs that may choose which of them is read next. It can only be the head of a
// chain. What it does not select is not read, so that the barriers of snapshots might never come: jobs with such operators
// take none.
type Selector interface {
	Operator
	// Selects reports whether it chooses. Before Open it is what is known of the operator's type.
	Selects() bool
	// Selection is the set of inputs of which the next element or mark may be read: asked, after Open, before each, if the
	// operator Selects.
	Selection() process.InputSelection
}
