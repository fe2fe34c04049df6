package connector

import "errors"

// ErrRetry marks a failed commit that may be tried again.
var ErrRetry = errors.New("commit may be tried again")
