// Package windows is what the drivers of windowed operators share: what they are told of an operator, and the kernels, the
// only code of theirs that is compiled for the user's types. It owns no state, no timers and no decision about windows:
// those are the drivers' (the general one, slices, sessions), which hold keys, windows and accumulators by address.
package windows

import (
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
)

// Spec is what every windowed operator is told.
type Spec struct {
	// In is the type of the input, Second that of the second one, if there are two.
	In, Second, Out *frame.Type
	// Key is the key of the stream; of windows over all elements that of window.All.
	Key *operator.Key
	// Sides are the types of the side outputs that somebody reads.
	Sides map[string]*frame.Type
	// Lateness is how long after its end a window of event time is kept, ms.
	Lateness int64
	// Late is the side output of elements that come too late, LateSecond that of those of the second input; "" drops and
	// counts them.
	Late, LateSecond string
	// Place is where the program made the operator, file:line, for errors.
	Place string
}
