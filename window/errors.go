package window

import "errors"

// ErrNoTimestamp is what is wrong with an element that has no timestamp in a window of event time.
var ErrNoTimestamp = errors.New("it has no timestamp: assign timestamps before a window of event time, or use processing time")
