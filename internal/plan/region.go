package plan

import (
	"fmt"

	"github.com/flott-dev/flott/internal/graph"
)

// splitRegions gives each pipelined region its own group in place of the default one: subtasks of other regions run at
// other times, so sharing a slot with them gains nothing. Co-located vertices count as one region.
func (b *builder) splitRegions() {
	parent := count(0, len(b.vertices))
	find := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for _, e := range b.edges {
		if !e.Blocking {
			parent[find(e.To.Index)] = find(e.From.Index)
		}
	}
	first := make(map[string]int)
	for i, v := range b.vertices {
		if v.CoLocation == "" {
			continue
		}
		if other, ok := first[v.CoLocation]; ok {
			parent[find(i)] = find(other)
		} else {
			first[v.CoLocation] = i
		}
	}
	names := make(map[int]string)
	for i, v := range b.vertices {
		region := find(i)
		if names[region] == "" {
			names[region] = fmt.Sprintf("region %d", len(names)+1)
		}
		if v.SlotGroup == graph.DefaultSlotGroup {
			v.SlotGroup = names[region]
		}
	}
}
