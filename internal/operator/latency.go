package operator

import "github.com/flott-dev/flott/internal/frame"

// LatencyRecorder is a host that measures latency.
type LatencyRecorder interface {
	// RecordLatency takes a latency marker that has come to the operator, on the subtask's goroutine.
	RecordLatency(m frame.Mark)
}

// RecordLatency gives a latency marker that has come to the operator to its host. The task calls it for the head of a
// chain, outputs for what follows: drivers only pass markers on.
func (rt *Runtime) RecordLatency(m frame.Mark) {
	if r, ok := rt.Host.(LatencyRecorder); ok {
		r.RecordLatency(m)
	}
}
