package env

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/element"
	"github.com/flott-dev/flott/internal/operator/keyed"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
)

// tap is a source of 0, 1, 2 ... below limit, dealt to subtasks by turns: element i is emitted i ms after the start of its
// attempt, at the earliest.
type tap struct {
	out     operator.Output
	rt      *operator.Runtime
	limit   int64
	left    []int64 // the next number of each old subtask
	step    int64
	waiting bool
}

func (s *tap) Inputs() []operator.Input { return nil }

func (s *tap) Output(tag string) *operator.Output {
	if tag == "" {
		return &s.out
	}
	return nil
}

func (s *tap) Open(rt *operator.Runtime) error {
	s.rt, s.step = rt, int64(rt.Parallelism)
	s.out.Bind(rt)
	if rt.Restored == nil {
		s.left = []int64{int64(rt.Subtask)}
		return nil
	}
	for _, item := range rt.Restored.List("next").Items {
		s.left = append(s.left, int64(binary.LittleEndian.Uint64(item)))
		s.step = int64(binary.LittleEndian.Uint64(item[8:]))
	}
	return nil
}

func (s *tap) Close() error { return nil }

func (s *tap) Snapshot(to *operator.Snapshot) error {
	l := checkpoint.List{Name: "next"}
	for _, next := range s.left {
		l.Items = append(l.Items, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(next)), uint64(s.step)))
	}
	to.Lists = append(to.Lists, l)
	return nil
}

func (s *tap) Poll() (operator.Status, error) {
	if s.waiting {
		return operator.Nothing, nil
	}
	col := frame.NewColumn(s.out.Type, max(1, len(s.left)))
	for i, next := range s.left {
		if next < s.limit {
			frame.Add(col, next, next)
			s.left[i] += s.step
		}
	}
	if col.Len() == 0 {
		return operator.Done, nil
	}
	s.waiting = true
	s.rt.Timers.Schedule(s.rt.Now+s.step-1, func(int64) error {
		s.waiting = false
		return nil
	})
	r := col.Run()
	if err := s.out.Push(&r); err != nil {
		return operator.Done, err
	}
	return operator.More, s.out.Mark(frame.Mark{Kind: frame.Watermark, Value: slices.Max(s.left) - s.step - 1})
}

// tally is a program: numbers summed by their remainder, each total committed.
func tally(t *testing.T, e *Env, limit int64, fail func(x int64) error) *vault {
	v := &vault{committed: map[[2]int64][]int64{}}
	tallyTo(t, e, limit, fail, v)
	return v
}

// tallyTo is a tally that commits to some other place.
func tallyTo(t *testing.T, e *Env, limit int64, fail func(x int64) error, to committer) {
	typ, pairs := typeOf[int64](t), typeOf[process.KeyValue[int64, int64]](t)
	k, err := serde.KeyOf[int64]()
	if err != nil {
		t.Fatal(err)
	}
	key := &graph.Key{Key: k, Extract: func() func(*frame.Run) serde.Column {
		buf := make([]int64, frame.MaxLen)
		return func(r *frame.Run) serde.Column {
			for i, x := range frame.Values[int64](r) {
				buf[i] = x % 10
			}
			return serde.Column{P: unsafe.Pointer(unsafe.SliceData(buf)), N: r.N, Stride: 8}
		}
	}}
	src := add(e, graph.Source, "tap", typ, func() operator.Operator { return &tap{out: operator.NewOutput(typ), limit: limit} })
	src.UID = "tap"
	try := add(e, graph.Operator, "try", typ, func() operator.Operator {
		return element.TryMap(typ, typ, func(_ context.Context, x int64) (int64, error) { return x, fail(x) })
	}, graph.Edge{From: src})
	try.UID = "try"
	sum := add(e, graph.Operator, "sum", pairs, func() operator.Operator {
		return keyed.Sum[int64, int64](typ, pairs, typ.Handle, key, func(x int64) int64 { return x })
	}, graph.Edge{From: try, Partitioner: &graph.Partitioner{Strategy: graph.Hash, Key: key}})
	sum.Key, sum.UID = []*graph.Key{key}, "sum"
	flat := add(e, graph.Operator, "flat", typ, func() operator.Operator {
		return element.Map(pairs, typ, func(kv process.KeyValue[int64, int64]) int64 { return kv.Key*1_000_000 + kv.Value })
	}, graph.Edge{From: sum})
	flat.UID = "flat"
	end := add(e, graph.Sink, "teller", nil, func() operator.Operator {
		return &teller{drain: drain{b: &basin{ends: make([]int, 16)}, typ: typ}, to: to, fuse: &mine{}}
	}, graph.Edge{From: flat})
	end.UID = "teller"
}

// totals is what a tally of the numbers below limit commits.
func totals(limit int64) []int64 {
	sums := map[int64]int64{}
	var out []int64
	for x := range limit {
		sums[x%10] += x
		out = append(out, x%10*1_000_000+sums[x%10])
	}
	slices.Sort(out)
	return out
}

func neverFail(int64) error { return nil }

// kept is an environment whose jobs take checkpoints.
func kept(parallelism int) *Env {
	e := New()
	e.Settings.Parallelism = parallelism
	e.Settings.Checkpoints.Enabled, e.Settings.Checkpoints.Interval = true, 10*time.Millisecond
	e.Settings.Restart = NoRestart() // a job that never gives up never ends a test
	return e
}

// start starts a job.
func start(t *testing.T, e *Env) *Execution {
	t.Helper()
	x, err := e.Start(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func wait(t *testing.T, x *Execution) {
	t.Helper()
	<-x.Done()
	if x.Err() != nil {
		t.Fatal(x.Err())
	}
}

// A savepoint goes on at any parallelism, with sums, positions and commits as if nothing had happened.
func TestSavepointsGoOnAtOtherParallelisms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, at, limit := t.TempDir(), "", int64(400)
		all := &vault{committed: map[[2]int64][]int64{}}
		for i, parallelism := range []int{1, 4, 3, 1} {
			e := kept(parallelism)
			e.Settings.Checkpoints.Savepoint = at
			v := tally(t, e, limit, neverFail)
			v.committed = all.committed
			x := start(t, e)
			if i == 3 {
				wait(t, x)
				if x.Checkpoints().LatestRestored == nil {
					t.Error("the history does not say what was restored")
				}
				break
			}
			time.Sleep(55 * time.Millisecond)
			var err error
			if at, err = x.TakeSavepoint(t.Context(), dir, false, true); err != nil {
				t.Fatal(err)
			}
			if x.Status() != "FINISHED" {
				t.Errorf("after the stop: %s", x.Status())
			}
			moved := filepath.Join(dir, fmt.Sprint("moved", i)) // a savepoint may be moved
			if err := os.Rename(at, moved); err != nil {
				t.Fatal(err)
			}
			at = moved
		}
		if got := all.all(); !slices.Equal(got, totals(limit)) {
			t.Errorf("%d totals, want %d, or others", len(got), limit)
		}
	})
}

func TestRestartGoesOnFromTheLatestCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := kept(2)
		var seen, failed atomic.Int64
		e.Settings.Restart = FixedDelay(3, time.Millisecond)
		v := tally(t, e, 300, func(x int64) error {
			seen.Add(1)
			if x%90 == 89 && failed.Add(1) <= 3 {
				return errBoom
			}
			return nil
		})
		x := start(t, e)
		wait(t, x)
		if got := v.all(); !slices.Equal(got, totals(300)) {
			t.Errorf("%d totals, want 300, or others", len(got))
		}
		if n := seen.Load(); n > 400 {
			t.Errorf("%d elements were read: the restarts began anew", n)
		}
		c := x.Checkpoints()
		// The last checkpoint may have come when all tasks had finished: it holds nothing then.
		holds := func(s CheckpointStatistics) bool { return s.Status == CheckpointCompleted && s.StateSize > 0 }
		if c.Counts.Restored != 3 || c.Counts.Completed < 10 || c.LatestCompleted == nil || !slices.ContainsFunc(c.History, holds) {
			t.Errorf("history %+v", c)
		}
	})
}

// Without checkpoints nothing changes: a restarted job begins anew.
func TestRestartWithoutCheckpointsBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, seen := New(), 0
		e.Settings.Parallelism, e.Settings.Restart = 1, FixedDelay(1, 0)
		numbers(t, e, []int64{1, 2, 3}, func(x int64) int64 {
			if seen++; seen == 3 {
				panic(errBoom)
			}
			return x
		}, func(int64) {})
		x := start(t, e)
		wait(t, x)
		if seen != 6 || x.Checkpoints().Counts.Triggered != 0 {
			t.Errorf("%d elements, %+v", seen, x.Checkpoints().Counts)
		}
	})
}

// A savepoint needs no periodic checkpoints, and the job goes on after it.
func TestSavepointOfAJobWithoutCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, seen := New(), 0
		e.Settings.Parallelism = 1
		typ := typeOf[int64](t)
		src := add(e, graph.Source, "tap", typ, func() operator.Operator { return &tap{out: operator.NewOutput(typ), limit: 100} })
		add(e, graph.Operator, "count", typ, func() operator.Operator {
			return element.Map(typ, typ, func(x int64) int64 { seen++; return x })
		}, graph.Edge{From: src})
		x := start(t, e)
		if _, err := x.TakeSavepoint(t.Context(), t.TempDir(), false, false); err != nil {
			t.Errorf("asked for before the tasks ran: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
		at, err := x.TakeSavepoint(t.Context(), t.TempDir(), false, false)
		if err != nil {
			t.Fatal(err)
		}
		m, err := checkpoint.Load(vfs.OS{}, at)
		if err != nil || m.Kind != checkpoint.Savepoint || m.JobID != x.ID || len(m.Operators) != 2 {
			t.Errorf("savepoint %+v, %v", m, err)
		}
		wait(t, x)
		if seen != 100 {
			t.Errorf("%d elements", seen)
		}
		if _, err := x.TakeSavepoint(t.Context(), t.TempDir(), false, false); err == nil || !strings.Contains(err.Error(), "ended") {
			t.Errorf("a savepoint of a job that has ended: %v", err)
		}
	})
}

// Without drain no watermark comes after the savepoint; with drain the last one does, before it.
func TestStopSendsTheLastWatermarkOnlyToDrain(t *testing.T) {
	for _, drained := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := kept(1)
			typ := typeOf[int64](t)
			src := add(e, graph.Source, "tap", typ, func() operator.Operator { return &tap{out: operator.NewOutput(typ), limit: 1 << 40} })
			d := &drain{b: &basin{ends: make([]int, 1), got: make([][]int64, 1)}, typ: typ}
			add(e, graph.Sink, "drain", nil, func() operator.Operator { return d }, graph.Edge{From: src})
			x := start(t, e)
			time.Sleep(25 * time.Millisecond)
			if _, err := x.TakeSavepoint(t.Context(), t.TempDir(), drained, true); err != nil {
				t.Fatal(err)
			}
			wait(t, x)
			if last := d.watermark == frame.MaxWatermark; last != drained || d.b.ends[0] != 0 {
				t.Errorf("drain %v: the last watermark has come: %v, %d ends", drained, last, d.b.ends[0])
			}
		})
	}
}

func TestCheckpointSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, change := range map[string]func(c *Checkpoints){
		"interval: 0s is not positive":     func(c *Checkpoints) { c.Interval = 0 },
		"interval: 1ms is less":            func(c *Checkpoints) { c.Interval = time.Millisecond },
		"timeout: 1ms":                     func(c *Checkpoints) { c.Timeout = time.Millisecond },
		"min-pause: -1ns":                  func(c *Checkpoints) { c.MinPause = -1 },
		"max-concurrent-checkpoints: 0":    func(c *Checkpoints) { c.MaxConcurrent = 0 },
		"tolerable-failed-checkpoints: -1": func(c *Checkpoints) { c.TolerableFailures = -1 },
		"set no checkpoint storage beside": func(c *Checkpoints) { c.Recovery, c.Dir = t.TempDir(), t.TempDir() },
		"call EnableCheckpointing":         func(c *Checkpoints) { *c = DefaultCheckpoints(); c.Recovery = t.TempDir() },
		"no snapshot was completed there":  func(c *Checkpoints) { c.Savepoint = t.TempDir() },
	} {
		e := kept(1)
		change(&e.Settings.Checkpoints)
		tally(t, e, 1, neverFail)
		if _, err := e.Start(t.Context(), "job"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
	}
}

// State that the program has no operator for is an error, unless it may be dropped; max parallelism is that of the savepoint.
func TestSavepointMustFitTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := kept(1)
		e.Settings.MaxParallelism = 200
		tally(t, e, 1000, neverFail)
		x := start(t, e)
		time.Sleep(20 * time.Millisecond)
		at, err := x.TakeSavepoint(t.Context(), t.TempDir(), false, true)
		if err != nil {
			t.Fatal(err)
		}
		again := func(change func(e *Env)) error {
			e := kept(1)
			e.Settings.Checkpoints.Savepoint = at
			change(e)
			x, err := e.Start(t.Context(), "job")
			if err != nil {
				return err
			}
			<-x.Done()
			return x.Err()
		}
		rename := func(e *Env) {
			tally(t, e, 60, neverFail)
			e.graph.Nodes[2].UID = "other sum"
		}
		if err := again(rename); err == nil || !strings.Contains(err.Error(), `"sum"`) {
			t.Errorf("lost state: %v", err)
		}
		if err := again(func(e *Env) { e.Settings.Checkpoints.AllowNonRestored = true; rename(e) }); err != nil {
			t.Errorf("dropped state: %v", err)
		}
		if err := again(func(e *Env) { e.Settings.MaxParallelism = 100; tally(t, e, 60, neverFail) }); err == nil || !strings.Contains(err.Error(), "200") {
			t.Errorf("other max parallelism: %v", err)
		}
		if err := again(func(e *Env) { tally(t, e, 60, neverFail) }); err != nil {
			t.Errorf("no max parallelism: %v", err)
		}
	})
}

// Which checkpoints are left when a job has ended.
func TestRetainedCheckpoints(t *testing.T) {
	for _, c := range []struct {
		retention    Retention
		fail, cancel bool
		kept         bool
	}{
		{RetainOnCancellation, false, false, false},
		{RetainOnCancellation, false, true, true},
		{RetainOnCancellation, true, false, true},
		{RetainOnFailure, false, true, false},
		{RetainOnFailure, true, false, true},
		{NeverRetained, true, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, dir := kept(1), t.TempDir()
			e.Settings.Checkpoints.Dir, e.Settings.Checkpoints.Retention = dir, c.retention
			tally(t, e, 100, func(x int64) error {
				if c.fail && x == 50 {
					return errBoom
				}
				return nil
			})
			x := start(t, e)
			if c.cancel {
				time.Sleep(50 * time.Millisecond)
				x.Cancel()
			}
			<-x.Done()
			left, err := filepath.Glob(filepath.Join(dir, x.ID, "chk-*", checkpoint.ManifestName))
			if err != nil || (len(left) == 1) != c.kept {
				t.Errorf("%+v: left %v, %v", c, left, err)
			}
		})
	}
}

// Checkpoints that can't be written fail the job when more fail in a row than are tolerated, and not before.
func TestTolerableCheckpointFailures(t *testing.T) {
	for _, c := range []struct {
		tolerable, broken int
		ok                bool
	}{{0, 1, false}, {2, 2, true}, {2, 3, false}} {
		synctest.Test(t, func(t *testing.T) {
			e := kept(1)
			typ, left := typeOf[int64](t), c.broken
			e.Settings.Checkpoints.TolerableFailures = c.tolerable
			src := add(e, graph.Source, "tap", typ, func() operator.Operator {
				return &brokenTap{tap: tap{out: operator.NewOutput(typ), limit: 100}, left: &left}
			})
			_ = src
			x := start(t, e)
			<-x.Done()
			var failed *control.CheckpointError
			if (x.Err() == nil) != c.ok || !c.ok && !errors.As(x.Err(), &failed) {
				t.Errorf("%+v: %v", c, x.Err())
			}
			if got := x.Checkpoints().Counts.Failed; got < int64(c.broken) { // one more may be under way at the end
				t.Errorf("%+v: %d failed", c, got)
			}
		})
	}
}

// brokenTap has a table whose rows can't be read, so often.
type brokenTap struct {
	tap
	left *int
}

func (s *brokenTap) Snapshot(to *operator.Snapshot) error {
	if *s.left--; *s.left >= 0 {
		to.Lists = append(to.Lists, checkpoint.List{Name: "twice"}, checkpoint.List{Name: "twice"})
	}
	return s.tap.Snapshot(to)
}

// The last checkpoint is taken again if it fails, long before the next one is due.
func TestLastCheckpointIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := kept(1)
		c := &e.Settings.Checkpoints
		c.Interval, c.TolerableFailures = time.Hour, 5
		disk := vfs.NewFaulty(vfs.NewMem())
		c.Dir, c.FS = "/checkpoints", disk
		v := tally(t, e, 50, neverFail)
		disk.FailFrom(vfs.OpRename, 1, vfs.ErrNoSpace)
		x := start(t, e)
		time.Sleep(2500 * time.Millisecond)
		if got := x.Checkpoints().Counts.Failed; got != 3 || len(v.all()) != 0 {
			t.Errorf("%d last checkpoints have failed, %d totals are committed", got, len(v.all()))
		}
		disk.Heal(vfs.OpRename)
		wait(t, x)
		if got := v.all(); !slices.Equal(got, totals(50)) || x.Duration() > time.Minute {
			t.Errorf("%d totals after %v", len(got), x.Duration())
		}
	})
}
