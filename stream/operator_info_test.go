package stream_test

import (
	"fmt"

	"github.com/flott-dev/flott/stream"
)

func ExampleStream_Operator() {
	env := stream.NewEnv().SetParallelism(4)
	squares := env.FromSequence(1, 10).Map(func(x int64) int64 { return x * x }).Name("squares").UID("sq").Parallelism(2)
	o := squares.Operator()
	fmt.Println(o.Name, o.UID, o.Parallelism, o.Type, o.Layout)
	fmt.Println(squares.Union(squares).Operator().Parallelism, squares.Env() == env)
	// Output:
	// squares sq 2 int64 fixed
	// 0 true
}
