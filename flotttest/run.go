package flotttest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/flott-dev/flott/stream"
)

// Isolated makes every edge between tasks encode and decode its elements, as between processes: what works in one process
// only, because memory is shared, fails.
func Isolated() stream.Option { return stream.WithIsolation() }

// Execute runs what was built in the environment to its end and fails the test if the job fails. The job is cancelled
// when the test ends.
func Execute(t testing.TB, env *stream.Env) *stream.Result {
	t.Helper()
	r, err := env.Execute(t.Context(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Collect runs what was built in the environment and returns the elements of s, which belongs to it, with timestamps; in
// the stream's order if it has one subtask.
func Collect[R any](t testing.TB, env *stream.Env, s *stream.Stream[R]) []Element[R] {
	t.Helper()
	sink := NewSink[R]()
	s.SinkTo(sink).Parallelism(1)
	Execute(t, env)
	return sink.Elements()
}

// Run builds a job in an environment of its own, runs it and returns the elements of its stream.
func Run[R any](t testing.TB, build func(env *stream.Env) *stream.Stream[R], opts ...stream.Option) []R {
	t.Helper()
	env := stream.NewEnv(opts...)
	return values(Collect(t, env, build(env)))
}

// Variants runs f as a subtest for each way to lay a job out that must not change its results: parallelism 1, 2 and 4;
// with chains, without, and without and isolated. The environment has the layout set.
func Variants(t *testing.T, f func(t *testing.T, env *stream.Env), opts ...stream.Option) {
	t.Helper()
	for _, p := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("parallelism %d, chained", p), func(t *testing.T) {
			f(t, stream.NewEnv(opts...).SetParallelism(p))
		})
		t.Run(fmt.Sprintf("parallelism %d, unchained", p), func(t *testing.T) {
			f(t, stream.NewEnv(opts...).SetParallelism(p).DisableOperatorChaining())
		})
		t.Run(fmt.Sprintf("parallelism %d, isolated", p), func(t *testing.T) {
			all := append([]stream.Option{Isolated()}, opts...)
			f(t, stream.NewEnv(all...).SetParallelism(p).DisableOperatorChaining())
		})
	}
}

// contextWakes makes the end of a context wake those who wait for c.
func contextWakes(ctx context.Context, c *sync.Cond) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		c.L.Lock()
		defer c.L.Unlock()
		c.Broadcast()
	})
}
