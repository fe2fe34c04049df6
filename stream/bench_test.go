package stream_test

import (
	"context"
	"testing"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

type event struct {
	K  uint64
	TS int64
	V  int64
}

func (e event) Key() uint64 { return e.K }
func (e event) Val() int64  { return e.V }

func events(n, keys int) []event {
	es := make([]event, n)
	x := uint64(88172645463325252)
	for i := range es {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		es[i] = event{K: x % uint64(keys) * 7919, TS: int64(i), V: 1}
	}
	return es
}

// run measures a job over n elements at parallelism 2. What is compared with hand-written loops is in the program bench.
func run(b *testing.B, n int, build func(env *stream.Env)) {
	b.ReportAllocs()
	for b.Loop() {
		env := stream.NewEnv().SetParallelism(2)
		build(env)
		if _, err := env.Execute(context.Background(), "bench"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element")
}

func BenchmarkChain(b *testing.B) {
	es := events(8<<20, 1000)
	run(b, len(es), func(env *stream.Env) {
		env.SetParallelism(1)
		env.FromSlice(es).
			Map(func(e event) event { e.V += 2; return e }).
			Filter(func(e event) bool { return e.K%3 != 0 }).
			Map(func(e event) int64 { return e.V * 2 }).
			ForEach(func(int64) {})
	})
}

func BenchmarkCount10k(b *testing.B) {
	es := events(8<<20, 10_000)
	run(b, len(es), func(env *stream.Env) {
		env.FromParallelSlice(es).KeyBy(event.Key).Sum(event.Val).ForEach(func(*stream.KeyValue[uint64, int64]) {})
	})
}

func BenchmarkExchange(b *testing.B) {
	es := events(8<<20, 1_000_000)
	run(b, len(es), func(env *stream.Env) {
		env.FromParallelSlice(es).KeyBy(event.Key).Stream().ForEach(func(*event) {})
	})
}

type valueCounter struct {
	process.NoTimers[uint64, int64]
	n *state.Value[int64]
}

func (c *valueCounter) ProcessElement(ctx *process.KeyedContext[uint64], e event, out *process.Collector[int64]) error {
	n := c.n.Get() + e.V
	c.n.Set(n)
	out.Collect(n)
	return nil
}

func BenchmarkProcess10k(b *testing.B) {
	es := events(8<<20, 10_000)
	run(b, len(es), func(env *stream.Env) {
		env.FromParallelSlice(es).KeyBy(event.Key).Process(func(rt *process.Runtime) *valueCounter {
			return &valueCounter{n: state.NewValue[int64](rt, "n")}
		}).ForEach(func(int64) {})
	})
}
