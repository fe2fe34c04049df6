package stream_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/flott-dev/flott/stream"
)

// person asks a service for a name; each call waits for an answer.
func person(ctx context.Context, id int) ([]string, error) {
	select {
	case <-time.After(time.Duration(10-id) * time.Millisecond): // later ones answer sooner
		return []string{fmt.Sprint("person ", id)}, nil
	case <-ctx.Done(): // the call took too long, or the job ends
		return nil, ctx.Err()
	}
}

func ExampleStream_AsyncOrdered() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1, 2, 3).
		AsyncOrdered(person, stream.AsyncOptions[int, string]{Timeout: time.Minute, Capacity: 50}).
		Print()
	if _, err := env.Execute(context.Background(), "names"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// person 1
	// person 2
	// person 3
}

func ExampleStream_AsyncUnordered() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1, 2, 3).
		AsyncUnordered(person, stream.AsyncOptions[int, string]{
			Timeout:   time.Minute,
			OnTimeout: func(id int) ([]string, error) { return []string{"nobody"}, nil },
		}).
		Print()
	if _, err := env.Execute(context.Background(), "names"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// person 3
	// person 2
	// person 1
}

func ExampleAsyncRetry() {
	busy := errors.New("busy")
	var calls atomic.Int32 // calls are concurrent
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements("a").
		AsyncOrdered(func(_ context.Context, x string) ([]string, error) {
			if n := calls.Add(1); n < 3 {
				return nil, busy
			}
			return []string{x + " at last"}, nil
		}, stream.AsyncOptions[string, string]{Retry: stream.AsyncRetry[string]{
			MaxAttempts: 5, Delay: time.Millisecond, Multiplier: 2, MaxDelay: time.Second,
			IfError: func(err error) bool { return errors.Is(err, busy) },
		}}).
		Print()
	if _, err := env.Execute(context.Background(), "retry"); err != nil {
		fmt.Println(err)
	}
	// Output: a at last
}
