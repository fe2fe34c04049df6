package env

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/process"
)

// OperatorMetrics are the figures of one operator, summed over its subtasks.
type OperatorMetrics struct {
	Name        string
	UID         string
	Parallelism int
	// RecordsIn counts the elements of all inputs; sources have none.
	RecordsIn int64
	// RecordsOut counts the elements of the main output, SideOut those of side outputs by tag; both are logical: each
	// element once, however many consumers there are.
	RecordsOut int64
	SideOut    map[string]int64
	// Watermark is the least watermark that the subtasks have sent on, ms; math.MinInt64 before the first.
	Watermark int64
	// Source says that the operator has no input.
	Source bool
	// Busy, Idle and Backpressured split the time of the task that the operator runs in.
	Busy, Idle, Backpressured time.Duration
	// User are the metrics of the operator's own group, by name; one value per subtask.
	User map[string][]any
}

// Metrics reads the counters of the present attempts.
func (x *Execution) Metrics() []OperatorMetrics {
	index := map[string]int{}
	var out []OperatorMetrics
	for _, s := range x.Tasks() {
		age := x.Age(s)
		for i, n := range s.Vertex.Nodes {
			key := n.ID.String()
			at, ok := index[key]
			if !ok {
				at = len(out)
				index[key] = at
				out = append(out, OperatorMetrics{Name: n.Node.Name, UID: key, Parallelism: s.Vertex.Parallelism, Watermark: math.MaxInt64, Source: len(n.Node.Inputs) == 0, SideOut: map[string]int64{}, User: map[string][]any{}})
			}
			m := &out[at]
			m.RecordsIn += s.Runtimes()[i].In.Load()
			if o := s.Operators()[i].Output(""); o != nil {
				m.RecordsOut += o.Count.Load()
				m.Watermark = min(m.Watermark, o.EventTime.Load())
			}
			for tag := range n.Node.Side {
				if o := s.Operators()[i].Output(tag); o != nil {
					m.SideOut[tag] += o.Count.Load()
				}
			}
			idle, back := time.Duration(s.Times.Idle.Load()), time.Duration(s.Times.Backpressured.Load())
			m.Idle += idle
			m.Backpressured += back
			m.Busy += max(0, age-idle-back)
			for name, metric := range s.Hosts[i].Metrics() {
				m.User[name] = append(m.User[name], metric.Read())
			}
		}
	}
	return out
}

// Accumulators merges the accumulators of all subtasks by name.
func (x *Execution) Accumulators() (map[string]any, error) {
	tasks := x.Tasks()
	if tasks == nil {
		return nil, nil
	}
	merged := map[string]process.AccumulatorValue{}
	for _, s := range tasks {
		for _, h := range s.Hosts {
			for name, v := range h.Accumulators() {
				if have, ok := merged[name]; ok {
					var err error
					if v, err = have.Merge(v); err != nil {
						return nil, fmt.Errorf("merge accumulator %q: %w", name, err)
					}
				}
				merged[name] = v
			}
		}
	}
	out := make(map[string]any, len(merged))
	for name, v := range merged {
		out[name] = v.Value()
	}
	return out, nil
}

// PlanJSON is the plan of what was built so far in the shape of Flink's plan JSON. A program with mistakes has none.
func (e *Env) PlanJSON() (string, error) {
	jg, err := e.Plan("job")
	if err != nil {
		return "", err
	}
	return planJSON(jg)
}

func planJSON(jg *plan.JobGraph) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(plan.NewStreamPlan(jg.Graph)); err != nil {
		return "", fmt.Errorf("encode the plan: %w", err)
	}
	return b.String(), nil
}
