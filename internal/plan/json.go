package plan

import (
	"html"
	"strings"

	"github.com/flott-dev/flott/internal/graph"
)

// StreamPlan is the logical graph in the shape of Flink's execution plan (env.getExecutionPlan, flink info): marshal it
// as JSON.
type StreamPlan struct {
	Nodes []StreamNode `json:"nodes"`
}

// StreamNode is an operator of a StreamPlan.
type StreamNode struct {
	ID           int           `json:"id"` // from 1, in the order of creation
	Type         string        `json:"type"`
	Pact         string        `json:"pact"` // Data Source, Operator or Data Sink
	Contents     string        `json:"contents"`
	Parallelism  int           `json:"parallelism"`
	Predecessors []Predecessor `json:"predecessors,omitempty"`
}

// Predecessor is an edge of a StreamPlan. Side is always "second", as Flink writes it.
type Predecessor struct {
	ID           int    `json:"id"`
	ShipStrategy string `json:"ship_strategy"`
	Side         string `json:"side"`
	Feedback     bool   `json:"feedback,omitempty"` // ours: closes an iteration
}

// Plan is the job graph as REST shows it (/jobs/:jobid/plan): marshal it as JSON.
type Plan struct {
	JID   string     `json:"jid"`
	Name  string     `json:"name"`
	Type  string     `json:"type"`
	Nodes []PlanNode `json:"nodes"`
}

// PlanNode is a vertex of a Plan. Strings are HTML-escaped, since dashboards insert them as they are.
type PlanNode struct {
	ID                  string         `json:"id"`
	Parallelism         int            `json:"parallelism"`
	Operator            string         `json:"operator"`
	OperatorStrategy    string         `json:"operator_strategy"`
	Description         string         `json:"description"`
	Inputs              []PlanInput    `json:"inputs,omitempty"`
	OptimizerProperties map[string]any `json:"optimizer_properties"`
}

// PlanInput is an edge of a Plan.
type PlanInput struct {
	Num          int    `json:"num"`
	ID           string `json:"id"`
	ShipStrategy string `json:"ship_strategy"`
	Exchange     string `json:"exchange"`
	Feedback     bool   `json:"feedback,omitempty"` // ours: closes an iteration
}

// NewStreamPlan makes the stream plan of a graph, which must have passed Validate.
func NewStreamPlan(g *graph.Graph) StreamPlan {
	number := make(map[*graph.Node]int, len(g.Nodes))
	for i, n := range g.Nodes {
		number[n] = i + 1
	}
	p := StreamPlan{Nodes: make([]StreamNode, len(g.Nodes))}
	for i, n := range g.Nodes {
		s := StreamNode{ID: i + 1, Type: n.Title(), Pact: pact(n), Contents: contents(n), Parallelism: g.ParallelismOf(n)}
		for j := range n.Inputs {
			e := &n.Inputs[j]
			s.Predecessors = append(s.Predecessors, Predecessor{
				ID: number[e.From], ShipStrategy: g.StrategyOf(e, n).String(), Side: "second", Feedback: e.Feedback,
			})
		}
		p.Nodes[i] = s
	}
	return p
}

func pact(n *graph.Node) string {
	switch n.Kind {
	case graph.Source:
		return "Data Source"
	case graph.Sink:
		return "Data Sink"
	}
	return "Operator"
}

func contents(n *graph.Node) string {
	if n.Description != "" {
		return n.Description
	}
	return n.Title()
}

// Plan makes the plan of the job with this id.
func (j *JobGraph) Plan(jid string) Plan {
	p := Plan{JID: jid, Name: j.Graph.JobName, Type: "STREAMING", Nodes: make([]PlanNode, len(j.Vertices))}
	for i, v := range j.Vertices {
		n := PlanNode{
			ID: v.ID.String(), Parallelism: v.Parallelism, Description: html.EscapeString(v.description()),
			OptimizerProperties: map[string]any{},
		}
		for _, e := range v.Inputs {
			n.Inputs = append(n.Inputs, PlanInput{
				Num: e.Gate, ID: e.From.ID.String(), ShipStrategy: e.Strategy.String(), Exchange: e.ResultType(),
				Feedback: e.Feedback,
			})
		}
		p.Nodes[i] = n
	}
	return p
}

// description is the vertex's name, or what users wrote about its nodes if they did.
func (v *Vertex) description() string {
	written := false
	lines := make([]string, len(v.Nodes))
	for i, n := range v.Nodes {
		lines[i] = contents(n.Node)
		written = written || n.Node.Description != ""
	}
	if !written {
		return v.Name
	}
	return strings.Join(lines, " -> ")
}
