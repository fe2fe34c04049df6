package element

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
)

// lengths are those at which unrolled loops and columns begin and end.
func lengths() []int {
	return []int{1, 2, 3, 4, 5, 7, 8, 9, frame.MaxLen - 1, frame.MaxLen, frame.MaxLen + 1, 2*frame.MaxLen + 3}
}

// oracle is what comes of numbers 0 ... n-1 when f gives the results of one.
func oracle(n int, timed bool, f func(x int64) []int64) []string {
	var out []string
	for x := range int64(n) {
		for _, y := range f(x) {
			text := fmt.Sprint(y)
			if timed {
				text += fmt.Sprintf("@%d", x+7)
			}
			out = append(out, text)
		}
	}
	return out
}

// checkAgainst pushes numbers in runs of all lengths, with and without timestamps, shared and not.
func checkAgainst(t *testing.T, open func() operator.Operator, f func(x int64) []int64) {
	t.Helper()
	op := open()
	out, _ := kit.Open(t, op)
	for _, n := range lengths() {
		for _, timed := range []bool{false, true} {
			for _, shared := range []bool{false, true} {
				var times []int64
				if timed {
					times = kit.Numbers(n)
					for i := range times {
						times[i] += 7
					}
				}
				r := kit.Run(t, times, kit.Numbers(n)...)
				untouched := func() {}
				if shared {
					untouched = kit.Share(t, r)
				}
				kit.Must(t, op.Inputs()[0].Push(r))
				untouched()
				if want := oracle(n, timed, f); !slices.Equal(out.Got, want) {
					t.Fatalf("run of %d, timed %v, shared %v: got %d results %.200q, want %d %.200q", n, timed, shared, len(out.Got), out.Got, len(want), want)
				}
				out.Got = nil
			}
		}
	}
}

// seven is a result so large that a column holds few of them.
type seven struct {
	N int64
	_ [511]int64
}

func (s seven) String() string { return fmt.Sprint(s.N) }

func TestMapsGiveOneResultForEachElement(t *testing.T) {
	typ, large := kit.TypeOf[int64](t), kit.TypeOf[seven](t)
	for name, open := range map[string]func() operator.Operator{
		"map":     func() operator.Operator { return Map(typ, typ, func(x int64) int64 { return x*2 + 1 }) },
		"map ptr": func() operator.Operator { return MapPtr(typ, typ, func(x *int64) int64 { return *x*2 + 1 }) },
		"try": func() operator.Operator {
			return TryMap(typ, typ, func(_ context.Context, x int64) (int64, error) { return x*2 + 1, nil })
		},
		"map to large elements": func() operator.Operator { return Map(typ, large, func(x int64) seven { return seven{N: x*2 + 1} }) },
		"map ptr to large elements": func() operator.Operator {
			return MapPtr(typ, large, func(x *int64) seven { return seven{N: *x*2 + 1} })
		},
		"try to large elements": func() operator.Operator {
			return TryMap(typ, large, func(_ context.Context, x int64) (seven, error) { return seven{N: x*2 + 1}, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkAgainst(t, open, func(x int64) []int64 { return []int64{x*2 + 1} })
		})
	}
}

func TestFiltersKeepOrderAndTimestamps(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	for name, keep := range map[string]func(int64) bool{
		"all": func(int64) bool { return true }, "none": func(int64) bool { return false },
		"odd": func(x int64) bool { return x%2 == 1 }, "few": func(x int64) bool { return x%5 == 3 },
	} {
		want := func(x int64) []int64 {
			if keep(x) {
				return []int64{x}
			}
			return nil
		}
		t.Run(name, func(t *testing.T) {
			checkAgainst(t, func() operator.Operator { return Filter(typ, keep) }, want)
			checkAgainst(t, func() operator.Operator { return FilterPtr(typ, func(x *int64) bool { return keep(*x) }) }, want)
		})
	}
}

func TestUpdateChangesElements(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	checkAgainst(t, func() operator.Operator { return Update(typ, func(x *int64) { *x = -*x }) }, func(x int64) []int64 { return []int64{-x} })
}

func TestFlatMapsGiveAnyNumberOfResults(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	results := func(x int64) []int64 { return kit.Numbers(int(x % 4)) }
	for name, open := range map[string]func(results func(int64) []int64) operator.Operator{
		"flat map": func(results func(int64) []int64) operator.Operator {
			return FlatMap(typ, typ, func(x int64, emit func(int64)) {
				for _, y := range results(x) {
					emit(y)
				}
			})
		},
		"seq": func(results func(int64) []int64) operator.Operator {
			return FlatMapSeq(typ, typ, func(x int64) iter.Seq[int64] { return slices.Values(results(x)) })
		},
		"try": func(results func(int64) []int64) operator.Operator {
			return TryFlatMap(typ, typ, func(_ context.Context, x int64, emit func(int64)) error {
				for _, y := range results(x) {
					emit(y)
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkAgainst(t, func() operator.Operator { return open(results) }, results)
		})
		t.Run(name+" more than a column holds", func(t *testing.T) {
			op := open(func(x int64) []int64 { return kit.Numbers(int(x)) })
			out, _ := kit.Open(t, op)
			kit.Must(t, op.Inputs()[0].Push(kit.Run[int64](t, []int64{1, 2, 3}, 2, 5*frame.MaxLen, 1)))
			if n := 2 + 5*frame.MaxLen + 1; len(out.Got) != n || out.Got[1] != "1@1" || out.Got[n-2] != fmt.Sprintf("%d@2", 5*frame.MaxLen-1) || out.Got[n-1] != "0@3" {
				t.Fatalf("%d results, the last one %s", len(out.Got), out.Got[len(out.Got)-1])
			}
			if longest := slices.Max(out.Runs); longest > frame.MaxLen {
				t.Errorf("a run of %d elements", longest)
			}
		})
	}
}

func TestErrorsEndTheRun(t *testing.T) {
	typ, own := kit.TypeOf[int64](t), errors.New("own")
	calls := 0
	at3 := func(x int64) error {
		if calls++; x == 3 {
			return own
		}
		return nil
	}
	for name, op := range map[string]operator.Operator{
		"try map": TryMap(typ, typ, func(_ context.Context, x int64) (int64, error) { return x, at3(x) }),
		"try flat map": TryFlatMap(typ, typ, func(_ context.Context, x int64, emit func(int64)) error {
			emit(x)
			return at3(x)
		}),
		"process": Process(typ, typ, nil, func(*process.Runtime) process.Function[int64, int64] {
			return function{element: func(_ *process.Context, x int64, _ *process.Collector[int64]) error { return at3(x) }}
		}),
	} {
		calls = 0
		out, _ := kit.Open(t, op)
		if err := op.Inputs()[0].Push(kit.Run(t, nil, kit.Numbers(8)...)); !errors.Is(err, own) || calls != 4 {
			t.Errorf("%s: error %v after %d calls", name, err, calls)
		}
		if slices.Contains(out.Values, "3") {
			t.Errorf("%s: results %q", name, out.Values)
		}
	}
}

func TestUserFunctionsGetTheTasksContext(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	check := func(ctx context.Context) error { return ctx.Err() }
	for name, op := range map[string]operator.Operator{
		"try map":      TryMap(typ, typ, func(ctx context.Context, x int64) (int64, error) { return x, check(ctx) }),
		"try flat map": TryFlatMap(typ, typ, func(ctx context.Context, x int64, emit func(int64)) error { return check(ctx) }),
	} {
		rt := kit.Runtime()
		var cancel context.CancelFunc
		rt.Ctx, cancel = context.WithCancel(context.Background())
		kit.OpenAt(t, op, rt)
		kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, int64(1))))
		cancel()
		if err := op.Inputs()[0].Push(kit.Run(t, nil, int64(1))); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v after the end of the task's context", name, err)
		}
	}
}

// TestErrorsOfConsumersComeBack: a driver neither swallows an error of what follows it nor goes on.
func TestErrorsOfConsumersComeBack(t *testing.T) {
	typ, own := kit.TypeOf[int64](t), errors.New("own")
	id := func(x int64) int64 { return x }
	for name, op := range map[string]operator.Operator{
		"map": Map(typ, typ, id), "filter": Filter(typ, func(int64) bool { return true }),
		"try":      TryMap(typ, typ, func(_ context.Context, x int64) (int64, error) { return x, nil }),
		"flat map": FlatMap(typ, typ, func(x int64, emit func(int64)) { emit(x) }),
		"process": Process(typ, typ, nil, func(*process.Runtime) process.Function[int64, int64] {
			return function{element: func(_ *process.Context, x int64, out *process.Collector[int64]) error {
				out.Collect(x)
				return nil
			}}
		}),
	} {
		out, _ := kit.Open(t, op)
		out.Fail = own
		r := kit.Run(t, nil, kit.Numbers(3*frame.MaxLen)...)
		r.Shared = true
		if err := op.Inputs()[0].Push(r); !errors.Is(err, own) || len(out.Runs) != 1 {
			t.Errorf("%s: error %v after %d runs", name, err, len(out.Runs))
		}
	}
}

// TestFailuresAreNamedByTheirOperator: when a function of a chain panics or fails, Scope.At names its operator.
func TestFailuresAreNamedByTheirOperator(t *testing.T) {
	typ, own := kit.TypeOf[int64](t), errors.New("own")
	for culprit, x := range map[string]int64{"first": 1, "second": 2} {
		for _, panics := range []bool{true, false} {
			fail := func(_ context.Context, x, at int64) (int64, error) {
				if x != at {
					return x, nil
				}
				if panics {
					panic(own)
				}
				return 0, own
			}
			a := TryMap(typ, typ, func(ctx context.Context, x int64) (int64, error) { return fail(ctx, x, 1) })
			b := TryMap(typ, typ, func(ctx context.Context, x int64) (int64, error) { return fail(ctx, x, 2) })
			rt := kit.Runtime()
			rt.Name = "first"
			next := &operator.Runtime{Scope: rt.Scope, Name: "second"}
			kit.Must(t, a.Output("").Connect(b.Inputs()[0], next))
			kit.OpenAt(t, b, next)
			kit.Must(t, a.Open(rt))
			kit.Must(t, a.Inputs()[0].Push(kit.Run(t, nil, 5, int64(6))))
			if rt.At != rt {
				t.Fatalf("after a run without failure %s is at work", rt.At.Name)
			}
			err := recovered(func() error { return a.Inputs()[0].Push(kit.Run(t, nil, 5, x)) })
			if !errors.Is(err, own) || rt.At.Name != culprit {
				t.Errorf("panic %v: the failure %v is named by %s, want %s", panics, err, rt.At.Name, culprit)
			}
			kit.Must(t, a.Close())
		}
	}
}

// recovered is what call returns or panics with.
func recovered(call func() error) (err error) {
	defer func() {
		if p, ok := recover().(error); ok {
			err = p
		}
	}()
	return call()
}

func TestMarksPass(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	op := Map(typ, typ, func(x int64) int64 { return x })
	out, _ := kit.Open(t, op)
	in := op.Inputs()[0]
	kit.Must(t, in.Mark(kit.Watermark(5)))
	kit.Must(t, in.Mark(frame.Mark{Kind: frame.Barrier, Value: 3}))
	kit.Must(t, in.Mark(kit.End()))
	out.Want(t, "watermark 5", "barrier 3", "end")
	if op.Output("side") != nil {
		t.Error("a map has a side output")
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	one := slices.Values([]int64{1})
	for name, op := range map[string]operator.Operator{
		"map": Map(typ, typ, func(x int64) int64 { return x }), "map ptr": MapPtr(typ, typ, func(x *int64) int64 { return *x }),
		"try":    TryMap(typ, typ, func(_ context.Context, x int64) (int64, error) { return x, nil }),
		"filter": Filter(typ, func(x int64) bool { return x%2 == 0 }), "filter ptr": FilterPtr(typ, func(x *int64) bool { return *x%2 == 0 }),
		"update":       Update(typ, func(x *int64) { *x++ }),
		"flat map":     FlatMap(typ, typ, func(x int64, emit func(int64)) { emit(x) }),
		"flat map seq": FlatMapSeq(typ, typ, func(int64) iter.Seq[int64] { return one }),
		"split":        Split(typ, []Selection{{Tag: "a", Names: []string{"a"}}}, func(int64) []string { return nil }),
	} {
		r := kit.Run(t, kit.Numbers(512), kit.Numbers(512)...)
		r.Shared = true
		kit.AllocatesNothing(t, name, op, r)
	}
}
