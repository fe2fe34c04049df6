package jobmanager

import (
	"fmt"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/taskmanager"
	"github.com/flott-dev/flott/internal/vfs"
)

// vertex is one of a graph, whose subtasks have these peers at each edge.
func vertex(index, parallelism int, inputs []*plan.JobEdge, peers ...[][]int) *plan.ExecutionVertex {
	v := &plan.ExecutionVertex{Vertex: &plan.Vertex{Index: index, Name: fmt.Sprint("v", index), Parallelism: parallelism, Inputs: inputs}}
	for s := range parallelism {
		t := &plan.Subtask{Vertex: v.Vertex, Index: s}
		for gate := range inputs {
			t.Inputs = append(t.Inputs, plan.Gate{Edge: inputs[gate], Peers: peers[gate][s]})
		}
		v.Subtasks = append(v.Subtasks, t)
	}
	return v
}

// Checkpoints are triggered at sources, and know who feeds whom: on all edges but the one that leads back in an iteration, on which
// nobody waits for a barrier.
func TestCheckpointsKnowWhoFeedsWhom(t *testing.T) {
	source := vertex(0, 2, nil)
	tail := &plan.Vertex{Index: 2}
	head := vertex(1, 2, []*plan.JobEdge{{From: source.Vertex}, {From: tail, Feedback: true}}, [][]int{{0}, {1}}, [][]int{{0}, {1}})
	last := vertex(2, 1, []*plan.JobEdge{{From: head.Vertex}, {From: source.Vertex}}, [][]int{{0, 1}}, [][]int{{1}})
	got := checkpointVertices(&plan.ExecutionGraph{Vertices: []*plan.ExecutionVertex{source, head, last}})
	all := control.Acknowledges | control.Notified
	want := []control.CheckpointVertex{
		{Name: "v0", Parallelism: 2, Roles: all | control.Triggered},
		{Name: "v1", Parallelism: 2, Roles: all, Inputs: []control.CheckpointInput{{From: 0, Peers: [][]int{{0}, {1}}}}},
		{Name: "v2", Parallelism: 1, Roles: all, Inputs: []control.CheckpointInput{{From: 1, Peers: [][]int{{0, 1}}}, {From: 0, Peers: [][]int{{1}}}}},
	}
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
}

// Each operator of a chain has its own part of what a task gives; one that has finished has an empty one, of its key groups.
func TestPartsAreThoseOfTheOperatorsOfAChain(t *testing.T) {
	chain := func() []checkpoint.Operator {
		return []checkpoint.Operator{{ID: "a", Parallelism: 2, MaxParallelism: 128}, {ID: "b", Parallelism: 2, MaxParallelism: 64}}
	}
	task := control.TaskID{Subtask: 1}
	ops := chain()
	payload := taskmanager.EncodeParts([]*checkpoint.Part{{Subtask: 1, LastGroup: 10}, {Subtask: 1, LastGroup: 20}})
	if err := addParts(ops, &control.TaskSnapshot{Task: task, Payload: payload}); err != nil {
		t.Fatal(err)
	}
	for i, last := range []int{10, 20} {
		if p := ops[i].Parts; len(p) != 1 || p[0].LastGroup != last || p[0].Finished {
			t.Errorf("operator %d has %+v", i, p)
		}
	}
	ops = chain()
	if err := addParts(ops, &control.TaskSnapshot{Task: task, Finished: true}); err != nil {
		t.Fatal(err)
	}
	for i, groups := range [][2]int{{64, 127}, {32, 63}} {
		if p := ops[i].Parts; len(p) != 1 || !p[0].Finished || p[0].Subtask != 1 || p[0].FirstGroup != groups[0] || p[0].LastGroup != groups[1] {
			t.Errorf("operator %d, which has finished, has %+v", i, p[0])
		}
	}
	for _, parts := range [][]*checkpoint.Part{{{}}, {{}, {}, {}}} {
		if err := addParts(chain(), &control.TaskSnapshot{Task: task, Payload: taskmanager.EncodeParts(parts)}); err == nil {
			t.Errorf("%d parts are those of a chain of two", len(parts))
		}
	}
	if err := addParts(chain(), &control.TaskSnapshot{Task: task, Payload: payload[:len(payload)-1]}); err == nil {
		t.Error("parts that are cut are accepted")
	}
}

// What a job goes on from is known with its owner: savepoints and snapshots of others are never removed by it.
func TestSnapshotsOfBeforeKeepTheirOwners(t *testing.T) {
	opt := CheckpointOptions{Config: control.DefaultCheckpointConfig(), FS: vfs.NewMem(), Dir: "/checkpoints"}
	opt.Config.Retained = 3
	for id, s := range []Snapshot{
		{Manifest: &checkpoint.Manifest{Kind: checkpoint.Checkpoint}},
		{Manifest: &checkpoint.Manifest{Kind: checkpoint.Savepoint}},
		{Manifest: &checkpoint.Manifest{Kind: checkpoint.Checkpoint}, Foreign: true},
	} {
		s.FS, s.Manifest.ID, s.Manifest.Time, s.Manifest.Folder = opt.FS, int64(id+1), int64(100*id), fmt.Sprint("/", id+1)
		opt.Completed = append(opt.Completed, s)
	}
	c := clock.NewManual(0)
	k, err := NewKeeper("id", &taskmanager.Job{Name: "job", Graph: &plan.ExecutionGraph{}}, nil, opt, c, host.NewParker(c), func(func()) {})
	if err != nil {
		t.Fatal(err)
	}
	all := k.machine.Completed()
	if len(all) != 3 {
		t.Fatalf("%d snapshots are known", len(all))
	}
	for i, kept := range []bool{false, true, true} {
		s := all[i]
		if s.Kept() != kept || s.ID != int64(i+1) || s.Location != fmt.Sprint("/", i+1) || s.Timestamp != int64(100*i) {
			t.Errorf("%+v, kept: %v, want %v", s, s.Kept(), kept)
		}
		if at := k.site(s.ID); at == nil || at.manifest != opt.Completed[i].Manifest || at.folder != s.Location {
			t.Errorf("snapshot %d lies at %+v", s.ID, at)
		}
	}
}
