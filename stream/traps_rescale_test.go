package stream_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/filesink"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// countAccounts counts 400 numbers, a thousand a second, by 100 keys: few of them change from one checkpoint to the next, so that
// checkpoints of changes are worth it.
func countAccounts(e *stream.Env, dir string) {
	e.FromGenerator(400, func(i int64) int64 { return i }, 1000).UID("numbers").
		KeyBy(func(x int64) int64 { return x % 100 }).
		Sum(func(int64) int64 { return 1 }).UID("counts").
		Map(func(kv stream.KeyValue[int64, int64]) string { return fmt.Sprint(kv.Key, " ", kv.Value) }).
		CommitTo(filesink.New(dir, file.TextEncoding[string]("\n")).RollOnCheckpoint()).UID("files")
}

// A savepoint that was moved, and then claimed, is part of the incremental checkpoints that follow: these say where its files really
// are. Nothing is needed of where it lay before.
func TestB033MovedSavepointIsClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, parent, other, recovery := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
		begin := func(disk vfs.FS, opts ...stream.Option) *stream.Job {
			opts = append(opts, func(s *env.Settings) { s.Checkpoints.FS, s.Checkpoints.InlineBytes = disk, -1 })
			e := stream.NewEnv(opts...).SetParallelism(2).SetRestartStrategy(stream.NoRestart()).
				EnableCheckpointing(20*time.Millisecond, stream.IncrementalCheckpoints(true))
			countAccounts(e, out)
			job, err := e.ExecuteAsync(t.Context(), "ledger")
			if err != nil {
				t.Fatal(err)
			}
			return job
		}
		first := begin(vfs.OS{})
		time.Sleep(100 * time.Millisecond)
		at, err := first.StopWithSavepoint(t.Context(), parent, false)
		if err != nil {
			t.Fatal(err)
		}
		moved := filepath.Join(other, "moved")
		if err := os.Rename(at, moved); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(parent); err != nil {
			t.Fatal(err)
		}
		opts := []stream.Option{stream.WithRecovery(recovery), stream.WithSavepoint(moved, stream.ClaimSavepoint())}
		disk := vfs.NewMortal(vfs.OS{}, -1)
		second := begin(disk, opts...)
		time.Sleep(90 * time.Millisecond) // a whole checkpoint, and three of the changes since
		disk.DieAfter(0)
		if _, err := second.Wait(); err == nil {
			t.Fatal("the second process lives")
		}
		m := onlyCheckpoint(t, filepath.Join(recovery, "job-1-ledger", "checkpoints"))
		if err := m.Verify(vfs.OS{}); err != nil {
			t.Error(err)
		}
		folders := map[string]bool{}
		for _, f := range m.Files() {
			folders[path.Dir(f)] = true
		}
		if delete(folders, path.Clean(m.Folder)); len(folders) < 2 {
			t.Errorf("the checkpoint builds upon no earlier ones: its files are %q", m.Files())
		}
		third := begin(vfs.OS{}, opts...)
		if _, err := third.Wait(); err != nil {
			t.Fatal(err)
		}
		if r := third.Checkpoints().LatestRestored; r == nil || r.ID != m.ID {
			t.Errorf("restored %+v, want checkpoint %d", r, m.ID)
		}
		var want []string
		for x := range 400 {
			want = append(want, fmt.Sprint(x%100, " ", x/100+1))
		}
		slices.Sort(want)
		if got := visible(t, out); !slices.Equal(got, want) {
			t.Errorf("after a move and a crash: %d lines, want %d, or others", len(got), len(want))
		}
	})
}

// onlyCheckpoint is the last complete checkpoint in a folder.
func onlyCheckpoint(t *testing.T, dir string) *checkpoint.Manifest {
	t.Helper()
	storage, err := checkpoint.OpenStorage(vfs.OS{}, filepath.ToSlash(dir))
	if err != nil {
		t.Fatal(err)
	}
	m, err := storage.Latest()
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	return m
}

// dealtOut has a list of each kind and tells what is in it.
type dealtOut struct{ split, union *state.OperatorList[int64] }

func newDealtOut(rt *process.Runtime) *dealtOut {
	return &dealtOut{
		rt.OperatorList(state.NewOperatorList[int64]("split", state.Split)),
		rt.OperatorList(state.NewOperatorList[int64]("union", state.Union)),
	}
}

func dealtRules() *state.BroadcastDescriptor[int64, int64] {
	return state.NewBroadcast[int64, int64]("rules")
}

// ProcessElement keeps a positive element, and shows everything for another one.
func (d *dealtOut) ProcessElement(ctx *process.ReadOnlyContext, x int64, out *process.Collector[string]) error {
	if x > 0 {
		d.split.Add(x)
		d.union.Add(-x)
		return nil
	}
	for y := range d.split.All() {
		out.Collect(fmt.Sprint("split ", y))
	}
	rules := map[int64]int64{}
	for k, v := range ctx.BroadcastState(dealtRules()).All() {
		rules[k] = v
	}
	union := slices.Sorted(d.union.All())
	out.Collect(fmt.Sprint("all ", union, rules))
	return nil
}

func (d *dealtOut) ProcessBroadcastElement(ctx *process.BroadcastContext, x int64, _ *process.Collector[string]) error {
	ctx.BroadcastState(dealtRules()).Put(x, x*x)
	return nil
}

// Each item of split list state goes to one subtask; union and broadcast state to each, whole.
func TestB037ListsAreHandedOutOnce(t *testing.T) {
	type harness = flotttest.TwoInputHarness[int64, int64, string]
	begin := func(parallelism int, opts ...flotttest.Option) (all []*harness) {
		for i := range parallelism {
			all = append(all, flotttest.NewTwoInputHarness(t, func(a, b *stream.Stream[int64]) *stream.Stream[string] {
				return a.ConnectBroadcast(b.BroadcastState(dealtRules())).Process(newDealtOut)
			}, append(opts, flotttest.WithSubtask(i, parallelism))...))
		}
		return all
	}
	for _, c := range [][]int{{4, 4}, {4, 2}, {2, 4}, {4, 3}, {1, 4}, {4, 1, 3}} {
		old := begin(c[0])
		for x := int64(1); x <= 10; x++ {
			old[int(x)%c[0]].First.ProcessElement(x, 0)
		}
		for _, h := range old {
			h.Second.ProcessElement(3, 0)
			h.Second.ProcessElement(4, 0)
		}
		for _, parallelism := range c[1:] {
			var taken []*flotttest.Snapshot
			for _, h := range old {
				taken = append(taken, h.Snapshot())
				h.Close()
			}
			old = begin(parallelism, flotttest.Restore(taken...))
			var split, all []string
			for _, h := range old {
				h.First.ProcessElement(0, 0)
				values := h.Values()
				split, all = append(split, values[:len(values)-1]...), append(all, values[len(values)-1])
			}
			flotttest.Same(t, split, []string{"split 1", "split 2", "split 3", "split 4", "split 5", "split 6", "split 7", "split 8", "split 9", "split 10"})
			for _, one := range all {
				if one != "all [-10 -9 -8 -7 -6 -5 -4 -3 -2 -1] map[3:9 4:16]" && len(c) == 2 {
					t.Errorf("%v: a subtask has %s", c, one)
				}
			}
		}
	}
}
