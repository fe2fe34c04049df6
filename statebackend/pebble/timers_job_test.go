package pebble_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/pebble"
	"github.com/flott-dev/flott/stream"
)

// reminder sets a timer for each element of a key, hours ahead, and tells when it fires.
type reminder struct{ last int64 }

func (r *reminder) ProcessElement(ctx *process.KeyedContext[int64], x int64, _ *process.Collector[int64]) error {
	ctx.RegisterTimer(process.EventTime, 1_000_000+x*7919%100_000_007)
	return nil
}

func (r *reminder) OnTimer(ctx *process.KeyedContext[int64], t process.Timer, out *process.Collector[int64]) error {
	if t.Millis < r.last {
		return fmt.Errorf("a timer of %d fires after one of %d", t.Millis, r.last)
	}
	r.last = t.Millis
	if want := 1_000_000 + ctx.Key()*7919%100_000_007; t.Millis != want {
		return fmt.Errorf("the timer of %d fires at %d, not at %d", ctx.Key(), t.Millis, want)
	}
	out.Collect(ctx.Key())
	return nil
}

// remind builds a job with a timer for each of n keys, all set before the first fires.
func remind(env *stream.Env, n int64) (fired, sum *atomic.Int64) {
	fired, sum = new(atomic.Int64), new(atomic.Int64)
	env.FromGenerator(n, func(i int64) int64 { return i }, 0).UID("numbers").
		KeyBy(func(x int64) int64 { return x }).
		Process(func(*process.Runtime) process.KeyedFunction[int64, int64, int64] { return &reminder{} }).UID("reminders").
		ForEach(func(x int64) {
			fired.Add(1)
			sum.Add(x)
		})
	return fired, sum
}

// TestTimersNeedNotFitIntoMemory runs a job with more timers than its memory holds. On heap it fails, and says what to do.
func TestTimersNeedNotFitIntoMemory(t *testing.T) {
	const n, memory = 300_000, 16 << 20
	env := stream.NewEnv(stream.WithMemory(memory))
	remind(env, n)
	if _, err := env.Execute(t.Context(), "reminders"); !errors.Is(err, statebackend.ErrOutOfMemory) {
		t.Errorf("on heap: %v", err)
	}
	env = stream.NewEnv(stream.WithMemory(memory), stream.WithBackends(pebble.Backend{Folder: t.TempDir(), CacheBytes: 2 << 20})).
		EnableCheckpointing(100*time.Millisecond, stream.IncrementalCheckpoints(true)).SetCheckpointStorage(t.TempDir())
	fired, sum := remind(env, n)
	if _, err := env.Execute(t.Context(), "reminders"); err != nil {
		t.Fatal(err)
	}
	if fired.Load() != n || sum.Load() != n*(n-1)/2 {
		t.Errorf("%d timers fired, of keys that sum up to %d", fired.Load(), sum.Load())
	}
}
