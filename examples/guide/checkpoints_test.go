package guide

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/flott-dev/flott/stream"
)

// Example_checkpoints recovers from failures, and goes on at another parallelism.
func Example_checkpoints() {
	folder, err := os.MkdirTemp("", "guide")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	ctx := context.Background()

	env := stream.NewEnv().SetParallelism(2)
	env.EnableCheckpointing(10*time.Second,
		stream.CheckpointTimeout(time.Minute),
		stream.TolerableCheckpointFailureNumber(3),
		stream.ExternalizedCheckpoints(stream.RetainOnCancellation))
	env.SetCheckpointStorage(folder + "/checkpoints")
	env.SetRestartStrategy(stream.FixedDelayRestart(3, time.Second))
	count(env, nil)

	job, err := env.ExecuteAsync(ctx, "numbers")
	if err != nil {
		fmt.Println(err)
		return
	}
	path, err := job.StopWithSavepoint(ctx, folder+"/savepoints", false)
	if err != nil {
		fmt.Println(err)
		return
	}

	var last stream.KeyValue[int64, int64]
	env = stream.NewEnv(stream.WithSavepoint(path)).SetParallelism(1)
	count(env, func(kv stream.KeyValue[int64, int64]) { last = kv })
	if _, err := env.Execute(ctx, "numbers"); err != nil {
		fmt.Println(err)
	}
	fmt.Println("odd or even", last.Key, last.Value)
	// Output: odd or even 1 1000
}

// count counts odd and even numbers.
func count(env *stream.Env, show func(stream.KeyValue[int64, int64])) {
	numbers := env.FromGenerator(2000, func(i int64) int64 { return i }, 1000).UID("numbers")
	counts := numbers.KeyBy(func(x int64) int64 { return x % 2 }).
		Sum(func(int64) int64 { return 1 }).UID("counts")
	if show != nil {
		counts.ForEach(show).UID("show").Parallelism(1)
	}
}

// Example_recovery is a program that may be killed.
func Example_recovery() {
	folder, err := os.MkdirTemp("", "guide")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)

	env := stream.NewEnv(stream.WithRecovery(folder))
	env.EnableCheckpointing(time.Second)
	count(env.SetParallelism(1), func(kv stream.KeyValue[int64, int64]) {
		if kv.Value == 1000 {
			fmt.Println(kv.Key, kv.Value)
		}
	})
	if _, err := env.Execute(context.Background(), "numbers"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0 1000
	// 1 1000
}
