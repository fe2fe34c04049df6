package stream

import "context"

// Simulate runs what was built on the calling goroutine instead of in the embedded cluster: the same operators, tasks and
// queues, but a seeded scheduler chooses which subtask goes on at every step, and processing time is virtual: it starts at
// 0 and moves only when every subtask waits. The same seed gives the same run; the trace names the subtask of each step.
// For tests of order and time; sources that read from outside (connectors, functions) can't be simulated.
func (e *Env) Simulate(ctx context.Context, name string, seed uint64) (trace string, err error) {
	e.claims = nil
	return e.e.Simulate(ctx, name, seed)
}
