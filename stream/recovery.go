package stream

import "github.com/flott-dev/flott/internal/env"

// WithLocalRecovery keeps the files of checkpoints in dir, a folder on a local disk, as well as where SetCheckpointStorage says. A
// restart reads from there what is whole, file by file, and the rest from the storage: it is for storages that are far away. A
// local disk that is full, slow or lost costs no checkpoint and no restart, only the time that it would have saved. Copies go with
// their checkpoints; checkpoints in memory have none. With WithRecovery a program that is started again finds them, too.
func WithLocalRecovery(dir string) Option {
	return func(s *env.Settings) {
		s.Checkpoints.Local = env.LocalRecovery{Dirs: []string{dir}, Backup: true, Read: true}
	}
}

// WithRecovery keeps the job's checkpoints in dir, a folder on a local disk, so that a program that was killed goes on from
// its last checkpoint when it is started again: EnableCheckpointing must be set, too. A job that has finished or was
// cancelled starts afresh, one that failed for good goes on. While a process runs the job, others are refused, also when it
// stands still. A program that executes several jobs has a folder for each, in their order.
func WithRecovery(dir string) Option {
	return func(s *env.Settings) { s.Checkpoints.Recovery = dir }
}
