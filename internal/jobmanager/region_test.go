package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/vfs"
)

// A region is what hangs together by edges, those of iterations as well, or by co-location.
func TestRegionsAreWhatHangsTogether(t *testing.T) {
	for name, c := range map[string]struct {
		edges   [][2]int // between six vertices
		located []int
		full    bool
		want    string
	}{
		"nothing":       {nil, nil, false, "0 | 1 | 2 | 3 | 4 | 5"},
		"two chains":    {[][2]int{{0, 2}, {2, 4}, {1, 3}}, nil, false, "0 2 4 | 1 3 | 5"},
		"a union":       {[][2]int{{0, 5}, {1, 5}, {2, 3}}, nil, false, "0 1 5 | 2 3 | 4"},
		"branches":      {[][2]int{{0, 1}, {0, 2}, {3, 4}, {3, 5}}, nil, false, "0 1 2 | 3 4 5"},
		"a loop":        {[][2]int{{0, 1}, {1, 2}, {2, 1}}, nil, false, "0 1 2 | 3 | 4 | 5"},
		"co-located":    {[][2]int{{0, 1}}, []int{1, 4}, false, "0 1 4 | 2 | 3 | 5"},
		"one after all": {[][2]int{{0, 2}}, nil, true, "0 1 2 3 4 5"},
	} {
		g := &plan.ExecutionGraph{}
		for i := range 6 {
			v := &plan.ExecutionVertex{Vertex: &plan.Vertex{Index: i}}
			if slices.Contains(c.located, i) {
				v.CoLocation = "here"
			}
			g.Vertices = append(g.Vertices, v)
		}
		for _, e := range c.edges {
			to := g.Vertices[e[1]]
			to.Inputs = append(to.Inputs, &plan.JobEdge{From: g.Vertices[e[0]].Vertex, To: to.Vertex})
		}
		var got []string
		for i, r := range regionsOf(g, c.full) {
			if r.index != i {
				t.Errorf("%s: region %d has the number %d", name, i, r.index)
			}
			var names []string
			for _, v := range r.vertices {
				names = append(names, fmt.Sprint(v.Index))
			}
			got = append(got, strings.Join(names, " "))
		}
		if s := strings.Join(got, " | "); s != c.want {
			t.Errorf("%s: got %s, want %s", name, s, c.want)
		}
	}
}

// A failure restarts its region only; with Full it restarts all.
func TestFailureRestartsItsRegionOnly(t *testing.T) {
	for _, full := range []bool{false, true} {
		inBubble(t, fmt.Sprintf("full=%v", full), func(t *testing.T) {
			p := newProgram(t)
			var fail, over atomic.Bool
			var log journal
			source := func(name string, poll func(rt *operator.Runtime) (operator.Status, error)) {
				p.source(name, 2, hooks{
					open:  func(rt *operator.Runtime) error { log.note("%s %d.%d", name, rt.Subtask, rt.Attempt); return nil },
					event: func(*operator.Runtime, []byte) error { return nil },
					poll: func(rt *operator.Runtime) (operator.Status, error) {
						if over.Load() {
							return operator.Done, nil
						}
						return poll(rt)
					},
				})
			}
			source("calm", func(*operator.Runtime) (operator.Status, error) { return operator.Nothing, nil })
			source("flaky", func(rt *operator.Runtime) (operator.Status, error) {
				if rt.Subtask == 1 && rt.Attempt == 0 && fail.Load() {
					return operator.Done, errBoom
				}
				return operator.Nothing, nil
			})
			j := p.keepWith(Restarts{Strategy: &control.FixedDelay{Attempts: 1, Delay: time.Second}, Full: full}, nil)
			synctest.Wait()
			if s := j.Status(); s != Running || len(j.Tasks()) != 4 {
				t.Fatalf("%s, %d tasks", s, len(j.Tasks()))
			}
			wake := func() {
				for _, s := range j.Tasks() {
					s.Event(0, nil)
				}
				synctest.Wait()
			}
			before := j.Tasks()
			fail.Store(true)
			wake()
			if s := j.Status(); s != Restarting {
				t.Errorf("after the failure: %s", s)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if s := j.Status(); s != Running {
				t.Errorf("after the restart: %s", s)
			}
			for i, s := range j.Tasks() {
				if s.Vertex != before[i].Vertex || s.Index != before[i].Index {
					t.Errorf("task %d is %s %d", i, s.Vertex.Name, s.Index)
				}
				if same := s == before[i]; same != (!full && i < 2) {
					t.Errorf("task %d goes on: %v", i, same)
				}
				if age := j.Age(s); (age == time.Second) != (s == before[i]) {
					t.Errorf("task %d has been there for %v", i, age)
				}
			}
			if r := j.Record(); r.Restarts != 1 || len(r.Failures) != 1 || !errors.Is(r.Failures[0].Err, errBoom) {
				t.Errorf("recorded %+v", r)
			}
			over.Store(true)
			wake()
			ends(t, "job", j, Finished)
			want := []string{"calm 0.0", "calm 1.0", "flaky 0.0", "flaky 0.1", "flaky 1.0", "flaky 1.1"}
			if full {
				want = append(want, "calm 0.1", "calm 1.1")
				slices.Sort(want)
			}
			lines := log.read()
			slices.Sort(lines)
			if !slices.Equal(lines, want) {
				t.Errorf("opened %q, want %q", lines, want)
			}
		})
	}
}

// All regions have one restart budget, and the failure that exceeds it ends them all.
func TestRegionsShareTheRestartBudget(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		p := newProgram(t)
		closed := 0
		p.source("calm", 1, hooks{poll: hang, close: func(*operator.Runtime) error { closed++; return nil }})
		for i := range 3 {
			p.source(fmt.Sprint("flaky ", i), 1, hooks{poll: func(rt *operator.Runtime) (operator.Status, error) {
				if rt.Attempt > 0 {
					return operator.Nothing, nil
				}
				time.Sleep(time.Duration(i+1) * time.Second)
				return operator.Done, fmt.Errorf("failure %d: %w", i, errBoom)
			}})
		}
		start := time.Now()
		j := p.submit(t.Context(), &control.FixedDelay{Attempts: 2})
		ends(t, "job", j, Failed, errBoom)
		if !strings.Contains(j.Err().Error(), "failure 2") || time.Since(start) != 3*time.Second || closed != 1 {
			t.Errorf("%v after %v, %d closed", j.Err(), time.Since(start), closed)
		}
		if r := j.Record(); r.Restarts != 2 || len(r.Failures) != 3 {
			t.Errorf("%d restarts, %d failures", r.Restarts, len(r.Failures))
		}
	})
}

// A checkpoint that is under way when a region fails is given up, which fails nothing else, although none may fail; the other
// region goes on and takes part in the next one.
func TestFailedRegionFailsNoCheckpoint(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		p := newProgram(t)
		var slow, flaky atomic.Int64
		start := time.Now()
		var j atomic.Pointer[Job]
		p.source("slow", 1, hooks{
			open: func(*operator.Runtime) error { slow.Add(1); return nil },
			poll: func(rt *operator.Runtime) (operator.Status, error) {
				if flaky.Load() < 4 { // takes no part until the other one has failed
					time.Sleep(50 * time.Millisecond)
					return operator.More, nil
				}
				return operator.Nothing, nil
			},
		})
		p.source("flaky", 2, hooks{
			open: func(rt *operator.Runtime) error {
				if flaky.Add(1); rt.Attempt == 0 && rt.Subtask == 0 {
					rt.Timers.Schedule(start.UnixMilli()+12, func(int64) error { return errBoom }) // after its part
				}
				return nil
			},
			poll: hang,
			close: func(rt *operator.Runtime) error {
				if rt.Attempt == 0 && rt.Subtask == 1 { // as a part that is being written is declined when its task is cancelled
					ref := control.TaskRef{TaskID: control.TaskID{Vertex: 1, Subtask: 1}}
					j.Load().keeper.Tell(control.Declined{Job: "job", Task: ref, Checkpoint: 1, Err: context.Canceled})
				}
				return nil
			},
		})
		j.Store(p.keep(&control.FixedDelay{Attempts: 1, Delay: 100 * time.Millisecond}, everyTen(vfs.NewMem())))
		time.Sleep(400 * time.Millisecond)
		c := j.Load().Checkpoints()
		if j.Load().Status() != Running || slow.Load() != 1 || flaky.Load() != 4 {
			t.Errorf("%s, opened %d and %d, %v", j.Load().Status(), slow.Load(), flaky.Load(), j.Load().Record().Failures)
		}
		if c.Counts.Completed < 10 || c.LatestFailed == nil || c.LatestFailed.Reason != control.ReasonRegionFailover {
			t.Errorf("%+v, failed %+v", c.Counts, c.LatestFailed)
		}
		j.Load().Cancel()
		ends(t, "job", j.Load(), Canceled, ErrCanceled)
	})
}

// Checkpoints go on when a region with a coordinator has finished, and what they say restores.
func TestRegionThatHasFinishedIsPartOfCheckpoints(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		p := newProgram(t)
		starts := 0
		p.source("short", 1, hooks{}).NewCoordinator = func() operator.Coordinator {
			return &fake{start: func(operator.CoordinatorContext) error { starts++; return nil }}
		}
		var fail atomic.Bool
		p.source("long", 1, hooks{
			event: func(*operator.Runtime, []byte) error { return nil },
			poll: func(rt *operator.Runtime) (operator.Status, error) {
				if fail.Load() && rt.Attempt == 0 {
					return operator.Done, errBoom
				}
				return operator.Nothing, nil
			},
		})
		opt := everyTen(vfs.NewMem())
		j := p.keep(&control.FixedDelay{Attempts: 1}, opt)
		time.Sleep(105 * time.Millisecond)
		if c := j.Checkpoints().Counts; c.Completed < 9 || c.Failed != 0 || j.Status() != Running {
			t.Fatalf("%+v, %s", c, j.Status())
		}
		fail.Store(true)
		j.Tasks()[1].Event(0, nil)
		time.Sleep(55 * time.Millisecond)
		all := found(t, opt)
		m := all[len(all)-1].Manifest
		if o := m.Operators[0]; len(o.Parts) != 1 || !o.Parts[0].Finished || starts != 1 || number(j) != 0 || j.Checkpoints().Counts.Restored != 1 {
			t.Errorf("%+v, %d starts, attempt %d, %+v", o, starts, number(j), j.Checkpoints().Counts)
		}
		j.Cancel()
		<-j.Done()
		fail.Store(false)
		next := everyTen(opt.FS)
		next.Dir, next.Completed = "/next", []Snapshot{{FS: opt.FS, Manifest: m, Foreign: true}}
		k := p.keep(control.NoRestart{}, next)
		time.Sleep(55 * time.Millisecond)
		if c := k.Checkpoints().Counts; starts != 1 || c.Completed < 4 || k.Status() != Running {
			t.Errorf("restored: %d starts, %+v, %s, %v", starts, c, k.Status(), k.Record().Failures)
		}
		k.Cancel()
		<-k.Done()
	})
}

// When a savepoint stops a job and one region fails instead of ending, all go on from the savepoint: the job is not half
// stopped.
func TestJobIsNeverHalfStopped(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		p := newProgram(t)
		var log journal
		p.source("good", 1, hooks{poll: hang, open: func(rt *operator.Runtime) error {
			log.note("good %d", rt.Attempt)
			return nil
		}})
		p.source("bad", 1, hooks{
			poll: hang,
			open: func(rt *operator.Runtime) error { log.note("bad %d", rt.Attempt); return nil },
			close: func(rt *operator.Runtime) error {
				if rt.Attempt == 0 {
					return errBoom
				}
				return nil
			},
		})
		mem := vfs.NewMem()
		j := p.keep(&control.FixedDelay{Attempts: 1, Delay: time.Second}, everyTen(mem))
		stopped := make(chan error, 1)
		time.Sleep(time.Millisecond)
		go func() {
			_, err := j.Savepoint(t.Context(), "/savepoints", control.StopSavepoint)
			stopped <- err
		}()
		time.Sleep(2 * time.Second)
		lines := log.read()
		slices.Sort(lines)
		if want := []string{"bad 0", "bad 1", "good 0", "good 1"}; !slices.Equal(lines, want) || j.Status() != Running {
			t.Errorf("opened %q, %s", lines, j.Status())
		}
		if c := j.Checkpoints(); c.LatestRestored == nil || c.LatestRestored.ID != c.LatestSavepoint.ID || c.Counts.Completed < 50 {
			t.Errorf("restored %+v, %+v", c.LatestRestored, c.Counts)
		}
		if _, err := j.Savepoint(t.Context(), "/savepoints", control.StopSavepoint); err != nil {
			t.Error(err)
		}
		ends(t, "job", j, Finished)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// What is sent after a state was taken waits for the trigger, whatever becomes of earlier checkpoints.
func TestHoldsEndInOrder(t *testing.T) {
	for name, c := range map[string]struct{ steps, want string }{
		"none":                         {"a b", "a b"},
		"one":                          {"a <1 b c >1 d", "a b c d"},
		"before the next is triggered": {"<1 a <2 b >1 c >2 d", "a b c d"},
		"the older one never ends":     {"<1 a <2 b >2 c", "a b c"},
		"late ends":                    {"<1 a >1 >1 b <2 c >1 d >2", "a b c d"},
		"begun in the wrong order":     {"<2 a <1 b >1 c >2 d", "a b c d"},
	} {
		var h holds
		var sent []string
		for step := range strings.FieldsSeq(c.steps) {
			send := func() { sent = append(sent, step) }
			switch step[0] {
			case '<':
				h.begin(int64(step[1] - '0'))
			case '>':
				for _, f := range h.end(int64(step[1] - '0')) {
					f()
				}
			default:
				if !h.keep(send) {
					send()
				}
			}
		}
		if got := strings.Join(sent, " "); got != c.want || len(h) != 0 {
			t.Errorf("%s: sent %q, want %q; left %d", name, got, c.want, len(h))
		}
	}
	var h holds
	h.begin(1)
	h.keep(func() {})
	h.begin(2)
	h.keep(func() {})
	if len(h.end(0)) != 0 || len(h.end(1)) != 1 || len(h.end(2)) != 1 {
		t.Error("sends of a later hold came with those of an earlier one")
	}
}
