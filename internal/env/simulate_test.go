package env

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/sink"
)

// player is a source whose polls are a function of the test.
type player struct {
	out   operator.Output
	rt    *operator.Runtime
	open  func(rt *operator.Runtime) error
	poll  func(rt *operator.Runtime) (operator.Status, error)
	hear  func(rt *operator.Runtime, event []byte) error
	close func() error
}

func (p *player) Inputs() []operator.Input { return nil }

func (p *player) Output(tag string) *operator.Output {
	if tag == "" {
		return &p.out
	}
	return nil
}

func (p *player) Open(rt *operator.Runtime) error {
	p.rt = rt
	p.out.Bind(rt)
	if p.open != nil {
		return p.open(rt)
	}
	return nil
}

func (p *player) Close() error {
	if p.close != nil {
		return p.close()
	}
	return nil
}

func (p *player) Poll() (operator.Status, error) {
	if p.poll == nil {
		return operator.Done, nil
	}
	return p.poll(p.rt)
}

func (p *player) HandleEvent(event []byte) error { return p.hear(p.rt, event) }

// play adds a source with these hooks to an environment.
func play(t *testing.T, e *Env, name string, make func() *player) *graph.Node {
	typ := typeOf[int64](t)
	return add(e, graph.Source, name, typ, func() operator.Operator {
		p := make()
		p.out.Type = typ
		return p
	})
}

// listener is a coordinator that only reacts.
type listener struct {
	ctx    operator.CoordinatorContext
	start  func(ctx operator.CoordinatorContext) error
	handle func(subtask int, event []byte) error
	close  func() error
}

func (l *listener) Reactive() {}

func (l *listener) Start(ctx operator.CoordinatorContext, _ []byte) error {
	l.ctx = ctx
	if l.start != nil {
		return l.start(ctx)
	}
	return nil
}

func (l *listener) Handle(subtask int, event []byte) error { return l.handle(subtask, event) }

func (l *listener) Snapshot(int64) ([]byte, error) { return nil, nil }

func (l *listener) Close() error {
	if l.close != nil {
		return l.close()
	}
	return nil
}

// busy is a coordinator that needs goroutines.
type busy struct{ operator.Coordinator }

func TestSimulationReplaysFromItsSeed(t *testing.T) {
	run := func(seed uint64) (string, []int64) {
		e := New()
		e.Settings.Parallelism, e.Settings.Chaining = 2, false
		var got []int64
		xs := make([]int64, 5000)
		for i := range xs {
			xs[i] = int64(i)
		}
		_, _, end := numbers(t, e, xs, same, func(x int64) { got = append(got, x) })
		end.Inputs[0].Partitioner = &graph.Partitioner{Strategy: graph.Rebalance}
		trace, err := e.Simulate(t.Context(), "job", seed)
		if err != nil {
			t.Fatal(err)
		}
		if len(e.graph.Nodes) != 0 {
			t.Error("the next job begins with the nodes of this one")
		}
		return trace, got
	}
	traces := map[string]bool{}
	for seed := range uint64(5) {
		trace, got := run(seed)
		again, same := run(seed)
		if trace == "" || trace != again || !slices.Equal(got, same) {
			t.Errorf("seed %d: two runs differ", seed)
		}
		traces[trace] = true
		slices.Sort(got)
		for i, x := range got {
			if x != int64(i) {
				t.Fatalf("seed %d: element %d is %d", seed, i, x)
			}
		}
	}
	if len(traces) != 5 {
		t.Errorf("%d schedules of 5 seeds", len(traces))
	}
}

// Whatever goes wrong is told by its cause, and what was opened is closed.
func TestSimulatedFailures(t *testing.T) {
	hang := func(*operator.Runtime) (operator.Status, error) { return operator.Nothing, nil }
	talk := func(l *listener) func(n *graph.Node, p *player) {
		return func(n *graph.Node, p *player) {
			p.poll = hang
			p.open = func(rt *operator.Runtime) error { rt.ToCoordinator([]byte("hello")); return nil }
			n.NewCoordinator = func() operator.Coordinator { return l }
		}
	}
	refuse := func(int, []byte) error { return errBoom }
	calls := 0
	for _, c := range []struct {
		name  string
		plant func(n *graph.Node, p *player)
		want  string
		cause error
	}{
		{"failing task", func(_ *graph.Node, p *player) {
			p.poll = func(rt *operator.Runtime) (operator.Status, error) {
				if rt.Subtask == 1 {
					return operator.Done, errBoom
				}
				return operator.Nothing, nil
			}
		}, `operator "player"`, errBoom},
		{"deadlock", func(_ *graph.Node, p *player) { p.poll = hang }, "nothing can wake one", host.ErrDeadlock},
		{"goroutine", func(_ *graph.Node, p *player) {
			p.open = func(rt *operator.Runtime) error { rt.Spawn.Go(func() {}); return nil }
		}, `operator "player"`, host.ErrNoGoroutines},
		{"coordinator", func(n *graph.Node, p *player) { talk(&listener{handle: refuse})(n, p) }, `coordinate "player": boom`, errBoom},
		{"coordinator's start", func(n *graph.Node, p *player) {
			talk(&listener{handle: refuse, start: func(operator.CoordinatorContext) error { return errors.New("first") }})(n, p)
		}, `coordinate "player": first`, nil},
		{"coordinator's end", func(n *graph.Node, p *player) {
			talk(&listener{handle: func(int, []byte) error { return nil }, close: func() error { return errBoom }})(n, p)
			p.poll = nil
		}, `coordinate "player": close: boom`, errBoom},
		{"coordinator, and its end", func(n *graph.Node, p *player) {
			talk(&listener{handle: func(int, []byte) error { calls++; return errBoom }, close: func() error { return errors.New("second") }})(n, p)
		}, `coordinate "player": boom`, errBoom},
		{"a task that gives up by itself", func(_ *graph.Node, p *player) {
			p.poll = func(*operator.Runtime) (operator.Status, error) { return operator.Done, exchange.ErrCancelled }
		}, "task cancelled", exchange.ErrCancelled},
	} {
		e := New()
		e.Settings.Parallelism = 2
		opened, closed := 0, 0
		var n *graph.Node
		n = play(t, e, "player", func() *player {
			p := &player{}
			c.plant(n, p)
			open := p.open
			p.open = func(rt *operator.Runtime) error {
				opened++
				if open != nil {
					return open(rt)
				}
				return nil
			}
			p.close = func() error { closed++; return nil }
			return p
		})
		c.plant(n, &player{})
		_, err := e.Simulate(t.Context(), "job", 7)
		if err == nil || c.cause != nil && !errors.Is(err, c.cause) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `simulate job "job" with seed 7`) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		if opened == 0 || opened != closed {
			t.Errorf("%s: %d operators were opened, %d closed", c.name, opened, closed)
		}
	}
	if calls != 1 {
		t.Errorf("a broken coordinator was called %d times", calls)
	}
}

func TestCoordinatorThatNeedsGoroutinesCannotBeSimulated(t *testing.T) {
	e := New()
	play(t, e, "busy", func() *player { return &player{} }).NewCoordinator = func() operator.Coordinator { return busy{} }
	if _, err := e.Simulate(t.Context(), "job", 1); err == nil || !strings.Contains(err.Error(), `source "busy" has an enumerator`) {
		t.Errorf("got %v", err)
	}
}

func TestJobThatCannotBeDeployedCannotBeSimulated(t *testing.T) {
	e := New()
	add(e, graph.Source, "broken", typeOf[int64](t), func() operator.Operator {
		return sink.Each[string](typeOf[string](t), func(string) {})
	})
	if _, err := e.Simulate(t.Context(), "job", 1); err == nil || !strings.Contains(err.Error(), `simulate job "job"`) {
		t.Errorf("got %v", err)
	}
}

// Reactive coordinators hear their own subtasks in order and answer each.
func TestReactiveCoordinatorsTalkWithTheirSubtasks(t *testing.T) {
	e := New()
	e.Settings.Parallelism = 3
	var log []string
	for _, name := range []string{"a", "b"} {
		l := &listener{}
		l.start = func(ctx operator.CoordinatorContext) error {
			if ctx.Parallelism() != 3 || ctx.Context().Err() != nil {
				t.Errorf("parallelism %d, %v", ctx.Parallelism(), ctx.Context().Err())
			}
			defer func() {
				if recover() == nil {
					t.Error("a reactive coordinator got a goroutine")
				}
			}()
			ctx.Do(0, func(context.Context) error { return nil }, nil)
			return nil
		}
		l.handle = func(subtask int, event []byte) error {
			log = append(log, string(event))
			l.ctx.Send(subtask, event)
			return nil
		}
		play(t, e, name, func() *player {
			heard := ""
			return &player{
				open: func(rt *operator.Runtime) error {
					for _, x := range "12" {
						rt.ToCoordinator(fmt.Appendf(nil, "%s%d%c", name, rt.Subtask, x))
					}
					return nil
				},
				hear: func(_ *operator.Runtime, event []byte) error { heard += string(event) + " "; return nil },
				poll: func(rt *operator.Runtime) (operator.Status, error) {
					if heard == fmt.Sprintf("%s%d1 %[1]s%[2]d2 ", name, rt.Subtask) {
						return operator.Done, nil
					}
					return operator.Nothing, nil
				},
			}
		}).NewCoordinator = func() operator.Coordinator { return l }
	}
	if _, err := e.Simulate(t.Context(), "job", 3); err != nil {
		t.Fatal(err)
	}
	slices.Sort(log)
	if want := []string{"a01", "a02", "a11", "a12", "a21", "a22", "b01", "b02", "b11", "b12", "b21", "b22"}; !slices.Equal(log, want) {
		t.Errorf("heard %q, want %q", log, want)
	}
}

// Processing time stands while anybody works and then goes to the next timer.
func TestSimulatedTimeGoesFromTimerToTimer(t *testing.T) {
	e := New()
	e.Settings.Parallelism = 1
	var at []int64
	var ctx context.Context
	play(t, e, "ticker", func() *player {
		return &player{
			open: func(rt *operator.Runtime) error {
				ctx = rt.Ctx
				for _, ms := range []int64{5000, 100, 86_400_000} {
					rt.Timers.Schedule(ms, func(int64) error { at = append(at, rt.Now); return nil })
				}
				return nil
			},
			poll: func(rt *operator.Runtime) (operator.Status, error) {
				if len(at) == 3 {
					return operator.Done, nil
				}
				return operator.Nothing, nil
			},
		}
	})
	if _, err := e.Simulate(t.Context(), "job", 1); err != nil || !slices.Equal(at, []int64{101, 5001, 86_400_001}) {
		t.Errorf("fired at %v, %v", at, err)
	}
	if ctx.Err() == nil {
		t.Error("the operators' context outlives them")
	}
}
