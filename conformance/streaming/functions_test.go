package streaming_test

import (
	"fmt"
	"strconv"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// The functions of the vectors on one input: section 8 of the vectors' README.

// pair is a tuple of a number and a text.
type pair struct {
	A int64
	B string
}

func (p *pair) UnmarshalJSON(b []byte) error { return tuple(b, &p.A, &p.B) }

// timed is what contexts of all kinds have in common.
type timed interface {
	TimestampMillis() int64
	Watermark() int64
	ProcessingTime() int64
}

// clocked is timed with timers.
type clocked interface {
	timed
	RegisterTimer(d process.Domain, ms int64)
	DeleteTimer(d process.Domain, ms int64)
}

// now is the time of a domain.
func now(c timed, d process.Domain) int64 {
	if d == process.EventTime {
		return c.Watermark()
	}
	return c.ProcessingTime()
}

// stamp prints the element's timestamp, null if there is none.
func stamp(c timed) string {
	if t := c.TimestampMillis(); t != flotttest.NoTime {
		return strconv.FormatInt(t, 10)
	}
	return "null"
}

func query(c timed, v any, d process.Domain) string {
	return fmt.Sprintf("%vTIME:%d TS:%s", v, now(c, d), stamp(c))
}

func nilTag() process.OutputTag[int64] { return process.OutputTag[int64]{} }

func intOut() process.OutputTag[int32] { return process.NewOutputTag[int32]("int-out") }

func longOut() process.OutputTag[int64] { return process.NewOutputTag[int64]("long-out") }

// plain makes a function without a key of a closure.
type plain[T, R any] func(ctx *process.Context, x T, out *process.Collector[R]) error

func (f plain[T, R]) ProcessElement(ctx *process.Context, x T, out *process.Collector[R]) error {
	return f(ctx, x, out)
}

// plainFunction is a function of that name for operators without a key; nil if there is none.
func plainFunction(f *functionSpec) plain[int64, string] {
	switch f.Name {
	case "query_time":
		d := f.domain()
		return func(ctx *process.Context, x int64, out *process.Collector[string]) error {
			out.Collect(query(ctx, x, d))
			return nil
		}
	case "null_output_tag":
		return func(ctx *process.Context, x int64, _ *process.Collector[string]) error {
			ctx.Emit(nilTag(), x)
			return nil
		}
	case "side_output_in":
		return func(ctx *process.Context, x int64, out *process.Collector[string]) error {
			sideOutputIn(ctx, x, out)
			return nil
		}
	}
	return nil
}

func sideOutputIn(ctx *process.Context, x int64, out *process.Collector[string]) {
	out.Collect(fmt.Sprintf("IN:%d", x))
	ctx.Emit(intOut(), int32(x))
	ctx.Emit(longOut(), x)
}

// keyed makes a keyed function of closures.
type keyed[K, T, R any] struct {
	element func(ctx *process.KeyedContext[K], x T, out *process.Collector[R]) error
	timer   func(ctx *process.KeyedContext[K], t process.Timer, out *process.Collector[R]) error
}

func (f *keyed[K, T, R]) ProcessElement(ctx *process.KeyedContext[K], x T, out *process.Collector[R]) error {
	return f.element(ctx, x, out)
}

func (f *keyed[K, T, R]) OnTimer(ctx *process.KeyedContext[K], t process.Timer, out *process.Collector[R]) error {
	if f.timer == nil {
		return fmt.Errorf("a timer at %d fires: the function has none", t.Millis)
	}
	return f.timer(ctx, t, out)
}

type constructor[P any] = func(*process.Runtime) P

// secondField is emit_second_field_checking_key.
func secondField(*process.Runtime) *keyed[int64, pair, string] {
	return &keyed[int64, pair, string]{
		element: func(ctx *process.KeyedContext[int64], x pair, out *process.Collector[string]) error {
			if ctx.Key() != x.A {
				return fmt.Errorf("the key is %d at element %v", ctx.Key(), x)
			}
			out.Collect(x.B)
			return nil
		},
	}
}

// timerPlusFive is emit_and_timer_plus_5.
func timerPlusFive[K any](d process.Domain) constructor[*keyed[K, int64, int64]] {
	return func(*process.Runtime) *keyed[K, int64, int64] {
		return &keyed[K, int64, int64]{
			element: func(ctx *process.KeyedContext[K], x int64, out *process.Collector[int64]) error {
				out.Collect(x)
				ctx.RegisterTimer(d, now(ctx, d)+5)
				return nil
			},
			timer: func(_ *process.KeyedContext[K], _ process.Timer, out *process.Collector[int64]) error {
				out.Collect(1777)
				return nil
			},
		}
	}
}

// keyedFunction are the functions on numbers that emit texts; nil if there is none of that name.
func keyedFunction[K any](f *functionSpec, cells cellMaker) constructor[*keyed[K, int64, string]] {
	type self = keyed[K, int64, string]
	type context = *process.KeyedContext[K]
	type output = *process.Collector[string]
	switch f.Name {
	case "query_time":
		d := f.domain()
		return func(*process.Runtime) *self {
			return &self{element: func(ctx context, x int64, out output) error {
				out.Collect(query(ctx, x, d))
				return nil
			}}
		}
	case "stateful_timer":
		d := f.domain()
		return func(rt *process.Runtime) *self {
			s := cells(rt)
			return &self{
				element: func(ctx context, x int64, out output) error {
					stateful(ctx, d, s, x, "INPUT:", out)
					return nil
				},
				timer: func(_ context, _ process.Timer, out output) error {
					v, _ := s.get()
					out.Collect(fmt.Sprintf("STATE:%d", v))
					return nil
				},
			}
		}
	case "both_timers":
		return func(*process.Runtime) *self {
			return &self{
				element: func(ctx context, _ int64, _ output) error {
					ctx.RegisterTimer(process.ProcessingTime, 3)
					ctx.RegisterTimer(process.EventTime, 4)
					ctx.RegisterTimer(process.ProcessingTime, 5)
					ctx.RegisterTimer(process.EventTime, 6)
					ctx.DeleteTimer(process.ProcessingTime, 3)
					ctx.DeleteTimer(process.EventTime, 4)
					return nil
				},
				timer: func(_ context, t process.Timer, out output) error {
					out.Collect(timerText(t))
					return nil
				},
			}
		}
	case "null_output_tag":
		return func(*process.Runtime) *self {
			return &self{element: func(ctx context, x int64, _ output) error {
				ctx.Emit(nilTag(), x)
				return nil
			}}
		}
	case "side_output_in":
		return func(*process.Runtime) *self {
			return &self{element: func(ctx context, x int64, out output) error {
				sideOutputIn(&ctx.Context, x, out)
				return nil
			}}
		}
	}
	return nil
}

func timerText(t process.Timer) string {
	if t.Domain == process.EventTime {
		return "EVENT:1777"
	}
	return "PROC:1777"
}

// stateful is what the stateful functions do with an element: remember it and set a timer, or take both back.
func stateful(ctx clocked, d process.Domain, s cell, x int64, prefix string, out *process.Collector[string]) {
	if _, ok := s.get(); ok {
		s.clear()
		ctx.DeleteTimer(d, now(ctx, d)+4)
		return
	}
	out.Collect(fmt.Sprintf("%s%d", prefix, x))
	s.set(x)
	ctx.RegisterTimer(d, now(ctx, d)+5)
}

// cell is a number in keyed state.
type cell interface {
	get() (int64, bool)
	set(int64)
	clear()
}

type cellMaker func(*process.Runtime) cell

// layouts are cells in every layout of state.
func layouts() map[string]cellMaker {
	return map[string]cellMaker{"fixed": cells(fixedNumber()), "text": cells(textNumber()), "encoded": cells(encodedNumber())}
}

// asNumber is how a number is kept as a V.
type asNumber[V any] struct {
	to   func(int64) V
	from func(V) int64
}

func fixedNumber() asNumber[int64] {
	same := func(x int64) int64 { return x }
	return asNumber[int64]{same, same}
}

func textNumber() asNumber[string] {
	return asNumber[string]{func(x int64) string { return strconv.FormatInt(x, 10) }, number}
}

func encodedNumber() asNumber[[]int64] {
	return asNumber[[]int64]{func(x int64) []int64 { return []int64{0, x} }, func(xs []int64) int64 { return xs[1] }}
}

func number(text string) int64 {
	x, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return x
}

func cells[V any](as asNumber[V]) cellMaker {
	return func(rt *process.Runtime) cell { return &stateCell[V]{state.NewValue[V](rt, "state"), as} }
}

type stateCell[V any] struct {
	v  *state.Value[V]
	as asNumber[V]
}

func (c *stateCell[V]) get() (int64, bool) {
	v, ok := c.v.Lookup()
	if !ok {
		return 0, false
	}
	return c.as.from(v), true
}

func (c *stateCell[V]) set(x int64) { c.v.Set(c.as.to(x)) }

func (c *stateCell[V]) clear() { c.v.Clear() }
