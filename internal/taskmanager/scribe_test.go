package taskmanager

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
)

// stateful is an operator with state, which snapshot adds.
type stateful struct {
	node
	snapshot  func(rt *operator.Runtime, s *operator.Snapshot) error
	completed func(id int64)
}

func (n *stateful) Snapshot(s *operator.Snapshot) error { return n.snapshot(n.RT, s) }

func (n *stateful) CheckpointCompleted(id int64) error {
	if n.completed != nil {
		n.completed(id)
	}
	return nil
}

func (n *stateful) CheckpointAborted(id int64) error { return n.CheckpointCompleted(-id) }

// snapshots is a cluster whose tasks take snapshots, with what they tell of them.
type snapshots struct {
	*cluster
	fs   *vfs.Faulty
	mem  *vfs.Mem
	gone map[int64]bool // checkpoints that are over

	mu   sync.Mutex
	told []control.Event
	asks chan int64 // if it is set, each question for a place waits for a word there
}

func newSnapshots(t *testing.T) *snapshots {
	mem := vfs.NewMem()
	s := &snapshots{cluster: newCluster(t), mem: mem, fs: vfs.NewFaulty(mem), gone: map[int64]bool{}}
	s.opt.Checkpoints = &Checkpoints{
		Mode: control.ExactlyOnce, Token: "token", InlineBytes: -1,
		Place: func(id int64) (vfs.FS, string, bool) {
			if s.asks != nil {
				<-s.asks
			}
			folder := folderOf(id)
			if err := mem.MkdirAll(folder); err != nil {
				t.Error(err)
			}
			return s.fs, folder, !s.gone[id]
		},
		Tell: func(e control.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.told = append(s.told, e)
		},
		Lingers: func(int, int) {},
	}
	return s
}

func folderOf(id int64) string { return fmt.Sprintf("/chk-%d", id) }

// stateful appends a node with state; what snapshot and completed do is in op.
func (s *snapshots) stateful(name string, parallelism int, op *stateful, from *graph.Node) *graph.Node {
	n := s.add(name, parallelism, hooks{}, from, nil)
	n.New = func() operator.Operator {
		return &stateful{
			node:     node{Unary: operator.Unary{In: s.typ, Out: operator.NewOutput(s.typ)}, hooks: op.hooks},
			snapshot: op.snapshot, completed: op.completed,
		}
	}
	return n
}

// start deploys a waiting source of that parallelism and a chained node that adds state to snapshots.
func (s *snapshots) start(parallelism int, snapshot func(rt *operator.Runtime, s *operator.Snapshot) error) *Attempt {
	s.t.Helper()
	first := s.add("first", parallelism, played(parallelism), nil, nil)
	first.UID = "first"
	s.stateful("second", parallelism, &stateful{snapshot: snapshot}, first).UID = "second"
	a, err := s.deploy(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// trigger has all tasks take a snapshot and gives what they tell of it, ordered by subtask.
func (s *snapshots) trigger(a *Attempt, b control.Barrier) []control.Event {
	for _, task := range a.Tasks {
		task.Trigger(b)
	}
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	s.told = nil
	subtask := func(e control.Event) int {
		switch e := e.(type) {
		case control.Acknowledged:
			return e.Task.Subtask
		case control.Declined:
			return e.Task.Subtask
		}
		return -1
	}
	slices.SortFunc(told, func(x, y control.Event) int { return subtask(x) - subtask(y) })
	return told
}

func (s *snapshots) stop(a *Attempt) {
	a.Cancel()
	s.finish(a)
}

// numbers is a table of so many rows, one for each key group from first on.
func numbers(rows, first int) statebackend.FrozenTable {
	number := serde.Schema{Kind: serde.Int64}
	return statebackend.FrozenTable{
		TableInfo: statebackend.TableInfo{Name: "numbers", Kind: "value", Key: &number, Value: &number},
		Rows: func(yield func(*statebackend.Row, error) bool) {
			for i := range rows {
				b := binary.LittleEndian.AppendUint64(nil, uint64(i))
				if !yield(&statebackend.Row{Group: first, Key: b, Value: b}, nil) {
					return
				}
			}
		},
	}
}

func acknowledged(t *testing.T, e control.Event) (control.Acknowledged, []*checkpoint.Part) {
	t.Helper()
	ack, ok := e.(control.Acknowledged)
	if !ok {
		t.Fatalf("told %+v", e)
	}
	parts, err := DecodeParts(ack.Payload)
	if err != nil {
		t.Fatal(err)
	}
	return ack, parts
}

// A task tells of each snapshot what it wrote for every operator of its chain, and in which files.
func TestTasksAcknowledgeWhatTheyWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshots(t)
		a := s.start(2, func(rt *operator.Runtime, sn *operator.Snapshot) error {
			sn.Tables = []statebackend.FrozenTable{numbers(10*(rt.Subtask+1), 64*rt.Subtask)}
			sn.Lists = []checkpoint.List{{Name: "list", Items: [][]byte{{byte(rt.Subtask)}}}}
			return nil
		})
		told := s.trigger(a, control.Barrier{ID: 3})
		if len(told) != 2 {
			t.Fatalf("told %v", told)
		}
		for i, e := range told {
			ack, parts := acknowledged(t, e)
			if want := (control.TaskRef{TaskID: control.TaskID{Vertex: 0, Subtask: i}, Attempt: 4}); ack.Task != want || ack.Job != "job" || ack.Checkpoint != 3 {
				t.Errorf("acknowledged by %+v of %s for checkpoint %d, want %+v", ack.Task, ack.Job, ack.Checkpoint, want)
			}
			if len(parts) != 2 || len(parts[0].Tables) != 0 || len(parts[1].Tables) != 1 || len(parts[1].Lists) != 1 {
				t.Fatalf("parts %+v", parts)
			}
			p := parts[1]
			if p.Subtask != i || p.FirstGroup != 64*i || p.LastGroup != 64*i+63 {
				t.Errorf("part of subtask %d, key groups %d to %d", p.Subtask, p.FirstGroup, p.LastGroup)
			}
			if ack.Metrics.StateSize == 0 || ack.Metrics.StateSize != p.Bytes() || ack.Metrics.CheckpointedSize != p.WrittenBytes() {
				t.Errorf("metrics %+v, the part has %d bytes, %d of them written", ack.Metrics, p.Bytes(), p.WrittenBytes())
			}
			own, _ := p.Files("/chk-3")
			if len(ack.New) == 0 || len(ack.New) != len(own) || len(ack.Reused) != 0 {
				t.Errorf("files %v of %v, earlier ones %v", ack.New, own, ack.Reused)
			}
			for _, f := range ack.New {
				if _, err := s.mem.Stat(string(f)); err != nil || path.Dir(string(f)) != "/chk-3" || !strings.Contains(string(f), "token") {
					t.Errorf("file %s: %v", f, err)
				}
			}
		}
		s.stop(a)
	})
}

// Incremental checkpoints hold changes, and name the files below them; those that a user asks for hold everything.
func TestIncrementalCheckpointsNameTheFilesBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshots(t)
		s.opt.Checkpoints.Incremental = true
		var frozen []statebackend.Freezing
		a := s.start(1, func(_ *operator.Runtime, sn *operator.Snapshot) error {
			frozen = append(frozen, sn.Freezing)
			table := numbers(1000, 0)
			if sn.Freezing.Changes {
				table = numbers(10, 0)
				table.Changes = true
			}
			sn.Tables = []statebackend.FrozenTable{table}
			return nil
		})
		var first control.Acknowledged
		for i, c := range []struct {
			b            control.Barrier
			want         statebackend.Freezing
			files, below int
		}{
			{control.Barrier{ID: 1}, statebackend.Freezing{Anchor: true}, 1, 0},
			{control.Barrier{ID: 2}, statebackend.Freezing{Anchor: true, Changes: true}, 1, 1},
			{control.Barrier{ID: 3, Kind: control.Savepoint}, statebackend.Freezing{}, 1, 0},
			{control.Barrier{ID: 4}, statebackend.Freezing{Anchor: true, Changes: true}, 1, 2},
			{control.Barrier{ID: 5, Full: true}, statebackend.Freezing{Anchor: true}, 1, 0},
			{control.Barrier{ID: 6}, statebackend.Freezing{Anchor: true, Changes: true}, 1, 1},
		} {
			told := s.trigger(a, c.b)
			if len(told) != 1 || frozen[i] != c.want {
				t.Fatalf("snapshot %d is frozen %+v; told %+v", c.b.ID, frozen[i], told)
			}
			ack, _ := acknowledged(t, told[0])
			if len(ack.New) != c.files || len(ack.Reused) != c.below {
				t.Errorf("snapshot %d has the files %v upon %v", c.b.ID, ack.New, ack.Reused)
			}
			m := ack.Metrics
			if (m.CheckpointedSize < m.StateSize) != (c.below > 0) {
				t.Errorf("snapshot %d: %d bytes of %d were written", c.b.ID, m.CheckpointedSize, m.StateSize)
			}
			switch c.b.ID {
			case 1:
				first = ack
			case 2:
				if !slices.Equal(ack.Reused, first.New) {
					t.Errorf("snapshot 2 lies upon %v, want %v", ack.Reused, first.New)
				}
			}
		}
		// What is aborted is built upon no more, and this is known before the letter is opened.
		a.Tasks[0].Aborted(6, control.ReasonExpired)
		s.trigger(a, control.Barrier{ID: 7})
		if want := (statebackend.Freezing{Anchor: true}); frozen[6] != want {
			t.Errorf("the snapshot after one that was given up is frozen %+v", frozen[6])
		}
		s.stop(a)
	})
}

// released counts how often what was frozen is given back.
type released struct {
	statebackend.Frozen
	n *int
}

func (released) Tables() []statebackend.FrozenTable { return nil }
func (r released) Release()                         { *r.n++ }

// A part that can't be written is declined with its reason, leaves no file and holds nothing.
func TestPartsThatCannotBeWrittenAreDeclined(t *testing.T) {
	for name, c := range map[string]struct {
		setUp func(s *snapshots)
		rows  func(yield func(*statebackend.Row, error) bool) // of the second operator of the chain
		want  string
	}{
		"the checkpoint is over": {setUp: func(s *snapshots) { s.gone[1] = true }, want: "write the snapshot: it was given up"},
		"the disk is full": {
			setUp: func(s *snapshots) { s.fs.FailFrom(vfs.OpCreate, 2, vfs.ErrNoSpace) }, want: `operator "third": write snapshot of operator `,
		},
		"rows end in an error": {
			rows: func(yield func(*statebackend.Row, error) bool) { yield(nil, errBoom) }, want: `operator "third": write snapshot of operator `,
		},
		"rows panic": {
			rows: func(func(*statebackend.Row, error) bool) { panic("no rows") }, want: "panic: no rows",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSnapshots(t)
			gone := 0
			src := s.add("first", 1, played(1), nil, nil)
			second := s.stateful("second", 1, &stateful{snapshot: func(_ *operator.Runtime, sn *operator.Snapshot) error {
				sn.Stores = append(sn.Stores, released{n: &gone})
				sn.Tables = []statebackend.FrozenTable{numbers(10, 0)}
				return nil
			}}, src)
			s.stateful("third", 1, &stateful{snapshot: func(_ *operator.Runtime, sn *operator.Snapshot) error {
				table := numbers(10, 0)
				if c.rows != nil && sn.ID == 1 {
					table.Rows = c.rows
				}
				sn.Stores = append(sn.Stores, released{n: &gone})
				sn.Tables = []statebackend.FrozenTable{table}
				return nil
			}}, second)
			a, err := s.deploy(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if c.setUp != nil {
				c.setUp(s)
			}
			told := s.trigger(a, control.Barrier{ID: 1})
			d, ok := told[0].(control.Declined)
			if len(told) != 1 || !ok || d.Checkpoint != 1 || d.Reason != control.ReasonDeclined || d.Job != "job" || d.Task.Attempt != 4 {
				t.Fatalf("%s: told %+v", name, told)
			}
			if !strings.Contains(d.Err.Error(), c.want) {
				t.Errorf("%s: declined because of %v", name, d.Err)
			}
			if files, err := s.mem.ReadDir("/chk-1"); err != nil || len(files) != 0 {
				t.Errorf("%s: left behind %v, %v", name, files, err)
			}
			if gone != 2 {
				t.Errorf("%s: %d of 2 frozen stores are given back", name, gone)
			}
			s.fs.Heal(vfs.OpCreate)
			acknowledged(t, s.trigger(a, control.Barrier{ID: 2})[0]) // the task goes on
			s.stop(a)
		})
	}
}

// Changes are worth nothing if what they build upon was not written: they are declined, too, and what they hold is given back.
func TestChangesUponAPartThatWasNotWrittenAreDeclined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshots(t)
		s.opt.Checkpoints.Incremental = true
		gone := 0
		a := s.start(1, func(_ *operator.Runtime, sn *operator.Snapshot) error {
			sn.Stores = append(sn.Stores, released{n: &gone})
			return nil
		})
		s.asks = make(chan int64)
		s.gone[1] = true
		s.trigger(a, control.Barrier{ID: 1})
		if told := s.trigger(a, control.Barrier{ID: 2}); len(told) != 0 {
			t.Fatalf("told %+v", told)
		}
		close(s.asks)
		synctest.Wait()
		want := []string{"write the snapshot: it was given up", "write the snapshot: it holds the changes since checkpoint 1, which could not be written"}
		var got []string
		for _, e := range s.told {
			got = append(got, e.(control.Declined).Err.Error())
		}
		if !slices.Equal(got, want) || gone != 2 {
			t.Errorf("declined because of %q; %d of 2 frozen stores are given back", got, gone)
		}
		s.stop(a)
	})
}

// Snapshots are written beside the task, in a simulation by the task itself.
func TestTasksGoOnWhileTheirSnapshotsAreWritten(t *testing.T) {
	for _, alone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSnapshots(t)
			s.opt.NoGoroutines = alone
			s.asks = make(chan int64)
			a := s.start(1, func(*operator.Runtime, *operator.Snapshot) error { return nil })
			s.trigger(a, control.Barrier{ID: 1})
			a.Tasks[0].Event(0, []byte("7"))
			synctest.Wait()
			if w, _ := a.Tasks[0].Sent(0, ""); (w == 7) == alone {
				t.Errorf("without goroutines %v: the task has sent %s", alone, timeOf(w))
			}
			close(s.asks)
			synctest.Wait()
			if w, _ := a.Tasks[0].Sent(0, ""); w != 7 || len(s.told) != 1 {
				t.Errorf("afterwards it has sent %s and told %v", timeOf(w), s.told)
			}
			s.stop(a)
		})
	}
}

// The end of a task comes after what it tells of its snapshots; a failed one does not wait for a storage that may hang.
func TestTasksEndAfterTheirSnapshotsUnlessTheyFail(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSnapshots(t)
			s.asks = make(chan int64)
			a := s.start(1, func(*operator.Runtime, *operator.Snapshot) error { return nil })
			s.trigger(a, control.Barrier{ID: 1})
			if fails {
				a.Tasks[0].Mailbox.Post(func() error { return errBoom })
			} else {
				a.Tasks[0].Event(0, []byte("end"))
			}
			synctest.Wait()
			if (len(s.reports) == 1) != fails {
				t.Errorf("fails %v: %d tasks have ended while the snapshot is being written", fails, len(s.reports))
			}
			close(s.asks)
			s.finish(a)
			if err := s.ended[0].Err; errors.Is(err, errBoom) != fails || (err == nil) == fails {
				t.Errorf("fails %v: ended with %v", fails, err)
			}
		})
	}
}

// The word about a checkpoint comes to the operators of the task that it is for.
func TestOperatorsHearOfTheirCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshots(t)
		var heard []int64
		src := s.add("first", 1, played(1), nil, nil)
		s.stateful("second", 1, &stateful{
			snapshot:  func(*operator.Runtime, *operator.Snapshot) error { return nil },
			completed: func(id int64) { heard = append(heard, id) },
		}, src)
		s.add("other", 2, played(2), nil, nil)
		a, err := s.deploy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		own, _ := find(t, a, "second", 0)
		if a.Subtask(control.TaskID{Vertex: own.Vertex.Index}) != own {
			t.Error("the task is not found by its id")
		}
		for _, id := range []control.TaskID{{Vertex: own.Vertex.Index, Subtask: 1}, {Vertex: 7}} {
			if a.Subtask(id) != nil {
				t.Errorf("there is a task %+v", id)
			}
		}
		other, _ := find(t, a, "other", 1)
		if a.Subtask(control.TaskID{Vertex: other.Vertex.Index, Subtask: 1}) != other {
			t.Error("the other task is not found by its id")
		}
		own.Trigger(control.Barrier{ID: 1})
		own.Completed(1, control.Checkpoint)
		own.Aborted(2, control.ReasonExpired)
		other.Completed(3, control.Checkpoint)
		synctest.Wait()
		if !slices.Equal(heard, []int64{1, -2}) {
			t.Errorf("heard of %v", heard)
		}
		s.stop(a)
	})
}

// What was encoded comes back, and nothing that is cut does.
func TestPartsOfATaskSurviveEncoding(t *testing.T) {
	for n := range 3 {
		var parts []*checkpoint.Part
		for i := range n {
			parts = append(parts, part(t, 10*(i+1), nil))
		}
		b := EncodeParts(parts)
		got, err := DecodeParts(b)
		if err != nil || len(got) != n {
			t.Fatalf("%d parts: %v, %v", n, got, err)
		}
		for i := range got {
			if !bytes.Equal(got[i].Encode(), parts[i].Encode()) {
				t.Errorf("part %d of %d has changed", i, n)
			}
		}
		for cut := range b {
			if _, err := DecodeParts(b[:cut]); err == nil {
				t.Errorf("%d parts cut to %d of %d bytes are taken", n, cut, len(b))
			}
		}
	}
	long := binary.AppendUvarint(nil, 1<<62)
	if _, err := DecodeParts(append(long, 1, 2)); err == nil {
		t.Error("more parts than bytes are taken")
	}
	if _, err := DecodeParts(append([]byte{1}, long...)); err == nil {
		t.Error("a part that is longer than all is taken")
	}
}

func FuzzDecodeParts(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0})
	f.Add([]byte{2, 1, 0})
	f.Add(binary.AppendUvarint([]byte{1}, 1<<62))
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, err := DecodeParts(b)
		if err != nil {
			return
		}
		again, err := DecodeParts(EncodeParts(parts))
		if err != nil || len(again) != len(parts) {
			t.Errorf("%d parts became %d: %v", len(parts), len(again), err)
		}
	})
}
