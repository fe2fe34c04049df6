package taskmanager

import (
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/plan"
)

// aligned reports whether what is in flight on an edge can't be part of a snapshot: with another parallelism nobody could say
// which of the new subtasks it belongs to. A broadcast element belongs to all of them, but some may have had it already; a
// custom partitioner is the sender's; and forward is a promise that the elements of one subtask meet. Some operators say it
// of themselves (graph.Node.AlignedInputs).
func aligned(e *plan.JobEdge) bool {
	if e.To.Nodes[e.Consumer].Node.AlignedInputs {
		return true
	}
	switch e.Strategy {
	case graph.Forward, graph.Broadcast, graph.Custom:
		return true
	}
	return false
}

// unaligned reports whether checkpoints of the job may overtake what is in flight. What is in a loop is logged at its head,
// from the barrier that comes to the head to the one that comes back, which may overtake nothing.
func (b *builder) unaligned() bool {
	c := b.opt.Checkpoints
	if !c.Unaligned || c.Mode != control.ExactlyOnce {
		return false
	}
	for _, v := range b.job.Graph.Vertices {
		for _, e := range v.Inputs {
			if e.Feedback {
				return false
			}
		}
	}
	return true
}
