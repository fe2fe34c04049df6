package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/control"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/taskmanager"
	"github.com/flott-dev/flott/statebackend/heap"
)

var errBoom = errors.New("boom")

// journal is what happened, written by any goroutine.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.lines...)
}

// unit is a source without elements.
type unit struct {
	hooks
	out operator.Output
	rt  *operator.Runtime
}

// hooks are what a unit does, each may be nil.
type hooks struct {
	open  func(rt *operator.Runtime) error
	poll  func(rt *operator.Runtime) (operator.Status, error)
	event func(rt *operator.Runtime, event []byte) error
	close func(rt *operator.Runtime) error
}

func (u *unit) Inputs() []operator.Input { return nil }

func (u *unit) Output(tag string) *operator.Output {
	if tag == "" {
		return &u.out
	}
	return nil
}

func (u *unit) Open(rt *operator.Runtime) error {
	u.rt = rt
	u.out.Bind(rt)
	if u.open != nil {
		return u.open(rt)
	}
	return nil
}

func (u *unit) Close() error {
	if u.close != nil {
		return u.close(u.rt)
	}
	return nil
}

func (u *unit) Poll() (operator.Status, error) {
	if u.poll == nil {
		return operator.Done, nil
	}
	return u.poll(u.rt)
}

func (u *unit) HandleEvent(event []byte) error { return u.event(u.rt, event) }

// hang is a poll that waits for ever, like a source without input.
func hang(*operator.Runtime) (operator.Status, error) { return operator.Nothing, nil }

// program is a graph of independent sources.
type program struct {
	t *testing.T
	g *graph.Graph
}

func newProgram(t *testing.T) *program {
	return &program{t, &graph.Graph{JobName: "job", Parallelism: 1, MaxParallelism: graph.Unset, ChainingEnabled: true}}
}

// source adds a source of so many subtasks.
func (p *program) source(name string, parallelism int, h hooks) *graph.Node {
	p.t.Helper()
	typ, err := frame.TypeOf[int64]()
	if err != nil {
		p.t.Fatal(err)
	}
	n := &graph.Node{
		Kind: graph.Source, Name: name, Parallelism: parallelism, MaxParallelism: graph.Unset, Out: typ,
		New: func() operator.Operator {
			return &unit{hooks: h, out: operator.NewOutput(typ)}
		},
	}
	p.g.Nodes = append(p.g.Nodes, n)
	return n
}

func (p *program) submit(ctx context.Context, restart control.Restart) *Job {
	p.t.Helper()
	jg, err := plan.Build(p.g)
	if err != nil {
		p.t.Fatal(err)
	}
	c := clock.NewSystem()
	opt := taskmanager.Options{Threads: host.Goroutines{Clock: c}, Clock: c, Memory: host.NewMemory(0), Backend: heap.Backend{}}
	return Submit(ctx, "id", &taskmanager.Job{Graph: plan.Unfold(jg), Name: "job"}, opt, Restarts{Strategy: restart}, nil)
}

// run runs the program to its end, without restart.
func (p *program) run() *Job {
	j := p.submit(p.t.Context(), control.NoRestart{})
	<-j.Done()
	return j
}

// inBubble runs a test under a clock that moves only when everybody waits; goroutines that are left behind fail it.
func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// after calls f when everybody has waited for so long.
func after(d time.Duration, f func()) { time.AfterFunc(d, f) }

// ends checks how a job has ended.
func ends(t *testing.T, what string, j *Job, status Status, causes ...error) {
	t.Helper()
	<-j.Done()
	if j.Status() != status {
		t.Errorf("%s: %s, want %s (%v)", what, j.Status(), status, j.Err())
	}
	if (j.Err() == nil) != (len(causes) == 0) {
		t.Errorf("%s: ended with %v", what, j.Err())
	}
	for _, c := range causes {
		if !errors.Is(j.Err(), c) {
			t.Errorf("%s: ended with %v, want %v", what, j.Err(), c)
		}
	}
}

// number is that of the present attempt of a job's first region; -1: there is none.
func number(j *Job) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.attempts[0] == nil {
		return -1
	}
	return j.attempts[0].Number
}
