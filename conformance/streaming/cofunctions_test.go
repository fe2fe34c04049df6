package streaming_test

import (
	"fmt"

	"github.com/flott-dev/flott/process"
)

// The functions of the vectors on two inputs, a number and a text.

// coPlain makes a function on two inputs of closures.
type coPlain[A, B, R any] struct {
	first  func(ctx *process.Context, a A, out *process.Collector[R])
	second func(ctx *process.Context, b B, out *process.Collector[R])
}

func (f *coPlain[A, B, R]) ProcessElement1(ctx *process.Context, a A, out *process.Collector[R]) error {
	f.first(ctx, a, out)
	return nil
}

func (f *coPlain[A, B, R]) ProcessElement2(ctx *process.Context, b B, out *process.Collector[R]) error {
	f.second(ctx, b, out)
	return nil
}

func coQuery(c timed, v any, d process.Domain) string {
	if d == process.EventTime {
		return fmt.Sprintf("%vWM:%d TS:%s", v, c.Watermark(), stamp(c))
	}
	return fmt.Sprintf("%vPT:%d TS:%s", v, c.ProcessingTime(), stamp(c))
}

// coFunction is a function of that name for two inputs without keys; nil if there is none.
func coFunction(f *functionSpec) constructor[*coPlain[int64, string, string]] {
	type self = coPlain[int64, string, string]
	if f.Name != "co_query_time" {
		return nil
	}
	d := f.domain()
	return func(*process.Runtime) *self {
		return &self{
			first: func(ctx *process.Context, a int64, out *process.Collector[string]) { out.Collect(coQuery(ctx, a, d)) },
			second: func(ctx *process.Context, b string, out *process.Collector[string]) {
				out.Collect(coQuery(ctx, b, d))
			},
		}
	}
}

// coKeyed makes a keyed function on two inputs of closures.
type coKeyed struct {
	element func(ctx *process.KeyedContext[string], input int, v string, out *process.Collector[string])
	timer   func(ctx *process.KeyedContext[string], t process.Timer, out *process.Collector[string])
}

func (f *coKeyed) ProcessElement1(ctx *process.KeyedContext[string], a int64, out *process.Collector[string]) error {
	f.element(ctx, 1, fmt.Sprint(a), out)
	return nil
}

func (f *coKeyed) ProcessElement2(ctx *process.KeyedContext[string], b string, out *process.Collector[string]) error {
	f.element(ctx, 2, b, out)
	return nil
}

func (f *coKeyed) OnTimer(ctx *process.KeyedContext[string], t process.Timer, out *process.Collector[string]) error {
	if f.timer == nil {
		return fmt.Errorf("a timer at %d fires: the function has none", t.Millis)
	}
	f.timer(ctx, t, out)
	return nil
}

// coKeyedFunction is a keyed function of that name; nil if there is none.
func coKeyedFunction(f *functionSpec, cells cellMaker) constructor[*coKeyed] {
	type context = *process.KeyedContext[string]
	type output = *process.Collector[string]
	switch f.Name {
	case "co_query_time":
		d := f.domain()
		return func(*process.Runtime) *coKeyed {
			return &coKeyed{element: func(ctx context, _ int, v string, out output) { out.Collect(coQuery(ctx, v, d)) }}
		}
	case "co_timer_5_6":
		return coTimerFiveSix(f.domain())
	case "co_stateful_timer":
		d := f.domain()
		return func(rt *process.Runtime) *coKeyed {
			s := cells(rt)
			return &coKeyed{
				element: func(ctx context, input int, v string, out output) {
					stateful(ctx, d, s, number(v), fmt.Sprintf("INPUT%d:", input), out)
				},
				timer: func(_ context, _ process.Timer, out output) {
					v, _ := s.get()
					out.Collect(fmt.Sprintf("STATE:%d", v))
				},
			}
		}
	case "co_both_timers":
		return coBothTimers
	case "co_append_key":
		return func(*process.Runtime) *coKeyed {
			return &coKeyed{element: func(ctx context, _ int, v string, out output) { out.Collect(v + "," + ctx.Key()) }}
		}
	}
	return nil
}

func coTimerFiveSix(d process.Domain) constructor[*coKeyed] {
	return func(*process.Runtime) *coKeyed {
		return &coKeyed{
			element: func(ctx *process.KeyedContext[string], input int, v string, out *process.Collector[string]) {
				out.Collect(fmt.Sprintf("INPUT%d:%s", input, v))
				ctx.RegisterTimer(d, int64(4+input))
			},
			timer: func(ctx *process.KeyedContext[string], t process.Timer, out *process.Collector[string]) {
				if t.Domain == process.EventTime {
					out.Collect(ctx.Key() + ":1777")
					return
				}
				out.Collect("1777")
			},
		}
	}
}

func coBothTimers(*process.Runtime) *coKeyed {
	return &coKeyed{
		element: func(ctx *process.KeyedContext[string], input int, _ string, _ *process.Collector[string]) {
			if input == 1 {
				ctx.RegisterTimer(process.ProcessingTime, 3)
				ctx.RegisterTimer(process.EventTime, 6)
				ctx.DeleteTimer(process.ProcessingTime, 3)
				return
			}
			ctx.RegisterTimer(process.EventTime, 4)
			ctx.RegisterTimer(process.ProcessingTime, 5)
			ctx.DeleteTimer(process.EventTime, 4)
		},
		timer: func(_ *process.KeyedContext[string], t process.Timer, out *process.Collector[string]) {
			out.Collect(timerText(t))
		},
	}
}
