package stream_test

import (
	"context"
	"strings"
	"testing"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// lookup reads all of the second stream before the first: a join by hand.
type lookup struct {
	loaded bool
	names  map[int]string
}

func newLookup(*process.Runtime) *lookup { return &lookup{names: map[int]string{}} }

func (l *lookup) NextSelection() process.InputSelection {
	if l.loaded {
		return process.SelectFirst
	}
	return process.SelectSecond
}

func (l *lookup) ProcessElement1(_ *process.Context, id int, out *process.Collector[string]) error {
	out.Collect(l.names[id])
	return nil
}

func (l *lookup) ProcessElement2(_ *process.Context, name string, _ *process.Collector[string]) error {
	l.names[len(name)] = name
	return nil
}

func (l *lookup) EndInput2(*process.Collector[string]) error {
	l.loaded = true
	return nil
}

// looking is an interface type that does not say that its functions choose.
type looking interface {
	process.CoFunction[int, string, string]
}

// lookups connects numbers with names, all of which every subtask gets.
func lookups(env *stream.Env) *stream.ConnectedStreams[int, string] {
	ids := env.FromElements(1, 2, 3, 2)
	names := env.FromElements("a", "bb", "ccc").Map(func(s string) string { return s })
	return ids.Broadcast().Connect(names.Broadcast())
}

func TestFunctionsChooseTheirInput(t *testing.T) {
	for name, look := range map[string]func(*stream.ConnectedStreams[int, string]) *stream.Stream[string]{
		"known by its type": func(c *stream.ConnectedStreams[int, string]) *stream.Stream[string] { return c.Process(newLookup) },
		"known by its value": func(c *stream.ConnectedStreams[int, string]) *stream.Stream[string] {
			return c.Process(func(rt *process.Runtime) looking { return newLookup(rt) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, env *stream.Env) {
				got := collect(look(lookups(env)))
				runJob(t, env)
				want := []string{"a", "bb", "bb", "ccc"}
				if len(got.texts()) == 2*len(want) { // both subtasks have all
					want = append(want, want...)
				}
				wantTexts(t, got.texts(), want...)
			})
		})
	}
}

// keyedLookup is lookup by key: the second stream's last value is what the first one's elements get.
type keyedLookup struct {
	process.NoTimers[int, string]
	loaded bool
	name   *state.Value[string]
}

func (l *keyedLookup) NextSelection() process.InputSelection {
	if l.loaded {
		return process.SelectFirst
	}
	return process.SelectSecond
}

func (l *keyedLookup) ProcessElement1(_ *process.KeyedContext[int], _ int, out *process.Collector[string]) error {
	out.Collect(l.name.Get())
	return nil
}

func (l *keyedLookup) ProcessElement2(_ *process.KeyedContext[int], name string, _ *process.Collector[string]) error {
	l.name.Set(name)
	return nil
}

func (l *keyedLookup) EndInput2(*process.Collector[string]) error {
	l.loaded = true
	return nil
}

func TestKeyedFunctionsChooseTheirInput(t *testing.T) {
	everywhere(t, func(t *testing.T, env *stream.Env) {
		ids, names := env.FromElements(1, 2, 3, 2), env.FromElements("a", "bb", "ccc", "B")
		got := collect(ids.Connect(names).KeyBy(func(id int) int { return id }, func(s string) int { return len(s) }).
			Process(func(rt *process.Runtime) *keyedLookup { return &keyedLookup{name: state.NewValue[string](rt, "name")} }))
		runJob(t, env)
		wantTexts(t, got.texts(), "B", "bb", "bb", "ccc")
	})
}

// Checkpoints and such functions exclude each other: the program is told before it runs if the function's type says what it
// is, else when it begins. A savepoint of a job without checkpoints is refused.
func TestFunctionsThatChooseRefuseCheckpoints(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1).EnableCheckpointing(1e9)
	lookups(env).Process(newLookup).Name("look up").Discard()
	_, err := env.Execute(context.Background(), "known by its type")
	if err == nil || strings.Contains(err.Error(), "subtask") || !strings.Contains(err.Error(), `operator "look up"`) || !strings.Contains(err.Error(), "chooses which input") {
		t.Errorf("error %v", err)
	}

	env = stream.NewEnv().SetParallelism(1).EnableCheckpointing(1e9)
	lookups(env).Process(func(rt *process.Runtime) looking { return newLookup(rt) }).Name("look up").Discard()
	_, err = env.Execute(context.Background(), "known by its value")
	if err == nil || !strings.Contains(err.Error(), `operator "look up"`) || !strings.Contains(err.Error(), "subtask 1") || !strings.Contains(err.Error(), "chooses which input") {
		t.Errorf("error %v", err)
	}
}

func TestFunctionsThatChooseRefuseSavepoints(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	release := make(chan struct{})
	lookups(env).Process(newLookup).Name("look up").ForEach(func(string) { <-release })
	job, err := env.ExecuteAsync(t.Context(), "look up")
	if err != nil {
		t.Fatal(err)
	}
	_, err = job.TriggerSavepoint(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), `operator "look up"`) {
		t.Errorf("error %v", err)
	}
	close(release)
	if _, err := job.Wait(); err != nil {
		t.Error(err)
	}
}
