package jobmanager

import (
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/plan"
)

// Restarts say what follows a failure.
type Restarts struct {
	// Strategy says whether and when something is restarted. It serves one job.
	Strategy control.Restart
	// Full restarts all tasks, not only those of the failure's region.
	Full bool
}

// region is a failover region: vertices between which and all others nothing flows, so that they fail, and are restarted, by
// themselves. docs/decisions/0009-failover-regions-are-of-vertices.md tells why they are not of subtasks.
type region struct {
	index    int
	vertices []*plan.ExecutionVertex
}

// regionsOf splits a graph into its regions, in the order of their first vertices; with full all of it is one.
func regionsOf(g *plan.ExecutionGraph, full bool) []*region {
	if full {
		return []*region{{vertices: g.Vertices}}
	}
	parent := make([]int, len(g.Vertices))
	for i := range parent {
		parent[i] = i
	}
	find := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	located := map[string]int{}
	for i, v := range g.Vertices {
		for _, e := range v.Inputs { // the feedback of an iteration is among them
			parent[find(i)] = find(e.From.Index)
		}
		if v.CoLocation == "" {
			continue
		}
		if other, ok := located[v.CoLocation]; ok {
			parent[find(i)] = find(other)
		} else {
			located[v.CoLocation] = i
		}
	}
	var all []*region
	byRoot := map[int]*region{}
	for i, v := range g.Vertices {
		r := byRoot[find(i)]
		if r == nil {
			r = &region{index: len(all)}
			byRoot[find(i)] = r
			all = append(all, r)
		}
		r.vertices = append(r.vertices, v)
	}
	return all
}

// tasks are the region's tasks, in order.
func (r *region) tasks() []control.TaskID {
	var ids []control.TaskID
	for _, v := range r.vertices {
		for s := range v.Subtasks {
			ids = append(ids, control.TaskID{Vertex: v.Index, Subtask: s})
		}
	}
	return ids
}
