package element

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// function is a process function of closures.
type function struct {
	element func(ctx *process.Context, x int64, out *process.Collector[int64]) error
}

func (f function) ProcessElement(ctx *process.Context, x int64, out *process.Collector[int64]) error {
	return f.element(ctx, x, out)
}

// whole is a function that has everything that a function can have.
type whole struct {
	function
	finish func(out *process.Collector[int64]) error
	close  func() error
}

func (f whole) Finish(out *process.Collector[int64]) error { return f.finish(out) }
func (f whole) Close() error                               { return f.close() }

func TestProcessFunctionSeesTimeAndEmitsToSideOutputs(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	odd, unread := process.NewOutputTag[string]("odd"), process.NewOutputTag[string]("unread")
	var seen []string
	sides := map[string]*frame.Type{"odd": kit.TypeOf[string](t)}
	op := Process(typ, typ, sides, func(*process.Runtime) process.Function[int64, int64] {
		return function{element: func(ctx *process.Context, x int64, out *process.Collector[int64]) error {
			_, timed := ctx.Timestamp()
			seen = append(seen, fmt.Sprint(timed, max(-1, ctx.Watermark()), ctx.ProcessingTime()))
			ctx.Emit(unread, "nobody reads this")
			if x%2 == 1 {
				ctx.Emit(odd, fmt.Sprint("odd ", x))
				ctx.EmitAt(odd, "again", 99)
				return nil
			}
			out.Collect(x)
			out.Collect(-x)
			return nil
		}}
	})
	out, rt := kit.Open(t, op)
	side := kit.Record(t, op.Output("odd"), rt)
	if op.Output("unread") != nil {
		t.Fatal("a side output that nobody reads")
	}
	in := op.Inputs()[0]
	kit.Must(t, in.Push(kit.Run(t, []int64{10, 11}, int64(1), 2)))
	kit.Must(t, in.Mark(kit.Watermark(8)))
	rt.Now = 1234
	kit.Must(t, in.Push(kit.Run(t, nil, int64(3), 4)))
	kit.Must(t, in.Mark(kit.End()))
	out.Want(t, "2@11", "-2@11", "watermark 8", "4", "-4", "end")
	side.Want(t, "odd 1@10", "again@99", "watermark 8", "odd 3", "again@99", "end")
	if got := strings.Join(seen, ", "); got != "true -1 0, true -1 0, false 8 1234, false 8 1234" {
		t.Errorf("the function saw %s", got)
	}
}

func TestSideOutputsHoldMoreThanAColumn(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	tag := process.NewOutputTag[int64]("side")
	n := 3*frame.MaxLen + 1
	op := Process(typ, typ, map[string]*frame.Type{"side": typ}, func(*process.Runtime) process.Function[int64, int64] {
		return function{element: func(ctx *process.Context, x int64, _ *process.Collector[int64]) error {
			for i := range x {
				ctx.Emit(tag, i)
			}
			return nil
		}}
	})
	_, rt := kit.Open(t, op)
	side := kit.Record(t, op.Output("side"), rt)
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, []int64{4}, int64(n))))
	if len(side.Got) != n || side.Got[n-1] != fmt.Sprintf("%d@4", n-1) {
		t.Errorf("%d elements, the last one %s", len(side.Got), side.Got[len(side.Got)-1])
	}
	own := errors.New("own")
	side.Fail = own
	if err := op.Inputs()[0].Push(kit.Run(t, nil, int64(n))); !errors.Is(err, own) {
		t.Errorf("error %v, want that of the side output's consumer", err)
	}
}

func TestFinishEmitsBeforeTheEndAndCloseIsCalled(t *testing.T) {
	typ, own := kit.TypeOf[int64](t), errors.New("own")
	for _, fails := range []bool{false, true} {
		closed := 0
		op := Process(typ, typ, nil, func(*process.Runtime) process.Function[int64, int64] {
			return whole{
				function: function{func(*process.Context, int64, *process.Collector[int64]) error { return nil }},
				finish: func(out *process.Collector[int64]) error {
					if fails {
						return own
					}
					out.Collect(42)
					return nil
				},
				close: func() error {
					closed++
					return own
				},
			}
		})
		rt := kit.Runtime()
		out := kit.Record(t, op.Output(""), rt)
		kit.Must(t, op.Open(rt))
		kit.Must(t, op.Inputs()[0].Push(kit.Run(t, []int64{5}, int64(1))))
		err := op.Inputs()[0].Mark(kit.End())
		if fails {
			if !errors.Is(err, own) || len(out.Got) != 0 {
				t.Errorf("Finish failed: error %v, results %q", err, out.Got)
			}
		} else {
			kit.Must(t, err)
			out.Want(t, "42", "end")
		}
		if err := op.Close(); !errors.Is(err, own) || closed != 1 {
			t.Errorf("closed %d times, error %v", closed, err)
		}
	}
}

func TestMistakesOfConstructorsFailOpen(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	op := Process(typ, typ, nil, func(rt *process.Runtime) process.Function[int64, int64] {
		rt.Report(errors.New("first"))
		rt.Report(errors.New("second"))
		return nil
	})
	err := op.Open(kit.Runtime())
	if err == nil || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "second") {
		t.Errorf("error %v", err)
	}
	kit.Must(t, op.Close()) // of an operator whose Open failed
}

func TestStateWithoutKeysFails(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	op := Process(typ, typ, nil, func(rt *process.Runtime) process.Function[int64, int64] {
		v := state.NewValue[int64](rt, "v")
		return function{element: func(_ *process.Context, x int64, out *process.Collector[int64]) error {
			v.Set(x)
			out.Collect(x)
			return nil
		}}
	})
	out, _ := kit.Open(t, op)
	var not *state.NotKeyedError
	if err := op.Inputs()[0].Push(kit.Run(t, nil, int64(1))); !errors.As(err, &not) || not.State != "v" || len(out.Got) != 0 {
		t.Errorf("error %v, results %q", err, out.Got)
	}
}
