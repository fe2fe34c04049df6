package streaming_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

func taskRules() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"rule/operators_closed_before_task_stops":  ruleOperatorsClosed,
		"rule/async_snapshot_failure_fails_task":   ruleAsyncFailure,
		"rule/empty_state_is_acked_as_stateless":   ruleStateless,
		"rule/source_checkpoint_excludes_emission": ruleSectionsOfSources,
		"rule/finishing_task_ignores_source_error": ruleErrorWhenStopped,
	}
}

func ruleOperatorsClosed(t *testing.T) {
	s := slowClose{make(chan struct{}), make(chan struct{})}
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements[int64](1).Process(func(*process.Runtime) slowClose { return s }).Discard()
	job, err := env.ExecuteAsync(t.Context(), "slow close")
	if err != nil {
		t.Fatal(err)
	}
	<-s.closing
	for job.Status() == "CREATED" { // its tasks run before it says that they all do
		time.Sleep(time.Millisecond)
	}
	select {
	case <-job.Done():
		t.Error("the job has ended while an operator is being closed")
	default:
	}
	if status := job.Status(); status != "RUNNING" {
		t.Errorf("the job is %s", status)
	}
	close(s.goOn)
	if _, err := job.Wait(); err != nil {
		t.Error(err)
	}
}

// hoard is a processor with more operator state than a manifest takes in.
type hoard struct{ of *state.OperatorList[string] }

func newHoard(rt *process.Runtime) *hoard {
	h := &hoard{rt.OperatorList(state.NewOperatorList[string]("hoard", state.Split))}
	h.of.Set([]string{strings.Repeat("gold ", 10_000)})
	return h
}

func (*hoard) ProcessElement(_ *process.Context, x int64, out *process.Collector[int64]) error {
	out.Collect(x)
	return nil
}

// fullAfter is a disk that has no more room once some chunks have been written.
type fullAfter struct {
	vfs.FS
	chunks  atomic.Int64
	refused atomic.Int64
}

var errFull = errors.New("the disk is full")

func (f *fullAfter) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	if !strings.Contains(name, checkpoint.ManifestName) && f.chunks.Add(1) > 2 {
		f.refused.Add(1)
		return nil, errFull
	}
	return f.FS.Create(name, how)
}

func ruleAsyncFailure(t *testing.T) {
	disk := &fullAfter{FS: vfs.NewMem()}
	e := stream.NewEnv(func(s *env.Settings) { s.Checkpoints.FS = disk }).SetParallelism(1).
		SetRestartStrategy(stream.NoRestart()).EnableCheckpointing(20 * time.Millisecond).SetCheckpointStorage("/checkpoints")
	s := e.FromGenerator(-1, func(i int64) int64 { return i }, 1000).Map(func(x int64) int64 { return x })
	for range 3 {
		s = s.Process(newHoard)
	}
	s.Discard()
	if _, err := e.Execute(t.Context(), "hoards"); !errors.Is(err, errFull) {
		t.Fatalf("error %v, want that of the disk", err)
	}
	if disk.refused.Load() != 1 {
		t.Errorf("%d chunks were refused, want that of the third operator", disk.refused.Load())
	}
	var files []string
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := disk.ReadDir(dir)
		if err != nil {
			return
		}
		for _, x := range entries {
			if x.IsDir() {
				walk(dir + "/" + x.Name())
			} else {
				files = append(files, x.Name())
			}
		}
	}
	if walk("/checkpoints"); len(files) > 0 {
		t.Errorf("the snapshots of the other operators were not thrown away: %q", files)
	}
}

func ruleStateless(t *testing.T) {
	e := stream.NewEnv().SetParallelism(1)
	e.FromGenerator(-1, func(i int64) int64 { return i }, 1000).Map(func(x int64) int64 { return x }).DisableChaining().Name("stateless").Discard()
	job, err := e.ExecuteAsync(t.Context(), "stateless")
	if err != nil {
		t.Fatal(err)
	}
	at, err := job.TriggerSavepoint(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	job.Cancel()
	<-job.Done()
	m, err := checkpoint.Load(nil, at)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Operators {
		o := &m.Operators[i]
		for _, p := range o.Parts {
			for _, l := range p.Lists {
				if l.Name != "channels" && o.Name == "stateless" {
					t.Errorf("operator %q has list %q", o.Name, l.Name)
				}
			}
			if len(p.Tables) > 0 {
				t.Errorf("operator %q has tables", o.Name)
			}
		}
	}
}

// hundred is a source with a section for each of its 100 numbers.
type hundred struct {
	at    int64
	kept  *state.OperatorList[int64]
	state atomic.Int32 // 1: emitting, 2: in a snapshot
	wrong *atomic.Int32
}

func (h *hundred) move(from, to int32) {
	if !h.state.CompareAndSwap(from, to) {
		h.wrong.Add(1)
	}
}

func (h *hundred) Run(_ context.Context, out *process.SourceContext[int64]) error {
	for h.at < 100 {
		out.Locked(func() {
			h.move(0, 1)
			out.Collect(h.at)
			h.at++
			time.Sleep(100 * time.Microsecond)
			h.move(1, 0)
		})
	}
	return nil
}

func (h *hundred) SnapshotState(process.SnapshotContext) error {
	h.move(0, 2)
	h.kept.Set([]int64{h.at})
	h.move(2, 0)
	return nil
}

func ruleSectionsOfSources(t *testing.T) {
	var wrong atomic.Int32
	e := stream.NewEnv().SetParallelism(1).EnableCheckpointing(10*time.Millisecond, stream.MaxConcurrentCheckpoints(3))
	got := flotttest.NewSink[int64]()
	e.FromSourceProcessor[int64]("hundred", func(rt *process.Runtime) *hundred {
		return &hundred{kept: rt.OperatorList(state.NewOperatorList[int64]("at", state.Split)), wrong: &wrong}
	}).SinkTo(got)
	job, err := e.ExecuteAsync(t.Context(), "hundred")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for range 3 { // beside the periodic ones; the job may have ended
		_, _ = job.TriggerSavepoint(t.Context(), dir)
	}
	if _, err := job.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := len(got.Values()); n != 100 || wrong.Load() != 0 {
		t.Errorf("%d elements, want 100; %d overlaps of emission and snapshots", n, wrong.Load())
	}
}

func ruleErrorWhenStopped(t *testing.T) {
	e := stream.NewEnv().SetParallelism(1)
	started := make(chan struct{})
	e.FromFunc("sulky", func(ctx context.Context, out *stream.SourceContext[int64]) error {
		out.Collect(1)
		close(started)
		<-ctx.Done()
		return errors.New("it was not done yet")
	}).Discard()
	job, err := e.ExecuteAsync(t.Context(), "sulky")
	if err != nil {
		t.Fatal(err)
	}
	<-started
	if _, err := job.StopWithSavepoint(t.Context(), t.TempDir(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := job.Wait(); err != nil || job.Status() != "FINISHED" {
		t.Errorf("the job is %s: %v", job.Status(), err)
	}
}
