package stream_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// here is the file and line of its call.
func here() string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", file, line)
}

type wired struct {
	Name  string
	Inner struct{ Line chan int }
}

type hidden struct{ secret int }

// mistake is a program that is wrong in one way. at is the place that the error must name, on the line of the mistake.
type mistake struct {
	name  string
	build func(env *stream.Env)
	at    string
	want  []string
}

func id(x int) int { return x }

func mistakes() []mistake {
	other := stream.NewEnv()
	return []mistake{
		{"no parallelism", func(env *stream.Env) { env.SetParallelism(0) }, here(), []string{"parallelism 0", "at least 1"}},
		{"negative parallelism", func(env *stream.Env) { numbers(env).Map(id).Name("m").Parallelism(-2) }, here(), []string{"parallelism -2", `"m"`}},
		{"parallel collection", func(env *stream.Env) { env.FromElements(1).Parallelism(2) }, here(), []string{"one subtask", "Collection Source"}},
		{"no max parallelism", func(env *stream.Env) { env.SetMaxParallelism(0) }, here(), []string{"max parallelism 0", "1 ... 32768"}},
		{"max parallelism", func(env *stream.Env) { numbers(env).Map(id).MaxParallelism(32769) }, here(), []string{"32769", "1 ... 32768"}},
		{"auto watermarks", func(env *stream.Env) { env.SetAutoWatermarkInterval(-time.Second) }, here(), []string{"-1s"}},
		{"name of a union", func(env *stream.Env) { numbers(env).Union(numbers(env)).Name("both") }, here(), []string{"set the name", "no operator of its own"}},
		{"UID of a partitioning", func(env *stream.Env) { numbers(env).Shuffle().UID("mix") }, here(), []string{"set the UID", "no operator of its own"}},
		{"parallelism of a side output", func(env *stream.Env) {
			s := numbers(env).Process(func(*process.Runtime) tenther { return tenther{} })
			s.SideOutput(process.NewOutputTag[int]("side")).Parallelism(2)
		}, below(), []string{"set the parallelism", "no operator of its own"}},
		{"side output of two types", func(env *stream.Env) {
			s := numbers(env).Process(func(*process.Runtime) tenther { return tenther{} })
			s.SideOutput(process.NewOutputTag[string]("side")).Discard()
			s.SideOutput(process.NewOutputTag[int]("side")).Discard()
		}, above(1), []string{`side output "side" as int`, "as string"}},
		{"side output of a map", func(env *stream.Env) { numbers(env).Map(id).Name("m").SideOutput(process.NewOutputTag[int]("side")) }, here(), []string{`side output "side"`, `operator "m"`}},
		{"key of a pointer", func(env *stream.Env) { numbers(env).KeyBy(func(x int) *int { return &x }) }, here(), []string{"*int", "key"}},
		{"element with a channel", func(env *stream.Env) { numbers(env).Map(func(int) wired { return wired{} }) }, here(), []string{"stream_test.wired", "Inner", "Line", "channel"}},
		{"element of a function", func(env *stream.Env) { env.FromElements(func() {}) }, here(), []string{"func()"}},
		{"element with a hidden field", func(env *stream.Env) { env.FromElements(hidden{secret: 1}) }, here(), []string{"stream_test.hidden", "secret"}},
		{"element of an open interface", func(env *stream.Env) { env.FromElements[any](1) }, here(), []string{"serde.OneOf"}},
		{"two environments", func(env *stream.Env) { numbers(env).Union(numbers(other)) }, here(), []string{"two environments"}},
		{"connected environments", func(env *stream.Env) { numbers(env).Connect(numbers(other)) }, here(), []string{"two environments"}},
		{"generator's rate", func(env *stream.Env) { env.FromGenerator(1, func(i int64) int64 { return i }, -1) }, here(), []string{"rate"}},
		{"broadcast states of one name", func(env *stream.Env) {
			numbers(env).BroadcastState(state.NewBroadcast[int, int]("a"), state.NewBroadcast[int, string]("a"))
		}, below(), []string{`"a"`}},
	}
}

// below and above are lines near their call, for mistakes that need several lines: below is the line before.
func below() string { return lineBy(-1) }

func above(n int) string { return lineBy(-n) }

func lineBy(by int) string {
	_, file, line, _ := runtime.Caller(2)
	return fmt.Sprintf("%s:%d", file, line+by)
}

func numbers(env *stream.Env) *stream.Stream[int] { return env.FromElements(1, 2, 3) }

type tenther struct{}

func (tenther) ProcessElement(_ *process.Context, x int, out *process.Collector[int]) error {
	out.Collect(x)
	return nil
}

func TestMistakesNameTheirPlace(t *testing.T) {
	for _, m := range mistakes() {
		t.Run(m.name, func(t *testing.T) {
			env := stream.NewEnv().SetParallelism(2)
			m.build(env)
			_, err := env.Execute(context.Background(), "wrong")
			if err == nil {
				t.Fatal("the program was accepted")
			}
			for _, w := range append(m.want, m.at+": ") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not mention %q", err, w)
				}
			}
		})
	}
}

func TestAllMistakesComeTogether(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	all := mistakes()
	for _, m := range all {
		m.build(env)
	}
	_, err := env.Execute(context.Background(), "wrong")
	if err == nil || !strings.Contains(err.Error(), `job "wrong"`) {
		t.Fatalf("got %v", err)
	}
	text := err.Error()
	for _, m := range all {
		if !strings.Contains(text, m.at+": ") {
			t.Errorf("%s is missing", m.name)
		}
	}
	// The next job of the environment begins with a clean slate.
	env.FromElements(1).Discard()
	execute(t, env)
}

// Some mistakes are seen when the graph is complete: they come together, too.
func TestMistakesOfTheWholeGraph(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(env *stream.Env) []string
	}{
		{"nothing to do", func(*stream.Env) []string { return []string{"no operators"} }},
		{"UIDs", func(env *stream.Env) []string {
			numbers(env).Map(id).UID("twice").Discard()
			first := above(1)
			numbers(env).Filter(func(int) bool { return true }).UID("twice").Discard()
			return []string{`"twice"`, first, above(1)}
		}},
		{"forward", func(env *stream.Env) []string {
			numbers(env).Forward().Map(id).Parallelism(3).Name("m").Discard()
			return []string{"forward", "1", "3", `"m"`, above(1)}
		}},
		{"more subtasks than key groups", func(env *stream.Env) []string {
			numbers(env).KeyBy(id).Count().MaxParallelism(2).Parallelism(3).Name("count").Discard()
			return []string{"parallelism 3", "2", above(1)}
		}},
		{"UID hash", func(env *stream.Env) []string {
			numbers(env).Map(id).UIDHash("xyz").Discard()
			return []string{"xyz", above(1)}
		}},
		{"several", func(env *stream.Env) []string {
			s := numbers(env)
			s.Map(id).UID("twice").Discard()
			s.Map(id).UID("twice").Discard()
			second := above(1)
			s.Map(id).UIDHash("xyz").Discard()
			third := above(1)
			s.Forward().Map(id).Parallelism(3).Discard()
			return []string{second, third, above(1)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := stream.NewEnv().SetParallelism(2)
			want := c.build(env)
			_, err := env.Execute(context.Background(), "wrong")
			if err == nil {
				t.Fatal("the program was accepted")
			}
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not mention %q", err, w)
				}
			}
		})
	}
}

// undeclared stands for a function whose constructor makes a mistake.
type undeclared struct {
	process.NoTimers[int, int]
}

func (undeclared) ProcessElement(*process.KeyedContext[int], int, *process.Collector[int]) error {
	return nil
}

// What a constructor does wrong fails the job before its first element.
func TestMistakesOfConstructors(t *testing.T) {
	for _, c := range []struct {
		name    string
		declare func(rt *process.Runtime)
		want    []string
	}{
		{"state of channels", func(rt *process.Runtime) { state.NewValue[wired](rt, "wires") }, []string{`state "wires"`, "Inner", "Line"}},
		{"two states of a name", func(rt *process.Runtime) {
			state.NewValue[int](rt, "n")
			state.NewValue[string](rt, "n")
		}, []string{`"n"`}},
		{"a value and a list of a name", func(rt *process.Runtime) {
			state.NewValue[int](rt, "n")
			state.NewList[int](rt, "n")
		}, []string{`"n"`}},
		{"map of addresses", func(rt *process.Runtime) { state.NewMap[*int, int](rt, "m") }, []string{`state "m"`, "*int"}},
		{"default of another type", func(rt *process.Runtime) { state.NewValue[int](rt, "n", state.Default("no")) }, []string{`state "n"`, "string"}},
		{"no time to live", func(rt *process.Runtime) {
			state.NewValue[int](rt, "n", state.TTL(state.TTLConfig{After: -time.Second}))
		}, []string{`state "n"`, "-1s"}},
		{"reported", func(rt *process.Runtime) { rt.Report(fmt.Errorf("no table of rates")) }, []string{"no table of rates"}},
		{"panic", func(*process.Runtime) { panic("lost my way") }, []string{"lost my way"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := stream.NewEnv().SetParallelism(2)
			numbers(env).KeyBy(id).Process(func(rt *process.Runtime) undeclared {
				c.declare(rt)
				return undeclared{}
			}).Name("rates").Discard()
			executeFailing(t, env, append(c.want, `operator "rates"`)...)
		})
	}
}

// State on a stream that is not keyed has no key to belong to.
func TestStateWithoutKeyIsRefused(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	numbers(env).Process(func(rt *process.Runtime) *unkeyed { return &unkeyed{state.NewValue[int](rt, "n")} }).Name("sum").Discard()
	executeFailing(t, env, `operator "sum"`, `"n"`, "keyed")
}

type unkeyed struct{ n *state.Value[int] }

func (u *unkeyed) ProcessElement(_ *process.Context, x int, _ *process.Collector[int]) error {
	u.n.Set(x)
	return nil
}

// A function that is missing fails the operator that calls it.
func TestMissingFunctionNamesTheOperator(t *testing.T) {
	for name, build := range map[string]func(s *stream.Stream[int]) *stream.Stream[int]{
		"map":      func(s *stream.Stream[int]) *stream.Stream[int] { return s.Map[int](nil) },
		"filter":   func(s *stream.Stream[int]) *stream.Stream[int] { return s.Filter((func(int) bool)(nil)) },
		"flat map": func(s *stream.Stream[int]) *stream.Stream[int] { return s.FlatMap[int](nil) },
		"key":      func(s *stream.Stream[int]) *stream.Stream[int] { return s.KeyBy[int](nil).Reduce(max2) },
		"reduce":   func(s *stream.Stream[int]) *stream.Stream[int] { return s.KeyBy(one[int]).Reduce(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			env := stream.NewEnv().SetParallelism(1)
			build(numbers(env)).Name("missing").Discard()
			executeFailing(t, env, `operator "missing"`, "nil")
		})
	}
}

func max2(a, b int) int { return max(a, b) }
