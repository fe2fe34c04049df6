package windowing

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/window"
)

func listEvents(*window.Runtime) window.Function[string, event, window.Time, string] {
	return listing[event]{}
}

// numbered are events of one key, n at time n.
func numbered(times ...int64) (at []int64, xs []event) {
	for _, n := range times {
		xs = append(xs, event{"a", n})
	}
	return times, xs
}

func pushTimes(t *testing.T, op operator.Operator, times ...int64) {
	t.Helper()
	at, xs := numbered(times...)
	push(t, op, at, xs...)
}

// sumsOf opens the driver of a sum per window.
func sumsOf(t *testing.T, spec windows.Spec, d Definition[event, window.Time]) (operator.Operator, *kit.Recorder, *kit.Host) {
	t.Helper()
	op := Aggregate(spec, d, sums(t))
	out, rt := kit.Open(t, op)
	return op, out, rt.Host.(*kit.Host)
}

// TestElementInNoWindowIsNotLate is trap B004.
func TestElementInNoWindowIsNotLate(t *testing.T) {
	op, out, host := sumsOf(t, specOf[string](t), Definition[event, window.Time]{Assigner: gaps{}})
	pushTimes(t, op, 1, 5, 12)
	mark(t, op, 12)
	out.Want(t, "a [0,3) 1@2", "a [10,13) 12@12", "watermark 12")
	if n := host.Metrics[windows.LateDropped].Read(); n != int64(0) {
		t.Errorf("%v late elements", n)
	}
	pushTimes(t, op, 5, 13) // 5 is behind the watermark now, 13 is not
	if n := host.Metrics[windows.LateDropped].Read(); n != int64(1) {
		t.Errorf("%v late elements, want 1", n)
	}
}

// gaps assigns windows of size 3 every 10.
type gaps struct{ fixed }

func (gaps) Assign(dst []window.Time, ts, _ int64) ([]window.Time, error) {
	if ts%10 < 3 {
		dst = append(dst, window.Time{Start: ts - ts%10, End: ts - ts%10 + 3})
	}
	return dst, nil
}

// TestLateElementFiresAgainWithinLateness is trap B005.
func TestLateElementFiresAgainWithinLateness(t *testing.T) {
	for name, c := range map[string]struct {
		trigger window.Trigger
		second  string
	}{
		"accumulating": {window.EventTimeTrigger(), "a [0,60000) 70@59999"},
		"purging":      {window.PurgingTrigger(window.EventTimeTrigger()), "a [0,60000) 40@59999"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf[string](t)
			spec.Lateness, spec.Late = 30_000, "late"
			spec.Sides = map[string]*frame.Type{"late": spec.In}
			op := Aggregate(spec, Definition[event, window.Time]{Assigner: tumbling(60_000), Trigger: c.trigger}, sums(t))
			rt := kit.Runtime()
			late := kit.Record(t, op.Output("late"), rt)
			out := kit.OpenAt(t, op, rt)
			push(t, op, []int64{0, 30_000}, event{"a", 0}, event{"a", 30})
			mark(t, op, 61_000)
			out.Want(t, "a [0,60000) 30@59999", "watermark 61000")
			push(t, op, []int64{40_000}, event{"a", 40})
			out.Want(t, c.second)
			mark(t, op, 90_000)
			push(t, op, []int64{50_000}, event{"a", 50})
			out.Want(t, "watermark 90000")
			late.Want(t, "watermark 61000", "watermark 90000", "{a 50}@50000")
		})
	}
}

// TestExtremeTimesSaturate is trap B012: no window wraps around.
func TestExtremeTimesSaturate(t *testing.T) {
	spec := specOf[string](t)
	spec.Lateness = math.MaxInt64
	op, out, host := sumsOf(t, spec, Definition[event, window.Time]{Assigner: window.Tumbling(time.Second)})
	pushTimes(t, op, 1000, math.MaxInt64, 2000)
	mark(t, op, 5000)
	out.Want(t, "a [1000,2000) 1000@1999", "a [2000,3000) 2000@2999", "watermark 5000")
	mark(t, op, math.MaxInt64)
	if got := out.Take(); !strings.Contains(got, fmt.Sprint(int64(math.MaxInt64))) {
		t.Errorf("the last window has not fired: %s", got)
	}
	if n := host.Metrics[windows.LateDropped].Read(); n != int64(0) {
		t.Errorf("%v late elements", n)
	}
}

// TestTouchingSessionsMerge is trap B016: in all orders, and never across keys.
func TestTouchingSessionsMerge(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		op, out, _ := sumsOf(t, specOf[string](t), Definition[event, window.Time]{Assigner: window.Session(10 * time.Millisecond)})
		for _, i := range order {
			at := []int64{0, 10, 21}[i]
			push(t, op, []int64{at, at + 1}, event{"a", at}, event{"b", at})
		}
		mark(t, op, 100)
		out.Want(t, "a [0,20) 10@19", "b [1,21) 10@20", "a [21,31) 21@30", "b [22,32) 21@31", "watermark 100")
	}
}

// TestSessionAfterOneThatWasForgottenOverlapsIt is trap B018.
func TestSessionAfterOneThatWasForgottenOverlapsIt(t *testing.T) {
	for lateness, want := range map[int64]string{0: "a [3,8) [{a 3}]@7", 10: "a [0,8) [{a 0} {a 3}]@7"} {
		spec := specOf[string](t)
		spec.Lateness = lateness
		op := Process(spec, Definition[event, window.Time]{Assigner: window.Session(5 * time.Millisecond)}, listEvents)
		out, _ := kit.Open(t, op)
		pushTimes(t, op, 0)
		mark(t, op, 6)
		out.Want(t, "a [0,5) [{a 0}]@4", "watermark 6")
		pushTimes(t, op, 3)
		mark(t, op, 8)
		out.Want(t, want, "watermark 8")
	}
}

// TestElementOfTheLastMillisecondIsInItsWindow is trap B013.
func TestElementOfTheLastMillisecondIsInItsWindow(t *testing.T) {
	op := Process(specOf[string](t), Definition[event, window.Time]{Assigner: window.TumblingProcessingTime(time.Second)}, listEvents)
	out, rt := kit.Open(t, op)
	tick := func(now int64, n int64) { // a task runs the timers that the clock is past, then takes elements
		rt.Now = now
		kit.Must(t, rt.Timers.Run(now-1))
		push(t, op, nil, event{"a", n})
	}
	tick(999, 1)
	tick(999, 2)
	out.Want(t)
	tick(1000, 3)
	out.Want(t, "a [0,1000) [{a 1} {a 2}]@999")
	tick(2000, 4)
	out.Want(t, "a [1000,2000) [{a 3}]@1999")
}

func TestElementWithoutTimestampNamesThePlace(t *testing.T) {
	op, _, _ := sumsOf(t, specOf[string](t), Definition[event, window.Time]{Assigner: window.Tumbling(time.Second)})
	err := op.Inputs()[0].Push(kit.Run(t, nil, event{"a", 1}))
	if !errors.Is(err, window.ErrNoTimestamp) || !strings.Contains(err.Error(), "job.go:12") {
		t.Errorf("got %v", err)
	}
}

// failing is a window of everything that goes wrong.
type failing struct{ at string }

var errBroken = errors.New("broken")

func (f failing) err(at string) error {
	if f.at == at {
		return errBroken
	}
	return nil
}

func (f failing) Assign(dst []window.Time, ts, now int64) ([]window.Time, error) {
	dst, err := window.Session(5*time.Millisecond).Assign(dst, ts, now)
	return dst, errors.Join(err, f.err("assign"))
}
func (failing) Domain() process.Domain           { return process.EventTime }
func (f failing) DefaultTrigger() window.Trigger { return f }
func (failing) Merge(ws []window.Time, merged func(window.Time, []window.Time)) {
	window.Session(5*time.Millisecond).Merge(ws, merged)
}
func (f failing) New(*process.Runtime) window.TriggerFunction { return f }
func (failing) CanMerge() bool                                { return true }
func (f failing) OnElement(*window.TriggerContext, int64) (window.TriggerResult, error) {
	return window.Fire, f.err("element")
}

func (f failing) OnEventTime(*window.TriggerContext, int64) (window.TriggerResult, error) {
	return window.Continue, f.err("time")
}

func (failing) OnProcessingTime(*window.TriggerContext, int64) (window.TriggerResult, error) {
	return window.Continue, nil
}
func (f failing) Clear(*window.TriggerContext) error { return f.err("clear") }
func (f failing) OnMerge(*window.MergeContext) error { return f.err("merge") }

func (f failing) Process(*window.Context[string, window.Time], []event, *process.Collector[string]) error {
	return f.err("process")
}

func TestErrorsOfUserCodeComeBack(t *testing.T) {
	for _, at := range []string{"assign", "element", "time", "clear", "merge", "process"} {
		f := failing{at}
		op := Process(specOf[string](t), Definition[event, window.Time]{Assigner: f}, func(*window.Runtime) window.Function[string, event, window.Time, string] { return f })
		kit.Open(t, op)
		in := op.Inputs()[0]
		err := in.Push(kit.Run(t, []int64{0, 3}, event{"a", 1}, event{"a", 2}))
		if err == nil {
			err = in.Mark(kit.Watermark(50))
		}
		if !errors.Is(err, errBroken) {
			t.Errorf("%s: got %v", at, err)
		}
	}
}

func TestDefinitionsThatCanNotWorkAreRefused(t *testing.T) {
	session, tumbles := window.Session(time.Second), window.Tumbling(time.Second)
	element := elementTumbling{tumbles}
	spec := specOf[string](t)
	wrong := spec
	wrong.Late, wrong.Sides = "late", map[string]*frame.Type{"late": spec.Out}
	fold := sums(t)
	fold.Merge = nil
	process := func(spec windows.Spec, d Definition[event, window.Time]) operator.Operator {
		return Process(spec, d, listEvents)
	}
	for want, op := range map[string]operator.Operator{
		"exactly one assigner":                process(spec, Definition[event, window.Time]{}),
		"need exactly one assigner":           process(spec, Definition[event, window.Time]{Assigner: tumbles, ElementAssigner: element}),
		"at most one trigger":                 process(spec, Definition[event, window.Time]{Assigner: tumbles, Trigger: window.NeverTrigger(), ElementTrigger: window.DeltaTrigger(1, delta)}),
		"at most one evictor":                 process(spec, Definition[event, window.Time]{Assigner: tumbles, Evictor: window.CountEvictor(1), ElementEvictor: window.DeltaEvictor(1, delta)}),
		"the trigger can't be used with":      process(spec, Definition[event, window.Time]{Assigner: session, Trigger: unmergeable{}}),
		"has no default":                      process(spec, Definition[event, window.Time]{Assigner: untriggered{fixed{5}}}),
		"it has no OnMerge":                   process(spec, Definition[event, window.Time]{Assigner: session, Trigger: pretending{}}),
		"it is read as string":                process(wrong, Definition[event, window.Time]{Assigner: tumbles}),
		"windows that merge can't be folded":  Aggregate(spec, Definition[event, window.Time]{Assigner: session}, fold),
		"declared twice with different types": process(spec, Definition[event, window.Time]{Assigner: tumbles, Trigger: twice{}}),
		"not allowed when using merging windows": Process(spec, Definition[event, window.Time]{Assigner: session}, func(rt *window.Runtime) window.Function[string, event, window.Time, string] {
			state.NewValue[int](rt.PerWindow(), "seen")
			return listing[event]{}
		}),
	} {
		err := op.Open(kit.Runtime())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		kit.Must(t, op.Close())
	}
}

func delta(a, b event) float64 { return float64(b.N - a.N) }

type elementTumbling struct{ window.TumblingAssigner }

func (a elementTumbling) AssignElement(dst []window.Time, _ *event, ts, now int64) ([]window.Time, error) {
	return a.Assign(dst, ts, now)
}

type unmergeable struct{ failing }

func (unmergeable) CanMerge() bool { return false }

type untriggered struct{ fixed }

func (untriggered) DefaultTrigger() window.Trigger { return nil }

// pretending says that it can merge, but its functions can't.
type pretending struct{ failing }

func (pretending) New(*process.Runtime) window.TriggerFunction {
	return struct{ window.TriggerFunction }{failing{}}
}

// twice declares one state with two types.
type twice struct{ failing }

func (twice) New(rt *process.Runtime) window.TriggerFunction {
	state.NewValue[int](rt, "n")
	state.NewValue[string](rt, "n")
	return failing{}
}

// TestPerWindowStateIsTheWindowsOwn also looks at state per key of the same name, and at the trigger's.
func TestPerWindowStateIsTheWindowsOwn(t *testing.T) {
	spec := specOf[string](t)
	op := Process(spec, Definition[event, window.Time]{Assigner: window.Sliding(20*time.Millisecond, 10*time.Millisecond), Trigger: window.CountTrigger(1)},
		func(rt *window.Runtime) window.Function[string, event, window.Time, string] {
			return &counting{state.NewValue[int](rt, "count"), state.NewValue[int](rt.PerWindow(), "count")}
		})
	out, tables := openSpied(t, op)
	pushTimes(t, op, 15, 25)
	out.Want(t, "1 of 1@29", "1 of 2@19", "1 of 3@39", "2 of 4@29")
	mark(t, op, 100)
	out.Want(t, "watermark 100")
	for name, n := range map[string]int{"count": 1, "window count": 0, "trigger count": 0, contentsName: 0} {
		if got := tables[name].Len(); got != n {
			t.Errorf("table %q has %d entries, want %d", name, got, n)
		}
	}
}

type counting struct{ all, own *state.Value[int] }

func (c *counting) Process(_ *window.Context[string, window.Time], _ []event, out *process.Collector[string]) error {
	c.all.Set(c.all.Get() + 1)
	c.own.Set(c.own.Get() + 1)
	out.Collect(fmt.Sprintf("%d of %d", c.own.Get(), c.all.Get()))
	return nil
}

func (c *counting) Clear(*window.Context[string, window.Time]) error {
	c.own.Clear()
	return nil
}

// TestManyWindowsFireTogether sends more results than a run holds, to an end that fails, too.
func TestManyWindowsFireTogether(t *testing.T) {
	for _, d := range []Definition[event, window.Time]{{Assigner: tumbling(10)}, {Assigner: tumbling(10), Evictor: window.CountEvictor(1)}} {
		op, out, _ := sumsOf(t, specOf[string](t), d)
		const n = 5000
		for i := range int64(n) {
			push(t, op, []int64{3}, event{fmt.Sprint(i), i})
		}
		mark(t, op, 9)
		if len(out.Values) != n {
			t.Fatalf("%d results, want %d", len(out.Values), n)
		}
		for _, length := range out.Runs {
			if length > frame.MaxLen {
				t.Errorf("a run of %d", length)
			}
		}
		for i := range int64(n) {
			push(t, op, []int64{13}, event{fmt.Sprint(i), i})
		}
		out.Fail, out.Values = errBroken, nil
		if err := op.Inputs()[0].Mark(kit.Watermark(19)); !errors.Is(err, errBroken) || len(out.Values) > frame.MaxLen {
			t.Errorf("got %v after %d results", err, len(out.Values))
		}
	}
}

// closing fails when it is closed.
type closing struct{ listing[event] }

func (closing) Close() error { return errBroken }

func TestFunctionsAreClosed(t *testing.T) {
	op := Process(specOf[string](t), Definition[event, window.Time]{Assigner: tumbling(10)}, func(*window.Runtime) window.Function[string, event, window.Time, string] {
		return closing{}
	})
	kit.Must(t, op.Open(kit.Runtime()))
	if err := op.Close(); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}
