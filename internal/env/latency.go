package env

import (
	"time"

	"github.com/flott-dev/flott/internal/taskmanager"
)

// LatencyGranularity says which latencies are measured apart.
type LatencyGranularity = taskmanager.LatencyGranularity

// The granularities.
const (
	LatencyPerOperator = taskmanager.LatencyPerOperator
	LatencySingle      = taskmanager.LatencySingle
	LatencyPerSubtask  = taskmanager.LatencyPerSubtask
)

// latencyMillis is d in ms, at least 1 if there is any.
func latencyMillis(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return max(d.Milliseconds(), 1)
}
