package flotttest

import (
	"context"
	"fmt"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
)

// runtimeHost is the engine's side of a process.Runtime in a harness.
type runtimeHost struct {
	c            *Control
	rt           *operator.Runtime
	run          state.CurrentRun
	stores       []*watchedStore
	accumulators map[string]process.Accumulator
	metrics      map[string]process.Metric
}

func newRuntimeHost(c *Control, rt *operator.Runtime) *runtimeHost {
	return &runtimeHost{
		c: c, rt: rt, run: state.CurrentRun{Index: state.None},
		accumulators: map[string]process.Accumulator{}, metrics: map[string]process.Metric{},
	}
}

func (h *runtimeHost) openState(b statebackend.Backend, o statebackend.Options) (statebackend.Store, error) {
	if b == nil {
		b = heap.Backend{}
	}
	s, err := b.Open(o)
	if err != nil {
		return nil, err
	}
	w := &watchedStore{Store: s, lengths: map[string]func() int{}}
	h.stores = append(h.stores, w)
	return w, nil
}

func (h *runtimeHost) entries(name string) int {
	n := 0
	for _, s := range h.stores {
		if length := s.lengths[name]; length != nil {
			n += length()
		}
	}
	return n
}

// BindTable implements state.Binder.
func (h *runtimeHost) BindTable(spec statebackend.TableSpec) *state.Cell {
	return state.NewUnkeyedCell(spec.Name, &h.run)
}

// Report implements state.Binder.
func (h *runtimeHost) Report(err error) { h.c.t.Error(err) }

// Info implements process.Host.
func (h *runtimeHost) Info() process.Info {
	return process.Info{
		JobName: h.rt.JobName, TaskName: h.rt.Name, UID: h.rt.UID, Subtask: h.rt.Subtask, Parallelism: h.rt.Parallelism,
		MaxParallelism: h.rt.MaxParallelism, Attempt: h.rt.Attempt,
	}
}

// Context implements process.Host.
func (h *runtimeHost) Context() context.Context { return h.rt.Ctx }

// Accumulator implements process.Host.
func (h *runtimeHost) Accumulator(name string, fresh func() process.Accumulator) process.Accumulator {
	if h.accumulators[name] == nil {
		h.accumulators[name] = fresh()
	}
	return h.accumulators[name]
}

// Metric implements process.Host.
func (h *runtimeHost) Metric(name string, fresh func() process.Metric) process.Metric {
	if h.metrics[name] == nil {
		h.metrics[name] = fresh()
	}
	return h.metrics[name]
}

// CachedFile implements process.Host.
func (h *runtimeHost) CachedFile(name string) (string, error) {
	path, ok := h.c.config.settings.Files[name]
	if !ok {
		return "", fmt.Errorf("find cached file %q: it was not registered with the environment", name)
	}
	return path, nil
}

// GlobalParameter implements process.Host.
func (h *runtimeHost) GlobalParameter(name string) (string, bool) {
	v, ok := h.c.config.settings.Parameters[name]
	return v, ok
}

// Post implements process.Host.
func (h *runtimeHost) Post(f func() error) { h.rt.Mailbox.Post(f) }

// Go implements process.Host.
func (h *runtimeHost) Go(f func()) { h.rt.Spawn.Go(f) }

// watchedStore knows the lengths of the tables that were opened.
type watchedStore struct {
	statebackend.Store
	lengths map[string]func() int
}

func (s *watchedStore) Table(spec statebackend.TableSpec) (statebackend.Table, error) {
	t, err := s.Store.Table(spec)
	if err == nil {
		s.lengths[spec.Name] = t.Len
	}
	return t, err
}

func (s *watchedStore) List(spec statebackend.TableSpec) (statebackend.ListTable, error) {
	t, err := s.Store.List(spec)
	if err == nil {
		s.lengths[spec.Name] = t.Len
	}
	return t, err
}

func (s *watchedStore) Map(spec statebackend.TableSpec) (statebackend.MapTable, error) {
	t, err := s.Store.Map(spec)
	if err == nil {
		s.lengths[spec.Name] = t.Len
	}
	return t, err
}
