package stream_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

type reading struct {
	At  int64
	Val int64
}

func (r reading) Time() time.Time { return time.UnixMilli(r.At) }

// gather collects a sink's elements from all subtasks.
type gather[T any] struct {
	mu sync.Mutex
	xs []T
}

func (g *gather[T]) add(x T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.xs = append(g.xs, x)
}

func execute(t testing.TB, env *stream.Env) *stream.Result {
	t.Helper()
	r, err := env.Execute(context.Background(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// executeFailing returns the error of a job that must fail and mention all of what.
func executeFailing(t testing.TB, env *stream.Env, what ...string) error {
	t.Helper()
	_, err := env.Execute(context.Background(), t.Name())
	if err == nil {
		t.Fatal("the job did not fail")
	}
	for _, w := range what {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not mention %q", err, w)
		}
	}
	return err
}

func TestStrategyStampsElementsAndMakesWatermarks(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	var g gather[string]
	env.FromElements(reading{At: 1000}, reading{At: 3000}, reading{At: 2500}).
		AssignTimestampsAndWatermarks(watermark.Punctuated(func(r reading, ms int64) (int64, bool) { return ms - 100, true }).
			WithTimestamps(reading.Time)).
		AddSink(func(_ context.Context, r reading, at connector.ElementContext) error {
			g.add(fmt.Sprintf("%d@%d after %d", r.At, at.Timestamp, at.Watermark))
			return nil
		})
	execute(t, env)
	want := []string{fmt.Sprintf("1000@1000 after %d", int64(math.MinInt64)), "3000@3000 after 900", "2500@2500 after 2900"}
	if !slices.Equal(g.xs, want) {
		t.Errorf("got %q, want %q", g.xs, want)
	}
}

func TestAscendingTimestampsAreTakenFromElements(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	var g gather[int64]
	env.FromElements(reading{At: 5}, reading{At: 7}).
		AssignAscendingTimestamps(reading.Time).
		AddSink(func(_ context.Context, _ reading, at connector.ElementContext) error {
			g.add(at.Timestamp)
			return nil
		})
	execute(t, env)
	if !slices.Equal(g.xs, []int64{5, 7}) {
		t.Errorf("timestamps %v", g.xs)
	}
}

func TestMistakenStrategyNamesTheCall(t *testing.T) {
	env := stream.NewEnv()
	env.FromElements(reading{}).
		AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(-time.Second, reading.Time)).
		Discard()
	executeFailing(t, env, "watermarks_test.go:", "negative")
}

func TestTimeCharacteristicSetsDefaults(t *testing.T) {
	env := stream.NewEnv()
	if env.StreamTimeCharacteristic() != stream.EventTime {
		t.Errorf("default %v", env.StreamTimeCharacteristic())
	}
	env.SetStreamTimeCharacteristic(stream.IngestionTime)
	var stamped, sources gather[int64]
	before := time.Now().UnixMilli()
	env.FromElements(1, 2, 3).AddSink(func(_ context.Context, _ int, at connector.ElementContext) error {
		stamped.add(at.Timestamp)
		return nil
	})
	env.FromSequence(1, 10).AddSink(func(_ context.Context, _ int64, at connector.ElementContext) error {
		sources.add(at.Timestamp)
		return nil
	})
	execute(t, env)
	after := time.Now().UnixMilli()
	for _, ts := range append(stamped.xs, sources.xs...) {
		if ts < before || ts > after {
			t.Errorf("element stamped %d, the job ran from %d to %d", ts, before, after)
		}
	}
	if len(stamped.xs) != 3 || len(sources.xs) != 10 {
		t.Errorf("%d and %d elements", len(stamped.xs), len(sources.xs))
	}
	env.SetStreamTimeCharacteristic(stream.TimeCharacteristic(9))
	env.FromElements(1).Discard()
	executeFailing(t, env, "watermarks_test.go:", "time characteristic 9")
}

// counting is a source of one split per subtask: it counts to 100 from where its subtask starts.
type counting struct{ start func(subtask int) int64 }

func (counting) Bounded() bool { return true }

func (counting) Enumerator(ctx connector.EnumeratorContext[int], _ []byte) (connector.Enumerator[int], error) {
	return countingEnumerator{ctx}, nil
}

type countingEnumerator struct {
	ctx connector.EnumeratorContext[int]
}

func (countingEnumerator) Start() error { return nil }
func (e countingEnumerator) Request(subtask int) error {
	e.ctx.Assign(subtask, subtask)
	e.ctx.NoMoreSplits(subtask)
	return nil
}
func (countingEnumerator) AddBack(int, []int) error       { return nil }
func (countingEnumerator) Snapshot(int64) ([]byte, error) { return nil, nil }
func (countingEnumerator) Close() error                   { return nil }

func (c counting) Reader(ctx connector.ReaderContext) (connector.Reader[int64, int], error) {
	return &countingReader{next: c.start(ctx.Subtask())}, nil
}

type countingReader struct {
	next, end int64
	last      bool
}

func (r *countingReader) Poll(out *connector.Output[int64]) (connector.Status, error) {
	if r.next < r.end {
		out.Emit(r.next)
		r.next++
		return connector.More, nil
	}
	if r.last {
		return connector.Done, nil
	}
	return connector.Nothing, nil
}
func (r *countingReader) AddSplits([]int) error         { r.end = r.next + 100; return nil }
func (r *countingReader) NoMoreSplits()                 { r.last = true }
func (r *countingReader) Snapshot(int64) ([]int, error) { return nil, nil }
func (r *countingReader) Committed(int64) error         { return nil }
func (r *countingReader) Close() error                  { return nil }

func TestSourceWithWatermarksAlignsItsSubtasks(t *testing.T) {
	env := stream.NewEnv().SetParallelism(2)
	// Subtask 1 is 1000 s ahead: it may not go on before subtask 0 has ended.
	src := counting{start: func(subtask int) int64 { return int64(subtask) * 1_000_000 }}
	byElement := watermark.Punctuated(func(x int64, ms int64) (int64, bool) { return ms, true }).
		WithMillis(func(x int64) int64 { return x }).WithAlignment("both", 10*time.Second, time.Millisecond)
	var g gather[int64]
	env.FromSourceWithWatermarks(src, byElement, "counting").
		AddSink(func(_ context.Context, x int64, at connector.ElementContext) error {
			if at.Timestamp != x {
				t.Errorf("element %d has timestamp %d", x, at.Timestamp)
			}
			g.add(x)
			return nil
		})
	execute(t, env)
	if len(g.xs) != 200 {
		t.Fatalf("%d elements", len(g.xs))
	}
	last := slices.Index(g.xs, 99)
	ahead := 0
	for _, x := range g.xs[:last] {
		if x > 1_000_000 {
			ahead++
		}
	}
	if ahead > 1 {
		t.Errorf("%d elements from the far future before the slow subtask had ended", ahead)
	}
}

func ExampleStream_AssignTimestampsAndWatermarks() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(reading{At: 1000, Val: 7}, reading{At: 2000, Val: 8}).
		AssignTimestampsAndWatermarks(watermark.BoundedOutOfOrderness(5*time.Second, reading.Time).WithIdleness(time.Minute)).
		AddSink(func(_ context.Context, r reading, at connector.ElementContext) error {
			fmt.Println(r.Val, "at", at.Timestamp)
			return nil
		})
	if _, err := env.Execute(context.Background(), "readings"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 7 at 1000
	// 8 at 2000
}

func ExampleStream_AssignAscendingTimestamps() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(reading{At: 1000, Val: 7}).
		AssignAscendingTimestamps(reading.Time).
		AddSink(func(_ context.Context, r reading, at connector.ElementContext) error {
			fmt.Println(r.Val, "at", at.Timestamp)
			return nil
		})
	if _, err := env.Execute(context.Background(), "readings"); err != nil {
		fmt.Println(err)
	}
	// Output: 7 at 1000
}

// oldExtractor keeps the highest timestamp that it has seen: its state shows in which order it is asked.
type oldExtractor struct{ ms int64 }

func (h *oldExtractor) ExtractTimestamp(r reading, _ int64) int64 {
	h.ms = max(h.ms, r.At)
	return r.At
}
func (h *oldExtractor) ExtractWatermark(reading, int64) int64 { return h.ms - 1 }
func (h *oldExtractor) CurrentWatermark() int64               { return math.MinInt64 }

func TestTimestampExtractorIsAskedElementByElement(t *testing.T) {
	env := stream.NewEnv().SetParallelism(1)
	var g gather[string]
	env.FromElements(reading{At: 1000}, reading{At: 3000}, reading{At: 2000}, reading{At: 4000}).
		AssignTimestamps(func() *oldExtractor { return &oldExtractor{} }).
		AddSink(func(_ context.Context, _ reading, at connector.ElementContext) error {
			g.add(fmt.Sprint(at.Timestamp, " after ", max(at.Watermark, 0)))
			return nil
		})
	execute(t, env)
	if want := []string{"1000 after 0", "3000 after 999", "2000 after 2999", "4000 after 2999"}; !slices.Equal(g.xs, want) {
		t.Errorf("got %q", g.xs)
	}
}

func ExampleStream_AssignTimestamps() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(reading{At: 1000, Val: 7}).
		AssignTimestamps(func() *oldExtractor { return &oldExtractor{} }).
		AddSink(func(_ context.Context, r reading, at connector.ElementContext) error {
			fmt.Println(r.Val, "at", at.Timestamp)
			return nil
		})
	if _, err := env.Execute(context.Background(), "readings"); err != nil {
		fmt.Println(err)
	}
	// Output: 7 at 1000
}

func ExampleEnv_SetStreamTimeCharacteristic() {
	env := stream.NewEnv().SetParallelism(1).SetStreamTimeCharacteristic(stream.IngestionTime)
	env.FromElements("now").AddSink(func(_ context.Context, _ string, at connector.ElementContext) error {
		fmt.Println(time.Since(time.UnixMilli(at.Timestamp)) < time.Hour) // when the source read it
		return nil
	})
	if _, err := env.Execute(context.Background(), "now"); err != nil {
		fmt.Println(err)
	}
	// Output: true
}

func ExampleEnv_FromSourceWithWatermarks() {
	env := stream.NewEnv().SetParallelism(1)
	path, done := scratch("times.txt", "10\n20\n")
	defer done()
	strategy := watermark.ForBoundedOutOfOrderness[string](time.Second).
		WithMillis(func(line string) int64 { return int64(len(line)) }).
		WithAlignment("files", time.Minute, time.Second)
	env.FromSourceWithWatermarks(file.Lines(path), strategy, "lines").
		AddSink(func(_ context.Context, line string, at connector.ElementContext) error {
			fmt.Println(line, "at", at.Timestamp)
			return nil
		})
	if _, err := env.Execute(context.Background(), "lines"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 10 at 2
	// 20 at 2
}
