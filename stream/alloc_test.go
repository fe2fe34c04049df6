//go:build !race && !invariants

package stream_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/connector/jsonl"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// line is an element of text layout: fixed fields and a string.
type line struct {
	Key string
	Val int64
}

const (
	allocElements = 1 << 20
	allocKeys     = 1000
	perElement    = 0.001 // allocations that the engine may make for an element
)

// mallocs counts the allocations of one job at parallelism 2. The functions of these jobs allocate nothing, so all of
// them are the engine's.
func mallocs(t *testing.T, build func(env *stream.Env)) float64 {
	t.Helper()
	env := stream.NewEnv().SetParallelism(2)
	build(env)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := env.Execute(context.Background(), "alloc"); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs)
}

// allocsPerElement compares a job over n elements with one over 2n, so that what starting and ending cost does not count.
func allocsPerElement(t *testing.T, n int, build func(env *stream.Env, n int)) float64 {
	t.Helper()
	once := mallocs(t, func(env *stream.Env) { build(env, n) })
	twice := mallocs(t, func(env *stream.Env) { build(env, 2*n) })
	return (twice - once) / float64(n)
}

func lines(n int) []line {
	keys := make([]string, allocKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("sensor-%04d", i)
	}
	ls := make([]line, n)
	for i, e := range events(n, allocKeys) {
		ls[i] = line{keys[e.K/7919], e.V}
	}
	return ls
}

// operators are jobs over elements of one type; key and val look at them without allocating.
func operators[T any, K comparable](key func(T) K, val func(T) int64) map[string]func(*stream.Stream[T]) {
	return map[string]func(*stream.Stream[T]){
		"map":     func(s *stream.Stream[T]) { s.Map(func(x T) T { return x }).Discard() },
		"map ptr": func(s *stream.Stream[T]) { s.MapPtr(func(x *T) T { return *x }).Discard() },
		"filter":  func(s *stream.Stream[T]) { s.Filter(func(x T) bool { return val(x)%2 == 1 }).Discard() },
		"update":  func(s *stream.Stream[T]) { s.Update(func(*T) {}).Discard() },
		"flat map": func(s *stream.Stream[T]) {
			s.FlatMap(func(x T, emit func(T)) { emit(x); emit(x) }).Discard()
		},
		"process":   func(s *stream.Stream[T]) { s.Process[*passer[T], T](newPasser[T]).Discard() },
		"rebalance": func(s *stream.Stream[T]) { s.Rebalance().Map(val).Discard() },
		"shuffle":   func(s *stream.Stream[T]) { s.Shuffle().Map(val).Discard() },
		"broadcast": func(s *stream.Stream[T]) { s.Broadcast().Map(val).Discard() },
		"global":    func(s *stream.Stream[T]) { s.Global().Map(val).Discard() },
		"hash":      func(s *stream.Stream[T]) { s.KeyBy(key).Stream().Map(val).Discard() },
		"custom": func(s *stream.Stream[T]) {
			s.PartitionCustom(func(v int64, n int) int { return int(v) % n }, val).Map(val).Discard()
		},
		"union": func(s *stream.Stream[T]) { s.Union(s.Filter(func(T) bool { return true })).Map(val).Discard() },
		"branch": func(s *stream.Stream[T]) {
			s.Filter(func(T) bool { return true }).Discard()
			s.Update(func(*T) {}).Discard()
		},
		"count":    func(s *stream.Stream[T]) { s.KeyBy(key).Count().Discard() },
		"sum":      func(s *stream.Stream[T]) { s.KeyBy(key).Sum(val).Discard() },
		"max":      func(s *stream.Stream[T]) { s.KeyBy(key).Max(val).Discard() },
		"reduce":   func(s *stream.Stream[T]) { s.KeyBy(key).ReducePtr(func(_, _ *T) {}).Discard() },
		"for each": func(s *stream.Stream[T]) { s.ForEach(func(T) {}) },
		"timestamps": func(s *stream.Stream[T]) {
			at := watermark.NoWatermarks[T]().WithMillis(val)
			s.AssignTimestampsAndWatermarks(at).Map(func(x T) T { return x }).KeyBy(key).Sum(val).Discard()
		},
		"watermark per element": func(s *stream.Stream[T]) {
			ms := int64(0)
			each := watermark.Punctuated(func(T, int64) (int64, bool) { ms++; return ms, true })
			s.Global().AssignTimestampsAndWatermarks(each).Parallelism(1).Rebalance().Map(val).Discard()
		},
		"value": func(s *stream.Stream[T]) {
			s.KeyBy(key).Process[*getSetter[T, K], int64](func(rt *process.Runtime) *getSetter[T, K] {
				return &getSetter[T, K]{val: val, n: state.NewValue[int64](rt, "n")}
			}).Discard()
		},
		"value update": func(s *stream.Stream[T]) {
			s.KeyBy(key).Process[*updater[T, K], int64](func(rt *process.Runtime) *updater[T, K] {
				return &updater[T, K]{val: val, n: state.NewValue[int64](rt, "n")}
			}).Discard()
		},
		"value element": func(s *stream.Stream[T]) {
			s.KeyBy(key).Process[*keeper[T, K], T](func(rt *process.Runtime) *keeper[T, K] {
				return &keeper[T, K]{last: state.NewValue[T](rt, "last")}
			}).Discard()
		},
		"reducing": func(s *stream.Stream[T]) {
			s.KeyBy(key).Process[*reducer[T, K], int64](func(rt *process.Runtime) *reducer[T, K] {
				add := func(a, b int64) int64 { return a + b }
				return &reducer[T, K]{val: val, total: state.NewReducing(rt, "total", add)}
			}).Discard()
		},
	}
}

func testAllocations[T any](t *testing.T, all []T, ops map[string]func(*stream.Stream[T])) {
	for _, name := range slices.Sorted(maps.Keys(ops)) {
		build := ops[name]
		t.Run(name, func(t *testing.T) {
			got := allocsPerElement(t, len(all)/2, func(env *stream.Env, n int) { build(env.FromParallelSlice(all[:n])) })
			t.Logf("%.6f allocations per element", got)
			if got >= perElement {
				t.Errorf("%.5f allocations per element, want less than %v", got, perElement)
			}
		})
	}
}

func TestEngineAllocatesNothingPerFixedElement(t *testing.T) {
	testAllocations(t, events(2*allocElements, allocKeys), operators(event.Key, event.Val))
}

func TestEngineAllocatesNothingPerTextElement(t *testing.T) {
	testAllocations(t, lines(2*allocElements),
		operators(func(l line) string { return l.Key }, func(l line) int64 { return l.Val }))
}

// TestTextSourcesAllocatePerBlock reads files: at most one allocation for each 64 KiB of input.
func TestTextSourcesAllocatePerBlock(t *testing.T) {
	const size, block = 8 << 20, 64 << 10
	dir := t.TempDir()
	paths := map[int]string{}
	for _, n := range []int{size, 2 * size} {
		paths[n] = filepath.Join(dir, fmt.Sprint(n))
		row := "4711,some words of text,-12.5\n"
		if err := os.WriteFile(paths[n], []byte(strings.Repeat(row, n/len(row))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type row struct {
		ID   int64
		Text string
		X    float64
	}
	for name, build := range map[string]func(env *stream.Env, path string){
		"text": func(env *stream.Env, path string) { env.FromSource(file.Lines(path), "text").Discard() },
		"csv":  func(env *stream.Env, path string) { env.FromSource(csv.Source[row](path), "csv").Discard() },
	} {
		t.Run(name, func(t *testing.T) {
			got := block * allocsPerElement(t, size, func(env *stream.Env, n int) { build(env, paths[n]) })
			t.Logf("%.3f allocations per 64 KiB", got)
			if got > 1 {
				t.Errorf("%.2f allocations per 64 KiB of input, want at most 1", got)
			}
		})
	}
}

// TestExceptionsAllocateNoMoreThanTheyDid holds the bounds of what has to allocate.
func TestExceptionsAllocateNoMoreThanTheyDid(t *testing.T) {
	const n = 100_000
	es, ls := events(2*n, allocKeys), lines(2*n)
	in := func(env *stream.Env, n int) *stream.Stream[event] { return env.FromParallelSlice(es[:n]) }
	none := func(context.Context, event) ([]event, error) { return nil, nil }
	dir := t.TempDir()
	for _, c := range []struct {
		name  string
		bound float64
		build func(env *stream.Env, n int)
	}{
		{"print", 1.01, func(env *stream.Env, n int) { in(env, n).PrintTo(io.Discard) }},
		{"print numbers", 1.01, func(env *stream.Env, n int) {
			in(env, n).Map(func(e event) int64 { return e.TS + 1000 }).PrintTo(io.Discard)
		}},
		{"async ordered", 5.5, func(env *stream.Env, n int) {
			in(env, n).AsyncOrdered(none, stream.AsyncOptions[event, event]{}).Discard()
		}},
		{"async unordered", 5.5, func(env *stream.Env, n int) {
			in(env, n).AsyncUnordered(none, stream.AsyncOptions[event, event]{}).Discard()
		}},
		{"JSON sink", 0.1, func(env *stream.Env, n int) {
			env.FromSlice(ls[:n]).SinkTo(jsonl.Sink[line](filepath.Join(dir, fmt.Sprint("out", n))))
		}},
		{"JSON source", 1.1, func(env *stream.Env, n int) {
			env.FromSource(jsonl.Source[line](jsonFile(t, dir, ls[:n])), "JSON").Discard()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := allocsPerElement(t, n, c.build)
			t.Logf("%.3f allocations per element", got)
			if got > c.bound {
				t.Errorf("%.3f allocations per element, the bound is %v", got, c.bound)
			}
		})
	}
}

// jsonFile writes the lines as JSON.
func jsonFile(t *testing.T, dir string, ls []line) string {
	t.Helper()
	var b strings.Builder
	for _, l := range ls {
		fmt.Fprintf(&b, `{"Key":%q,"Val":%d}`+"\n", l.Key, l.Val)
	}
	path := filepath.Join(dir, fmt.Sprint("in", len(ls)))
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// passer emits what comes.
type passer[T any] struct{}

func newPasser[T any](*process.Runtime) *passer[T] { return &passer[T]{} }

func (*passer[T]) ProcessElement(_ *process.Context, x T, out *process.Collector[T]) error {
	out.Collect(x)
	return nil
}

// getSetter adds up with Get and Set.
type getSetter[T, K any] struct {
	process.NoTimers[K, int64]
	val func(T) int64
	n   *state.Value[int64]
}

func (c *getSetter[T, K]) ProcessElement(_ *process.KeyedContext[K], x T, out *process.Collector[int64]) error {
	n := c.n.Get() + c.val(x)
	c.n.Set(n)
	out.Collect(n)
	return nil
}

// updater adds up in place.
type updater[T, K any] struct {
	process.NoTimers[K, int64]
	val func(T) int64
	n   *state.Value[int64]
}

func (c *updater[T, K]) ProcessElement(_ *process.KeyedContext[K], x T, out *process.Collector[int64]) error {
	c.n.Update(func(n *int64) {
		*n += c.val(x)
		out.Collect(*n)
	})
	return nil
}

// keeper emits the element before.
type keeper[T, K any] struct {
	process.NoTimers[K, T]
	last *state.Value[T]
}

func (k *keeper[T, K]) ProcessElement(_ *process.KeyedContext[K], x T, out *process.Collector[T]) error {
	out.Collect(k.last.Get())
	k.last.Set(x)
	return nil
}

// reducer adds up with reducing state.
type reducer[T, K any] struct {
	process.NoTimers[K, int64]
	val   func(T) int64
	total *state.Reducing[int64]
}

func (c *reducer[T, K]) ProcessElement(_ *process.KeyedContext[K], x T, out *process.Collector[int64]) error {
	c.total.Add(c.val(x))
	out.Collect(c.total.Get())
	return nil
}
