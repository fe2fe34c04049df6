package stream

import "github.com/flott-dev/flott/internal/env"

// WithRecovery keeps the job's checkpoints in dir, a folder on a local disk, so that a program that was killed goes on from
// its last checkpoint when it is started again: EnableCheckpointing must be set, too. A job that has finished or was
// cancelled starts afresh, one that failed for good goes on. While a process runs the job, others are refused, also when it
// stands still. A program that executes several jobs has a folder for each, in their order.
func WithRecovery(dir string) Option {
	return func(s *env.Settings) { s.Checkpoints.Recovery = dir }
}
