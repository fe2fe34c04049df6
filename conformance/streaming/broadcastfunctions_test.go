package streaming_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// The functions of the vectors on a stream (texts, or pairs) and a broadcast stream of numbers.

func brOut() process.OutputTag[string] { return process.NewOutputTag[string]("br-out") }

func nonBrOut() process.OutputTag[string] { return process.NewOutputTag[string]("non-br-out") }

// seen is what broadcast functions tell the test beside their output.
type seen struct {
	keyed     map[string][]string // all keys' lists, at the last broadcast element
	broadcast map[string]int64    // the broadcast state, at the last element of the stream
}

// states are the broadcast states of the functions.
type states struct {
	numbers *state.BroadcastDescriptor[string, int64] // text to number
	texts   *state.BroadcastDescriptor[int64, string] // number to text
}

func newStates() *states {
	return &states{state.NewBroadcast[string, int64]("numbers"), state.NewBroadcast[int64, string]("texts")}
}

func (s *states) all() []process.BroadcastDescriptor {
	return []process.BroadcastDescriptor{s.numbers, s.texts}
}

// bcKeyed makes a keyed broadcast function of closures.
type bcKeyed[K, T any] struct {
	element   func(ctx *process.KeyedReadOnlyContext[K], x T, out *process.Collector[string]) error
	broadcast func(ctx *process.KeyedBroadcastContext[K], b int64, out *process.Collector[string]) error
	timer     func(ctx *process.KeyedReadOnlyContext[K], t process.Timer, out *process.Collector[string]) error
}

func (f *bcKeyed[K, T]) ProcessElement(ctx *process.KeyedReadOnlyContext[K], x T, out *process.Collector[string]) error {
	return f.element(ctx, x, out)
}

func (f *bcKeyed[K, T]) ProcessBroadcastElement(ctx *process.KeyedBroadcastContext[K], b int64, out *process.Collector[string]) error {
	return f.broadcast(ctx, b, out)
}

func (f *bcKeyed[K, T]) OnTimer(ctx *process.KeyedReadOnlyContext[K], t process.Timer, out *process.Collector[string]) error {
	if f.timer == nil {
		return fmt.Errorf("a timer at %d fires: the function has none", t.Millis)
	}
	return f.timer(ctx, t, out)
}

// bcSecondField is emit_second_field_checking_key beside a broadcast stream.
func bcSecondField(*process.Runtime) *bcKeyed[int64, pair] {
	return &bcKeyed[int64, pair]{
		element: func(ctx *process.KeyedReadOnlyContext[int64], x pair, out *process.Collector[string]) error {
			if ctx.Key() != x.A {
				return fmt.Errorf("the key is %d at element %v", ctx.Key(), x)
			}
			out.Collect(x.B)
			return nil
		},
		broadcast: func(*process.KeyedBroadcastContext[int64], int64, *process.Collector[string]) error { return nil },
	}
}

type (
	bcContext   = *process.KeyedReadOnlyContext[string]
	bcBroadcast = *process.KeyedBroadcastContext[string]
	bcOutput    = *process.Collector[string]
	bcFunction  = bcKeyed[string, string]
)

func noElement(bcContext, string, bcOutput) error { return nil }

// bcKeyedFunction is a keyed broadcast function of that name; nil if there is none.
func bcKeyedFunction(f *functionSpec, s *states, see *seen) constructor[*bcFunction] {
	switch f.Name {
	case "bc_collect_keyed_lists":
		return bcCollect(see)
	case "bc_timer":
		return bcTimer(f.TimerTS)
	case "bc_side_output":
		return func(*process.Runtime) *bcFunction {
			return &bcFunction{
				element: func(ctx bcContext, x string, _ bcOutput) error {
					ctx.Emit(nonBrOut(), nonBroadcastText(ctx, x))
					return nil
				},
				broadcast: func(ctx bcBroadcast, b int64, _ bcOutput) error {
					ctx.Emit(brOut(), broadcastText(ctx, b))
					return nil
				},
			}
		}
	case "bc_broadcast_state":
		return bcState(f, s, see)
	case "bc_keyed_state_on_broadcast_side":
		return func(rt *process.Runtime) *bcFunction {
			v := state.NewValue[string](rt, "keyed")
			return &bcFunction{element: noElement, broadcast: func(bcBroadcast, int64, bcOutput) error {
				v.Get()
				return nil
			}}
		}
	case "bc_two_states", "bc_register_keys", "bc_register_and_dump":
		return func(*process.Runtime) *bcFunction {
			return &bcFunction{
				element: func(ctx bcContext, x string, out bcOutput) error {
					views := bcViews{ctx.BroadcastState(s.numbers), ctx.BroadcastState(s.texts)}
					dump(f, ctx, x, views, out)
					return nil
				},
				broadcast: func(ctx bcBroadcast, b int64, out bcOutput) error {
					fill(f, ctx, b, ctx.BroadcastState(s.numbers), ctx.BroadcastState(s.texts), out)
					return nil
				},
			}
		}
	}
	return nil
}

func broadcastText(ctx timed, b int64) string {
	return fmt.Sprintf("BR:%d WM:%d TS:%s", b, ctx.Watermark(), stamp(ctx))
}

func nonBroadcastText(ctx timed, x string) string {
	return fmt.Sprintf("NON-BR:%s WM:%d TS:%s", x, ctx.Watermark(), stamp(ctx))
}

func bcCollect(see *seen) constructor[*bcFunction] {
	return func(rt *process.Runtime) *bcFunction {
		list := state.NewList[string](rt, "list")
		return &bcFunction{
			element: func(_ bcContext, x string, _ bcOutput) error {
				list.Add(x)
				return nil
			},
			broadcast: func(ctx bcBroadcast, _ int64, _ bcOutput) error {
				see.keyed = map[string][]string{}
				return ctx.ApplyToKeyedState("list", func(key string) error {
					see.keyed[key] = list.Get()
					return nil
				})
			},
		}
	}
}

func bcTimer(at int64) constructor[*bcFunction] {
	return func(*process.Runtime) *bcFunction {
		return &bcFunction{
			element: func(ctx bcContext, x string, out bcOutput) error {
				ctx.RegisterTimer(process.EventTime, at)
				out.Collect(nonBroadcastText(ctx, x))
				return nil
			},
			broadcast: func(ctx bcBroadcast, b int64, out bcOutput) error {
				out.Collect(broadcastText(ctx, b))
				return nil
			},
			timer: func(_ bcContext, t process.Timer, out bcOutput) error {
				out.Collect(fmt.Sprintf("TIMER:%d", t.Millis))
				return nil
			},
		}
	}
}

func bcState(f *functionSpec, s *states, see *seen) constructor[*bcFunction] {
	return func(*process.Runtime) *bcFunction {
		return &bcFunction{
			element: func(ctx bcContext, _ string, _ bcOutput) error {
				see.broadcast = map[string]int64{}
				for k, v := range ctx.BroadcastState(s.numbers).All() {
					see.broadcast[k] = v
				}
				ctx.RegisterTimer(process.EventTime, f.TimerTS)
				return nil
			},
			broadcast: func(ctx bcBroadcast, b int64, _ bcOutput) error {
				ctx.BroadcastState(s.numbers).Put(fmt.Sprintf("%d.%s", b, f.KeyPostfix), b)
				return nil
			},
			timer: func(ctx bcContext, t process.Timer, out bcOutput) error {
				var entries []string
				for k, v := range ctx.BroadcastState(s.numbers).All() {
					entries = append(entries, fmt.Sprintf(" %s=%d", k, v))
				}
				slices.Sort(entries)
				out.Collect(fmt.Sprintf("TS:%d %s", t.Millis, strings.Join(entries, "")))
				return nil
			},
		}
	}
}

// bcViews are the broadcast states as the stream's side sees them.
type bcViews struct {
	numbers *state.BroadcastView[string, int64]
	texts   *state.BroadcastView[int64, string]
}

// fill is what the functions on both kinds of operators do with a broadcast element.
func fill(f *functionSpec, ctx timed, b int64, numbers *state.Broadcast[string, int64], texts *state.Broadcast[int64, string], out bcOutput) {
	switch f.Name {
	case "bc_two_states":
		numbers.Put(fmt.Sprintf("key.%d", b), b)
		texts.Put(b, fmt.Sprintf("value.%d", b))
	case "bc_register_keys", "bc_register_and_dump":
		for _, k := range f.Keys {
			numbers.Put(k, b)
		}
		if f.Name == "bc_register_keys" {
			out.Collect(fmt.Sprintf("%dWM:%d TS:%s", b, ctx.Watermark(), stamp(ctx)))
		}
	}
}

// dump is what they do with an element of the stream.
func dump(f *functionSpec, ctx timed, x string, views bcViews, out bcOutput) {
	switch f.Name {
	case "bc_two_states":
		for k, v := range views.numbers.All() {
			out.Collect(fmt.Sprintf("%s:%s->%d", x, k, v))
		}
		for k, v := range views.texts.All() {
			out.Collect(fmt.Sprintf("%s:%d->%s", x, k, v))
		}
	case "bc_register_keys":
		out.Collect(fmt.Sprintf("%sWM:%d TS:%s", x, ctx.Watermark(), stamp(ctx)))
	case "bc_register_and_dump":
		for k, v := range views.numbers.All() {
			out.Collect(fmt.Sprintf("%s=%d", k, v))
		}
	}
}

// bcPlain makes a broadcast function without a key of closures.
type bcPlain struct {
	element   func(ctx *process.ReadOnlyContext, x string, out bcOutput) error
	broadcast func(ctx *process.BroadcastContext, b int64, out bcOutput) error
}

func (f *bcPlain) ProcessElement(ctx *process.ReadOnlyContext, x string, out bcOutput) error {
	return f.element(ctx, x, out)
}

func (f *bcPlain) ProcessBroadcastElement(ctx *process.BroadcastContext, b int64, out bcOutput) error {
	return f.broadcast(ctx, b, out)
}

// bcPlainFunction is a broadcast function of that name for operators without a key; nil if there is none.
func bcPlainFunction(f *functionSpec, s *states) constructor[*bcPlain] {
	type element = *process.ReadOnlyContext
	type broadcast = *process.BroadcastContext
	switch f.Name {
	case "bc_side_output":
		return func(*process.Runtime) *bcPlain {
			return &bcPlain{
				element: func(ctx element, x string, _ bcOutput) error {
					ctx.Emit(nonBrOut(), nonBroadcastText(ctx, x))
					return nil
				},
				broadcast: func(ctx broadcast, b int64, _ bcOutput) error {
					ctx.Emit(brOut(), broadcastText(ctx, b))
					return nil
				},
			}
		}
	case "bc_keyed_state_on_broadcast_side", "bc_keyed_state_on_main_side":
		main := f.Name == "bc_keyed_state_on_main_side"
		return func(rt *process.Runtime) *bcPlain {
			v := state.NewValue[string](rt, "keyed")
			access := func(here bool) error {
				if here {
					v.Get()
				}
				return nil
			}
			return &bcPlain{
				element:   func(element, string, bcOutput) error { return access(main) },
				broadcast: func(broadcast, int64, bcOutput) error { return access(!main) },
			}
		}
	case "bc_two_states", "bc_register_keys", "bc_register_and_dump":
		return func(*process.Runtime) *bcPlain {
			return &bcPlain{
				element: func(ctx element, x string, out bcOutput) error {
					dump(f, ctx, x, bcViews{ctx.BroadcastState(s.numbers), ctx.BroadcastState(s.texts)}, out)
					return nil
				},
				broadcast: func(ctx broadcast, b int64, out bcOutput) error {
					fill(f, ctx, b, ctx.BroadcastState(s.numbers), ctx.BroadcastState(s.texts), out)
					return nil
				},
			}
		}
	}
	return nil
}
