package streaming_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/window"
)

func summed[T any](acc *T) T { return *acc }

// summing adds elements up in an accumulator of their own type.
type summing[T any] struct{ layoutOf[int64, T] }

func (s summing[T]) Create() T            { return s.of(0) }
func (s summing[T]) Add(acc *T, x T)      { *acc = s.of(s.to(*acc) + s.to(x)) }
func (s summing[T]) Merge(acc, other *T)  { s.Add(acc, *other) }
func (summing[T]) Result(acc *T) T        { return *acc }
func (summing[T]) first(acc *T, x *T)     { *acc = *x }
func (s summing[T]) emit(x *string, r *T) { *x = fmt.Sprint(s.to(*r)) }

func sumKernels[T any](t *testing.T, a summing[T], noMerge bool, first func(acc *T, x *T)) *windows.Incremental {
	t.Helper()
	h, err := serde.Of[T]()
	operatortest.Must(t, err)
	p := windows.Program[T, int64, windowSpan, T, T, string]{
		Aggregate: agg.Aggregate[T, T, T](a), NoMerge: noMerge, First: first,
		Emit: func(x *string, _ *window.Info[int64, windowSpan], r T) { a.emit(x, &r) },
	}
	return p.Incremental(h)
}

// contractAssigner is the scripted assigner.
type contractAssigner[T any] struct{ b *contractBench[T] }

func (a contractAssigner[T]) AssignElement(dst []windowSpan, x *T, ts, _ int64) ([]windowSpan, error) {
	a.b.assigned = append(a.b.assigned, elementCall{Value: a.b.layout.to(*x), TS: conformance.Millis(ts)}.String())
	return append(dst, a.b.assign...), nil
}

func (a contractAssigner[T]) Domain() process.Domain {
	if a.b.v.EventTime {
		return process.EventTime
	}
	return process.ProcessingTime
}

func (contractAssigner[T]) DefaultTrigger() window.Trigger { return window.NeverTrigger() }

type mergingAssigner[T any] struct{ contractAssigner[T] }

func (a mergingAssigner[T]) Merge(spans []windowSpan, merged func(windowSpan, []windowSpan)) {
	b := a.b
	b.mergeInputs = append(b.mergeInputs, slices.Clone(spans))
	if b.merge == nil {
		return
	}
	if b.merge.Input != nil {
		compare(b.t, 0, "windows to merge", texts(spans), texts(b.merge.Input), true)
	}
	merged(b.merge.Result, b.merge.Merge)
}

// contractTrigger is the scripted trigger.
type contractTrigger[T any] struct{ b *contractBench[T] }

func (tr contractTrigger[T]) New(rt *process.Runtime) window.ElementTriggerFunction[T] {
	return &contractTriggerFunction[T]{tr.b, cells(fixedNumber())(rt)}
}

func (contractTrigger[T]) CanMerge() bool { return true }

type contractTriggerFunction[T any] struct {
	b     *contractBench[T]
	state cell
}

func (f *contractTriggerFunction[T]) OnElement(ctx *window.TriggerContext, x *T, ts int64) (window.TriggerResult, error) {
	w := ctx.Window[windowSpan]()
	f.b.elements = append(f.b.elements, elementCall{f.b.layout.to(*x), conformance.Millis(ts), &w}.String())
	return f.act(ctx, f.b.onElement, w)
}

// act does what a script says.
func (f *contractTriggerFunction[T]) act(ctx *window.TriggerContext, a *scriptedAnswer, w windowSpan) (window.TriggerResult, error) {
	if a == nil {
		return window.Continue, nil
	}
	if a.Register != nil {
		if at := a.Register.of(w); f.b.domain == process.EventTime {
			ctx.RegisterEventTimeTimer(at)
		} else {
			ctx.RegisterProcessingTimeTimer(at)
		}
	}
	f.deleteTimer(ctx, a.Delete, w)
	if a.SetState {
		f.state.set(1)
	}
	if a.Result == "" {
		return window.Continue, nil
	}
	return triggerResult(a.Result)
}

func triggerResult(text string) (window.TriggerResult, error) {
	for r := range window.FireAndPurge + 1 {
		if r.String() == text {
			return r, nil
		}
	}
	return 0, fmt.Errorf("answer %q is unknown", text)
}

func (f *contractTriggerFunction[T]) deleteTimer(ctx *window.TriggerContext, at *timeOrEnd, w windowSpan) {
	switch {
	case at == nil:
	case f.b.domain == process.EventTime:
		ctx.DeleteEventTimeTimer(at.of(w))
	default:
		ctx.DeleteProcessingTimeTimer(at.of(w))
	}
}

func (f *contractTriggerFunction[T]) OnEventTime(ctx *window.TriggerContext, at int64) (window.TriggerResult, error) {
	return f.timer(process.EventTime, ctx, at)
}

func (f *contractTriggerFunction[T]) OnProcessingTime(ctx *window.TriggerContext, at int64) (window.TriggerResult, error) {
	return f.timer(process.ProcessingTime, ctx, at)
}

func (f *contractTriggerFunction[T]) timer(d process.Domain, ctx *window.TriggerContext, at int64) (window.TriggerResult, error) {
	if d != f.b.domain {
		return window.Continue, nil
	}
	w := ctx.Window[windowSpan]()
	f.b.times = append(f.b.times, timeCalls{Time: conformance.Millis(at), Window: &w})
	a := f.b.onTime
	if a != nil && a.OnlyAt != nil && a.OnlyAt.of(w) != at {
		return window.Continue, nil
	}
	return f.act(ctx, a, w)
}

func (f *contractTriggerFunction[T]) OnMerge(ctx *window.MergeContext) error {
	w := ctx.Window[windowSpan]()
	f.b.merged = append(f.b.merged, w.String())
	_, err := f.act(&ctx.TriggerContext, f.b.onMerge, w)
	return err
}

func (f *contractTriggerFunction[T]) Clear(ctx *window.TriggerContext) error {
	f.b.clears++
	if c := f.b.onClear; c != nil {
		f.deleteTimer(ctx, c.Delete, ctx.Window[windowSpan]())
		if c.ClearState {
			f.state.clear()
		}
	}
	return nil
}

// contractFunction is the scripted window function.
type contractFunction[T, E any] struct {
	b        *contractBench[T]
	rt       *window.Runtime
	contents func([]E) any
	first    func([]E) int64
	state    cell
}

func (f *contractFunction[T, E]) Process(ctx *window.Context[int64, windowSpan], xs []E, out *process.Collector[string]) error {
	contents, err := json.Marshal(f.contents(xs))
	if err != nil {
		return err
	}
	f.b.processed = append(f.b.processed, processCall{ctx.Key(), ctx.Window(), contents}.String())
	script := &f.b.function
	for _, v := range script.Emit {
		out.Collect(conformance.Canonical(v))
	}
	for _, tag := range script.SideTags {
		switch tag {
		case "int-out":
			ctx.Emit(intOut(), int32(f.first(xs)))
		case "long-out":
			ctx.Emit(longOut(), f.first(xs))
		default:
			return fmt.Errorf("side output %q is unknown", tag)
		}
	}
	if script.SetState {
		f.windowState().set(1)
	}
	if script.RecordTime {
		f.b.sawInProcess = append(f.b.sawInProcess, f.now(ctx))
	}
	return nil
}

// windowState declares the state at its first use, as the script comes after the function.
func (f *contractFunction[T, E]) windowState() cell {
	if f.state == nil {
		f.state = perWindowNumber(f.rt)
	}
	return f.state
}

func (f *contractFunction[T, E]) now(ctx *window.Context[int64, windowSpan]) conformance.Millis {
	return conformance.Millis(now(ctx, f.b.domain))
}

func (f *contractFunction[T, E]) Clear(ctx *window.Context[int64, windowSpan]) error {
	f.b.functionClears++
	if f.b.function.ClearState {
		f.windowState().clear()
	}
	if f.b.function.RecordTime {
		f.b.sawIn = append(f.b.sawIn, f.now(ctx))
	}
	return nil
}
