package flotttest_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

func TestMain(m *testing.M) { os.Exit(flotttest.CheckLeaks(m)) }

type spy struct{}

func (spy) ProcessElement(ctx *process.Context, x int, out *process.Collector[[3]int64]) error {
	out.Collect([3]int64{int64(x), ctx.TimestampMillis(), ctx.Watermark()})
	return nil
}

func TestScriptedSourceEmitsElementsAndWatermarksInOrder(t *testing.T) {
	script := flotttest.NewScript[int]().Emit(1, 2).EmitAt(3, 30).Watermark(20).Cut().EmitAt(4, 40).Idle().EmitAt(5, 50)
	got := flotttest.Run(t, func(env *stream.Env) *stream.Stream[[3]int64] {
		return flotttest.FromScripts(env, script).Process(func(*process.Runtime) spy { return spy{} }).Parallelism(1)
	})
	none := flotttest.NoTime
	flotttest.Equal(t, got, [][3]int64{{1, none, none}, {2, none, none}, {3, 30, none}, {4, 40, 20}, {5, 50, 20}})
}

func TestScriptedSourcePausesUntilTheTestResumes(t *testing.T) {
	script := flotttest.NewScript[string]().Emit("a", "b").Pause("half").Emit("c")
	sink := flotttest.NewSink[string]()
	env := stream.NewEnv().SetParallelism(1).DisableOperatorChaining()
	flotttest.FromScripts(env, script).SinkTo(sink)
	job, err := env.ExecuteAsync(t.Context(), "paused")
	if err != nil {
		t.Fatal(err)
	}
	script.Await(t, "half")
	sink.Await(t, 2)
	if sink.Len() != 2 {
		t.Errorf("%d elements before the end of the pause", sink.Len())
	}
	script.Resume("half")
	if _, err := job.Wait(); err != nil {
		t.Fatal(err)
	}
	flotttest.Equal(t, sink.Values(), []string{"a", "b", "c"})
}

func TestScriptsAreDealtToSubtasks(t *testing.T) {
	flotttest.Variants(t, func(t *testing.T, env *stream.Env) {
		s := env.FromSource(flotttest.NewSource(
			flotttest.NewScript[int]().Emit(1, 2), flotttest.NewScript[int]().Emit(3), flotttest.NewScript[int]().Emit(4),
		), "scripts").Map(func(x int) int { return x * x })
		var got []int
		for _, e := range flotttest.Collect(t, env, s) {
			got = append(got, e.Value)
		}
		flotttest.Same(t, got, []int{1, 4, 9, 16})
	})
}

type alarm struct {
	process.NoTimers[int, int]
}

func (alarm) ProcessElement(ctx *process.KeyedContext[int], x int, _ *process.Collector[int]) error {
	ctx.RegisterTimer(process.ProcessingTime, int64(x))
	return nil
}

func (alarm) OnTimer(ctx *process.KeyedContext[int], timer process.Timer, out *process.Collector[int]) error {
	out.Collect(int(timer.Millis))
	return nil
}

func TestClockFiresTheTimersOfARunningJob(t *testing.T) {
	clock := flotttest.NewClock(1000)
	script := flotttest.NewScript[int]().Emit(5000, 2000, 9_000_000).Pause("timers")
	sink := flotttest.NewSink[int]()
	env := stream.NewEnv(flotttest.WithClock(clock)).SetParallelism(2)
	flotttest.FromScripts(env, script).KeyBy(func(x int) int { return x % 2 }).Process(func(*process.Runtime) alarm { return alarm{} }).SinkTo(sink)
	ctx, cancel := context.WithCancel(t.Context())
	job, err := env.ExecuteAsync(ctx, "alarm")
	if err != nil {
		t.Fatal(err)
	}
	script.Await(t, "timers")
	clock.Advance(2 * time.Second)
	flotttest.Equal(t, sink.Await(t, 1), []flotttest.Element[int]{flotttest.Untimed(2000)})
	clock.Set(10_000_000)
	flotttest.Equal(t, sink.Await(t, 3)[1:], []flotttest.Element[int]{flotttest.Untimed(5000), flotttest.Untimed(9_000_000)})
	cancel()
	if _, err := job.Wait(); !errors.Is(err, stream.ErrCanceled) {
		t.Errorf("error %v", err)
	}
	if clock.Now().UnixMilli() != 10_000_000 {
		t.Errorf("the clock is at %v", clock.Now())
	}
}

// notes is a testing.TB that only takes notes.
type notes struct {
	testing.TB
	text strings.Builder
}

func (n *notes) Helper() {}

func (n *notes) Errorf(format string, args ...any) { n.text.WriteString(format) }

func TestComparisonsReportDifferences(t *testing.T) {
	n := &notes{TB: t}
	flotttest.Equal(n, []int{1, 2}, []int{1, 2})
	flotttest.Same(n, []int{2, 1}, []int{1, 2})
	if n.text.Len() != 0 {
		t.Errorf("equal lists: %s", n.text.String())
	}
	flotttest.Equal(n, []int{2, 1}, []int{1, 2})
	if n.text.Len() == 0 {
		t.Error("another order is no difference")
	}
	n.text.Reset()
	flotttest.Same(n, []int{1, 1, 2}, []int{1, 2, 2})
	if n.text.Len() == 0 {
		t.Error("another multiset is no difference")
	}
	flotttest.Equal(t, flotttest.Sorted([]string{"b", "a"}), []string{"a", "b"})
}

func TestNoLeaksFindsAGoroutine(t *testing.T) {
	stop := make(chan struct{})
	flotttest.NoLeaks(t)
	go func() { <-stop }()
	close(stop)
}
