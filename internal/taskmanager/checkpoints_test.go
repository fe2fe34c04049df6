package taskmanager

import (
	"fmt"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/plan"
)

func TestSubtasksHadFinishedBeforeASnapshotIfAllOfTheirChainHad(t *testing.T) {
	parts := func(finished ...bool) (all []*checkpoint.Part) {
		for i, f := range finished {
			all = append(all, &checkpoint.Part{Subtask: i, Finished: f})
		}
		return all
	}
	for name, c := range map[string]struct {
		old   int // parallelism of the snapshot
		now   int
		nodes [][]*checkpoint.Part // nil: the snapshot does not know the operator
		want  []bool               // by subtask
	}{
		"nobody":                        {2, 2, [][]*checkpoint.Part{parts(false, false)}, []bool{false, false}},
		"one of two":                    {2, 2, [][]*checkpoint.Part{parts(false, true)}, []bool{false, true}},
		"one of two, now of three":      {2, 3, [][]*checkpoint.Part{parts(true, false)}, []bool{false, false, false}},
		"one of two, now alone":         {2, 1, [][]*checkpoint.Part{parts(true, false)}, []bool{false}},
		"all, now of three":             {2, 3, [][]*checkpoint.Part{parts(true, true)}, []bool{true, true, true}},
		"the other one had no state":    {2, 2, [][]*checkpoint.Part{parts(true)}, []bool{true, false}},
		"the same, now of three":        {2, 3, [][]*checkpoint.Part{parts(true)}, []bool{false, false, false}},
		"another operator of the chain": {2, 2, [][]*checkpoint.Part{parts(true, true), parts(false, true)}, []bool{false, true}},
		"an operator that is new":       {2, 2, [][]*checkpoint.Part{parts(true, true), nil}, []bool{false, false}},
	} {
		v, r := &plan.Vertex{Parallelism: c.now}, &Restore{Manifest: &checkpoint.Manifest{}}
		for i, p := range c.nodes {
			id := graph.ID{byte(i + 1)}
			v.Nodes = append(v.Nodes, &plan.ChainNode{ID: id})
			if p != nil {
				r.Manifest.Operators = append(r.Manifest.Operators, checkpoint.Operator{ID: id.String(), Parallelism: c.old, Parts: p})
			}
		}
		all := true
		var got []bool
		for s := range c.now {
			got = append(got, r.finished(v, s))
			all = all && c.want[s]
			if (*Restore)(nil).finished(v, s) {
				t.Errorf("%s: without a snapshot subtask %d had finished", name, s)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || r.AllFinished(v) != all {
			t.Errorf("%s: finished %v, want %v; all: %v", name, got, c.want, r.AllFinished(v))
		}
	}
}
