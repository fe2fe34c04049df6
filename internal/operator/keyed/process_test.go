package keyed

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// function is a keyed function of closures.
type function struct {
	element func(ctx *process.KeyedContext[string], x text, out *process.Collector[string]) error
	timer   func(ctx *process.KeyedContext[string], t process.Timer, out *process.Collector[string]) error
}

func (f function) ProcessElement(ctx *process.KeyedContext[string], x text, out *process.Collector[string]) error {
	return f.element(ctx, x, out)
}

func (f function) OnTimer(ctx *process.KeyedContext[string], t process.Timer, out *process.Collector[string]) error {
	return f.timer(ctx, t, out)
}

// whole is a function with an end.
type whole struct {
	function
	finish func(out *process.Collector[string]) error
	close  func() error
}

func (f whole) Finish(out *process.Collector[string]) error { return f.finish(out) }
func (f whole) Close() error                                { return f.close() }

type keyedFunction = process.KeyedFunction[string, text, string]

func newProcess(t *testing.T, sides map[string]*frame.Type, construct func(*process.Runtime) keyedFunction) operator.Operator {
	t.Helper()
	return Process(kit.TypeOf[text](t), kit.TypeOf[string](t), kit.KeyOf(t, textKey), sides, construct)
}

// counting counts the elements of each key, with a timer of each domain 10 ms after each element's N.
func counting(rt *process.Runtime) function {
	n := state.NewValue[int64](rt, "n")
	return function{
		element: func(ctx *process.KeyedContext[string], x text, out *process.Collector[string]) error {
			n.Set(n.Get() + 1)
			ctx.RegisterTimer(process.EventTime, x.N+10)
			ctx.RegisterTimer(process.ProcessingTime, x.N+10)
			out.Collect(fmt.Sprint(ctx.Key(), " ", n.Get()))
			return nil
		},
		timer: func(ctx *process.KeyedContext[string], at process.Timer, out *process.Collector[string]) error {
			out.Collect(fmt.Sprint(ctx.Key(), " ", at.Domain, " ", at.Millis, ": ", n.Get(), ", watermark ", max(-1, ctx.Watermark())))
			return nil
		},
	}
}

func TestStateAndTimersBelongToTheKeyAtHand(t *testing.T) {
	op := newProcess(t, nil, func(rt *process.Runtime) keyedFunction { return counting(rt) })
	out, rt := kit.Open(t, op)
	in := op.Inputs()[0]
	kit.Must(t, in.Push(kit.Run(t, []int64{1, 2, 3}, text{"a", 1}, text{"b", 2}, text{"a", 3})))
	out.Want(t, "a 1@1", "b 1@2", "a 2@3")
	kit.Must(t, in.Push(kit.Run(t, nil, text{"b", 2})))
	out.Want(t, "b 2")
	kit.Must(t, in.Mark(kit.Watermark(12)))
	out.Want(t, "a event time 11: 2, watermark 12@11", "b event time 12: 2, watermark 12@12", "watermark 12")
	rt.Now, rt.At = 12, nil
	kit.Must(t, rt.Timers.Run(11))
	out.Want(t, "a processing time 11: 2, watermark 12")
	if rt.At != rt {
		t.Error("a failure of a timer would be named by another operator")
	}
	kit.Must(t, in.Mark(kit.End()))
	out.Want(t, "end")
}

func TestLongRunsKeepTheirKeys(t *testing.T) {
	op := newProcess(t, nil, func(rt *process.Runtime) keyedFunction { return counting(rt) })
	out, _ := kit.Open(t, op)
	n := 2*frame.MaxLen + 9
	xs := make([]text, n)
	for i := range xs {
		xs[i] = text{K: fmt.Sprint(i % 3)}
	}
	r := kit.Run(t, nil, xs...)
	untouched := kit.Share(t, r)
	kit.Must(t, op.Inputs()[0].Push(r))
	untouched()
	for i, got := range out.Got {
		if want := fmt.Sprint(i%3, " ", i/3+1); got != want {
			t.Fatalf("result %d is %s, want %s", i, got, want)
		}
	}
}

func TestSideOutputsOfKeyedFunctions(t *testing.T) {
	tag := process.NewOutputTag[int64]("side")
	op := newProcess(t, map[string]*frame.Type{"side": kit.TypeOf[int64](t)}, func(*process.Runtime) keyedFunction {
		return function{
			element: func(ctx *process.KeyedContext[string], x text, _ *process.Collector[string]) error {
				ctx.Emit(tag, x.N)
				ctx.RegisterTimer(process.EventTime, 5)
				return nil
			},
			timer: func(ctx *process.KeyedContext[string], _ process.Timer, _ *process.Collector[string]) error {
				ctx.Emit(tag, 99)
				return nil
			},
		}
	})
	if op.Output("other") != nil {
		t.Error("a side output that nobody reads")
	}
	rt := kit.Runtime()
	side := kit.Record(t, op.Output("side"), rt)
	out := kit.OpenAt(t, op, rt)
	in := op.Inputs()[0]
	kit.Must(t, in.Push(kit.Run(t, []int64{3}, text{"a", 7})))
	kit.Must(t, in.Mark(kit.Watermark(5)))
	kit.Must(t, in.Mark(kit.End()))
	side.Want(t, "7@3", "99@5", "watermark 5", "end")
	out.Want(t, "watermark 5", "end")
}

func TestDeletedTimersDoNotFire(t *testing.T) {
	op := newProcess(t, nil, func(*process.Runtime) keyedFunction {
		return function{
			element: func(ctx *process.KeyedContext[string], x text, _ *process.Collector[string]) error {
				for _, d := range []process.Domain{process.EventTime, process.ProcessingTime} {
					if x.N < 0 {
						ctx.DeleteTimer(d, -x.N)
					} else {
						ctx.RegisterTimer(d, x.N)
					}
				}
				return nil
			},
			timer: func(ctx *process.KeyedContext[string], at process.Timer, out *process.Collector[string]) error {
				out.Collect(fmt.Sprint(ctx.Key(), at.Millis))
				return nil
			},
		}
	})
	out, rt := kit.Open(t, op)
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, text{"a", 4}, text{"b", 4}, text{"a", -4}, text{"a", -9})))
	kit.Must(t, op.Inputs()[0].Mark(kit.Watermark(10)))
	kit.Must(t, rt.Timers.Run(10))
	out.Want(t, "b4@4", "watermark 10", "b4")
}

// TestStateIsOutOfReachWithoutKey: at the end of the input no key is at hand.
func TestStateIsOutOfReachWithoutKey(t *testing.T) {
	var no *state.NoKeyContextError
	op := newProcess(t, nil, func(rt *process.Runtime) keyedFunction {
		n := state.NewValue[int64](rt, "n")
		return whole{
			function: function{element: func(*process.KeyedContext[string], text, *process.Collector[string]) error {
				n.Set(1)
				return nil
			}},
			finish: func(*process.Collector[string]) error {
				n.Set(2)
				return nil
			},
			close: func() error { return nil },
		}
	})
	out, _ := kit.Open(t, op)
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, text{"a", 4})))
	if err := op.Inputs()[0].Mark(kit.End()); !errors.As(err, &no) || slices.Contains(out.Got, "end") {
		t.Errorf("error %v, then %q", err, out.Got)
	}
}

func TestTimersNeedAKey(t *testing.T) {
	for name, use := range map[string]func(ctx *process.KeyedContext[string]){
		"register": func(ctx *process.KeyedContext[string]) { ctx.RegisterTimer(process.EventTime, 1) },
		"delete":   func(ctx *process.KeyedContext[string]) { ctx.DeleteTimer(process.EventTime, 1) },
	} {
		var kept *process.KeyedContext[string]
		op := newProcess(t, nil, func(*process.Runtime) keyedFunction {
			return function{element: func(ctx *process.KeyedContext[string], _ text, _ *process.Collector[string]) error {
				kept = ctx
				return nil
			}}
		})
		kit.Open(t, op)
		kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, text{"a", 4})))
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "no key is at hand") {
					t.Errorf("%s: %s", name, got)
				}
			}()
			use(kept)
		}()
	}
}

func TestErrorsOfKeyedFunctionsComeBack(t *testing.T) {
	own := errors.New("own")
	for _, failing := range []string{"", "element", "event timer", "processing timer", "finish", "close"} {
		at := func(step string) error {
			if step == failing {
				return own
			}
			return nil
		}
		op := newProcess(t, nil, func(*process.Runtime) keyedFunction {
			return whole{
				function: function{
					element: func(ctx *process.KeyedContext[string], _ text, _ *process.Collector[string]) error {
						ctx.RegisterTimer(process.EventTime, 5)
						ctx.RegisterTimer(process.ProcessingTime, 5)
						return at("element")
					},
					timer: func(_ *process.KeyedContext[string], timer process.Timer, _ *process.Collector[string]) error {
						if timer.Domain == process.EventTime {
							return at("event timer")
						}
						return at("processing timer")
					},
				},
				finish: func(out *process.Collector[string]) error {
					out.Collect("bye")
					return at("finish")
				},
				close: func() error { return at("close") },
			}
		})
		rt := kit.Runtime()
		out := kit.Record(t, op.Output(""), rt)
		kit.Must(t, op.Open(rt))
		in := op.Inputs()[0]
		for _, step := range []struct {
			name string
			call func() error
		}{
			{"element", func() error { return in.Push(kit.Run(t, nil, text{"a", 4})) }},
			{"event timer", func() error { return in.Mark(kit.Watermark(5)) }},
			{"processing timer", func() error { return rt.Timers.Run(5) }},
			{"finish", func() error { return in.Mark(kit.End()) }},
			{"close", op.Close},
		} {
			if err := step.call(); errors.Is(err, own) != (step.name == failing) {
				t.Errorf("%q fails: %s returns %v", failing, step.name, err)
			}
		}
		if failing == "" {
			out.Want(t, "watermark 5", "bye", "end")
		}
	}
}
