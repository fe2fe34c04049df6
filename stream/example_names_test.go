package stream_test

import (
	"context"
	"fmt"
	"iter"
	"log"

	"github.com/flott-dev/flott/stream"
)

// Sources under the names that Flink's users look for.
func ExampleEnv_FromCollection() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromCollection([]string{"a", "b"}).Print()
	env.GenerateSequence(1, 3).Map(func(x int64) string { return fmt.Sprint(x) }).Print()
	env.FromParallelCollection(func(subtask, parallelism int) iter.Seq[string] {
		return func(yield func(string) bool) { yield(fmt.Sprintf("part %d of %d", subtask+1, parallelism)) }
	}).Print()
	if _, err := env.Execute(context.Background(), "names"); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// a
	// b
	// 1
	// 2
	// 3
	// part 1 of 1
}
