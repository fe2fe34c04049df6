package stream

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/internal/env"
)

// SetLatencyTrackingInterval makes sources send a latency marker every d. Markers travel with the elements, but past the
// functions, and each operator that one comes to has a metric with the distribution of the times (ms) that they were under
// way: a process.HistogramReading under the name of the source's identity and "latency", see
// SetLatencyTrackingGranularity. So it tells how long elements wait between operators, not how long functions or windows
// keep them. At an exchange a marker takes one of the ways, in turn. Default: 0, no markers.
func (e *Env) SetLatencyTrackingInterval(d time.Duration) *Env {
	if d < 0 {
		e.report(fmt.Errorf("set latency tracking interval %v: it must not be negative", d))
		return e
	}
	e.e.Settings.Latency = d
	return e
}

// LatencyGranularity says which latencies an operator measures apart.
type LatencyGranularity = env.LatencyGranularity

const (
	// LatencyPerOperator: those from each source, by its identity: "<source>.latency". The default.
	LatencyPerOperator = env.LatencyPerOperator
	// LatencySingle: all together, "latency".
	LatencySingle = env.LatencySingle
	// LatencyPerSubtask: those from each subtask of each source, "<source>.<subtask>.latency".
	LatencyPerSubtask = env.LatencyPerSubtask
)

// SetLatencyTrackingGranularity sets which latencies operators measure apart.
func (e *Env) SetLatencyTrackingGranularity(g LatencyGranularity) *Env {
	if g > LatencyPerSubtask {
		e.report(fmt.Errorf("set latency tracking granularity %d: it is unknown", g))
		return e
	}
	e.e.Settings.LatencyGranularity = g
	return e
}
