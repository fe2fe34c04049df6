package env

import (
	"fmt"
	"strings"

	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
)

// The names of Flink's state backends that mean one of ours.
const (
	heapName   = "heap"
	pebbleName = "pebble"
)

// backendOf is the name of ours that a name of the configuration means.
func backendOf(name string) string {
	switch strings.ToLower(name) {
	case "hashmap", "jobmanager", "memory", "filesystem", heapName:
		return heapName
	case "rocksdb", "forst", pebbleName:
		return pebbleName
	}
	return name
}

// backend is the state backend of the environment's jobs.
func (e *Env) backend() (statebackend.Backend, error) { return e.Settings.StateBackend() }

// StateBackend is what keeps the state of jobs with these settings. A name that is not linked is an error that tells how to.
func (s *Settings) StateBackend() (statebackend.Backend, error) {
	if s.BackendName == "" {
		if len(s.Backends) > 0 {
			return s.Backends[0], nil
		}
		return heap.Backend{}, nil
	}
	name := backendOf(s.BackendName)
	for _, b := range s.Backends {
		if b.Name() == name {
			return b, nil
		}
	}
	switch {
	case name == heapName:
		return heap.Backend{}, nil
	case name == pebbleName:
		return nil, fmt.Errorf("state backend %q: it is not linked; import github.com/flott-dev/flott/statebackend/pebble and write stream.NewEnv(stream.WithBackends(pebble.Backend{}))", s.BackendName)
	case strings.Contains(name, "."):
		return nil, fmt.Errorf("state backend %q: classes of the JVM can't be loaded; a backend of your own is a Go type with the methods of statebackend.Backend: write stream.NewEnv(stream.WithBackends(yours)) and set state.backend.type to its Name", s.BackendName)
	}
	linked := []string{"hashmap"}
	for _, b := range s.Backends {
		linked = append(linked, b.Name())
	}
	return nil, fmt.Errorf("state backend %q: there is none of that name, but %s; one of your own is linked by stream.NewEnv(stream.WithBackends(yours))", s.BackendName, strings.Join(linked, ", "))
}

// backendNote is what a user should know of the name that he chose; "": nothing.
func backendNote(name string) string {
	switch strings.ToLower(name) {
	case "rocksdb", "forst":
		return fmt.Sprintf("%q means pebble here, an LSM store as well; its settings are those of pebble.Backend", name)
	}
	return ""
}
