package broadcast

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/co"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
)

// run makes a run of elements with one timestamp.
func run[T any](t testing.TB, ts int64, xs ...T) *frame.Run {
	return kit.Run(t, slices.Repeat([]int64{ts}, len(xs)), xs...)
}

type (
	plainFunc = process.BroadcastFunction[string, int64, string]
	keyedFunc = process.KeyedBroadcastFunction[string, string, int64, string]
)

func openPlain(t testing.TB, declared []process.BroadcastDescriptor, construct func(*process.Runtime) plainFunc) (ins []operator.Input, out *kit.Recorder, rt *operator.Runtime) {
	in := co.Inputs{First: kit.TypeOf[string](t), Second: kit.TypeOf[int64](t)}
	op := Process(in, in.First, declared, nil, construct)
	out, rt = kit.Open(t, op)
	return op.Inputs(), out, rt
}

func openKeyed(t testing.TB, declared []process.BroadcastDescriptor, construct func(*process.Runtime) keyedFunc) (ins []operator.Input, out *kit.Recorder, rt *operator.Runtime) {
	in := co.Inputs{First: kit.TypeOf[string](t), Second: kit.TypeOf[int64](t)}
	op := KeyedProcess(in, in.First, kit.KeyOf(t, func(x string) string { return x }), declared, nil, construct)
	out, rt = kit.Open(t, op)
	return op.Inputs(), out, rt
}

// plain is a broadcast function of closures.
type plain struct {
	main  func(ctx *process.ReadOnlyContext, x string, out *process.Collector[string]) error
	bcast func(ctx *process.BroadcastContext, b int64, out *process.Collector[string]) error
}

func (f *plain) ProcessElement(ctx *process.ReadOnlyContext, x string, out *process.Collector[string]) error {
	return f.main(ctx, x, out)
}

func (f *plain) ProcessBroadcastElement(ctx *process.BroadcastContext, b int64, out *process.Collector[string]) error {
	return f.bcast(ctx, b, out)
}

func (f *plain) EndInput2(out *process.Collector[string]) error {
	out.Collect("no more rules")
	return nil
}

// perKey is a keyed broadcast function of closures.
type perKey struct {
	main  func(ctx *process.KeyedReadOnlyContext[string], x string, out *process.Collector[string]) error
	bcast func(ctx *process.KeyedBroadcastContext[string], b int64, out *process.Collector[string]) error
	timer func(ctx *process.KeyedReadOnlyContext[string], t process.Timer, out *process.Collector[string]) error
}

func (f *perKey) ProcessElement(ctx *process.KeyedReadOnlyContext[string], x string, out *process.Collector[string]) error {
	return f.main(ctx, x, out)
}

func (f *perKey) ProcessBroadcastElement(ctx *process.KeyedBroadcastContext[string], b int64, out *process.Collector[string]) error {
	return f.bcast(ctx, b, out)
}

func (f *perKey) OnTimer(ctx *process.KeyedReadOnlyContext[string], t process.Timer, out *process.Collector[string]) error {
	return f.timer(ctx, t, out)
}

func TestOneSideWritesTheOtherReads(t *testing.T) {
	byName, byNumber := state.NewBroadcast[string, int64]("by name"), state.NewBroadcast[int64, string]("by number")
	declared := []process.BroadcastDescriptor{byName, byNumber}
	ins, out, _ := openPlain(t, declared, func(*process.Runtime) plainFunc {
		return &plain{
			main: func(ctx *process.ReadOnlyContext, x string, out *process.Collector[string]) error {
				names, numbers := ctx.BroadcastState(byName), ctx.BroadcastState(byNumber)
				for k, v := range names.All() {
					out.Collect(fmt.Sprintf("%s:%s->%d", x, k, v))
				}
				out.Collect(fmt.Sprint(x, " 7 is ", numbers.Get(7), " of ", names.Len(), " wm ", max(-1, ctx.Watermark())))
				return nil
			},
			bcast: func(ctx *process.BroadcastContext, b int64, out *process.Collector[string]) error {
				ctx.BroadcastState(byName).Put(fmt.Sprint("key.", b), b)
				ctx.BroadcastState(byNumber).Put(b, fmt.Sprint("value.", b))
				out.Collect(fmt.Sprint("rule ", b))
				return nil
			},
		}
	})
	kit.Must(t, ins[0].Push(run(t, 1, "early")))
	kit.Must(t, ins[1].Push(run(t, 2, int64(7), 3)))
	kit.Must(t, ins[1].Mark(kit.Watermark(9)))
	kit.Must(t, ins[0].Mark(kit.Watermark(5)))
	kit.Must(t, ins[0].Push(run(t, 6, "x")))
	kit.Must(t, ins[1].Mark(kit.End()))
	out.Want(t, "early 7 is  of 0 wm -1@1", "rule 7@2", "rule 3@2", "watermark 5", "x:key.7->7@6", "x:key.3->3@6",
		"x 7 is value.7 of 2 wm 5@6", "no more rules")
}

func TestStateThatWasNotDeclaredPanics(t *testing.T) {
	declared := state.NewBroadcast[string, int64]("rules")
	for want, use := range map[string]func(ctx *process.BroadcastContext){
		`"others": the stream was not broadcast with it`: func(ctx *process.BroadcastContext) {
			ctx.BroadcastState(state.NewBroadcast[string, int64]("others"))
		},
		`the stream was broadcast with a *state.BroadcastDescriptor[string,int64]`: func(ctx *process.BroadcastContext) {
			ctx.BroadcastState(state.NewBroadcast[string, string]("rules"))
		},
	} {
		ins, _, _ := openPlain(t, []process.BroadcastDescriptor{declared}, func(*process.Runtime) plainFunc {
			return &plain{bcast: func(ctx *process.BroadcastContext, _ int64, _ *process.Collector[string]) error {
				use(ctx)
				return nil
			}}
		})
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			_ = ins[1].Push(run(t, 1, int64(1)))
			t.Error("no panic")
		}()
	}
}

func TestTwoDescriptorsOfOneNameAndTypesAreOneState(t *testing.T) {
	rules := func() *state.BroadcastDescriptor[int64, int64] { return state.NewBroadcast[int64, int64]("rules") }
	ins, out, _ := openPlain(t, []process.BroadcastDescriptor{rules()}, func(*process.Runtime) plainFunc {
		return &plain{
			main: func(ctx *process.ReadOnlyContext, x string, out *process.Collector[string]) error {
				out.Collect(fmt.Sprint(x, ctx.BroadcastState(rules()).Get(4)))
				return nil
			},
			bcast: func(ctx *process.BroadcastContext, b int64, _ *process.Collector[string]) error {
				ctx.BroadcastState(rules()).Put(b, -b)
				return nil
			},
		}
	})
	kit.Must(t, ins[1].Push(run(t, frame.NoTime, int64(4))))
	kit.Must(t, ins[0].Push(run(t, frame.NoTime, "x")))
	out.Want(t, "x-4")
}

func TestKeyedStateIsOutOfReachWithoutKey(t *testing.T) {
	var not *state.NotKeyedError
	var no *state.NoKeyContextError
	touch := func(rt *process.Runtime) func() { return func() { state.NewValue[int64](rt, "v").Set(1) } }

	ins, _, _ := openPlain(t, nil, func(rt *process.Runtime) plainFunc {
		set := touch(rt)
		return &plain{
			main:  func(*process.ReadOnlyContext, string, *process.Collector[string]) error { set(); return nil },
			bcast: func(*process.BroadcastContext, int64, *process.Collector[string]) error { set(); return nil },
		}
	})
	if err := ins[0].Push(run(t, 1, "x")); !errors.As(err, &not) {
		t.Errorf("the side that is not broadcast, without keys: %v", err)
	}
	if err := ins[1].Push(run(t, 1, int64(1))); !errors.As(err, &not) {
		t.Errorf("the broadcast side, without keys: %v", err)
	}

	ins, _, _ = openKeyed(t, nil, func(rt *process.Runtime) keyedFunc {
		v := state.NewValue[int64](rt, "v")
		return &perKey{
			main: func(*process.KeyedReadOnlyContext[string], string, *process.Collector[string]) error {
				v.Set(1)
				return nil
			},
			bcast: func(*process.KeyedBroadcastContext[string], int64, *process.Collector[string]) error {
				v.Set(1)
				return nil
			},
		}
	})
	kit.Must(t, ins[0].Push(run(t, 1, "x")))
	if err := ins[1].Push(run(t, 1, int64(1))); !errors.As(err, &no) {
		t.Errorf("the broadcast side of a keyed stream: %v", err)
	}
}

func TestKeyedSideHasTimersAndReadsBroadcastState(t *testing.T) {
	rules := state.NewBroadcast[int64, string]("rules")
	ins, out, rt := openKeyed(t, []process.BroadcastDescriptor{rules}, func(*process.Runtime) keyedFunc {
		return &perKey{
			main: func(ctx *process.KeyedReadOnlyContext[string], x string, out *process.Collector[string]) error {
				ctx.RegisterTimer(process.EventTime, 41)
				ctx.RegisterTimer(process.ProcessingTime, 41)
				out.Collect(ctx.Key())
				return nil
			},
			bcast: func(ctx *process.KeyedBroadcastContext[string], b int64, _ *process.Collector[string]) error {
				ctx.BroadcastState(rules).Put(b, fmt.Sprint(b))
				return nil
			},
			timer: func(ctx *process.KeyedReadOnlyContext[string], at process.Timer, out *process.Collector[string]) error {
				var all []string
				for _, v := range ctx.BroadcastState(rules).All() {
					all = append(all, v)
				}
				out.Collect(fmt.Sprint(ctx.Key(), " ", at.Domain, " ", all))
				return nil
			},
		}
	})
	kit.Must(t, ins[0].Push(run(t, 1, "a")))
	kit.Must(t, ins[1].Push(run(t, 1, int64(5), 34)))
	kit.Must(t, ins[1].Mark(kit.Watermark(100)))
	kit.Must(t, ins[0].Mark(kit.Watermark(50)))
	rt.Now = 42
	kit.Must(t, rt.Timers.Run(41))
	out.Want(t, "a@1", "a event time [5 34]@41", "watermark 50", "a processing time [5 34]")
}

// stateful has a keyed state of every kind.
type stateful struct {
	perKey
	value *state.Value[int64]
	list  *state.List[string]
	names *state.Map[string, int64]
}

func openStateful(t testing.TB, bcast func(f *stateful, ctx *process.KeyedBroadcastContext[string], b int64, out *process.Collector[string]) error) ([]operator.Input, *kit.Recorder) {
	ins, out, _ := openKeyed(t, nil, func(rt *process.Runtime) keyedFunc {
		f := &stateful{
			value: state.NewValue[int64](rt, "value"), list: state.NewList[string](rt, "list"),
			names: state.NewMap[string, int64](rt, "names"),
		}
		f.main = func(_ *process.KeyedReadOnlyContext[string], x string, out *process.Collector[string]) error {
			f.value.Update(func(n *int64) { *n++ })
			f.list.Add(x)
			f.names.Put(fmt.Sprint(x, f.value.Get()), f.value.Get())
			return nil
		}
		f.bcast = func(ctx *process.KeyedBroadcastContext[string], b int64, out *process.Collector[string]) error {
			return bcast(f, ctx, b, out)
		}
		return f
	})
	return ins, out
}

func TestApplyToKeyedStateVisitsEachKeyOnce(t *testing.T) {
	seen := map[string]map[string]string{}
	ins, _ := openStateful(t, func(f *stateful, ctx *process.KeyedBroadcastContext[string], b int64, out *process.Collector[string]) error {
		for _, name := range []string{"value", "list", "names"} {
			seen[name] = map[string]string{}
			err := ctx.ApplyToKeyedState(name, func(key string) error {
				if _, twice := seen[name][key]; twice {
					t.Errorf("%s: key %s comes twice", name, key)
				}
				seen[name][key] = fmt.Sprint(f.value.Get(), f.list.Get(), f.names.Len())
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	kit.Must(t, ins[0].Push(run(t, 1, "test1", "test1", "test2", "test2", "test2", "test3", "test3", "test3", "test2")))
	kit.Must(t, ins[1].Push(run(t, 1, int64(1))))
	want := map[string]string{
		"test1": "2 [test1 test1] 2", "test2": "4 [test2 test2 test2 test2] 4", "test3": "3 [test3 test3 test3] 3",
	}
	for _, name := range []string{"value", "list", "names"} {
		if !maps.Equal(seen[name], want) {
			t.Errorf("%s: saw %v", name, seen[name])
		}
	}
}

func TestApplyToKeyedStateMayChangeIt(t *testing.T) {
	ins, out := openStateful(t, func(f *stateful, ctx *process.KeyedBroadcastContext[string], b int64, out *process.Collector[string]) error {
		err := ctx.ApplyToKeyedState("value", func(key string) error {
			if key == "k7" {
				f.value.Clear()
			} else {
				f.value.Set(b)
			}
			return nil
		})
		n := 0
		if err == nil {
			err = ctx.ApplyToKeyedState("value", func(key string) error {
				if n++; f.value.Get() != b {
					return fmt.Errorf("key %s has %d", key, f.value.Get())
				}
				return nil
			})
		}
		out.Collect(fmt.Sprint(n))
		return err
	})
	var keys []string
	for i := range 5000 { // more than a page of the backend
		keys = append(keys, fmt.Sprint("k", i))
	}
	for part := range slices.Chunk(keys, 500) {
		kit.Must(t, ins[0].Push(run(t, 1, part...)))
	}
	kit.Must(t, ins[1].Push(run(t, 2, int64(99))))
	out.Want(t, "4999@2")
}

func TestApplyToKeyedStateEndsAtErrors(t *testing.T) {
	own := errors.New("own")
	for name, c := range map[string]struct {
		state string
		f     func(f *stateful) error
		want  error
	}{
		"unknown": {"nothing", func(*stateful) error { return nil }, nil},
		"own":     {"value", func(*stateful) error { return own }, own},
		"access":  {"list", func(f *stateful) error { f.list.All()(func(string) bool { f.list.Add("x"); return true }); return nil }, statebackend.ErrChanged},
	} {
		calls := 0
		ins, _ := openStateful(t, func(f *stateful, ctx *process.KeyedBroadcastContext[string], _ int64, _ *process.Collector[string]) error {
			return ctx.ApplyToKeyedState(c.state, func(string) error {
				calls++
				return c.f(f)
			})
		})
		kit.Must(t, ins[0].Push(run(t, 1, "a", "a", "b", "b")))
		err := ins[1].Push(run(t, 1, int64(1)))
		if err == nil || c.want != nil && !errors.Is(err, c.want) || calls > 1 {
			t.Errorf("%s: %d calls, error %v", name, calls, err)
		}
		if c.want == nil && !strings.Contains(err.Error(), `"nothing"`) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestFailedBroadcastAccessFailsTheTask(t *testing.T) {
	rules := state.NewBroadcast[float64, int64]("rules")
	ins, _, _ := openPlain(t, []process.BroadcastDescriptor{rules}, func(*process.Runtime) plainFunc {
		return &plain{bcast: func(ctx *process.BroadcastContext, b int64, _ *process.Collector[string]) error {
			ctx.BroadcastState(rules).Put(float64(b)-float64(b)/float64(b), b) // NaN for 0
			return nil
		}}
	})
	kit.Must(t, ins[1].Push(run(t, 1, int64(2))))
	if err := ins[1].Push(run(t, 1, int64(0))); err == nil || !strings.Contains(err.Error(), "rules") {
		t.Fatalf("error %v", err)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	rules := state.NewBroadcast[int64, int64]("rules")
	ins, _, _ := openPlain(t, []process.BroadcastDescriptor{rules}, func(*process.Runtime) plainFunc {
		return &plain{
			main: func(ctx *process.ReadOnlyContext, x string, out *process.Collector[string]) error {
				if !ctx.BroadcastState(rules).Contains(1) {
					return errors.New("the rule is gone")
				}
				return nil
			},
			bcast: func(ctx *process.BroadcastContext, b int64, _ *process.Collector[string]) error {
				if r := ctx.BroadcastState(rules); !r.Contains(b) {
					r.Put(b, 3)
				}
				return nil
			},
		}
	})
	kit.Must(t, ins[1].Push(run(t, 1, int64(1))))
	xs := make([]string, 512)
	r, b := run(t, 1, xs...), run(t, 1, int64(1))
	if got := testing.AllocsPerRun(10, func() {
		kit.Must(t, ins[0].Push(r))
		kit.Must(t, ins[1].Push(b))
	}); got != 0 {
		t.Errorf("%v allocations per run of 512", got)
	}
}
