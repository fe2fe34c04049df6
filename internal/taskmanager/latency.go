package taskmanager

import (
	"fmt"
	"math"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/process"
)

// LatencyGranularity says which latencies are measured apart.
type LatencyGranularity uint8

const (
	// LatencyPerOperator: those from each source operator. The default.
	LatencyPerOperator LatencyGranularity = iota
	// LatencySingle: none; one histogram per operator and subtask.
	LatencySingle
	// LatencyPerSubtask: those from each subtask of each source.
	LatencyPerSubtask
)

// origin is a subtask of a source, of which latency markers carry the number.
type origin struct {
	source  string // the operator's stable identity
	subtask int
}

// origins are the subtasks of all sources, in the order of their numbers.
func origins(g *plan.ExecutionGraph) []origin {
	var all []origin
	for _, v := range g.Vertices {
		if head := v.Head(); head.Node.Kind == graph.Source {
			for i := range v.Subtasks {
				all = append(all, origin{head.ID.String(), i})
			}
		}
	}
	return all
}

// number is the number of a source's subtask; ok is false for other operators, and for sources beyond what a marker can
// number.
func number(all []origin, source string, subtask int) (n uint16, ok bool) {
	for i, o := range all {
		if o == (origin{source, subtask}) {
			return uint16(i), i <= math.MaxUint16
		}
	}
	return 0, false
}

// RecordLatency implements operator.LatencyRecorder: the time that the marker was on its way goes into the operator's
// histogram of its source.
func (h *Host) RecordLatency(m frame.Mark) {
	if int(m.From) >= len(h.origins) {
		return
	}
	from := h.origins[m.From]
	if h.job.LatencyGranularity != LatencyPerSubtask {
		from.subtask = 0
	}
	histogram := h.latencies[from]
	if histogram == nil {
		histogram = process.NewMetricHistogram(process.NewRuntime(h), latencyName(h.job.LatencyGranularity, from))
		if h.latencies == nil {
			h.latencies = map[origin]*process.MetricHistogram{}
		}
		h.latencies[from] = histogram
	}
	histogram.Update(h.rt.Clock.Millis() - m.Value)
}

// latencyName is the histogram's name in the operator's group: Flink's, without the parts that name the operator.
func latencyName(g LatencyGranularity, from origin) string {
	switch g {
	case LatencySingle:
		return "latency"
	case LatencyPerSubtask:
		return fmt.Sprintf("%s.%d.latency", from.source, from.subtask)
	}
	return from.source + ".latency"
}
