package stream_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/stream"
)

func ExampleEnv_FromElements() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("a", "b").Print()
	if _, err := env.Execute(context.Background(), "letters"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// a
	// b
}

func ExampleEnv_FromSlice() {
	primes := []int{2, 3, 5}
	env := stream.NewEnv().SetParallelism(1)
	env.FromSlice(primes).Print()
	if _, err := env.Execute(context.Background(), "primes"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2
	// 3
	// 5
}

func ExampleEnv_FromParallelSlice() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromParallelSlice([]string{"a", "b", "c", "d"}).Print()
	if _, err := env.Execute(context.Background(), "letters"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 1> a
	// 1> b
	// 2> c
	// 2> d
}

func ExampleEnv_FromSeq() {
	stock := map[string]int{"apples": 3}
	env := stream.NewEnv().SetParallelism(1)
	env.FromSeq(maps.Keys(stock)).Print()
	if _, err := env.Execute(context.Background(), "stock"); err != nil {
		fmt.Println(err)
	}
	// Output: apples
}

func ExampleEnv_FromParallelSeq() {
	// Subtask i of n yields i, i+n, i+2n ...
	env := stream.NewEnv().SetParallelism(2)
	env.FromParallelSeq(func(subtask, parallelism int) iter.Seq[int] {
		return func(yield func(int) bool) {
			for i := subtask; i < 6 && yield(i); i += parallelism {
			}
		}
	}).Print()
	if _, err := env.Execute(context.Background(), "numbers"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 1> 0
	// 2> 1
	// 1> 2
	// 2> 3
	// 1> 4
	// 2> 5
}

func ExampleEnv_FromSequence() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromSequence(8, 10).Print()
	if _, err := env.Execute(context.Background(), "numbers"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 8
	// 9
	// 10
}

func ExampleEnv_FromSource() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	if err := os.WriteFile(filepath.Join(folder, "poem.txt"), []byte("roses are red\nviolets are blue\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	env := stream.NewEnv().SetParallelism(1)
	env.FromSource(file.Lines(folder), "poems").Print()
	if _, err := env.Execute(context.Background(), "poems"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// roses are red
	// violets are blue
}

func ExampleStream_ForEach() {
	env := stream.NewEnv().SetParallelism(1)
	var sum int64 // one subtask: no lock needed
	env.FromSequence(1, 100).ForEach(func(x int64) { sum += x })
	if _, err := env.Execute(context.Background(), "sum"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(sum)
	// Output: 5050
}

func ExampleStream_AddSink() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1, 2, 3).
		AddSink(func(_ context.Context, x int, _ connector.ElementContext) error {
			if x == 3 {
				return fmt.Errorf("no room for %d", x) // fails the job
			}
			fmt.Println(x)
			return nil
		}).Name("shelf")
	_, err := env.Execute(context.Background(), "store")
	fmt.Println(err != nil && strings.Contains(err.Error(), "no room for 3"))
	// Output:
	// 1
	// 2
	// true
}

// board is a sink that shows all elements of a subtask when its input has ended.
type board struct{}

func (board) Writer(connector.WriterContext) (connector.Writer[string], error) {
	return &boardWriter{}, nil
}

type boardWriter struct{ lines []string }

func (w *boardWriter) Write(line string, _ connector.ElementContext) error {
	w.lines = append(w.lines, line)
	return nil
}

func (w *boardWriter) Flush(endOfInput bool) error {
	if endOfInput {
		fmt.Println(strings.Join(slices.Sorted(slices.Values(w.lines)), ", "))
	}
	return nil
}

func (w *boardWriter) Close() error { return nil }

func ExampleStream_SinkTo() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("pear", "apple", "cherry").SinkTo(board{}).Name("board")
	if _, err := env.Execute(context.Background(), "fruit"); err != nil {
		fmt.Println(err)
	}
	// Output: apple, cherry, pear
}

func ExampleStream_Discard() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("only", "effects", "count").
		Update(func(s *string) { fmt.Println(*s) }).
		Discard()
	if _, err := env.Execute(context.Background(), "effects"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// only
	// effects
	// count
}

func ExampleStream_Print() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromParallelSlice([]string{"a", "b"}).Print()
	if _, err := env.Execute(context.Background(), "letters"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 1> a
	// 2> b
}

func ExampleStream_PrintToErr() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("something is wrong").PrintToErr()
	if _, err := env.Execute(context.Background(), "warnings"); err != nil {
		fmt.Println(err)
	}
	// Output:
}

func ExampleStream_PrintAs() {
	env := stream.NewEnv().SetParallelism(2)
	env.FromParallelSlice([]string{"a", "b"}).PrintAs("letter")
	env.FromElements(1).PrintAs("number").Parallelism(1)
	if _, err := env.Execute(context.Background(), "all sorts"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// letter:1> a
	// letter:2> b
	// number> 1
}

func ExampleStream_PrintTo() {
	var page strings.Builder
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("a", "b").PrintTo(&page)
	if _, err := env.Execute(context.Background(), "letters"); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%q\n", page.String())
	// Output: "a\nb\n"
}

func ExampleSink() {
	env := stream.NewEnv()
	env.FromElements("b", "a").
		ForEach(func(s string) { fmt.Println(s) }).
		Name("letters").Description("writes letters").UID("letters-sink").Parallelism(1)
	if _, err := env.Execute(context.Background(), "letters"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// b
	// a
}
