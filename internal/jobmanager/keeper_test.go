package jobmanager

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"path"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/taskmanager"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/statebackend/heap"
)

// everyTen are options for a checkpoint every 10 ms, in memory.
func everyTen(f vfs.FS) *CheckpointOptions {
	o := &CheckpointOptions{Config: control.DefaultCheckpointConfig(), FS: f, Dir: "/checkpoints", SavepointFS: f}
	o.Config.Interval = 10 * time.Millisecond
	return o
}

// keep submits the program with snapshots.
func (p *program) keep(restart control.Restart, opt *CheckpointOptions) *Job {
	p.t.Helper()
	return p.keepWith(Restarts{Strategy: restart}, opt)
}

func (p *program) keepWith(restarts Restarts, opt *CheckpointOptions) *Job {
	p.t.Helper()
	jg, err := plan.Build(p.g)
	if err != nil {
		p.t.Fatal(err)
	}
	c := clock.NewSystem()
	o := taskmanager.Options{Threads: host.Goroutines{Clock: c}, Clock: c, Memory: host.NewMemory(0), Backend: heap.Backend{}}
	return Submit(p.t.Context(), "id", &taskmanager.Job{Graph: plan.Unfold(jg), Name: "job"}, o, restarts, opt)
}

// asleep is a poll that takes so long that no letter is opened.
func asleep(rt *operator.Runtime) (operator.Status, error) {
	<-rt.Ctx.Done()
	return operator.Nothing, nil
}

// An acknowledgement of a former attempt, or of another job, is none (trap B025).
func TestLateAcknowledgementOfAFormerAttemptIsIgnored(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		p := newProgram(t)
		p.source("asleep", 1, hooks{poll: asleep})
		j := p.keep(&control.FixedDelay{Attempts: 1}, everyTen(vfs.NewMem()))
		part := taskmanager.EncodeParts([]*checkpoint.Part{{LastGroup: 127}})
		tell := func(job string, attempt int, id int64) {
			j.keeper.Tell(control.Acknowledged{Job: job, Task: control.TaskRef{Attempt: attempt}, Checkpoint: id, Payload: part})
			time.Sleep(time.Millisecond)
		}
		wants := func(what string, completed, failed int64) {
			t.Helper()
			if c := j.Checkpoints().Counts; c.Completed != completed || c.Failed != failed {
				t.Errorf("%s: %+v, want %d completed and %d failed", what, c, completed, failed)
			}
		}
		time.Sleep(11 * time.Millisecond)
		tell("other job", 0, 1)
		tell("job", 0, 2)
		tell("job", 1, 1)
		wants("strange acknowledgements", 0, 0)
		tell("job", 0, 1)
		wants("the right one", 1, 0)
		time.Sleep(10 * time.Millisecond)
		j.super.failedAll(errBoom)
		time.Sleep(15 * time.Millisecond)
		tell("job", 0, 2)
		tell("job", 0, 3)
		wants("late ones", 1, 1)
		if r := j.Checkpoints().LatestRestored; r == nil || r.ID != 1 {
			t.Errorf("restored %+v", r)
		}
		tell("job", 1, 3)
		wants("the right one after the restart", 2, 1)
		j.Cancel()
		ends(t, "after all", j, Canceled, ErrCanceled)
	})
}

// dealer hands out numbers all the time and knows how many.
type dealer struct {
	ctx    operator.CoordinatorContext
	dealt  uint64
	starts func(restored []byte)
}

func (d *dealer) Start(ctx operator.CoordinatorContext, restored []byte) error {
	d.starts(restored)
	if d.ctx = ctx; restored != nil {
		d.dealt = binary.LittleEndian.Uint64(restored)
	}
	ctx.Do(1, func(context.Context) error { return nil }, func(error) {
		d.dealt++
		ctx.Send(0, nil)
	})
	return nil
}

func (d *dealer) Handle(int, []byte) error { return nil }
func (d *dealer) Close() error             { return nil }

func (d *dealer) Snapshot(int64) ([]byte, error) {
	return binary.LittleEndian.AppendUint64(nil, d.dealt), nil
}

// dealt is a source that counts what it is dealt.
type dealt struct {
	*unit
	count uint64
}

func (d *dealt) Open(rt *operator.Runtime) error {
	if l := rt.Restored.List("count"); l != nil {
		d.count = binary.LittleEndian.Uint64(l.Items[0])
	}
	return d.unit.Open(rt)
}

func (d *dealt) HandleEvent([]byte) error {
	d.count++
	return nil
}

func (d *dealt) Snapshot(s *operator.Snapshot) error {
	s.Lists = append(s.Lists, checkpoint.List{Name: "count", Items: [][]byte{binary.LittleEndian.AppendUint64(nil, d.count)}})
	return nil
}

// What an enumerator has handed out at its snapshot is what its readers have got at theirs, in every checkpoint, and both
// go on from there.
func TestEnumeratorsAndReadersAgreeInEveryCheckpoint(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		p, opt := newProgram(t), everyTen(vfs.NewMem())
		opt.Config.Retained = 50
		var begun []uint64
		n := p.source("dealt", 1, hooks{poll: hang})
		open := n.New
		n.New = func() operator.Operator { return &dealt{unit: open().(*unit)} }
		n.NewCoordinator = func() operator.Coordinator {
			return &dealer{starts: func(restored []byte) {
				begun = append(begun, 0)
				if restored != nil {
					begun[len(begun)-1] = binary.LittleEndian.Uint64(restored)
				}
			}}
		}
		j := p.keep(&control.FixedDelay{Attempts: 1}, opt)
		time.Sleep(105 * time.Millisecond)
		j.super.failedAll(errBoom)
		time.Sleep(100 * time.Millisecond)
		checked := 0
		var last uint64
		for _, f := range found(t, opt) {
			o := &f.Manifest.Operators[0]
			_, lists, err := f.Manifest.Read(opt.FS, o.ID)
			if err != nil {
				t.Fatal(err)
			}
			handed, got := binary.LittleEndian.Uint64(o.Coordinator), binary.LittleEndian.Uint64(lists[0].Items[0])
			if handed != got || got <= last {
				t.Errorf("checkpoint %d: the enumerator has handed out %d, the reader has got %d, after %d", f.ID, handed, got, last)
			}
			last = got
			checked++
		}
		if checked < 15 || len(begun) != 2 || begun[1] < 80 {
			t.Errorf("%d checkpoints, the enumerators began at %v", checked, begun)
		}
		j.Cancel()
		<-j.Done()
	})
}

func found(t *testing.T, opt *CheckpointOptions) []checkpoint.Found {
	s, err := checkpoint.OpenStorage(opt.FS, opt.Dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A full disk fails checkpoints and leaves nothing behind; when there is room again they go on (trap B027).
func TestFullDiskFailsCheckpointsOnly(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		mem := vfs.NewMem()
		opt := everyTen(&full{FS: mem})
		opt.Config.TolerableFailures = control.Unlimited
		p := newProgram(t)
		p.source("hang", 2, hooks{poll: hang})
		j := p.keep(control.NoRestart{}, opt)
		disk := opt.FS.(*full)
		phase := func(no bool) (completed, failed int64) {
			before := j.Checkpoints().Counts
			disk.no.Store(no)
			time.Sleep(55 * time.Millisecond)
			after := j.Checkpoints().Counts
			return after.Completed - before.Completed, after.Failed - before.Failed
		}
		for i, c := range []struct{ no, completes bool }{{false, true}, {true, false}, {false, true}} {
			if completed, failed := phase(c.no); (completed > 3) != c.completes || (failed > 3) == c.completes {
				t.Errorf("phase %d: %d completed, %d failed", i, completed, failed)
			}
			if left := found(t, opt); len(left) != 1 || left[0].Err != nil {
				t.Errorf("phase %d: left %+v", i, left)
			}
		}
		if r := j.Checkpoints().LatestFailed; r == nil || r.Reason != control.ReasonFinalizeFailure && r.Reason != control.ReasonTriggerFailure {
			t.Errorf("failed %+v", r)
		}
		j.Cancel()
		<-j.Done()
		entries, err := mem.ReadDir(path.Clean(opt.Dir))
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("left %v, %v", entries, err)
		}
	})
}

// full is a disk that is full, when it is told so.
type full struct {
	vfs.FS
	no atomic.Bool // the job writes on goroutines of its own
}

func (f *full) Create(name string, how vfs.Mode) (vfs.Writer, error) {
	if f.no.Load() {
		return nil, vfs.ErrNoSpace
	}
	return f.FS.Create(name, how)
}

// Requests for savepoints of jobs that have ended, or take none, are answered.
func TestSavepointsThatCannotBe(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		p := newProgram(t)
		p.source("short", 1, hooks{})
		j := p.keep(control.NoRestart{}, everyTen(vfs.NewMem()))
		<-j.Done()
		if _, err := j.Savepoint(t.Context(), "/dir", control.Savepoint); err == nil {
			t.Error("a job that has ended took a savepoint")
		}
		none := p.run()
		if _, err := none.Savepoint(t.Context(), "/dir", control.Savepoint); err == nil || len(none.Checkpoints().History) != 0 {
			t.Errorf("a job without snapshots: %v", err)
		}
	})
}

// The parts of a task come back as they were, and what is cut is refused.
func TestPartsOfATaskAreCoded(t *testing.T) {
	b := taskmanager.EncodeParts([]*checkpoint.Part{{LastGroup: 127}, {Subtask: 3, FirstGroup: 2, LastGroup: 5, Finished: true}})
	parts, err := taskmanager.DecodeParts(b)
	if err != nil || len(parts) != 2 || parts[1].Subtask != 3 || !parts[1].Finished {
		t.Errorf("got %+v, %v", parts, err)
	}
	for i := range b {
		if _, err := taskmanager.DecodeParts(b[:i]); err == nil {
			t.Errorf("%d bytes of %d are accepted", i, len(b))
		}
	}
	if !slices.Equal(b, taskmanager.EncodeParts(parts)) {
		t.Error("parts are not encoded as they were")
	}
}

// A file that two snapshots name is removed with the second of them, so that the removal of one must not overtake that of another.
func TestSnapshotsAreRemovedOneAfterTheOther(t *testing.T) {
	mem := vfs.NewMem()
	storage, err := checkpoint.OpenStorage(mem, "/checkpoints")
	if err != nil {
		t.Fatal(err)
	}
	waiter, aside := host.NewParker(clock.NewManual(0)), []func(){}
	k := &Keeper{
		storage: storage, mailbox: host.NewMailbox(waiter), sites: map[int64]*site{},
		aside: func(f func()) { aside = append(aside, f) },
	}
	for i, name := range []string{"/checkpoints/a", "/checkpoints/b"} {
		if err := vfs.WriteFile(mem, name, nil); err != nil {
			t.Fatal(err)
		}
		k.discard(control.Discard{Checkpoint: int64(i), Handles: []control.Handle{control.Handle(name)}})
	}
	for left := 2; left > 0; left-- {
		entries, err := mem.ReadDir("/checkpoints")
		if err != nil || len(entries) != left || len(aside) != 1 {
			t.Fatalf("%d files and %d removals under way, want %d and one: %v", len(entries), len(aside), left, err)
		}
		remove := aside[0]
		aside = nil
		remove()
		for _, letter := range k.mailbox.Take() {
			if err := letter(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(aside) > 0 || k.busy > 0 || len(k.discards) > 0 {
		t.Error("something is still under way")
	}
}
