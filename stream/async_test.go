package stream_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// slowly answers x*2 after a time that differs from element to element.
func slowly(ctx context.Context, x int64) ([]int64, error) {
	select {
	case <-time.After(time.Duration(x*7919%23) * time.Millisecond):
		return []int64{2 * x}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestAsync... run in bubbles of virtual time, which also fail if a goroutine is left behind.

func TestAsyncOrderedKeepsTheOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, env *stream.Env) {
		synctest.Test(t, func(t *testing.T) {
			got := collect(env.FromSequence(1, 1000).AsyncOrdered(slowly, stream.AsyncOptions[int64, int64]{Capacity: 10}))
			runJob(t, env)
			last := map[bool]int64{}
			for _, x := range got.all { // two subtasks have two orders
				part := env.Parallelism() == 2 && x > 1000
				if x != last[part]+2 && last[part] != 0 {
					t.Fatalf("%d follows %d", x, last[part])
				}
				last[part] = x
			}
			if len(got.all) != 1000 {
				t.Errorf("%d results", len(got.all))
			}
		})
	})
}

// asLateFinder fails at an element that a watermark has overtaken.
type asLateFinder struct{}

func (asLateFinder) ProcessElement(ctx *process.Context, x int64, out *process.Collector[int64]) error {
	if ctx.TimestampMillis() <= ctx.Watermark() {
		return fmt.Errorf("%d at %d comes after watermark %d", x, ctx.TimestampMillis(), ctx.Watermark())
	}
	if ctx.TimestampMillis() != x/2 {
		return fmt.Errorf("%d has timestamp %d", x, ctx.TimestampMillis())
	}
	out.Collect(x)
	return nil
}

func TestAsyncUnorderedMakesNoElementLate(t *testing.T) {
	everywhere(t, func(t *testing.T, env *stream.Env) {
		synctest.Test(t, func(t *testing.T) {
			tens := watermark.Punctuated(func(x int64, ms int64) (int64, bool) { return ms, x%10 == 0 }).
				WithMillis(func(x int64) int64 { return x })
			got := collect(env.FromSequence(1, 1000).AssignTimestampsAndWatermarks(tens).
				AsyncUnordered(slowly, stream.AsyncOptions[int64, int64]{Capacity: 25}).
				Process(func(*process.Runtime) asLateFinder { return asLateFinder{} }))
			runJob(t, env)
			if slices.IsSorted(got.all) {
				t.Error("everything is in order: nothing was tested")
			}
			slices.Sort(got.all)
			for i, x := range got.all {
				if x != int64(i+1)*2 {
					t.Fatalf("result %d is %d", i, x)
				}
			}
		})
	})
}

func TestAsyncCallsUnderWayAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		env := stream.NewEnv().SetParallelism(2)
		env.FromSequence(1, 2000).AsyncUnordered(func(ctx context.Context, x int64) ([]int64, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			return slowly(ctx, x)
		}, stream.AsyncOptions[int64, int64]{Capacity: 7}).Discard()
		runJob(t, env)
		if most.Load() != 14 {
			t.Errorf("%d calls at a time in two subtasks of capacity 7", most.Load())
		}
	})
}

func TestAsyncDefaultCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		env := stream.NewEnv().SetParallelism(1)
		env.FromSequence(1, 1000).AsyncOrdered(func(ctx context.Context, x int64) ([]int64, error) {
			calls.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}, stream.AsyncOptions[int64, int64]{}).Discard()
		job, err := env.ExecuteAsync(context.Background(), "full")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := calls.Load(); got != stream.DefaultAsyncCapacity {
			t.Errorf("%d calls at a time", got)
		}
		job.Cancel()
		if _, err := job.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// TestAsyncResultsDoNotWaitForTheRun: the first run has many more elements than the operator has room for.
func TestAsyncResultsDoNotWaitForTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, first := time.Now(), time.Duration(0)
		env := stream.NewEnv().SetParallelism(1)
		env.FromSequence(1, 500).AsyncOrdered(func(_ context.Context, x int64) ([]int64, error) {
			time.Sleep(time.Second) // of virtual time: what the call costs
			return []int64{x}, nil
		}, stream.AsyncOptions[int64, int64]{Capacity: 1}).DisableChaining().ForEach(func(int64) {
			if first == 0 {
				first = time.Since(start)
			}
		})
		runJob(t, env)
		if first > 1200*time.Millisecond {
			t.Errorf("the first result came after %v", first)
		}
	})
}

func TestAsyncResultsMayBeNoneOrMany(t *testing.T) {
	everywhere(t, func(t *testing.T, env *stream.Env) {
		got := collect(env.FromElements(0, 1, 2, 3).AsyncOrdered(func(_ context.Context, n int) ([]string, error) {
			return slices.Repeat([]string{fmt.Sprint(n)}, n), nil
		}, stream.AsyncOptions[int, string]{}))
		runJob(t, env)
		wantTexts(t, got.texts(), "1", "2", "2", "3", "3", "3")
	})
}

func TestAsyncFailuresNameTheOperator(t *testing.T) {
	own := errors.New("own")
	hang := func(ctx context.Context, _ int64) ([]int64, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, c := range map[string]struct {
		f    func(context.Context, int64) ([]int64, error)
		o    stream.AsyncOptions[int64, int64]
		want string
		is   error
	}{
		"error": {func(context.Context, int64) ([]int64, error) { return nil, own }, stream.AsyncOptions[int64, int64]{}, "own", own},
		"panic": {func(context.Context, int64) ([]int64, error) { panic(own) }, stream.AsyncOptions[int64, int64]{}, "panic: own", own},
		"exit": {
			func(context.Context, int64) ([]int64, error) { runtime.Goexit(); return nil, nil },
			stream.AsyncOptions[int64, int64]{},
			"ended its goroutine", nil,
		},
		"timeout": {hang, stream.AsyncOptions[int64, int64]{Timeout: 1500 * time.Microsecond}, "after 2ms", stream.ErrAsyncTimeout},
		"timeout while full": {
			hang,
			stream.AsyncOptions[int64, int64]{Timeout: time.Second, Capacity: 1},
			"after 1s",
			stream.ErrAsyncTimeout,
		},
		"timeout's error": {hang, stream.AsyncOptions[int64, int64]{
			Timeout: time.Second, OnTimeout: func(int64) ([]int64, error) { return nil, own },
		}, "own", own},
		"retries are over": {
			func(context.Context, int64) ([]int64, error) { return nil, own },
			stream.AsyncOptions[int64, int64]{Retry: stream.AsyncRetry[int64]{MaxAttempts: 2, Delay: time.Minute}},
			"own", own,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := stream.NewEnv().SetParallelism(2)
				env.FromSequence(1, 100).AsyncUnordered(c.f, c.o).Name("lookup").Discard()
				_, err := env.Execute(context.Background(), "failing")
				if err == nil || !strings.Contains(err.Error(), `"lookup"`) || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("error %v", err)
				}
				if c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("the cause is hidden in %v", err)
				}
			})
		})
	}
}

func TestAsyncTimeoutCanGiveResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := stream.NewEnv().SetParallelism(1)
		got := collect(env.FromSequence(1, 10).AsyncOrdered(func(ctx context.Context, x int64) ([]int64, error) {
			if x%3 == 0 {
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), stream.ErrAsyncTimeout) {
					t.Errorf("the context ended because of %v", context.Cause(ctx))
				}
				return []int64{1000}, nil // too late
			}
			return []int64{x}, nil
		}, stream.AsyncOptions[int64, int64]{
			Capacity: 2, Timeout: time.Hour, OnTimeout: func(x int64) ([]int64, error) { return []int64{-x}, nil },
		}))
		runJob(t, env)
		if want := []int64{1, 2, -3, 4, 5, -6, 7, 8, -9, 10}; !slices.Equal(got.all, want) {
			t.Errorf("got %v", got.all)
		}
	})
}

func TestAsyncCallsEndWithTheJob(t *testing.T) {
	for name, end := range map[string]func(job *stream.Job, fail chan struct{}){
		"cancel":  func(job *stream.Job, _ chan struct{}) { job.Cancel() },
		"failure": func(_ *stream.Job, fail chan struct{}) { close(fail) },
	} {
		for _, n := range []int64{3, 1000} { // waiting for the end, for room
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var ended atomic.Int64
					fail := make(chan struct{})
					env := stream.NewEnv().SetParallelism(2)
					env.FromSequence(1, n).Global().AsyncUnordered(func(ctx context.Context, _ int64) ([]int64, error) {
						<-ctx.Done()
						ended.Add(1)
						return nil, ctx.Err()
					}, stream.AsyncOptions[int64, int64]{Capacity: 5}).Discard()
					env.FromFunc("failing", func(ctx context.Context, _ *process.SourceContext[int]) error {
						select {
						case <-fail:
							return errors.New("elsewhere")
						case <-ctx.Done():
							return nil
						}
					}).Discard()
					job, err := env.ExecuteAsync(context.Background(), "ending")
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					end(job, fail)
					_, err = job.Wait()
					if name == "cancel" && !errors.Is(err, context.Canceled) || name == "failure" && (err == nil || !strings.Contains(err.Error(), "elsewhere")) {
						t.Errorf("error %v", err)
					}
					if got := ended.Load(); got != min(n, 5) {
						t.Errorf("%d calls have ended", got)
					}
				})
			})
		}
	}
}

func TestAsyncRetriesFollowTheirDelays(t *testing.T) {
	bad, worse := errors.New("bad"), errors.New("worse")
	ms := time.Millisecond
	for name, c := range map[string]struct {
		retry stream.AsyncRetry[int64]
		fails []error // of the calls, one after the other; then they succeed
		want  []time.Duration
		err   error
	}{
		"fixed":        {stream.AsyncRetry[int64]{MaxAttempts: 3, Delay: 50 * ms}, []error{bad, bad, bad}, []time.Duration{0, 50 * ms, 50 * ms, 50 * ms}, nil},
		"exponential":  {stream.AsyncRetry[int64]{MaxAttempts: 4, Delay: 10 * ms, Multiplier: 3, MaxDelay: 100 * ms}, []error{bad, bad, bad, bad}, []time.Duration{0, 10 * ms, 30 * ms, 90 * ms, 100 * ms}, nil},
		"too often":    {stream.AsyncRetry[int64]{MaxAttempts: 1, Delay: ms}, []error{bad, worse}, []time.Duration{0, ms}, worse},
		"no delay":     {stream.AsyncRetry[int64]{MaxAttempts: 2}, []error{bad}, []time.Duration{0, 0}, nil},
		"other errors": {stream.AsyncRetry[int64]{MaxAttempts: 2, IfError: func(err error) bool { return errors.Is(err, bad) }}, []error{bad, worse}, []time.Duration{0, 0}, worse},
		"results":      {stream.AsyncRetry[int64]{MaxAttempts: 2, Delay: ms, IfResult: func(r []int64) bool { return len(r) != 0 }}, nil, []time.Duration{0, ms, ms}, nil},
		"endless":      {stream.AsyncRetry[int64]{MaxAttempts: 1, Delay: 1 << 62, Multiplier: 1e300, MaxDelay: ms}, []error{bad}, []time.Duration{0, ms}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []time.Time
				env := stream.NewEnv().SetParallelism(1)
				got := collect(env.FromElements(int64(7)).AsyncOrdered(func(_ context.Context, x int64) ([]int64, error) {
					at = append(at, time.Now())
					if n := len(at); n <= len(c.fails) {
						return nil, c.fails[n-1]
					}
					return []int64{x}, nil
				}, stream.AsyncOptions[int64, int64]{Retry: c.retry}))
				_, err := env.Execute(context.Background(), "retries")
				if !errors.Is(err, c.err) {
					t.Fatalf("error %v", err)
				}
				if c.err == nil {
					wantTexts(t, got.texts(), "7")
				}
				if len(at) != len(c.want) {
					t.Fatalf("%d calls, want %d", len(at), len(c.want))
				}
				for i := 1; i < len(at); i++ { // a timer fires once the clock is past its time
					if d := at[i].Sub(at[i-1]); d < c.want[i] || d > c.want[i]+2*ms {
						t.Errorf("call %d came after %v, want %v", i+1, d, c.want[i])
					}
				}
			})
		})
	}
}

func TestAsyncMistakesNameTheCall(t *testing.T) {
	for want, o := range map[string]stream.AsyncOptions[int, int]{
		"capacity -1":       {Capacity: -1},
		"timeout -1ns":      {Timeout: -1},
		"-1 attempts":       {Retry: stream.AsyncRetry[int]{MaxAttempts: -1}},
		"delays -1ns to 0s": {Retry: stream.AsyncRetry[int]{MaxAttempts: 1, Delay: -1}},
		"multiplier 0.5":    {Retry: stream.AsyncRetry[int]{MaxAttempts: 1, Multiplier: 0.5}},
		"delays 0s to -1ns": {Retry: stream.AsyncRetry[int]{MaxAttempts: 1, MaxDelay: -1}},
	} {
		env := stream.NewEnv()
		env.FromElements(1).AsyncOrdered(func(context.Context, int) ([]int, error) { return nil, nil }, o).Discard()
		_, err := env.Execute(context.Background(), "mistake")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "async_test.go") {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestAsyncOperatorBeginsAChain(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1).Map(func(x int) int { return x }).
		AsyncOrdered(func(_ context.Context, x int) ([]int, error) { return []int{x}, nil }, stream.AsyncOptions[int, int]{}).
		Map(func(x int) int { return x }).Discard()
	plan, err := env.Explain()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(plan, "] Async Ordered Wait -> Map") {
		t.Errorf("plan:\n%s", plan)
	}
}
