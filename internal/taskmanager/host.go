package taskmanager

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
)

// Host is the engine's side of one operator's process.Runtime: accumulators, metrics, files, parameters. Its readers
// (Accumulators, Metrics) may be called from any goroutine.
type Host struct {
	job *Job
	rt  *operator.Runtime
	run state.CurrentRun

	mu           sync.Mutex
	accumulators map[string]process.Accumulator
	metrics      map[string]process.Metric

	origins   []origin
	latencies map[origin]*process.MetricHistogram // of the subtask's goroutine
}

func newHost(job *Job, rt *operator.Runtime) *Host {
	return &Host{
		job: job, rt: rt, run: state.CurrentRun{Index: state.None},
		accumulators: map[string]process.Accumulator{}, metrics: map[string]process.Metric{},
	}
}

// BindTable implements state.Binder for operators on streams that are not keyed; keyed drivers bind to their store.
func (h *Host) BindTable(spec statebackend.TableSpec) *state.Cell {
	return state.NewUnkeyedCell(spec.Name, &h.run)
}

// Report implements process.Host: the task fails. While the user's constructor runs, its driver collects the mistakes.
func (h *Host) Report(err error) {
	h.Post(func() error { return err })
}

// Info implements process.Host.
func (h *Host) Info() process.Info {
	return process.Info{
		JobName: h.rt.JobName, TaskName: h.rt.Name, UID: h.rt.UID, Subtask: h.rt.Subtask, Parallelism: h.rt.Parallelism,
		MaxParallelism: h.rt.MaxParallelism, Attempt: h.rt.Attempt,
	}
}

// Context implements process.Host.
func (h *Host) Context() context.Context { return h.rt.Ctx }

// Accumulator implements process.Host.
func (h *Host) Accumulator(name string, fresh func() process.Accumulator) process.Accumulator {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.accumulators[name]
	if a == nil {
		a = fresh()
		h.accumulators[name] = a
	}
	return a
}

// Metric implements process.Host.
func (h *Host) Metric(name string, fresh func() process.Metric) process.Metric {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.metrics[name]
	if m == nil {
		m = fresh()
		h.metrics[name] = m
	}
	return m
}

// CachedFile implements process.Host.
func (h *Host) CachedFile(name string) (string, error) {
	path, ok := h.job.Files[name]
	if !ok {
		return "", fmt.Errorf("find cached file %q: it was not registered with the environment", name)
	}
	return path, nil
}

// GlobalParameter implements process.Host.
func (h *Host) GlobalParameter(name string) (string, bool) {
	v, ok := h.job.Parameters[name]
	return v, ok
}

// Post implements process.Host. The letter is opened in the operator's name.
func (h *Host) Post(f func() error) {
	h.rt.Mailbox.Post(func() error {
		h.rt.At = h.rt
		return f()
	})
}

// Go implements process.Host.
func (h *Host) Go(f func()) { h.rt.Spawn.Go(f) }

// Accumulators are the present local values.
func (h *Host) Accumulators() map[string]process.AccumulatorValue {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]process.AccumulatorValue, len(h.accumulators))
	for name, a := range h.accumulators {
		out[name] = a.Snapshot()
	}
	return out
}

// Metrics are the operator's metrics by name.
func (h *Host) Metrics() map[string]process.Metric {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.metrics)
}
