package operator

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/serde"
)

// Key is the key of a keyed stream: how to take it out of elements, and what serde knows of it.
type Key struct {
	*serde.Key
	// Extract makes one subtask's extractor: it returns the keys of a run as a column that stays valid until the next
	// call.
	Extract func() func(r *frame.Run) serde.Column
}
