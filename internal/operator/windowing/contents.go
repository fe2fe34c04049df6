package windowing

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
)

// contents are what windows hold: one accumulator each, or their elements. Calls mean the key at hand and the state window
// that was chosen.
type contents interface {
	open(e *engine) error
	// choose puts a state window at hand.
	choose(state *view)
	// add adds element i of a run of an input; there says that the window held something before, for certain.
	add(input int, r *frame.Run, i int) (there bool, err error)
	// fire hands the contents to the window function of w, if there are any.
	fire(w *view) error
	// clear drops the contents.
	clear() error
	// merge appends the contents of the windows of a row to those of another one, which is at hand afterwards.
	merge(into *view, from *row) error
}

// contentsName is the table of what windows hold.
const contentsName = windows.ContentsTable

// chosen is the namespace that tables of contents are at.
type chosen struct {
	typ *serde.Key // nil: there is only one window
	at  []byte
	set bool
}

// differs says whether the tables' namespace must change to b, and notes that it does.
func (c *chosen) differs(b []byte) bool {
	if c.typ == nil || c.set && string(c.at) == string(b) {
		return false
	}
	c.at, c.set = append(c.at[:0], b...), true
	return true
}
