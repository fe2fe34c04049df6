package env

import (
	"context"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/jobmanager"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/taskmanager"
	"github.com/flott-dev/flott/statebackend"
)

// Simulate runs what was built so far on the calling goroutine: the real operators, tasks and exchange under a seeded
// scheduler and a clock that moves only when everybody waits. The trace says which subtask went on at each step: the same
// seed gives the same trace and the same results. Sources with an enumerator need goroutines and are refused; an operator
// that starts a goroutine fails.
func (e *Env) Simulate(ctx context.Context, name string, seed uint64) (trace string, err error) {
	name = e.jobName(name)
	jg, err := e.Plan(name)
	e.graph, e.mistakes = &graph.Graph{}, nil
	if err != nil {
		return "", fmt.Errorf("build job %q: %w", name, err)
	}
	backend, err := e.backend()
	if err != nil {
		return "", fmt.Errorf("simulate job %q: %w", name, err)
	}
	if e.Settings.Checkpoints.Enabled {
		return e.rehearse(ctx, jg, name, seed, backend)
	}
	r, job := rehearsal{}, e.job(jg, name)
	coords, err := newReactive(ctx, job.Graph.Vertices, r.fail)
	if err != nil {
		return "", fmt.Errorf("simulate job %q: %w", name, err)
	}
	c := clock.NewManual(0)
	sim := host.NewSimulation(seed, c)
	opt := taskmanager.Options{
		Threads: sim, Clock: c, Memory: e.memory(), Backend: backend, Isolated: e.Settings.Isolated, NoGoroutines: true,
	}
	r.attempt, err = taskmanager.Deploy(ctx, job, 0, opt, coords.fromSubtask, func(t taskmanager.Ended) { r.fail(t.Err) })
	if err != nil {
		return "", fmt.Errorf("simulate job %q: %w", name, err)
	}
	r.run(sim, coords)
	if r.failure != nil {
		return sim.Trace(), fmt.Errorf("simulate job %q with seed %d: %w", name, seed, r.failure)
	}
	return sim.Trace(), nil
}

// rehearse simulates a job that takes checkpoints, with its restarts.
func (e *Env) rehearse(ctx context.Context, jg *plan.JobGraph, name string, seed uint64, backend statebackend.Backend) (trace string, err error) {
	wrap := func(err error) error { return fmt.Errorf("simulate job %q with seed %d: %w", name, seed, err) }
	keeping, err := e.keeping(ctx, jg, "simulated", name)
	if err != nil {
		return "", wrap(err)
	}
	defer keeping.release()
	if from := begins(keeping.opt); from != nil {
		if err := intact(from); err != nil {
			return "", wrap(err)
		}
	}
	sim := host.NewSimulation(seed, clock.NewManual(0))
	r := jobmanager.Rehearsal{
		ID: "simulated", Job: e.job(jg, name), Restarts: e.rehearsedRestart(seed), Snapshots: *keeping.opt,
		Options: taskmanager.Options{Memory: e.memory(), Backend: backend, Isolated: e.Settings.Isolated},
		Coordinators: func(vertices []*plan.ExecutionVertex, fail func(error)) (jobmanager.RehearsedCoordinators, error) {
			cs, err := newReactive(ctx, vertices, fail)
			if err != nil {
				return nil, err
			}
			return &rehearsed{cs}, nil
		},
	}
	if err := r.Run(ctx, sim); err != nil {
		return sim.Trace(), wrap(err)
	}
	return sim.Trace(), nil
}

// rehearsed are reactive coordinators of a job that takes checkpoints.
type rehearsed struct{ *reactive }

// Start implements jobmanager.RehearsedCoordinators.
func (r *rehearsed) Start(a *taskmanager.Attempt, m *checkpoint.Manifest) error {
	if m != nil {
		for _, c := range r.all {
			if o := m.Operator(c.id); o != nil {
				c.restored = o.Coordinator
			}
		}
	}
	return r.start(a)
}

// FromSubtask implements jobmanager.RehearsedCoordinators.
func (r *rehearsed) FromSubtask(vertex, subtask, node int, event []byte) {
	r.fromSubtask(vertex, subtask, node, event)
}

// Hold implements jobmanager.RehearsedCoordinators.
func (r *rehearsed) Hold(id int64) (map[[2]int][]byte, error) {
	states := map[[2]int][]byte{}
	for key, c := range r.byNode {
		state, err := c.Snapshot(id)
		if err != nil {
			return nil, fmt.Errorf("coordinate %q: %w", c.name, err)
		}
		states[key] = append([]byte{}, state...)
		c.held = append(c.held, hold{checkpoint: id})
	}
	return states, nil
}

// Release implements jobmanager.RehearsedCoordinators.
func (r *rehearsed) Release(checkpoint int64) {
	for _, c := range r.all {
		for len(c.held) > 0 && c.held[0].checkpoint <= checkpoint {
			events := c.held[0].events
			c.held = c.held[1:]
			for _, e := range events {
				c.deliver(e)
			}
		}
	}
}

// Close implements jobmanager.RehearsedCoordinators.
func (r *rehearsed) Close() error { return r.close() }

// rehearsal is one simulated attempt.
type rehearsal struct {
	attempt *taskmanager.Attempt
	failure error // the first that is no mere consequence
}

// fail ends all tasks. A cancelled task follows from another failure, which may be told later.
func (r *rehearsal) fail(err error) {
	if err == nil {
		return
	}
	if r.failure == nil || errors.Is(r.failure, exchange.ErrCancelled) {
		r.failure = err
	}
	r.attempt.Cancel()
}

// run runs all tasks to their end; what was opened is closed, after a deadlock, too.
func (r *rehearsal) run(sim *host.Simulation, coords *reactive) {
	r.fail(coords.start(r.attempt))
	err := sim.Run()
	if err != nil {
		r.fail(err)
		err = sim.Run() // everybody was woken to be cancelled
	}
	if err == nil {
		r.attempt.Wait()
	}
	r.fail(coords.close())
}
