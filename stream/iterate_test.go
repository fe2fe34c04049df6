package stream_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/operator/iterate"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// walk is a number on its way through the Collatz loop.
type walk struct {
	Start, Now int64
	Steps      int
}

func collatz(w walk) walk {
	w.Steps++
	if w.Now%2 == 0 {
		w.Now /= 2
	} else {
		w.Now = 3*w.Now + 1
	}
	return w
}

func collatzSteps(n int64) (steps int) {
	for w := (walk{Now: n}); w.Now != 1; {
		w = collatz(w)
		steps++
	}
	return steps
}

func arrived(w walk) bool { return w.Now == 1 }
func going(w walk) bool   { return w.Now != 1 }

// TestCollatzReachesOneDespiteAStall is trap B063: nothing is lost because a subtask is slow.
func TestCollatzReachesOneDespiteAStall(t *testing.T) {
	for _, p := range []int{1, 2, 4} {
		env := stream.NewEnv().SetParallelism(p)
		var once sync.Once
		stalled := func(w walk) walk {
			if w.Start == 27 && w.Steps == 50 {
				once.Do(func() { time.Sleep(200 * time.Millisecond) })
			}
			return collatz(w)
		}
		it := stream.Iterate(env.FromSequence(1, 1000).Map(func(n int64) walk { return walk{Start: n, Now: n} }))
		body := it.Rebalance().Filter(going).Map(stalled)
		it.CloseWith(body)
		var g gather[walk]
		it.Filter(arrived).ForEach(g.add)
		execute(t, env)
		checkWalks(t, g.xs, 1000)
	}
}

func checkWalks(t *testing.T, ws []walk, n int) {
	t.Helper()
	if len(ws) != n {
		t.Errorf("%d of %d numbers have arrived", len(ws), n)
	}
	for _, w := range ws {
		if w.Steps != collatzSteps(w.Start) {
			t.Errorf("%d arrived after %d steps, not %d", w.Start, w.Steps, collatzSteps(w.Start))
		}
	}
}

// TestAmplifyingLoopDoesNotBlockItself is trap B063: the body emits 2 elements per element for 15 rounds.
func TestAmplifyingLoopDoesNotBlockItself(t *testing.T) {
	dir := spillInto(t)
	env := stream.NewEnv().SetParallelism(2)
	it := stream.Iterate(env.FromElements(0, 0, 0)).Parallelism(2).FeedbackMemory(64 << 10)
	body := it.FlatMap(func(round int, emit func(int)) {
		if round < 15 {
			emit(round + 1)
			emit(round + 1)
		}
	}).Rebalance()
	it.CloseWith(body)
	var mu sync.Mutex
	got := map[int]int{}
	it.ForEach(func(round int) {
		mu.Lock()
		defer mu.Unlock()
		got[round]++
	})
	execute(t, env)
	for round := range 16 {
		if got[round] != 3<<round {
			t.Errorf("%d elements in round %d, want %d", got[round], round, 3<<round)
		}
	}
	checkNoSpill(t, dir)
}

// spillInto makes a folder of its own for spill files.
func spillInto(t *testing.T) string {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

func checkNoSpill(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		t.Errorf("%s was left behind", f.Name())
	}
}

// TestSpillFilesAreRemovedWhateverTheEnd ends loops that grow without bound.
func TestSpillFilesAreRemovedWhateverTheEnd(t *testing.T) {
	for _, end := range []string{"cancel", "failure"} {
		dir := spillInto(t)
		ctx, cancel := context.WithCancel(context.Background())
		env := stream.NewEnv().SetParallelism(2)
		it := stream.Iterate(env.FromElements(1)).Parallelism(2).FeedbackMemory(0)
		spilled := false
		it.CloseWith(it.TryFlatMap(func(_ context.Context, x int, emit func(int)) error {
			emit(x)
			emit(x)
			return nil
		}).Rebalance())
		it.Global().TryMap(func(_ context.Context, x int) (int, error) {
			if files, _ := os.ReadDir(dir); len(files) == 2 { // both subtasks have spilled
				spilled = true
				if end == "failure" {
					return 0, errors.New("told to")
				}
				cancel()
			}
			return x, nil
		}).Parallelism(1).Discard()
		if _, err := env.Execute(ctx, end); err == nil || !spilled {
			t.Errorf("%s: %v, spilled: %v", end, err, spilled)
		}
		cancel()
		checkNoSpill(t, dir)
	}
}

// TestEveryLoopEndsWhenItIsEmpty runs many loops under many schedules: whatever the body drops or adds, each ends, and
// not before its last element has.
func TestEveryLoopEndsWhenItIsEmpty(t *testing.T) {
	type build func(env *stream.Env, s *stream.Stream[int], out func(int))
	passes := map[string]int{ // of the head, for 1, 2, 3, 10 and 11
		"empty": 0, "filter": 27, "amplify over an exchange": 1 + 3 + 7 + 63 + 63, "two hops of other parallelism": 27,
		"union as feedback": 2 + 3 + 4 + 6 + 7, "a stream joins the body": 27 + 15, "a loop in a loop": 2 + 3 + 4 + 11 + 12,
	}
	loops := map[string]build{
		"empty": func(_ *stream.Env, s *stream.Stream[int], _ func(int)) {
			it := stream.Iterate(s.Filter(func(int) bool { return false }))
			it.CloseWith(it.Map(func(x int) int { return x }))
		},
		"filter": func(_ *stream.Env, s *stream.Stream[int], out func(int)) {
			it := stream.Iterate(s)
			it.CloseWith(it.Map(func(x int) int { return x - 1 }).Filter(func(x int) bool { return x > 0 }))
			it.ForEach(out)
		},
		"amplify over an exchange": func(_ *stream.Env, s *stream.Stream[int], out func(int)) {
			it := stream.Iterate(s).Parallelism(3)
			it.CloseWith(it.Shuffle().FlatMap(func(x int, emit func(int)) {
				if x > 6 {
					x = 6
				}
				for range 2 {
					if x > 1 {
						emit(x - 1)
					}
				}
			}).KeyBy(func(x int) int { return x }).Stream())
			it.ForEach(out)
		},
		"two hops of other parallelism": func(_ *stream.Env, s *stream.Stream[int], out func(int)) {
			it := stream.Iterate(s.Rebalance()).Parallelism(2)
			down := it.Map(func(x int) int { return x - 1 }).Parallelism(3).Rebalance().
				Filter(func(x int) bool { return x > 0 }).Parallelism(1)
			it.CloseWith(down)
			it.ForEach(out)
		},
		"union as feedback": func(_ *stream.Env, s *stream.Stream[int], out func(int)) {
			it := stream.Iterate(s).Parallelism(2)
			odd := it.Filter(func(x int) bool { return x%2 == 1 }).Map(func(x int) int { return x - 1 })
			even := it.Filter(func(x int) bool { return x%2 == 0 && x > 0 }).Map(func(x int) int { return x / 2 })
			it.CloseWith(odd.Union(even))
			it.ForEach(out)
		},
		"a stream joins the body": func(env *stream.Env, s *stream.Stream[int], out func(int)) {
			it := stream.Iterate(s).Parallelism(2)
			late := env.FromElements(5, 6, 7).Map(func(x int) int { return x }).DisableChaining()
			body := it.Union(late).Map(func(x int) int { return x - 1 }).Filter(func(x int) bool { return x > 0 })
			it.CloseWith(body)
			it.ForEach(out)
		},
		"a loop in a loop": func(_ *stream.Env, s *stream.Stream[int], out func(int)) {
			outer := stream.Iterate(s).Parallelism(2)
			inner := stream.Iterate(outer.Filter(func(x int) bool { return x > 0 }).Map(func(x int) int { return x * 10 })).Parallelism(2)
			inner.CloseWith(inner.Filter(func(x int) bool { return x%10 != 5 }).Map(func(x int) int { return x - 1 }).Shuffle())
			outer.CloseWith(inner.Filter(func(x int) bool { return x%10 == 5 }).Map(func(x int) int { return x / 10 }).Rebalance())
			outer.ForEach(out)
		},
	}
	for name, b := range loops {
		t.Run(name, func(t *testing.T) {
			var want []int
			for seed := range uint64(60) {
				env := stream.NewEnv().SetParallelism(2)
				if seed%2 == 1 {
					env.SetBufferTimeout(0)
				}
				var got []int
				b(env, env.FromElements(1, 2, 3, 10, 11), func(x int) { got = append(got, x) })
				if _, err := env.Simulate(context.Background(), name, seed); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				slices.Sort(got)
				if seed == 0 {
					want = got
					if len(got) != passes[name] {
						t.Fatalf("%d passes, want %d: %v", len(got), passes[name], got)
					}
				} else if !slices.Equal(got, want) {
					t.Fatalf("seed %d: got %v, seed 0: %v", seed, got, want)
				}
			}
		})
	}
}

func TestFilterLoopCountsDown(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	it := stream.Iterate(env.FromElements(3, 1))
	it.CloseWith(it.Map(func(x int) int { return x - 1 }).Filter(func(x int) bool { return x > 0 }))
	var g gather[int]
	it.ForEach(g.add)
	execute(t, env)
	slices.Sort(g.xs)
	if !slices.Equal(g.xs, []int{1, 1, 2, 3}) {
		t.Errorf("got %v", g.xs)
	}
}

func TestFeedbackOfAnotherType(t *testing.T) {
	for seed := range uint64(30) {
		env := stream.NewEnv().SetParallelism(2)
		it := stream.Iterate(env.FromElements(1, 2, 3)).WithFeedbackType[string]()
		body := it.FlatMap(
			func(n int, emit func(string)) { emit(strings.Repeat("x", n)) },
			func(s string, emit func(string)) { emit(s[1:]) },
		).Parallelism(2)
		it.CloseWith(body.Filter(func(s string) bool { return s != "" }).Rebalance())
		var got []string
		body.ForEach(func(s string) { got = append(got, s) })
		if _, err := env.Simulate(context.Background(), "types", seed); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if want := []string{"", "", "", "x", "x", "x", "xx", "xx", "xxx"}; !slices.Equal(got, want) {
			t.Fatalf("got %q", got)
		}
	}
}

// lastWords emits its watermarks, and one element that goes round, at the last one.
type lastWords struct {
	process.NoTimers[int, string]
	seen int
}

func (l *lastWords) ProcessElement(ctx *process.KeyedContext[int], x int, out *process.Collector[string]) error {
	l.seen++
	ctx.RegisterTimer(process.EventTime, 1_000_000)
	out.Collect(fmt.Sprint("element ", x))
	return nil
}

func (l *lastWords) OnTimer(_ *process.KeyedContext[int], _ process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprint("timer after ", l.seen))
	return nil
}

// TestLastWatermarkWaitsForTheLoop: timers of the body see everything that goes round, and what they emit goes round,
// too.
func TestLastWatermarkWaitsForTheLoop(t *testing.T) {
	for seed := range uint64(30) {
		env := stream.NewEnv().SetParallelism(1)
		it := stream.Iterate(env.FromElements(5))
		words := it.KeyBy(func(int) int { return 0 }).Process(func(*process.Runtime) *lastWords { return &lastWords{} })
		back := words.FlatMap(func(w string, emit func(int)) {
			var x int
			if _, err := fmt.Sscanf(w, "element %d", &x); err == nil && x > 1 {
				emit(x - 1)
			} else if strings.HasPrefix(w, "timer") {
				emit(-1)
			}
		})
		it.CloseWith(back)
		var got []string
		words.ForEach(func(w string) { got = append(got, w) })
		if _, err := env.Simulate(context.Background(), "last words", seed); err != nil {
			t.Fatal(err)
		}
		want := []string{"element 5", "element 4", "element 3", "element 2", "element 1", "timer after 5", "element -1"}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %q", seed, got)
		}
	}
}

// passes notes the watermark at each pass of an element.
type passes struct{ note func(string) }

func (p passes) ProcessElement(ctx *process.Context, r reading, out *process.Collector[reading]) error {
	p.note(fmt.Sprintf("pass %d of %d at %d, watermark %d", r.Val, r.At, ctx.TimestampMillis(), max(ctx.Watermark(), 0)))
	r.Val++
	out.Collect(r)
	return nil
}

// TestWatermarksPassTheLoop: feedback carries none and holds none back; elements keep their timestamps.
func TestWatermarksPassTheLoop(t *testing.T) {
	for seed := range uint64(20) {
		env := stream.NewEnv().SetParallelism(1)
		it := stream.Iterate(env.FromElements(reading{At: 1000}, reading{At: 2000}).
			AssignTimestampsAndWatermarks(watermark.Punctuated(func(_ reading, ms int64) (int64, bool) { return ms, true }).
				WithTimestamps(reading.Time)))
		var got []string
		body := it.Rebalance().Process(func(*process.Runtime) passes { return passes{func(s string) { got = append(got, s) }} })
		it.CloseWith(body.Filter(func(r reading) bool { return r.Val < 2 }))
		if _, err := env.Simulate(context.Background(), "passes", seed); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		want := []string{
			"pass 0 of 1000 at 1000, watermark 0", "pass 0 of 2000 at 2000, watermark 1000",
			"pass 1 of 1000 at 1000, watermark 2000", "pass 1 of 2000 at 2000, watermark 2000",
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %q", seed, got)
		}
	}
}

func TestMaximumWaitEndsTheLoopAndReportsWhatIsLost(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	release := make(chan struct{})
	it := stream.Iterate(env.FromElements(1), 20*time.Millisecond)
	body := it.Rebalance().Map(func(x int) int {
		<-release // far longer than the wait
		return x
	})
	it.CloseWith(body)
	// The loop's end passes the head before the stuck element does.
	ended := it.Process(func(*process.Runtime) atEnd { return atEnd{func() { close(release) }} })
	ended.Discard()
	r := execute(t, env)
	if r.Accumulators[iterate.Dropped] != int64(1) {
		t.Errorf("accumulators %v", r.Accumulators)
	}
}

// atEnd calls a function at the end of its input.
type atEnd struct{ f func() }

func (atEnd) ProcessElement(*process.Context, int, *process.Collector[int]) error { return nil }
func (a atEnd) Finish(*process.Collector[int]) error {
	a.f()
	return nil
}

// TestLoopWaitsForCallsUnderWay: what an asynchronous function holds is in the loop.
func TestLoopWaitsForCallsUnderWay(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		env := stream.NewEnv().SetParallelism(2)
		it := stream.Iterate(env.FromElements(3, 5, 1)).Parallelism(2)
		call := func(ctx context.Context, x int) ([]int, error) {
			select {
			case <-time.After(time.Duration(x) * time.Millisecond):
				return []int{x - 1}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		options := stream.AsyncOptions[int, int]{Timeout: time.Minute}
		var called *stream.Stream[int]
		if busy := it.Filter(func(x int) bool { return x > 0 }).Rebalance(); ordered {
			called = busy.AsyncOrdered(call, options)
		} else {
			called = busy.AsyncUnordered(call, options)
		}
		it.CloseWith(called)
		var g gather[int]
		it.ForEach(g.add)
		execute(t, env)
		slices.Sort(g.xs)
		if want := []int{0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5}; !slices.Equal(g.xs, want) {
			t.Errorf("ordered %v: got %v", ordered, g.xs)
		}
	}
}

func TestPlansShowLoops(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	it := stream.Iterate(env.FromElements(3))
	it.CloseWith(it.Map(func(x int) int { return x - 1 }).Filter(func(x int) bool { return x > 0 }))
	text, err := env.Explain()
	if err != nil {
		t.Fatal(err)
	}
	json, err := env.ExecutionPlan()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Iteration Head", "Iteration Tail", "feedback"} {
		if !strings.Contains(text, want) || !strings.Contains(json, want) {
			t.Errorf("%q is not shown in\n%s\n%s", want, text, json)
		}
	}
	execute(t, env)
}

// TestFeedbackFindsItsKey: without a partitioning of its own, feedback goes to the subtask that the stream's elements of
// its key go to.
func TestFeedbackFindsItsKey(t *testing.T) {
	type ball struct{ Key, Round, Subtask int }
	env := stream.NewEnv().SetParallelism(4)
	balls := make([]ball, 100)
	for i := range balls {
		balls[i].Key, balls[i].Subtask = i, -1
	}
	it := stream.Iterate(env.FromSlice(balls).KeyBy(func(b ball) int { return b.Key }).Stream()).Parallelism(4)
	body := it.Process(func(rt *process.Runtime) placer[ball] {
		return placer[ball]{rt.Info().Subtask, func(b ball, subtask int) ball {
			if b.Subtask >= 0 && b.Subtask != subtask {
				t.Errorf("key %d went from subtask %d to %d", b.Key, b.Subtask, subtask)
			}
			b.Round, b.Subtask = b.Round+1, subtask
			return b
		}}
	})
	it.CloseWith(body.Map(func(b ball) ball { return b }).Parallelism(3).Filter(func(b ball) bool { return b.Round < 5 }))
	execute(t, env)
}

// placer tells a function its subtask.
type placer[T any] struct {
	subtask int
	f       func(x T, subtask int) T
}

func (p placer[T]) ProcessElement(_ *process.Context, x T, out *process.Collector[T]) error {
	out.Collect(p.f(x, p.subtask))
	return nil
}

func TestLoopWithoutEndIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	env := stream.NewEnv().SetParallelism(2)
	it := stream.Iterate(env.FromElements(1, 2, 3))
	it.CloseWith(it.Map(func(x int) int { return x + 1 }))
	it.ForEach(func(x int) {
		if x == 1000 {
			cancel()
		}
	})
	if _, err := env.Execute(ctx, "endless"); err == nil {
		t.Error("the job has ended by itself")
	}
}

func TestIterationMistakesNameTheCall(t *testing.T) {
	for want, build := range map[string]func(env *stream.Env){
		"close it": func(env *stream.Env) { stream.Iterate(env.FromElements(1)).Discard() },
		"fed by nothing": func(env *stream.Env) {
			it := stream.Iterate(env.FromElements(1))
			it.CloseWith(env.FromElements(2))
		},
		"unite what is fed back": func(env *stream.Env) {
			it := stream.Iterate(env.FromElements(1))
			it.CloseWith(it.Map(func(x int) int { return x }))
			it.CloseWith(it.Map(func(x int) int { return x }))
		},
		"less than a millisecond": func(env *stream.Env) {
			it := stream.Iterate(env.FromElements(1), time.Microsecond)
			it.CloseWith(it.Map(func(x int) int { return x }))
		},
		"2 maximum waits": func(env *stream.Env) {
			it := stream.Iterate(env.FromElements(1), time.Second, time.Second)
			it.CloseWith(it.Map(func(x int) int { return x }))
		},
		"must not be negative": func(env *stream.Env) {
			it := stream.Iterate(env.FromElements(1)).FeedbackMemory(-1)
			it.CloseWith(it.Map(func(x int) int { return x }))
		},
	} {
		env := stream.NewEnv()
		build(env)
		executeFailing(t, env, "iterate_test.go:", want)
	}
}

func BenchmarkIterate(b *testing.B) {
	const n, rounds = 1 << 16, 16
	run(b, n*rounds, func(env *stream.Env) {
		it := stream.Iterate(env.FromParallelSlice(make([]int, n)))
		it.CloseWith(it.Map(func(x int) int { return x + 1 }).Filter(func(x int) bool { return x < rounds }))
	})
}

func ExampleIterate() {
	env := stream.NewEnv().SetParallelism(1)
	loop := stream.Iterate(env.FromElements(6, 7))
	halved := loop.Map(func(x int) int { return x / 2 })
	loop.CloseWith(halved.Filter(func(x int) bool { return x > 1 })) // goes round again
	halved.Filter(func(x int) bool { return x <= 1 }).Print()        // leaves the loop
	if _, err := env.Execute(context.Background(), "halves"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1
	// 1
}

func ExampleIterativeStream_WithFeedbackType() {
	env := stream.NewEnv().SetParallelism(1)
	loop := stream.Iterate(env.FromElements(3)).WithFeedbackType[string]()
	words := loop.Map(
		func(n int) string { return strings.Repeat("a", n) },
		func(s string) string { return s[1:] },
	)
	loop.CloseWith(words.Filter(func(s string) bool { return len(s) > 1 }))
	words.Print()
	if _, err := env.Execute(context.Background(), "words"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// aaa
	// aa
	// a
}
