package operator

import (
	"sync/atomic"

	"github.com/flott-dev/flott/process"
)

// counterMetric is a metric that only counts.
type counterMetric struct{ n atomic.Int64 }

// Read implements process.Metric.
func (c *counterMetric) Read() any { return c.n.Load() }

// Count adds n to the operator's metric of that name.
func Count(rt *Runtime, name string, n int64) {
	m := rt.Host.Metric(name, func() process.Metric { return &counterMetric{} })
	if c, ok := m.(*counterMetric); ok {
		c.n.Add(n)
	}
}
