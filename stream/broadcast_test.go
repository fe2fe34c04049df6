package stream_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// bcRule says what to do with a color; bcShape has one.
type bcRule struct{ Color, Verb string }

type bcShape struct {
	Color string
	N     int
}

// painter holds its shapes until the rules are complete. (Rules that come later belong to later shapes; here the order
// between the streams must not matter.)
type painter struct {
	rules *state.BroadcastDescriptor[string, string]
	view  *state.BroadcastView[string, string]
	held  []bcShape
	ended bool
}

func (p *painter) ProcessElement(ctx *process.ReadOnlyContext, s bcShape, out *process.Collector[string]) error {
	p.view = ctx.BroadcastState(p.rules)
	p.held = append(p.held, s)
	if p.ended {
		p.paint(out)
	}
	return nil
}

func (p *painter) ProcessBroadcastElement(ctx *process.BroadcastContext, r bcRule, _ *process.Collector[string]) error {
	ctx.BroadcastState(p.rules).Put(r.Color, r.Verb)
	return nil
}

func (p *painter) EndInput2(out *process.Collector[string]) error {
	p.ended = true
	p.paint(out)
	return nil
}

func (p *painter) paint(out *process.Collector[string]) {
	for _, s := range p.held {
		out.Collect(fmt.Sprint(p.view.Get(s.Color), " ", s.N))
	}
	p.held = nil
}

func bcShapes(n int) (shapes []bcShape, want []string) {
	colors, verbs := []string{"red", "green", "blue"}, []string{"stop", "go", ""}
	for i := range n {
		shapes = append(shapes, bcShape{colors[i%3], i})
		want = append(want, fmt.Sprint(verbs[i%3], " ", i))
	}
	return shapes, want
}

func TestEverySubtaskSeesEveryBroadcastElement(t *testing.T) {
	everywhere(t, func(t *testing.T, env *stream.Env) {
		rules := state.NewBroadcast[string, string]("rules")
		shapes, want := bcShapes(3000)
		control := env.FromElements(bcRule{"red", "stop"}, bcRule{"green", "wait"}, bcRule{"green", "go"}).BroadcastState(rules)
		got := collect(env.FromParallelSlice(shapes).ConnectBroadcast(control).Process(func(*process.Runtime) *painter {
			return &painter{rules: rules}
		}))
		runJob(t, env)
		wantTexts(t, got.texts(), want...)
	})
}

// ledger counts shapes per color; a rule tells, per key, what has been counted.
type ledger struct {
	process.NoBroadcastTimers[string, string]
	count *state.Value[int]
	ended func()
}

func (l *ledger) ProcessElement(ctx *process.KeyedReadOnlyContext[string], s bcShape, _ *process.Collector[string]) error {
	if s.Color != ctx.Key() {
		return fmt.Errorf("key %s at a %s shape", ctx.Key(), s.Color)
	}
	l.count.Update(func(n *int) { *n++ })
	return nil
}

func (l *ledger) ProcessBroadcastElement(ctx *process.KeyedBroadcastContext[string], r bcRule, out *process.Collector[string]) error {
	return ctx.ApplyToKeyedState("count", func(color string) error {
		out.Collect(fmt.Sprint(r.Verb, " ", color, " ", l.count.Get()))
		return nil
	})
}

func (l *ledger) EndInput1(*process.Collector[string]) error {
	l.ended()
	return nil
}

func TestBroadcastSideReachesAllKeys(t *testing.T) {
	everywhere(t, func(t *testing.T, env *stream.Env) {
		shapes, _ := bcShapes(3000)
		var counted sync.WaitGroup // all subtasks have seen all shapes
		counted.Add(env.Parallelism())
		control := env.FromFunc("control", func(_ context.Context, out *process.SourceContext[bcRule]) error {
			counted.Wait()
			out.Collect(bcRule{"all", "report"})
			return nil
		}).BroadcastState()
		got := collect(env.FromParallelSlice(shapes).KeyBy(func(s bcShape) string { return s.Color }).ConnectBroadcast(control).
			Process(func(rt *process.Runtime) *ledger {
				return &ledger{count: state.NewValue[int](rt, "count"), ended: counted.Done}
			}))
		runJob(t, env)
		wantTexts(t, got.texts(), "report red 1000", "report green 1000", "report blue 1000")
	})
}

func TestBroadcastInputsAreAtHand(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	rules := state.NewBroadcast[string, string]("rules")
	control := env.FromElements(bcRule{"red", "stop"}).BroadcastState(rules)
	shapes, _ := bcShapes(1)
	plain := env.FromSlice(shapes).ConnectBroadcast(control)
	keyed := env.FromSlice(shapes).KeyBy(func(s bcShape) string { return s.Color }).ConnectBroadcast(control)
	first, count := collect(plain.First()), collect(keyed.First().Count())
	again := collect(plain.First().ConnectBroadcast(keyed.Second()).Process(func(*process.Runtime) *painter { return &painter{rules: rules} }))
	more := collect(plain.First().ConnectBroadcast(plain.Second()).Process(func(*process.Runtime) *painter { return &painter{rules: rules} }))
	runJob(t, env)
	wantTexts(t, first.texts(), "{red 0}")
	wantTexts(t, count.texts(), "(red,1)")
	wantTexts(t, again.texts(), "stop 0")
	wantTexts(t, more.texts(), "stop 0")
}

func TestBroadcastMistakesNameTheCall(t *testing.T) {
	env := stream.NewEnv()
	s := env.FromElements(1)
	s.BroadcastState(state.NewBroadcast[string, int]("twice"), state.NewBroadcast[string, int]("twice"))
	s.BroadcastState(state.NewBroadcast[string, func()]("functions"))
	s.Discard()
	_, err := env.Execute(context.Background(), "mistakes")
	for _, want := range []string{`two states are called "twice"`, `broadcast state "functions"`, "broadcast_test.go"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// bcStranger reads a state that the stream was not broadcast with.
type bcStranger struct{}

func (bcStranger) ProcessElement(*process.ReadOnlyContext, int, *process.Collector[int]) error {
	return nil
}

func (bcStranger) ProcessBroadcastElement(ctx *process.BroadcastContext, _ int, _ *process.Collector[int]) error {
	ctx.BroadcastState(state.NewBroadcast[int, int]("stranger")).Clear()
	return nil
}

func TestUndeclaredBroadcastStateFailsTheJob(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	s := env.FromElements(1)
	s.ConnectBroadcast(s.BroadcastState()).Process(func(*process.Runtime) bcStranger { return bcStranger{} }).Name("reader").Discard()
	_, err := env.Execute(context.Background(), "stranger")
	if err == nil || !strings.Contains(err.Error(), `"stranger"`) || !strings.Contains(err.Error(), `"reader"`) {
		t.Errorf("error %v", err)
	}
}
