package source

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
)

// runFunc runs a source function to its end.
func runFunc(t *testing.T, f process.SourceFunction[int64]) (*kit.Recorder, error) {
	t.Helper()
	op := Func(kit.TypeOf[int64](t), f)
	rt := kit.Runtime()
	out := kit.OpenAt(t, op, rt)
	err := drain(t, op, rt)
	rt.Spawn.Wait()
	return out, err
}

func TestSourceFunctionKeepsOrderAcrossFrames(t *testing.T) {
	n := 5*frame.DefaultLen + 3
	out, err := runFunc(t, func(_ context.Context, sc *process.SourceContext[int64]) error {
		for _, x := range kit.Numbers(n) {
			sc.CollectWithMillis(x, x)
		}
		return nil
	})
	kit.Must(t, err)
	if len(out.Got) != n || out.Got[0] != "0@0" || out.Got[n-1] != "5122@5122" {
		t.Errorf("%d elements, the last one %s", len(out.Got), out.Got[len(out.Got)-1])
	}
}

func TestMarksOfSourceFunctionsStandBetweenTheirElements(t *testing.T) {
	out, err := runFunc(t, func(_ context.Context, sc *process.SourceContext[int64]) error {
		sc.Collect(1)
		sc.EmitWatermarkMillis(10)
		sc.EmitWatermarkMillis(9) // not later: dropped, as are those that follow
		sc.EmitWatermarkMillis(10)
		sc.CollectWithMillis(2, 11)
		sc.MarkAsTemporarilyIdle()
		sc.MarkAsTemporarilyIdle()
		sc.EmitWatermarkMillis(10)
		sc.Collect(3)
		sc.MarkAsTemporarilyIdle()
		sc.EmitWatermarkMillis(12)
		return nil
	})
	kit.Must(t, err)
	out.Want(t, "1", "watermark 10", "2@11", "idle", "active", "3", "idle", "active", "watermark 12")
}

func TestFailuresOfSourceFunctionsEndTheTask(t *testing.T) {
	own := errors.New("own")
	for name, f := range map[string]process.SourceFunction[int64]{
		"error": func(context.Context, *process.SourceContext[int64]) error { return own },
		"panic": func(context.Context, *process.SourceContext[int64]) error { panic(own) },
	} {
		_, err := runFunc(t, f)
		if !errors.Is(err, own) || !strings.Contains(err.Error(), "source function") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := runFunc(t, func(context.Context, *process.SourceContext[int64]) error { panic("words") })
	if err == nil || !strings.Contains(err.Error(), "words") || !strings.Contains(err.Error(), "func_test.go") {
		t.Errorf("panic with words: %v, want them and where it happened", err)
	}
}

func TestErrorsOfConsumersEndASourceFunction(t *testing.T) {
	own := errors.New("own")
	op := Func(kit.TypeOf[int64](t), func(_ context.Context, sc *process.SourceContext[int64]) error {
		for sc.Collect(1) {
		}
		return nil
	})
	rt := kit.Runtime()
	out := kit.Record(t, op.Output(""), rt)
	kit.Must(t, op.Open(rt))
	out.Fail = own
	if err := drain(t, op, rt); !errors.Is(err, own) {
		t.Errorf("error %v", err)
	}
	kit.Must(t, op.Close())
	rt.Spawn.Wait() // the function was told to return
}

// TestCancelledSourceFunctionIsNoEndOfTheInput: a function that returns because the task is being cancelled neither ends
// the stream nor fails the task.
func TestCancelledSourceFunctionIsNoEndOfTheInput(t *testing.T) {
	for _, answer := range []error{nil, context.Canceled} {
		op := Func(kit.TypeOf[int64](t), func(ctx context.Context, _ *process.SourceContext[int64]) error {
			<-ctx.Done()
			return answer
		})
		rt := kit.Runtime()
		var cancel context.CancelFunc
		rt.Ctx, cancel = context.WithCancel(context.Background())
		kit.OpenAt(t, op, rt)
		cancel()
		rt.Spawn.Wait()
		if status, err := op.(operator.Source).Poll(); status != operator.Nothing || err != nil {
			t.Errorf("the function answers %v: status %v, error %v", answer, status, err)
		}
	}
}

func TestCancellationOfItsOwnIsAnErrorOfTheFunction(t *testing.T) {
	_, err := runFunc(t, func(context.Context, *process.SourceContext[int64]) error { return context.Canceled })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
