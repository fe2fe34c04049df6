package env

import (
	"context"
	"errors"
	"fmt"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/taskmanager"
)

// Simulate runs what was built so far on the calling goroutine: the real operators, tasks and exchange under a seeded
// scheduler and a clock that moves only when everybody waits. The trace says which subtask went on at each step: the same
// seed gives the same trace and the same results. Sources with an enumerator need goroutines and are refused.
func (e *Env) Simulate(ctx context.Context, name string, seed uint64) (trace string, err error) {
	jg, err := e.Plan(name)
	e.graph, e.mistakes = &graph.Graph{}, nil
	if err != nil {
		return "", fmt.Errorf("build job %q: %w", name, err)
	}
	coords, err := newReactive(ctx, jg)
	if err != nil {
		return "", fmt.Errorf("simulate job %q: %w", name, err)
	}
	c := clock.NewManual(0)
	sim := host.NewSimulation(seed, c)
	opt := taskmanager.Options{Threads: sim, Clock: c, Memory: e.memory(), Backend: e.backend(), Isolated: e.Settings.Isolated}
	var attempt *taskmanager.Attempt
	var failure error
	ended := func(t taskmanager.Ended) {
		if t.Err == nil || failure != nil && errors.Is(t.Err, exchange.ErrCancelled) {
			return
		}
		if failure == nil {
			failure = t.Err
			attempt.Cancel()
		}
	}
	attempt, err = taskmanager.Deploy(ctx, e.job(jg, name), 0, opt, coords.fromSubtask, ended)
	if err != nil {
		return "", err
	}
	if err := coords.start(attempt); err != nil {
		return "", err
	}
	if err := sim.Run(); err != nil && failure == nil {
		failure = err
	}
	if err := coords.close(); failure == nil {
		failure = err
	}
	if failure != nil {
		return sim.Trace(), fmt.Errorf("simulate job %q with seed %d: %w", name, seed, failure)
	}
	return sim.Trace(), nil
}
