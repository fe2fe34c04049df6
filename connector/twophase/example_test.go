package twophase_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/flott-dev/flott/connector/twophase"
	"github.com/flott-dev/flott/stream"
)

// Each subtask writes to a transaction of its own; what a checkpoint covers becomes visible when it is complete.
func Example() {
	b := newBank()
	sink, err := twophase.New(b.connect, twophase.Timeout(15*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	env := stream.NewEnv().EnableCheckpointing(10 * time.Millisecond).SetParallelism(1)
	env.FromElements("a", "b", "c").CommitTo(sink)
	if _, err := env.Execute(context.Background(), "payments"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.has())
	// Output: [a b c]
}
