package guide

import (
	"context"
	"fmt"

	"github.com/flott-dev/flott/stream"
)

// Example_configuration sets a job up from outside of its code.
func Example_configuration() {
	env := stream.NewEnv(
		stream.WithConfigurationFile("conf/config.yaml"),
		stream.WithConfiguration(map[string]string{"parallelism.default": "2"}))
	fmt.Println("parallelism", env.Parallelism())
	for _, w := range env.Warnings() {
		fmt.Println(w)
	}
	var last stream.KeyValue[int64, int64]
	count(env.SetParallelism(1), func(kv stream.KeyValue[int64, int64]) { last = kv })
	if _, err := env.Execute(context.Background(), "numbers"); err != nil {
		fmt.Println(err)
	}
	fmt.Println("odd or even", last.Key, last.Value)
	// Output:
	// parallelism 2
	// conf/config.yaml:6: ignored, as it concerns a cluster, and the job runs in this process: taskmanager.numberOfTaskSlots
	// odd or even 1 1000
}
