package co

import "github.com/flott-dev/flott/process"

// choice is embedded by drivers of functions that may choose which input is read next. It makes them operator.Selector.
type choice struct {
	typed bool                  // the function's type says that it does
	fn    process.InputSelector // nil: it does not; set by choose
	asked bool                  // since the function was called last
	said  process.InputSelection
}

// choose looks whether a function chooses. The value counts, whatever type it is known by.
func (c *choice) choose(function any) { c.fn, _ = function.(process.InputSelector) }

// called notes that the function was called: it may want another input now.
func (c *choice) called() { c.asked = false }

// Selects implements operator.Selector.
func (c *choice) Selects() bool { return c.typed || c.fn != nil }

// Selection implements operator.Selector.
func (c *choice) Selection() process.InputSelection {
	if !c.asked {
		c.said, c.asked = c.fn.NextSelection(), true
	}
	return c.said
}
