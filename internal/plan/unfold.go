package plan

import "github.com/flott-dev/flott/internal/keygroup"

// Unfold makes the execution graph. Subtask i of every vertex of a slot-sharing group goes into the i-th slot of the
// group, so that a group needs as many slots as its widest vertex has subtasks and co-located subtasks meet by
// themselves.
func Unfold(job *JobGraph) *ExecutionGraph {
	x := &ExecutionGraph{Job: job}
	groups := make(map[string][]*Slot)
	for _, v := range job.Vertices {
		xv := &ExecutionVertex{Vertex: v, Subtasks: make([]*Subtask, v.Parallelism)}
		for i := range xv.Subtasks {
			if i == len(groups[v.SlotGroup]) {
				slot := &Slot{Index: len(x.Slots), Group: v.SlotGroup}
				x.Slots = append(x.Slots, slot)
				groups[v.SlotGroup] = append(groups[v.SlotGroup], slot)
			}
			s := &Subtask{Vertex: v, Index: i, Slot: groups[v.SlotGroup][i], KeyGroups: keyGroups(v, i)}
			s.Inputs, s.Outputs = make([]Gate, len(v.Inputs)), make([]Gate, len(v.Outputs))
			s.Slot.Subtasks = append(s.Slot.Subtasks, s)
			xv.Subtasks[i] = s
		}
		x.Vertices = append(x.Vertices, xv)
	}
	for _, e := range job.Edges {
		w := Channels(e, e.From.Parallelism, e.To.Parallelism)
		for i, s := range x.Vertices[e.From.Index].Subtasks {
			s.Outputs[e.Output] = Gate{Edge: e, Peers: w.Down[i]}
		}
		for i, s := range x.Vertices[e.To.Index].Subtasks {
			s.Inputs[e.Gate] = Gate{Edge: e, Peers: w.Up[i]}
		}
	}
	return x
}

func keyGroups(v *Vertex, subtask int) []keygroup.Range {
	ranges := make([]keygroup.Range, len(v.Nodes))
	for i, n := range v.Nodes {
		ranges[i] = n.KeyGroups(v.Parallelism, subtask)
	}
	return ranges
}
