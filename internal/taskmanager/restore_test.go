package taskmanager

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/task"
	"github.com/flott-dev/flott/statebackend"
)

// taken is a snapshot with number 9 of a job of two subtasks: "first" is its source, and "second", chained, has a table with a
// row in the first key group of each subtask, and a list.
func taken(t *testing.T, s *snapshots) *checkpoint.Manifest {
	t.Helper()
	m := &checkpoint.Manifest{ID: 9, Folder: folderOf(9), HashSeed: 77}
	a := s.start(2, func(rt *operator.Runtime, sn *operator.Snapshot) error {
		sn.Tables = []statebackend.FrozenTable{numbers(1, 64*rt.Subtask)}
		sn.Lists = []checkpoint.List{{Name: "list", Mode: checkpoint.Union, Items: [][]byte{{byte(rt.Subtask)}}}}
		return nil
	})
	for _, n := range a.Tasks[0].Vertex.Nodes {
		m.Operators = append(m.Operators, checkpoint.Operator{ID: n.ID.String(), Name: n.Node.Name, Parallelism: 2, MaxParallelism: n.MaxParallelism})
	}
	for _, e := range s.trigger(a, control.Barrier{ID: 9}) {
		_, parts := acknowledged(t, e)
		for i, p := range parts {
			m.Operators[i].Parts = append(m.Operators[i].Parts, p)
		}
	}
	s.stop(a)
	return m
}

// rows counts the rows of a restored table.
func rows(t *testing.T, r statebackend.Restored, name string) int {
	table, ok := r.Table(name)
	if !ok {
		t.Errorf("there is no table %s among %v", name, r.Tables())
		return -1
	}
	n := 0
	for _, err := range table.Rows {
		if err != nil {
			t.Error(err)
			break
		}
		n++
	}
	return n
}

// Operators that the snapshot knows begin with what it has for their key groups, the others with nothing.
func TestOperatorsBeginWithTheirPartsOfTheSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshots(t)
		m := taken(t, s)
		for parallelism, want := range map[int][]string{
			1: {"second 0: 2 rows, 2 items"},
			2: {"second 0: 1 rows, 2 items", "second 1: 1 rows, 2 items"},
			4: {"second 0: 1 rows, 2 items", "second 1: 0 rows, 2 items", "second 2: 1 rows, 2 items", "second 3: 0 rows, 2 items"},
		} {
			next := newSnapshots(t)
			next.opt.Restore = &Restore{FS: s.fs, Manifest: m}
			var mu sync.Mutex
			var got []string
			open := func(rt *operator.Runtime) error {
				if rt.Restored == nil {
					return nil
				}
				if rt.Restored.Checkpoint != 9 {
					t.Errorf("restored from checkpoint %d", rt.Restored.Checkpoint)
				}
				_, err := rt.OpenState(statebackend.Options{Operator: rt.Name})
				mu.Lock()
				defer mu.Unlock()
				if rt.Name != "first" { // a source with nothing but the place of its parts
					got = append(got, fmt.Sprintf("%s %d: %d rows, %d items", rt.Name, rt.Subtask, rows(t, rt.Restored.Store, "numbers"), len(rt.Restored.List("list").Items)))
				}
				return err
			}
			first := next.add("first", parallelism, hooks{open: open}, nil, nil)
			first.UID = "first"
			second := next.stateful("second", parallelism, &stateful{node: node{hooks: hooks{open: open}}}, first)
			second.UID = "second"
			next.add("third", parallelism, hooks{open: func(rt *operator.Runtime) error {
				if rt.Restored != nil {
					t.Errorf("an operator that is new begins with %+v", rt.Restored)
				}
				_, err := rt.OpenState(statebackend.Options{Operator: rt.Name})
				return err
			}}, second, nil)
			next.run()
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("parallelism %d: got %q, want %q", parallelism, got, want)
			}
			for _, o := range next.opt.Backend.(*notebook).opened {
				if (o.Restored != nil) != (o.Operator != "third") {
					t.Errorf("the store of %s is opened with %v", o.Operator, o.Restored)
				}
			}
		}
	})
}

// Subtasks that had finished before the snapshot do not begin again, and those whose state does not fit do not begin at all.
func TestSubtasksThatHadFinishedDoNotBeginAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshots(t)
		m := taken(t, s)
		for i := range m.Operators {
			m.Operators[i].Parts[1] = &checkpoint.Part{Subtask: 1, Finished: true}
		}
		deploy := func(most int) (opened []int, err error) {
			next := newSnapshots(t)
			next.opt.Restore = &Restore{FS: s.fs, Manifest: m}
			var mu sync.Mutex
			first := next.add("first", 2, hooks{open: func(rt *operator.Runtime) error {
				mu.Lock()
				defer mu.Unlock()
				opened = append(opened, rt.Subtask)
				return nil
			}}, nil, nil)
			second := next.stateful("second", 2, &stateful{}, first)
			first.UID, second.UID = "first", "second"
			second.MaxParallelism = most
			a, err := next.deploy(t.Context())
			if err == nil {
				next.finish(a)
			}
			return opened, err
		}
		if opened, err := deploy(graph.Unset); err != nil || !slices.Equal(opened, []int{0}) {
			t.Errorf("subtasks %v have begun, %v", opened, err)
		}
		opened, err := deploy(64)
		if err == nil || len(opened) != 0 || !strings.Contains(err.Error(), "build subtask 1 of") || !strings.Contains(err.Error(), "max parallelism of 128") {
			t.Errorf("with other key groups subtasks %v have begun, %v", opened, err)
		}
	})
}

// Fit opens one of each operator with state, but no source and no sink, without rows, closes it, and tells who can't take it.
func TestFitTriesOperatorsWithState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSnapshots(t)
		var closed []string
		states := func(open func(rt *operator.Runtime) error) *stateful {
			return &stateful{
				node: node{hooks: hooks{open: open}},
				snapshot: func(_ *operator.Runtime, sn *operator.Snapshot) error {
					sn.Tables = []statebackend.FrozenTable{numbers(3, 0)}
					return nil
				},
			}
		}
		trying := false
		build := func(s *snapshots) {
			from := s.add("source", 1, played(1), nil, nil)
			from = s.stateful("fits", 1, states(func(rt *operator.Runtime) error {
				if trying && (rows(t, rt.Restored.Store, "numbers") != 0 || len(rt.Restored.Store.Tables()) != 1) {
					t.Error("an operator that is tried gets rows")
				}
				return nil
			}), from)
			from = s.add("without", 1, hooks{}, from, nil)
			for name, open := range map[string]func(*operator.Runtime) error{
				"fails":  func(*operator.Runtime) error { return errBoom },
				"panics": func(*operator.Runtime) error { panic("no way") },
			} {
				if !trying {
					open = nil
				}
				s.stateful(name, 1, states(open), from).UID = name
			}
			sink := s.stateful("sink", 1, states(nil), from)
			sink.UID, sink.Kind, sink.Out = "sink", graph.Sink, nil
			inner := sink.New
			sink.New = func() operator.Operator { return &closing{stateful: inner().(*stateful), closed: &closed, end: true} }
			for _, n := range s.g.Nodes {
				if n.Name == "fits" {
					made := n.New
					n.New = func() operator.Operator { return &closing{stateful: made().(*stateful), closed: &closed} }
				}
			}
		}
		build(s)
		a, err := s.deploy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := &checkpoint.Manifest{ID: 9, Folder: folderOf(9), HashSeed: 77}
		told := s.trigger(a, control.Barrier{ID: 9})
		_, parts := acknowledged(t, told[0])
		for i, n := range a.Tasks[0].Vertex.Nodes {
			m.Operators = append(m.Operators, checkpoint.Operator{ID: n.ID.String(), Name: n.Node.Name, Parallelism: 1, MaxParallelism: n.MaxParallelism, Parts: parts[i : i+1]})
		}
		s.stop(a)

		closed, trying = nil, true
		next := newSnapshots(t)
		build(next)
		next.opt.Restore = &Restore{FS: s.fs, Manifest: m}
		job := planned(next)
		fits, err := Fit(t.Context(), job, next.opt)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, f := range fits {
			got[f.Node.Node.Name] = fmt.Sprintf("tried %v: %v", f.Tried, f.Err)
			var e *task.Error
			if f.Err != nil && (!errors.As(f.Err, &e) || e.Operator != f.Node.Node.Name || e.UID != f.Node.ID.String()) {
				t.Errorf("the failure of %s is %+v", f.Node.Node.Name, f.Err)
			}
		}
		if len(got) != 4 || got["fits"] != "tried true: <nil>" || got["sink"] != "tried false: <nil>" {
			t.Errorf("fits %v", got)
		}
		for name, want := range map[string]string{"fails": "open the operator: boom", "panics": "open the operator: panic: no way"} {
			if !strings.Contains(got[name], "tried true: ") || !strings.Contains(got[name], want) {
				t.Errorf("%s: %s, want %q", name, got[name], want)
			}
		}
		if !slices.Equal(closed, []string{"fits"}) {
			t.Errorf("closed %v", closed)
		}
	})
}

// closing notes that an operator is closed.
type closing struct {
	*stateful
	closed *[]string
	end    bool // it has no output
}

func (c *closing) Output(tag string) *operator.Output {
	if c.end {
		return nil
	}
	return c.stateful.Output(tag)
}

func (c *closing) Close() error {
	*c.closed = append(*c.closed, c.RT.Name)
	return c.stateful.Close()
}
