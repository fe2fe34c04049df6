package stream_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

func ExampleStream_Map() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1, 2, 3).
		Map(func(x int) string { return strings.Repeat("*", x) }).
		Print()
	if _, err := env.Execute(context.Background(), "bars"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// *
	// **
	// ***
}

func ExampleStream_MapPtr() {
	type order struct {
		ID, Customer, Product string
		Price, Amount         int
	}
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(order{ID: "o1", Price: 5, Amount: 3}, order{ID: "o2", Price: 7, Amount: 1}).
		MapPtr(func(o *order) string { return fmt.Sprintf("%s: %d", o.ID, o.Price*o.Amount) }).
		Print()
	if _, err := env.Execute(context.Background(), "totals"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// o1: 15
	// o2: 7
}

func ExampleStream_TryMap() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("1", "2", "three").
		TryMap(func(_ context.Context, s string) (int, error) { return strconv.Atoi(s) }).Name("parse").
		Discard()
	_, err := env.Execute(context.Background(), "numbers")
	fmt.Println(errors.Is(err, strconv.ErrSyntax), strings.Contains(err.Error(), `operator "parse"`))
	// Output: true true
}

func ExampleStream_Filter() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSequence(1, 6).
		Filter(func(x int64) bool { return x%2 == 0 }).
		Print()
	if _, err := env.Execute(context.Background(), "even"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2
	// 4
	// 6
}

func ExampleStream_Update() {
	type account struct {
		Name    string
		Balance int
	}
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(account{"ann", 100}, account{"bob", 20}).
		Update(func(a *account) { a.Balance += a.Balance / 10 }).
		Print()
	if _, err := env.Execute(context.Background(), "interest"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {ann 110}
	// {bob 22}
}

func ExampleStream_FlatMap() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("a=1", "nothing", "b=2").
		FlatMap(func(s string, emit func(string)) {
			if key, value, ok := strings.Cut(s, "="); ok {
				emit(key)
				emit(value)
			}
		}).
		Print()
	if _, err := env.Execute(context.Background(), "parts"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// a
	// 1
	// b
	// 2
}

func ExampleStream_FlatMapSeq() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("to be", "or not").FlatMapSeq(strings.FieldsSeq).Print()
	if _, err := env.Execute(context.Background(), "words"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// to
	// be
	// or
	// not
}

func ExampleStream_TryFlatMap() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("1 2", "3").
		TryFlatMap(func(_ context.Context, line string, emit func(int)) error {
			for word := range strings.FieldsSeq(line) {
				n, err := strconv.Atoi(word)
				if err != nil {
					return err // fails the task
				}
				emit(n)
			}
			return nil
		}).
		Print()
	if _, err := env.Execute(context.Background(), "numbers"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1
	// 2
	// 3
}

// measured puts elements beside their lengths. Its result holds T in another type, which a method of Stream can't give.
func measured[T any](s *stream.Stream[T]) *stream.Stream[stream.KeyValue[T, int]] {
	return s.Map(func(x T) stream.KeyValue[T, int] {
		return stream.KeyValue[T, int]{Key: x, Value: len(fmt.Sprint(x))}
	})
}

func ExampleStream_Then() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("gold", "silver").
		Then(measured).
		Print()
	if _, err := env.Execute(context.Background(), "lengths"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// (gold,4)
	// (silver,6)
}

func ExampleStream_Union() {
	env := stream.NewEnv().SetParallelism(1)
	cats, dogs := env.FromElements("Tom"), env.FromElements("Rex", "Fido")
	cats.Union(dogs).ForEach(func(name string) { fmt.Println(name) })
	if _, err := env.Execute(context.Background(), "pets"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// Tom
	// Rex
	// Fido
}

// checker sends what is not a number to a side output.
type checker struct{ bad process.OutputTag[string] }

func (c checker) ProcessElement(ctx *process.Context, s string, out *process.Collector[int]) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		ctx.Emit(c.bad, s)
		return nil
	}
	out.Collect(n)
	return nil
}

func ExampleStream_SideOutput() {
	bad := process.NewOutputTag[string]("bad")
	env := stream.NewEnv().SetParallelism(1)
	numbers := env.FromElements("1", "two", "3").
		Process(func(*process.Runtime) checker { return checker{bad} })
	numbers.PrintAs("number")
	numbers.SideOutput(bad).PrintAs("no number")
	if _, err := env.Execute(context.Background(), "check"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// number> 1
	// number> 3
	// no number> two
}

func ExampleStream_Broadcast() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements("news").Broadcast().Map(strings.ToUpper).Print()
	if _, err := env.Execute(context.Background(), "broadcast"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 1> NEWS
	// 2> NEWS
}

func ExampleStream_Shuffle() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements("a", "b", "c").Shuffle().
		Map(strings.ToUpper). // in a random one of two subtasks
		ForEach(func(s string) { fmt.Println(s) })
	if _, err := env.Execute(context.Background(), "shuffle"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// A
	// B
	// C
}

func ExampleStream_ShuffleSeeded() {
	// Which subtask gets which element is the same in every run of this program.
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements("a", "b", "c").ShuffleSeeded(42).
		Map(strings.ToUpper).
		ForEach(func(s string) { fmt.Println(s) })
	if _, err := env.Execute(context.Background(), "shuffle"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// A
	// B
	// C
}

func ExampleStream_Forward() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromParallelSeq(func(subtask, _ int) iter.Seq[string] {
		return func(yield func(string) bool) { yield(fmt.Sprint("from subtask ", subtask+1)) }
	}).Forward().Print()
	if _, err := env.Execute(context.Background(), "forward"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 1> from subtask 1
	// 2> from subtask 2
}

func ExampleStream_Rebalance() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements("a", "b", "c", "d").Rebalance().
		Process(func(*process.Runtime) *counter { return &counter{} }). // how many elements a subtask gets
		ForEach(func(n int) { fmt.Println(n) })
	if _, err := env.Execute(context.Background(), "deal"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 2
	// 2
}

// counter counts the elements of its subtask.
type counter struct{ n int }

func (c *counter) ProcessElement(*process.Context, string, *process.Collector[int]) error {
	c.n++
	return nil
}

// Finish emits at the end of the input.
func (c *counter) Finish(out *process.Collector[int]) error {
	out.Collect(c.n)
	return nil
}

func ExampleStream_Rescale() {
	// Each of the two source subtasks feeds two of the four that follow.
	env := stream.NewEnv().SetParallelism(2)
	env.FromParallelSeq(func(subtask, _ int) iter.Seq[string] {
		return func(yield func(string) bool) {
			_ = yield(fmt.Sprint("first of ", subtask+1)) && yield(fmt.Sprint("second of ", subtask+1))
		}
	}).Rescale().
		Process(func(*process.Runtime) *counter { return &counter{} }).Parallelism(4).
		ForEach(func(n int) { fmt.Println(n) })
	if _, err := env.Execute(context.Background(), "rescale"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 1
	// 1
	// 1
	// 1
}

func ExampleStream_Global() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromSequence(1, 3).Global().Print()
	if _, err := env.Execute(context.Background(), "global"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 1> 1
	// 1> 2
	// 1> 3
}

func ExampleStream_PartitionCustom() {
	env := stream.NewEnv().SetParallelism(2)
	byLength := func(length, channels int) int { return length % channels }
	env.FromElements("a", "bb", "ccc").
		PartitionCustom(byLength, func(s string) int { return len(s) }).
		Print()
	if _, err := env.Execute(context.Background(), "partition"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 2> a
	// 1> bb
	// 2> ccc
}

func ExampleStream_Name() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1, 2).
		Map(func(x int) int { return 10 / (x - 1) }).Name("divide").Description("divides ten by what is left").
		Discard()
	_, err := env.Execute(context.Background(), "quotients")
	fmt.Println(strings.Contains(err.Error(), `operator "divide"`))
	// Output: true
}

func ExampleStream_UID() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("a", "b", "a").
		KeyBy(func(s string) string { return s }).
		Count().UID("letters"). // its state is found by this name, whatever else changes
		Print()
	if _, err := env.Execute(context.Background(), "letters"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// (a,1)
	// (b,1)
	// (a,2)
}

func ExampleStream_Parallelism() {
	env := stream.NewEnv().SetParallelism(4)
	env.FromElements("a", "b").
		Map(strings.ToUpper).Parallelism(1).
		Print().Parallelism(1)
	if _, err := env.Execute(context.Background(), "upper"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// A
	// B
}

func ExampleStream_MaxParallelism() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements("a").
		KeyBy(func(s string) string { return s }).
		Count().MaxParallelism(64). // this state can be spread over 64 subtasks one day, not more
		Parallelism(1).
		ForEach(func(c stream.KeyValue[string, int64]) { fmt.Println(c) })
	if _, err := env.Execute(context.Background(), "count"); err != nil {
		fmt.Println(err)
	}
	// Output: (a,1)
}

func ExampleStream_ForceNonParallel() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromElements("a", "b", "c").Rebalance().
		Process(func(*process.Runtime) *counter { return &counter{} }).ForceNonParallel(). // counts them all
		ForEach(func(n int) { fmt.Println(n) })
	if _, err := env.Execute(context.Background(), "count"); err != nil {
		fmt.Println(err)
	}
	// Output: 3
}

func ExampleStream_StartNewChain() {
	// Parsing and storing run in two tasks, at the same time; without StartNewChain they are one.
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(" 1", "2 ").
		Map(strings.TrimSpace).Name("parse").
		Map(strings.ToUpper).Name("store").StartNewChain().SlotSharingGroup("storage").BufferTimeout(10 * time.Millisecond).
		Print()
	if _, err := env.Execute(context.Background(), "chains"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1
	// 2
}

func ExampleStream_DisableChaining() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(3, 4).
		Map(func(x int) int { return x * x }).DisableChaining(). // a task of its own
		Print()
	if _, err := env.Execute(context.Background(), "squares"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 9
	// 16
}
