package plan

import (
	"github.com/flott-dev/flott/internal/keygroup"
)

// ExecutionGraph is a job graph unfolded into subtasks. It is immutable.
type ExecutionGraph struct {
	Job      *JobGraph
	Vertices []*ExecutionVertex // as JobGraph.Vertices
	Slots    []*Slot            // all slots that the job needs
}

// ExecutionVertex is a vertex with its subtasks.
type ExecutionVertex struct {
	*Vertex
	Subtasks []*Subtask
}

// Subtask is one parallel instance of a vertex.
type Subtask struct {
	Vertex    *Vertex
	Index     int // 0 ... Parallelism-1
	Slot      *Slot
	KeyGroups []keygroup.Range // per node of the chain
	Inputs    []Gate           // as Vertex.Inputs
	Outputs   []Gate           // as Vertex.Outputs
}

// Gate is a subtask's end of an edge: channel i leads from or to subtask Peers[i] of the vertex at the other end. A
// channel is identified by edge, upstream subtask and downstream subtask. Peers is shared between gates: read-only.
type Gate struct {
	Edge  *JobEdge
	Peers []int
}

// Slot is a place for at most one subtask of each vertex of a slot-sharing group.
type Slot struct {
	Index    int // in ExecutionGraph.Slots
	Group    string
	Subtasks []*Subtask // in the order of JobGraph.Vertices
}
