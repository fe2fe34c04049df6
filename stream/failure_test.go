package stream_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// forever counts until the job ends.
func forever(env *stream.Env) *stream.Stream[int64] {
	return env.FromSeq(func(yield func(int64) bool) {
		for i := int64(0); yield(i); i++ {
		}
	})
}

func TestFailureNamesOperatorSubtaskAndCause(t *testing.T) {
	cause := errors.New("disk on fire")
	for _, c := range []struct {
		name  string
		build func(s *stream.Stream[int64])
		want  string
	}{
		{"error", func(s *stream.Stream[int64]) {
			s.TryMap(func(_ context.Context, x int64) (int64, error) {
				if x == 1000 {
					return 0, cause
				}
				return x, nil
			}).Name("risky").Discard()
		}, `operator "risky"`},
		{"panic", func(s *stream.Stream[int64]) {
			s.Map(func(x int64) int64 { return x }).Name("innocent").Filter(func(x int64) bool {
				if x == 1000 {
					panic(cause)
				}
				return true
			}).Name("explosive").Map(func(x int64) int64 { return x }).Discard()
		}, `operator "explosive"`},
		{"panic behind an exchange", func(s *stream.Stream[int64]) {
			s.Rebalance().Map(func(x int64) int64 {
				if x == 1000 {
					panic(cause)
				}
				return x
			}).Name("remote").Discard()
		}, `operator "remote"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := stream.NewEnv().SetParallelism(2)
			c.build(forever(env))
			_, err := env.Execute(context.Background(), "failing")
			if !errors.Is(err, cause) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "subtask") {
				t.Fatalf("got %v, want an error of %s wrapping the cause", err, c.want)
			}
		})
	}
}

func TestCancelEndsTheJobAndItsGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	env := stream.NewEnv().SetParallelism(2)
	ctx, cancel := context.WithCancel(context.Background())
	var seen atomic.Int64
	forever(env).Rebalance().KeyBy(func(x int64) int64 { return x % 7 }).Count().ForEach(func(stream.KeyValue[int64, int64]) {
		if seen.Add(1) == 10_000 {
			cancel()
		}
	})
	_, err := env.Execute(ctx, "endless")
	if !errors.Is(err, stream.ErrCanceled) || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a cancelled job", err)
	}
	for range 60_000 { // a minute, which only a failure takes
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines before the job, %d after", before, runtime.NumGoroutine())
}

func TestSlowSinkHoldsTheSourceBack(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	var made, taken atomic.Int64
	var ahead int64
	env.FromSeq(func(yield func(int64) bool) {
		for i := range int64(200_000) {
			made.Add(1)
			if !yield(i) {
				return
			}
		}
	}).StartNewChain().Map(func(x int64) int64 { return x }).StartNewChain().ForEach(func(int64) {
		ahead = max(ahead, made.Load()-taken.Add(1))
	})
	if _, err := env.Execute(context.Background(), "slow"); err != nil {
		t.Fatal(err)
	}
	// Frames in the queue, the open one, the one being read, and the source's own column.
	if limit := int64(11 * 1024); ahead > limit {
		t.Errorf("the source was %d elements ahead of the sink, more than the %d that the queue holds", ahead, limit)
	}
}

func TestUserCodeThatIgnoresItsContextIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(1)
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		env.FromElements(1).Map(func(x int) int {
			cancel()
			<-release
			return x
		}).Name("stubborn").Discard()
		start := time.Now()
		_, err := env.Execute(ctx, "stuck")
		if err == nil || !strings.Contains(err.Error(), "ignored the end of its context") || !strings.Contains(err.Error(), "stubborn") {
			t.Errorf("got %v, want an error that names the stubborn operator", err)
		}
		if waited := time.Since(start); waited != 30*time.Second {
			t.Errorf("gave up after %v, want 30 s", waited)
		}
		close(release)
		synctest.Wait()
	})
}

// closer notes that it was closed.
type closer struct{ closed *atomic.Int64 }

func (c *closer) ProcessElement(_ *process.Context, x int64, out *process.Collector[int64]) error {
	if x == 5000 {
		return errors.New("no more")
	}
	out.Collect(x)
	return nil
}

func (c *closer) Close() error {
	c.closed.Add(1)
	return nil
}

func TestFailedJobClosesEveryFunctionOnce(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	var closed atomic.Int64
	forever(env).Rebalance().Process(func(*process.Runtime) *closer { return &closer{&closed} }).Discard()
	if _, err := env.Execute(context.Background(), "failing"); err == nil {
		t.Fatal("the job did not fail")
	}
	if got := closed.Load(); got != 2 {
		t.Errorf("%d functions were closed, want 2", got)
	}
}
