package stream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend/heap"
	"github.com/flott-dev/flott/stream"
)

func ExampleNewEnv() {
	env := stream.NewEnv(stream.WithMemory(64 << 20)) // bytes for state and frames
	env.SetParallelism(1).SetMaxParallelism(256).SetBufferTimeout(10 * time.Millisecond)
	env.FromElements(1, 2).Print()
	if _, err := env.Execute(context.Background(), "numbers"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1
	// 2
}

func ExampleWithBackends() {
	env := stream.NewEnv(stream.WithBackends(heap.Backend{})).SetParallelism(1)
	env.FromElements("a", "a").KeyBy(func(s string) string { return s }).Count().Print()
	if _, err := env.Execute(context.Background(), "letters"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// (a,1)
	// (a,2)
}

// shape is a closed set of types: what a stream of an interface type can hold.
type shape interface{ area() float64 }

type square struct{ Side float64 }

type circle struct{ Radius float64 }

func (s square) area() float64 { return s.Side * s.Side }
func (c circle) area() float64 { return 3 * c.Radius * c.Radius }

func ExampleWithTypes() {
	env := stream.NewEnv(stream.WithTypes(serde.OneOf[shape](square{}, circle{}))).SetParallelism(1)
	env.FromElements[shape](square{2}, circle{1}).
		Map(shape.area).
		Print()
	if _, err := env.Execute(context.Background(), "areas"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 4
	// 3
}

func ExampleWithIsolation() {
	// Elements are encoded and decoded between the two tasks, as on a cluster.
	env := stream.NewEnv(stream.WithIsolation()).SetParallelism(1)
	env.FromElements([]int{1, 2}, nil).Rebalance().Map(func(xs []int) int { return len(xs) }).DisableChaining().Print()
	if _, err := env.Execute(context.Background(), "lengths"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2
	// 0
}

func ExampleEnv_SetParallelism() {
	env := stream.NewEnv().SetParallelism(3)
	fmt.Println(env.Parallelism())
	// Output: 3
}

func ExampleEnv_DisableOperatorChaining() {
	tasks := func(env *stream.Env) int {
		env.SetParallelism(1)
		env.FromElements(1).Map(func(x int) int { return x }).Discard()
		plan, err := env.Explain()
		if err != nil {
			fmt.Println(err)
		}
		return strings.Count(plan, "\n[")
	}
	fmt.Println(tasks(stream.NewEnv()), tasks(stream.NewEnv().DisableOperatorChaining()))
	// Output: 1 3
}

// greeter greets with what the job's parameter says, in the language of a cached file.
type greeter struct{ greeting, name string }

func newGreeter(rt *process.Runtime) *greeter {
	g := &greeter{}
	g.name, _ = rt.GlobalParameter("name")
	path, err := rt.CachedFile("greetings")
	if err == nil {
		var text []byte
		text, err = os.ReadFile(path)
		g.greeting = string(text)
	}
	if err != nil {
		rt.Report(err)
	}
	return g
}

func (g *greeter) ProcessElement(_ *process.Context, mark string, out *process.Collector[string]) error {
	out.Collect(g.greeting + " " + g.name + mark)
	return nil
}

func ExampleEnv_SetGlobalParameter() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "greetings.txt")
	if err := os.WriteFile(path, []byte("Hello"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	env := stream.NewEnv().SetParallelism(1).SetGlobalParameter("name", "world").RegisterCachedFile(path, "greetings")
	env.FromElements("!", "?").Process(newGreeter).Print()
	if _, err := env.Execute(context.Background(), "greet"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Hello world!
	// Hello world?
}

func ExampleEnv_RegisterCachedFile() {
	file, err := os.CreateTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(file.Name())
	fmt.Fprint(file, "Bonjour")
	if err := file.Close(); err != nil {
		fmt.Println(err)
	}
	env := stream.NewEnv().SetParallelism(1).RegisterCachedFile(file.Name(), "greetings").SetGlobalParameter("name", "monde")
	env.FromElements("!").Process(newGreeter).Print()
	if _, err := env.Execute(context.Background(), "greet"); err != nil {
		fmt.Println(err)
	}
	// Output: Bonjour monde!
}

func ExampleEnv_SetBufferTimeout() {
	// Every element is sent at once: least latency, least throughput.
	env := stream.NewEnv().SetParallelism(1).SetBufferTimeout(0)
	env.FromElements("tick", "tock").Rebalance().ForEach(func(s string) { fmt.Println(s) })
	if _, err := env.Execute(context.Background(), "clock"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// tick
	// tock
}

func ExampleEnv_SetMaxParallelism() {
	// State is kept in 512 key groups, so that the job can grow to 512 subtasks without losing it.
	env := stream.NewEnv().SetParallelism(1).SetMaxParallelism(512)
	env.FromElements("a").KeyBy(func(s string) string { return s }).Count().Print()
	if _, err := env.Execute(context.Background(), "letters"); err != nil {
		fmt.Println(err)
	}
	// Output: (a,1)
}

func ExampleEnv_Recorded() {
	env := stream.NewEnv()
	clock := func() (time.Time, error) { return time.Now(), nil }
	// Every process and every attempt of the job works with the same time.
	first, err := env.Recorded("start", clock)
	if err != nil {
		fmt.Println(err)
	}
	second, err := env.Recorded("start", clock)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(first.Equal(second))
	// Output: true
}

func ExampleEnv_Execute() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("a").Parallelism(0).Print()
	env.FromElements(1, 2).Union(env.FromElements(3)).Name("numbers").Discard()
	_, err := env.Execute(context.Background(), "mistakes")
	// All mistakes come together, each with the file and line of the call.
	for line := range strings.Lines(err.Error()) {
		fmt.Println(strings.Contains(line, "example_core_env_test.go:"))
	}
	// Output:
	// true
	// true
}

func ExampleEnv_ExecuteAsync() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSequence(1, 1000).Map(func(x int64) int64 { return x * x }).Name("squares").Discard()
	job, err := env.ExecuteAsync(context.Background(), "squares")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := job.Wait(); err != nil {
		fmt.Println(err)
	}
	for _, m := range job.Metrics() {
		if m.Name == "squares" {
			fmt.Println(job.Name(), job.Status(), m.RecordsOut)
		}
	}
	// Output: squares FINISHED 1000
}

// bytesSeen adds up the lengths of texts for the client.
type bytesSeen struct{ n *process.LongCounter }

func (b bytesSeen) ProcessElement(_ *process.Context, s string, out *process.Collector[string]) error {
	b.n.Add(int64(len(s)))
	out.Collect(s)
	return nil
}

func ExampleJob_Accumulators() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements("four", "score", "and").Rebalance().
		Process(func(rt *process.Runtime) bytesSeen { return bytesSeen{process.NewLongCounter(rt, "bytes")} }).
		Discard()
	job, err := env.ExecuteAsync(context.Background(), "bytes")
	if err != nil {
		fmt.Println(err)
		return
	}
	<-job.Done() // Accumulators and Metrics may be asked while the job runs, too
	all, err := job.Accumulators()
	fmt.Println(all["bytes"], err)
	// Output: 12 <nil>
}

func ExampleJob_Metrics() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromSequence(1, 100).Filter(func(x int64) bool { return x%4 == 0 }).Name("quarter").Discard()
	job, err := env.ExecuteAsync(context.Background(), "numbers")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := job.Wait(); err != nil {
		fmt.Println(err)
	}
	for _, m := range job.Metrics() {
		if m.Name == "quarter" {
			fmt.Println(m.Parallelism, "subtasks,", m.RecordsOut, "elements out")
		}
	}
	// Output: 2 subtasks, 25 elements out
}

func ExampleJob_Cancel() {
	env := stream.NewEnv().SetParallelism(1)
	started := make(chan struct{})
	env.FromFunc("clock", func(ctx context.Context, out *stream.SourceContext[int]) error {
		close(started)
		<-ctx.Done() // a source without an end
		return ctx.Err()
	}).Discard()
	job, err := env.ExecuteAsync(context.Background(), "endless")
	if err != nil {
		fmt.Println(err)
		return
	}
	<-started
	job.Cancel()
	_, err = job.Wait()
	fmt.Println(errors.Is(err, stream.ErrCanceled), job.Status())
	// Output: true CANCELED
}

func ExampleJob_ShowProgress() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSequence(1, 1000).Discard()
	job, err := env.ExecuteAsync(context.Background(), "numbers")
	if err != nil {
		fmt.Println(err)
		return
	}
	var terminal bytes.Buffer // os.Stderr in a program
	job.ShowProgress(&terminal)
	if _, err := job.Wait(); err != nil {
		fmt.Println(err)
	}
	// Output:
}

func ExampleEnv_ExecutionPlan() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("a").Map(strings.ToUpper).Name("upper").Discard()
	text, err := env.ExecutionPlan()
	if err != nil {
		fmt.Println(err)
		return
	}
	var plan struct {
		Nodes []struct {
			Type        string
			Parallelism int
		}
	}
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		fmt.Println(err)
	}
	for _, n := range plan.Nodes {
		fmt.Println(n.Type, n.Parallelism)
	}
	// Output:
	// Source: Collection Source 1
	// upper 1
	// Sink: Discard 1
}

func ExampleEnv_Explain() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements("a").KeyBy(func(s string) string { return s }).Count().Name("letters").Discard()
	plan, err := env.Explain()
	if err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(plan) {
		if strings.HasPrefix(line, "[") { // the tasks
			fmt.Print(line)
		}
	}
	// Output:
	// [1] Source: Collection Source
	// [2] letters -> Sink: Discard
}

func ExampleEnv_Simulate() {
	simulate := func(seed uint64) string {
		env := stream.NewEnv().SetParallelism(3)
		env.FromSequence(1, 1000).KeyBy(func(x int64) int64 { return x % 10 }).Count().Discard()
		trace, err := env.Simulate(context.Background(), "tens", seed)
		if err != nil {
			fmt.Println(err)
		}
		return trace
	}
	first, again, other := simulate(1), simulate(1), simulate(2)
	fmt.Println(first == again, first == other) // the same seed, the same run
	// Output: true false
}
