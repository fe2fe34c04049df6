package custom

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

type (
	collector = *process.Collector[string]
	plain     = process.Operator[int64, string]
)

// runs is an operator with nothing but runs.
type runs struct {
	run func(ctx *process.OperatorContext, xs, times []int64, out collector) error
}

func (o runs) ProcessRun(ctx *process.OperatorContext, xs, times []int64, out collector) error {
	return o.run(ctx, xs, times, out)
}

// whole is an operator with everything that an operator can have.
type whole struct {
	runs
	watermark func(ctx *process.OperatorContext, ms int64, out collector) error
	timer     func(ctx *process.OperatorContext, ms int64, out collector) error
	finish    func(out collector) error
	close     func() error
}

func (o *whole) ProcessWatermark(ctx *process.OperatorContext, ms int64, out collector) error {
	return o.watermark(ctx, ms, out)
}

func (o *whole) OnProcessingTime(ctx *process.OperatorContext, ms int64, out collector) error {
	return o.timer(ctx, ms, out)
}
func (o *whole) Finish(out collector) error { return o.finish(out) }
func (o *whole) Close() error               { return o.close() }

// quiet is a whole operator that does nothing.
func quiet() *whole {
	return &whole{
		runs:      runs{func(*process.OperatorContext, []int64, []int64, collector) error { return nil }},
		watermark: func(*process.OperatorContext, int64, collector) error { return nil },
		timer:     func(*process.OperatorContext, int64, collector) error { return nil },
		finish:    func(collector) error { return nil },
		close:     func() error { return nil },
	}
}

func newDriver(t *testing.T, sides map[string]*frame.Type, op plain) operator.Operator {
	t.Helper()
	return Operator(kit.TypeOf[int64](t), kit.TypeOf[string](t), sides, func(*process.Runtime) plain { return op })
}

func ms(n int64) time.Time { return time.UnixMilli(n) }

func TestOperatorGetsWholeRunsAndEmits(t *testing.T) {
	tag := process.NewOutputTag[int64]("odd")
	op := newDriver(t, map[string]*frame.Type{"odd": kit.TypeOf[int64](t)}, runs{func(ctx *process.OperatorContext, xs, times []int64, out collector) error {
		out.Collect(fmt.Sprint(len(xs), times, max(-1, ctx.Watermark()), ctx.ProcessingTime()))
		for i, x := range xs {
			if x%2 == 1 {
				ctx.Emit(tag, x)
				ctx.EmitAt(tag, -x, 5)
			}
			if times != nil {
				out.SetTime(times[i] + 100)
				out.Collect(fmt.Sprint(x))
			}
		}
		return nil
	}})
	out, rt := kit.Open(t, op)
	odd := kit.Record(t, op.Output("odd"), rt)
	if op.Output("even") != nil {
		t.Error("a side output that nobody reads")
	}
	in := op.Inputs()[0]
	r := kit.Run(t, []int64{7, 8}, int64(1), 2)
	untouched := kit.Share(t, r)
	kit.Must(t, in.Push(r))
	untouched()
	kit.Must(t, in.Mark(kit.Watermark(6)))
	rt.Now = 9
	kit.Must(t, in.Push(kit.Run(t, nil, kit.Numbers(3)...)))
	kit.Must(t, in.Mark(kit.End()))
	out.Want(t, "2 [7 8] -1 0", "1@107", "2@108", "watermark 6", "3 [] 6 9", "end")
	odd.Want(t, "1", "-1@5", "watermark 6", "1", "-1@5", "end")
}

func TestOperatorEmitsMoreThanAColumnHolds(t *testing.T) {
	n := 5 * frame.MaxLen
	op := newDriver(t, nil, runs{func(_ *process.OperatorContext, _, _ []int64, out collector) error {
		for i := range n {
			out.Collect(fmt.Sprint(i))
		}
		return nil
	}})
	out, _ := kit.Open(t, op)
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, int64(1))))
	if len(out.Got) != n || out.Got[n-1] != fmt.Sprint(n-1) || slices.Max(out.Runs) > frame.MaxLen {
		t.Errorf("%d elements in runs of %v", len(out.Got), out.Runs)
	}
	own := errors.New("own")
	out.Fail = own
	if err := op.Inputs()[0].Push(kit.Run(t, nil, int64(1))); !errors.Is(err, own) {
		t.Errorf("error %v", err)
	}
}

func TestWatermarkFollowsWhatItMakesTheOperatorEmit(t *testing.T) {
	o := quiet()
	o.watermark = func(ctx *process.OperatorContext, ms int64, out collector) error {
		out.Collect(fmt.Sprint("before ", ms, " at ", ctx.Watermark()))
		return nil
	}
	o.finish = func(out collector) error {
		out.Collect("last words")
		return nil
	}
	op := newDriver(t, nil, o)
	out, _ := kit.Open(t, op)
	in := op.Inputs()[0]
	kit.Must(t, in.Mark(kit.Watermark(3)))
	kit.Must(t, in.Mark(frame.Mark{Kind: frame.Idle}))
	kit.Must(t, in.Mark(kit.End()))
	out.Want(t, "before 3 at 3", "watermark 3", "idle", "last words", "end")
}

func TestTimersAreASetOfTimes(t *testing.T) {
	o, again := quiet(), true
	o.run = func(ctx *process.OperatorContext, xs, _ []int64, _ collector) error {
		for _, x := range xs {
			if x < 0 {
				ctx.DeleteProcessingTimeTimer(ms(-x))
			} else {
				ctx.RegisterProcessingTimeTimer(ms(x))
			}
		}
		return nil
	}
	o.timer = func(ctx *process.OperatorContext, at int64, out collector) error {
		out.Collect(fmt.Sprint("timer ", at))
		if at == 10 && again {
			again = false
			ctx.RegisterProcessingTimeTimer(ms(12))
			ctx.RegisterProcessingTimeTimer(ms(10)) // its own time, once more
			ctx.DeleteProcessingTimeTimer(ms(20))
		}
		return nil
	}
	op := newDriver(t, nil, o)
	out, rt := kit.Open(t, op)
	in := op.Inputs()[0]
	kit.Must(t, in.Push(kit.Run(t, nil, int64(30), 10, 10, 15, -15, 20, -99, 40)))
	rt.At = nil
	kit.Must(t, rt.Timers.Run(9))
	out.Want(t)
	kit.Must(t, rt.Timers.Run(35))
	out.Want(t, "timer 10", "timer 10", "timer 12", "timer 30")
	if rt.At != rt {
		t.Error("a failure of a timer would be named by another operator")
	}
	kit.Must(t, in.Mark(kit.End()))
	out.Want(t, "end")
	kit.Must(t, in.Push(kit.Run(t, nil, int64(50)))) // there are no timers after the end
	if at, ok := rt.Timers.Next(); ok {
		t.Errorf("a timer for %d is left after the end", at)
	}
}

func TestTimersOfOperatorsWithoutHandlerDoNothing(t *testing.T) {
	op := newDriver(t, nil, runs{func(ctx *process.OperatorContext, _, _ []int64, _ collector) error {
		ctx.RegisterProcessingTimeTimer(ms(5))
		return nil
	}})
	rt := kit.Runtime()
	out := kit.Record(t, op.Output(""), rt)
	kit.Must(t, op.Open(rt))
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, int64(1))))
	kit.Must(t, rt.Timers.Run(5))
	out.Want(t)
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, int64(1))))
	kit.Must(t, op.Close())
	if _, ok := rt.Timers.Next(); ok {
		t.Error("a timer is left after Close")
	}
}

func TestEventTimeTimersNeedKeys(t *testing.T) {
	o := &services{}
	for name, call := range map[string]func(process.Domain, int64){"register": o.Register, "delete": o.Delete} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "keyed") {
					t.Errorf("%s: %s", name, got)
				}
			}()
			call(process.EventTime, 1)
		}()
	}
}

func TestErrorsOfEveryCallComeBack(t *testing.T) {
	own := errors.New("own")
	fails := map[string]func(*whole){
		"run": func(o *whole) {
			o.run = func(*process.OperatorContext, []int64, []int64, collector) error { return own }
		},
		"watermark": func(o *whole) { o.watermark = func(*process.OperatorContext, int64, collector) error { return own } },
		"timer":     func(o *whole) { o.timer = func(*process.OperatorContext, int64, collector) error { return own } },
		"finish":    func(o *whole) { o.finish = func(collector) error { return own } },
		"close":     func(o *whole) { o.close = func() error { return own } },
	}
	for name, fail := range fails {
		o := quiet()
		fail(o)
		op := newDriver(t, nil, o)
		rt := kit.Runtime()
		out := kit.Record(t, op.Output(""), rt)
		kit.Must(t, op.Open(rt))
		in := op.Inputs()[0]
		for _, step := range []struct {
			name string
			call func() error
		}{
			{"run", func() error { return in.Push(kit.Run(t, nil, int64(1))) }},
			{"watermark", func() error { return in.Mark(kit.Watermark(1)) }},
			{"timer", func() error {
				op.(*driver[int64, string]).services.Register(process.ProcessingTime, 3)
				return rt.Timers.Run(3)
			}},
			{"finish", func() error { return in.Mark(kit.End()) }},
			{"close", op.Close},
		} {
			if err := step.call(); errors.Is(err, own) != (step.name == name) {
				t.Errorf("%s fails: %s returns %v", name, step.name, err)
			}
		}
		if name == "watermark" && slices.Contains(out.Got, "watermark 1") || name == "finish" && slices.Contains(out.Got, "end") {
			t.Errorf("%s fails: its mark went on (%q)", name, out.Got)
		}
	}
}

func TestConstructorsMistakesAndStateWithoutKeys(t *testing.T) {
	typ, own := kit.TypeOf[int64](t), errors.New("own")
	refused := Operator(typ, kit.TypeOf[string](t), nil, func(rt *process.Runtime) plain {
		rt.Report(own)
		return nil
	})
	if err := refused.Open(kit.Runtime()); !errors.Is(err, own) {
		t.Errorf("error %v", err)
	}
	kit.Must(t, refused.Close())

	op := Operator(typ, kit.TypeOf[string](t), nil, func(rt *process.Runtime) plain {
		v := state.NewValue[int64](rt, "v")
		return runs{func(*process.OperatorContext, []int64, []int64, collector) error {
			v.Set(1)
			return nil
		}}
	})
	kit.Open(t, op)
	var not *state.NotKeyedError
	if err := op.Inputs()[0].Push(kit.Run(t, nil, int64(1))); !errors.As(err, &not) || not.State != "v" {
		t.Errorf("error %v", err)
	}
}
