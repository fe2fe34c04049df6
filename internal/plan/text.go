package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flott-dev/flott/internal/graph"
)

// String gives the plan for people: vertices in topological order, under each its inputs and its nodes.
func (j *JobGraph) String() string {
	var b strings.Builder
	slots, groups := j.slots()
	fmt.Fprintf(&b, "job %q: vertices %d, subtasks %d, slots %d (%s)\n", j.Graph.JobName, len(j.Vertices), j.Subtasks(),
		slots, strings.Join(groups, ", "))
	for _, v := range j.Vertices {
		fmt.Fprintf(&b, "\n[%d] %s\n    parallelism %d, max parallelism %d, slot group %q", v.Index+1, v.Name, v.Parallelism,
			v.MaxParallelism, v.SlotGroup)
		if v.CoLocation != "" {
			fmt.Fprintf(&b, ", co-location %q", v.CoLocation)
		}
		b.WriteString("\n")
		for _, e := range v.Inputs {
			fmt.Fprintf(&b, "    <- [%d] %s\n", e.From.Index+1, e.describe())
		}
		v.describeNodes(&b)
	}
	return b.String()
}

// Subtasks is the number of subtasks of the job.
func (j *JobGraph) Subtasks() int {
	n := 0
	for _, v := range j.Vertices {
		n += v.Parallelism
	}
	return n
}

// Slots is the number of slots that the job needs: the widest vertex of each slot-sharing group.
func (j *JobGraph) Slots() int {
	n, _ := j.slots()
	return n
}

func (j *JobGraph) slots() (total int, groups []string) {
	width := make(map[string]int)
	for _, v := range j.Vertices {
		width[v.SlotGroup] = max(width[v.SlotGroup], v.Parallelism)
	}
	for _, g := range slices.Sorted(maps.Keys(width)) {
		total += width[g]
		groups = append(groups, fmt.Sprintf("%s %d", g, width[g]))
	}
	return total, groups
}

func (e *JobEdge) describe() string {
	from := e.From.Nodes[e.Producer].Node.Title()
	if e.Tag != "" {
		from += fmt.Sprintf(" side output %q", e.Tag)
	}
	s := fmt.Sprintf("%s, %s", from, e.Strategy)
	if k := e.Partitioner.Key; e.Strategy == graph.Hash && k != nil && k.Key != nil {
		s += " by " + k.Name
	}
	if e.Input != 0 {
		s += fmt.Sprintf(", input %d", e.Input)
	}
	if e.Feedback {
		s += ", feedback"
	}
	if e.Type != nil && e.Type.Handle != nil {
		s += ", elements " + e.Type.Name
	}
	return s + ", " + e.ResultType() + ", " + timeoutText(e.BufferTimeout)
}

func timeoutText(d time.Duration) string {
	switch {
	case d < 0:
		return "sent when full"
	case d == 0:
		return "sent at once"
	}
	return fmt.Sprintf("sent after %v", d)
}

func (v *Vertex) describeNodes(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	for _, n := range v.Nodes {
		parts := []string{"id " + n.ID.String()}
		if n.Node.UID != "" {
			parts = append(parts, fmt.Sprintf("uid %q", n.Node.UID))
		}
		for i, k := range n.Node.Key {
			if k != nil && k.Key != nil {
				parts = append(parts, fmt.Sprintf("key of input %d: %s", i, k.Name))
			}
		}
		if n.Node.Keyed() && n.MaxParallelism != v.MaxParallelism {
			parts = append(parts, fmt.Sprintf("max parallelism %d", n.MaxParallelism))
		}
		for _, a := range slices.Sorted(maps.Keys(n.Node.Attributes)) {
			parts = append(parts, fmt.Sprintf("%s: %s", a, n.Node.Attributes[a]))
		}
		fmt.Fprintf(w, "    - %s\t%s\n", n.Node.Title(), strings.Join(parts, ", "))
	}
	w.Flush() // a strings.Builder can't fail
}
