package stream

import (
	"errors"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/statebackend"
)

// WithConfiguration sets keys of the configuration, as "execution.checkpointing.interval": "10 s". They are stronger than files
// and FLOTT_CONFIGURATION and weaker than what the program sets in code. The guide lists the keys. A value that is not allowed
// is a mistake of the program, which Execute returns; a key that is unknown or does nothing is among the Warnings.
func WithConfiguration(keys map[string]string) Option {
	return func(s *env.Settings) { s.Configuration.Keys = append(s.Configuration.Keys, keys) }
}

// WithConfigurationFile reads configuration from a file, or from the one in a folder: config.yaml, or else flink-conf.yaml. It is
// the weakest configuration; of several files the later ones are stronger.
func WithConfigurationFile(path string) Option {
	return func(s *env.Settings) { s.Configuration.Files = append(s.Configuration.Files, path) }
}

// WithStorage links what opens URLs of snapshots, by their schemes: for checkpoints, savepoints and what jobs start from. Paths,
// file: and memory (jobmanager:, mem:) need none.
func WithStorage(openers ...checkpoint.Opener) Option {
	return func(s *env.Settings) { s.Storage = append(s.Storage, openers...) }
}

// MemoryStorage keeps snapshots in the memory of this process, as a job manager does, under the URLs jobmanager: and mem:. They
// are lost with the process.
type MemoryStorage = env.MemoryStorage

// NewMemoryStorage returns an empty MemoryStorage. Each environment has one of its own; those that are given the same one by
// WithStorage find each other's savepoints.
func NewMemoryStorage() *MemoryStorage { return env.NewMemoryStorage() }

// WithMemoryStorageLimit sets how many bytes each subtask of an operator may add to a snapshot in memory; beyond, the checkpoint
// fails with an error that names the operator. Default: 5 MiB.
func WithMemoryStorageLimit(bytes int64) Option {
	return func(s *env.Settings) { s.Checkpoints.MemoryLimit = bytes }
}

// SetStateBackend sets what keeps the state of the environment's jobs.
func (e *Env) SetStateBackend(b statebackend.Backend) *Env {
	if b == nil {
		e.report(errors.New("set the state backend: there is none; leave the call out to keep state in memory"))
		return e
	}
	e.e.Settings.Backends, e.e.Settings.BackendName = []statebackend.Backend{b}, ""
	return e
}

// SetSavepointStorage sets the folder, a path or URL, for savepoints that are taken without one; "jobmanager:" keeps them in the
// memory of this process. The default has none.
func (e *Env) SetSavepointStorage(dir string) *Env {
	e.e.Settings.Checkpoints.SavepointDir = dir
	return e
}

// SetSavepoint is WithSavepoint for the environment's next job.
func (e *Env) SetSavepoint(path string, opts ...SavepointOption) *Env {
	WithSavepoint(path, opts...)(&e.e.Settings)
	return e
}
