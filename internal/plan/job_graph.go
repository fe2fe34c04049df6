// Package plan turns a logical graph into a job graph (nodes joined into chains, strategies and settings resolved) and
// that into an execution graph (subtasks, channels, key groups, slots). All of it is a pure function of the graph: equal
// graphs give equal plans in every process. It runs nothing and knows no host; job manager, task managers and REST read
// what it makes.
package plan

import (
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/keygroup"
)

// JobGraph is the graph of chains. It is immutable.
type JobGraph struct {
	Graph    *graph.Graph
	Vertices []*Vertex  // in topological order, feedback edges aside
	Edges    []*JobEdge // in the order of their ids
}

// Vertex is a chain: the nodes that run together in one task.
type Vertex struct {
	ID    graph.ID // of the head of the chain
	Index int      // in JobGraph.Vertices
	Name  string   // Flink's style: "Source: a -> Map -> Sink: b", branches in parentheses

	// Nodes are in topological order; the first one is the head, which is the only one with inputs from other vertices.
	Nodes          []*ChainNode
	Parallelism    int
	MaxParallelism int    // the least of the nodes: the vertex can't be scaled beyond it
	SlotGroup      string // vertices of one group share slots
	CoLocation     string // "" or the key of a co-location group, one per vertex

	Inputs  []*JobEdge // in the order of the head's inputs
	Outputs []*JobEdge // by producing node, then in the order in which consumers were created
}

// ChainNode is one node in its chain.
type ChainNode struct {
	Node           *graph.Node
	ID             graph.ID // stable identity: from UIDHash, UID or structure
	Index          int      // in Vertex.Nodes
	MaxParallelism int      // resolved: the number of key groups of the node's keyed state
	Links          []Link   // consumers in the same chain, in the order of their creation
}

// Link leads from a chained node's output to another node of the chain.
type Link struct {
	Tag   string // side output; "" = main
	To    int    // index in Vertex.Nodes
	Input int    // of that node
}

// JobEdge is a connection between two vertices. Two edges between the same nodes (a stream united with itself) are two
// JobEdges with channels of their own.
type JobEdge struct {
	ID       int // in JobGraph.Edges
	From, To *Vertex
	Producer int    // index in From.Nodes
	Tag      string // side output of the producer; "" = main
	Consumer int    // index in To.Nodes
	Input    int    // of the consumer; several edges with the same one are a union
	Gate     int    // index in To.Inputs
	Output   int    // index in From.Outputs

	Strategy       graph.Strategy
	Partitioner    *graph.Partitioner // never nil; where the user gave none it holds the strategy only
	Type           *frame.Type        // of the elements
	MaxParallelism int                // of the consumer: how many key groups Hash chooses from
	// BufferTimeout is how long a frame may wait to be filled: 0 = every element at once, negative = until it is full.
	BufferTimeout time.Duration
	Feedback      bool // from an iteration's tail to its head
	Pointwise     bool // channels as by Channels; else every subtask to every subtask
	Blocking      bool // the consumer starts when the producer has ended
}

// KeyGroups is the first and last key group (both inclusive) that a subtask of the node owns.
func (n *ChainNode) KeyGroups(parallelism, subtask int) keygroup.Range {
	first, last := keygroup.RangeOf(n.MaxParallelism, parallelism, subtask)
	return keygroup.Range{First: first, Last: last}
}

// Head is the first node of the chain.
func (v *Vertex) Head() *ChainNode { return v.Nodes[0] }

// ResultType is Flink's name of the kind of exchange: pipelined_bounded or blocking.
func (e *JobEdge) ResultType() string {
	if e.Blocking {
		return "blocking"
	}
	return "pipelined_bounded"
}
