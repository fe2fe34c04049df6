package rest

import (
	"context"
	"encoding/hex"
	"errors"
	"math"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/process"
)

// The ids of the jobs of the tests.
const (
	runningID = "00112233445566778899aabbccddeeff"
	failedID  = "ffeeddccbbaa99887766554433221100"
	loopID    = "0123456789abcdef0123456789abcdef"
)

// fake is a job that says what it was made to say.
type fake struct {
	facts *Facts
	done  chan struct{}

	mu      sync.Mutex
	view    *View
	history control.CheckpointOverview
	calls   []string
	answer  func() error // of snapshots; nil: they work
}

func (f *fake) Facts() *Facts                           { return f.facts }
func (f *fake) Checkpoints() control.CheckpointOverview { return f.history }
func (f *fake) Done() <-chan struct{}                   { return f.done }

func (f *fake) View() *View {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := *f.view
	return &v
}

func (f *fake) Accumulators() (map[string]any, error) {
	return map[string]any{"lines": int64(42), "mean": 1.5}, nil
}

func (f *fake) called(what string) error {
	f.mu.Lock()
	f.calls = append(f.calls, what)
	answer := f.answer
	f.mu.Unlock()
	if answer != nil {
		return answer()
	}
	return nil
}

func (f *fake) heard() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.calls, "; ")
}

func (f *fake) Cancel() { _ = f.called("cancel") }

func (f *fake) TriggerCheckpoint(_ context.Context, full bool) (int64, error) {
	return 7, f.called(map[bool]string{true: "full checkpoint", false: "checkpoint"}[full])
}

func (f *fake) TriggerSavepoint(_ context.Context, dir string) (string, error) {
	return dir + "/savepoint-001122-0123456789ab", f.called("savepoint to " + dir)
}

func (f *fake) CancelWithSavepoint(_ context.Context, dir string) (string, error) {
	return dir + "/savepoint-001122-0123456789ab", f.called("cancel with savepoint to " + dir)
}

func (f *fake) StopWithSavepoint(_ context.Context, dir string, drain bool) (string, error) {
	return dir + "/savepoint-001122-0123456789ab", f.called(map[bool]string{true: "drain to ", false: "stop to "}[drain] + dir)
}

// end ends the job in that state.
func (f *fake) end(status string) {
	f.mu.Lock()
	v := *f.view
	v.Status, v.End = status, now
	f.view = &v
	f.mu.Unlock()
	close(f.done)
}

// now is the time of the tests: 2026-01-02T03:04:05.678Z.
const now = 1767323045678

// source is an operator that only has a place in plans.
func place() operator.Operator { panic("plans run nothing") }

// program is the graph of all jobs here: a source with two subtasks and a keyed count with three.
func program(t *testing.T) *plan.ExecutionGraph {
	t.Helper()
	typ, err := frame.TypeOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	node := func(kind graph.Kind, name string, parallelism int) *graph.Node {
		return &graph.Node{Kind: kind, Name: name, UID: name, Parallelism: parallelism, MaxParallelism: 128, Out: typ, New: place}
	}
	source, count := node(graph.Source, "num<b>ers", 2), node(graph.Operator, "Count", 3)
	count.Inputs = []graph.Edge{{From: source, Partitioner: &graph.Partitioner{Strategy: graph.Rebalance}}}
	jg, err := plan.Build(&graph.Graph{JobName: "counting", Parallelism: 2, MaxParallelism: 128, ChainingEnabled: true, Nodes: []*graph.Node{source, count}})
	if err != nil {
		t.Fatal(err)
	}
	return plan.Unfold(jg)
}

func facts(t *testing.T, id, name string) *Facts {
	f := &Facts{ID: id, Name: name, Graph: program(t), Parallelism: 2, Restart: "Restart deactivated.", Parameters: map[string]string{"city": "Köln", "api-key": "hush"}}
	f.Configuration = map[string]string{"parallelism.default": "2", "s3.secret-key": "hush", "pipeline.name": name}
	f.Checkpoints = &Checkpointing{Config: control.DefaultCheckpointConfig(), Backend: "heap", Storage: "FileSystemCheckpointStorage"}
	f.Checkpoints.Config.Interval = 10 * time.Second
	f.Checkpoints.Config.Retention = control.RetainOnCancellation
	return f
}

func view(status string) *View {
	task := func(state string, in, out, watermark int64) Subtask {
		return Subtask{
			State: state, Start: now - 60_000, End: -1, RecordsIn: in, RecordsOut: out, Idle: 10 * time.Second, Backpressured: 20 * time.Second, Busy: 30 * time.Second,
			Alignment: 3 * time.Millisecond, StartDelay: 1500, Watermark: watermark,
		}
	}
	v := &View{
		Status: status, Now: now, Start: now - 61_000, End: -1, Attempt: 1, Restarts: 1,
		Entered:  map[string]int64{"CREATED": now - 61_000, "RUNNING": now - 60_000, "RESTARTING": now - 60_500},
		Failures: []Failure{{At: now - 60_600, Attempt: 0, Class: "*errors.errorString", Text: `operator "Count", subtask 2: boom`, Task: "Count (2/3)", Same: 4, SameRecord: 3}},
		Vertices: []Vertex{
			{[]Subtask{task("RUNNING", 0, 100, 5000), task("RUNNING", 0, 200, math.MinInt64)}},
			{[]Subtask{task("RUNNING", 150, 0, 4000), task("RUNNING", 100, 0, 4000), task("RUNNING", 50, 0, 4000)}},
		},
	}
	v.Vertices[1].Subtasks[0].Operators = []Operator{{Title: "Count", Metrics: map[string]any{
		"numRecordsIn": int64(150), "late": process.MeterReading{Count: 3, Rate: 0.5}, "size": process.HistogramReading{Count: 2, Min: 1, Max: 3, Mean: 2},
	}}}
	return v
}

func history() control.CheckpointOverview {
	sub := func(ack, size int64) control.SubtaskCheckpointStatistics {
		return control.SubtaskCheckpointStatistics{Acknowledged: true, Ack: ack, Duration: 30 * time.Millisecond, TaskMetrics: control.TaskMetrics{
			CheckpointedSize: size, StateSize: 2 * size, Processed: 5, Persisted: 6, Alignment: 4 * time.Millisecond, StartDelay: 2 * time.Millisecond,
			Sync: time.Millisecond, Async: 20 * time.Millisecond,
		}}
	}
	vertices := []control.VertexCheckpointStatistics{
		{Vertex: 0, Subtasks: []control.SubtaskCheckpointStatistics{sub(now-29_990, 10), sub(now-29_980, 20)}},
		{Vertex: 1, Subtasks: []control.SubtaskCheckpointStatistics{sub(now-29_970, 100), sub(now-29_970, 200), {}}},
	}
	first := control.CheckpointStatistics{
		ID: 3, Status: control.CheckpointCompleted, Trigger: now - 30_000, LatestAck: now - 29_970, Duration: 30 * time.Millisecond, CheckpointedSize: 330,
		StateSize: 660, Processed: 20, Persisted: 24, Subtasks: 5, Acknowledged: 5, Location: "/checkpoints/chk-3", Vertices: vertices, Unaligned: true,
	}
	second := control.CheckpointStatistics{
		ID: 4, Kind: control.Savepoint, Status: control.CheckpointCompleted, Trigger: now - 20_000, LatestAck: now - 19_000, Duration: time.Second, CheckpointedSize: 700,
		StateSize: 700, MetadataSize: 123, Subtasks: 5, Acknowledged: 5, Location: "/savepoints/savepoint-001122-0123456789ab", Vertices: vertices,
	}
	third := control.CheckpointStatistics{
		ID: 5, Status: control.CheckpointFailed, Trigger: now - 10_000, Duration: time.Minute, Subtasks: 5, Acknowledged: 1, Failed: now - 9_000, Failure: "declined: no room",
		Vertices: vertices,
	}
	fourth := control.CheckpointStatistics{ID: 6, Trigger: now - 1000, Subtasks: 5, Acknowledged: 4, LatestAck: now - 900, Vertices: vertices}
	d := control.Distribution{Count: 2, Min: 330, Max: 700, Mean: 515, P50: 330, P90: 700, P95: 700, P99: 700, P999: 700}
	return control.CheckpointOverview{
		Counts:          control.CheckpointCounts{Triggered: 6, InProgress: 1, Completed: 4, Failed: 1, Restored: 1},
		Summary:         control.CheckpointSummary{CheckpointedSize: d, StateSize: d, Duration: control.Distribution{Count: 2, Min: 30, Max: 1000, Mean: 515, P50: 30, P90: 1000}},
		LatestCompleted: &second, LatestSavepoint: &second, LatestFailed: &third,
		LatestRestored: &control.RestoredCheckpoint{ID: 2, Kind: control.Savepoint, Timestamp: now - 61_000, Location: "/savepoints/savepoint-aaaaaa-0123456789ab"},
		History:        []control.CheckpointStatistics{fourth, third, second, first},
	}
}

// rig is an endpoint with three jobs: one that runs, one that has failed, and one that takes no snapshots.
type rig struct {
	*Server
	t       *testing.T
	clock   *clock.Manual
	disk    vfs.FS
	running *fake
	failed  *fake
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, clock: clock.NewManual(now), disk: vfs.NewMem()}
	opt := DefaultOptions()
	opt.Clock, opt.Zone, opt.Version, opt.Commit = r.clock, time.UTC, "v1.2.3", "0123456"
	opt.Disk = func(path string) (checkpoint.FS, string, error) {
		if strings.HasPrefix(path, "hdfs:") {
			return nil, "", errors.New("no storage for hdfs: is linked")
		}
		return r.disk, path, nil
	}
	r.Server = New(opt)
	r.running = &fake{facts: facts(t, runningID, "counting"), done: make(chan struct{}), view: view("RUNNING"), history: history()}
	r.running.facts.SavepointDir = "/savepoints"
	r.failed = &fake{facts: facts(t, failedID, "broken"), done: make(chan struct{}), view: view("FAILED")}
	r.failed.view.End = now - 1000
	r.failed.facts.Checkpoints.Memory = true
	for v := range r.failed.view.Vertices {
		for i := range r.failed.view.Vertices[v].Subtasks {
			s := &r.failed.view.Vertices[v].Subtasks[i]
			s.State, s.End = "CANCELED", now-1500
		}
	}
	r.failed.view.Vertices[1].Subtasks[1].State = "FAILED"
	close(r.failed.done)
	loop := &fake{facts: facts(t, loopID, "loop"), done: make(chan struct{}), view: view("RUNNING")}
	loop.facts.Checkpoints, loop.facts.Unable = nil, "it has an iteration"
	for _, j := range []*fake{r.running, r.failed, loop} {
		r.jobs = append(r.jobs, &entry{job: &metered{Job: j}, facts: j.facts})
	}
	return r
}

// call makes a request.
func (r *rig) call(method, target, body string) (status int, answer string) {
	req := httptest.NewRequest(method, "http://127.0.0.1:8081"+target, strings.NewReader(body))
	w := httptest.NewRecorder()
	r.handler().ServeHTTP(w, req)
	if got := w.Header().Get("Content-Type"); got != "application/json; charset=UTF-8" {
		r.t.Errorf("%s %s is of type %q", method, target, got)
	}
	return w.Code, w.Body.String()
}

// vertexID is the id of a vertex of all jobs here.
func (r *rig) vertexID(i int) string {
	id := r.running.facts.Graph.Vertices[i].ID
	return hex.EncodeToString(id[:])
}
