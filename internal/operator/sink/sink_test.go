package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
)

// open opens a sink; it has no output to record.
func open(t *testing.T, op operator.Operator) *operator.Runtime {
	t.Helper()
	rt := kit.Runtime()
	kit.Must(t, op.Open(rt))
	t.Cleanup(func() { kit.Must(t, op.Close()) })
	if op.Output("") != nil || op.Output("side") != nil {
		t.Error("a sink with an output")
	}
	return rt
}

func TestEachIsCalledOnceForEachElementInOrder(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	for n := range 14 { // around the unrolled loop
		var got []int64
		for _, op := range []operator.Operator{
			Each[int64](typ, func(x int64) { got = append(got, x) }),
			Each[int64](typ, func(x *int64) { got = append(got, *x) }),
		} {
			got = nil
			open(t, op)
			r := kit.Run(t, nil, kit.Numbers(n)...)
			untouched := kit.Share(t, r)
			kit.Must(t, op.Inputs()[0].Push(r))
			kit.Must(t, op.Inputs()[0].Mark(kit.End()))
			untouched()
			if !slices.Equal(got, kit.Numbers(n)) {
				t.Errorf("run of %d: called for %v", n, got)
			}
		}
	}
}

func TestTryEachKnowsTimesAndEndsAtAnError(t *testing.T) {
	own := errors.New("own")
	var got []string
	op := TryEach(kit.TypeOf[int64](t), func(ctx context.Context, x int64, at connector.ElementContext) error {
		got = append(got, fmt.Sprint(x, at, ctx.Err()))
		if x == 3 {
			return own
		}
		return nil
	})
	rt := open(t, op)
	in := op.Inputs()[0]
	kit.Must(t, in.Push(kit.Run(t, nil, int64(1))))
	kit.Must(t, in.Mark(kit.Watermark(7)))
	kit.Must(t, in.Mark(frame.Mark{Kind: frame.Barrier, Value: 99}))
	rt.Now = 50
	if err := in.Push(kit.Run(t, []int64{8, 9, 10}, int64(2), 3, 4)); !errors.Is(err, own) {
		t.Errorf("error %v", err)
	}
	none := int64(frame.NoTime)
	want := []string{
		fmt.Sprint(1, connector.ElementContext{Timestamp: none, Watermark: frame.MinWatermark}, nil),
		fmt.Sprint(2, connector.ElementContext{Timestamp: 8, Watermark: 7, ProcessingTime: 50}, nil),
		fmt.Sprint(3, connector.ElementContext{Timestamp: 9, Watermark: 7, ProcessingTime: 50}, nil),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestErasedSinkIsOpenedAndClosed(t *testing.T) {
	own := errors.New("own")
	elements, closed := 0, 0
	op := Erased(nil, func(*operator.Runtime) (func(*frame.Run) error, func() error, error) {
		return func(r *frame.Run) error {
				elements += r.N
				return nil
			}, func() error {
				closed++
				return own
			}, nil
	})
	if op.Inputs()[0].Type() != nil {
		t.Error("it takes one type only")
	}
	kit.Must(t, op.Close()) // never opened
	kit.Must(t, op.Open(kit.Runtime()))
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, 1, 2)))
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, nil, "x")))
	if err := op.Close(); elements != 3 || closed != 1 || !errors.Is(err, own) {
		t.Errorf("%d elements, closed %d times, error %v", elements, closed, err)
	}
	refused := Erased(nil, func(*operator.Runtime) (func(*frame.Run) error, func() error, error) { return nil, nil, own })
	if err := refused.Open(kit.Runtime()); !errors.Is(err, own) {
		t.Errorf("error %v", err)
	}
	kit.Must(t, refused.Close())
}

// log is a connector's sink that notes what its writer is told.
type log struct {
	lines []string
	fail  map[string]error // by the name of the call
	runs  bool             // the writer takes runs
	ctx   connector.WriterContext
}

func (l *log) Writer(ctx connector.WriterContext) (connector.Writer[int64], error) {
	l.ctx = ctx
	if err := l.fail["open"]; err != nil {
		return nil, err
	}
	if l.runs {
		return &runWriter{writerOf{l}}, nil
	}
	return &writerOf{l}, nil
}

func (l *log) note(call, text string) error {
	l.lines = append(l.lines, text)
	return l.fail[call]
}

type writerOf struct{ *log }

func (w *writerOf) Write(x int64, at connector.ElementContext) error {
	return w.note("write", fmt.Sprintf("%d at %d, watermark %d, now %d", x, max(-1, at.Timestamp), max(-1, at.Watermark), at.ProcessingTime))
}
func (w *writerOf) Flush(end bool) error { return w.note("flush", fmt.Sprint("flush ", end)) }
func (w *writerOf) Close() error         { return w.note("close", "close") }

type runWriter struct{ writerOf }

func (w *runWriter) WriteRun(xs []int64, times []int64) error {
	return w.note("write", fmt.Sprint(xs, " at ", times))
}

func TestWriterGetsElementsAndTheEnd(t *testing.T) {
	for runs, want := range map[bool][]string{
		false: {"1 at -1, watermark -1, now 0", "2 at 20, watermark 15, now 50", "3 at 30, watermark 15, now 50", "flush true", "close"},
		true:  {"[1] at []", "[2 3] at [20 30]", "flush true", "close"},
	} {
		l := &log{runs: runs}
		op := Writer(kit.TypeOf[int64](t), l)
		rt := kit.Runtime()
		rt.Subtask, rt.Parallelism, rt.Attempt = 1, 4, 2
		kit.Must(t, op.Open(rt))
		in := op.Inputs()[0]
		kit.Must(t, in.Push(kit.Run(t, nil, int64(1))))
		kit.Must(t, in.Mark(kit.Watermark(15)))
		rt.Now = 50
		kit.Must(t, in.Push(kit.Run(t, []int64{20, 30}, int64(2), 3)))
		kit.Must(t, in.Mark(kit.End()))
		kit.Must(t, op.Close())
		if !slices.Equal(l.lines, want) {
			t.Errorf("runs %v: got %q, want %q", runs, l.lines, want)
		}
		if c := l.ctx; c.Subtask() != 1 || c.Parallelism() != 4 || c.Attempt() != 2 || c.Context() != rt.Ctx {
			t.Error("the writer's context tells something else than the runtime")
		}
		l.ctx.Counter("bytes", 5)
		if got := rt.Host.(*kit.Host).Metrics["bytes"].Read(); got != int64(5) {
			t.Errorf("the metric is %v", got)
		}
	}
}

func TestErrorsOfWritersComeBack(t *testing.T) {
	own := errors.New("own")
	for _, runs := range []bool{false, true} {
		for _, call := range []string{"open", "write", "flush", "close"} {
			l := &log{runs: runs, fail: map[string]error{call: own}}
			op := Writer(kit.TypeOf[int64](t), l)
			steps := map[string]func() error{
				"open":  func() error { return op.Open(kit.Runtime()) },
				"write": func() error { return op.Inputs()[0].Push(kit.Run(t, nil, int64(1), 2)) },
				"flush": func() error { return op.Inputs()[0].Mark(kit.End()) },
				"close": op.Close,
			}
			for _, step := range []string{"open", "write", "flush", "close"} {
				if err := steps[step](); errors.Is(err, own) != (step == call) {
					t.Errorf("%s fails, runs %v: %s returns %v", call, runs, step, err)
				}
				if call == "open" { // nothing follows but Close
					kit.Must(t, op.Close())
					break
				}
			}
			if call == "write" && l.lines[0] == l.lines[1] {
				t.Error("it goes on after an error")
			}
		}
	}
}

// adder is a sink that takes runs and fails at negative elements.
type adder struct{ sum *int64 }

func (a adder) Writer(connector.WriterContext) (connector.Writer[int64], error) { return a, nil }
func (a adder) Write(x int64, _ connector.ElementContext) error                 { return a.WriteRun([]int64{x}, nil) }
func (adder) Flush(bool) error                                                  { return nil }
func (adder) Close() error                                                      { return nil }
func (a adder) WriteRun(xs []int64, _ []int64) error {
	for i, x := range xs {
		if *a.sum += x; x < 0 {
			return fmt.Errorf("add: %w", &connector.ElementError{Index: i, Err: errors.New("it is negative")})
		}
	}
	return nil
}

// A writer of runs says at which element it has failed.
func TestWritersOfRunsNameTheirElement(t *testing.T) {
	op := Writer(kit.TypeOf[int64](t), adder{new(int64)})
	rt := kit.Runtime()
	kit.Must(t, op.Open(rt))
	r := kit.Run(t, nil, 3, 4, -5, int64(6))
	rt.Run = r
	err := op.Inputs()[0].Push(r)
	if at := rt.Record(); err == nil || err.Error() != "add: it is negative" || at != "at element -5" {
		t.Errorf("%v %s", err, at)
	}
	kit.Must(t, op.Close())
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	typ := kit.TypeOf[int64](t)
	sum := int64(0)
	for name, op := range map[string]operator.Operator{
		"each": Each[int64](typ, func(x int64) { sum += x }), "each ptr": Each[int64](typ, func(x *int64) { sum += *x }),
		"try": TryEach(typ, func(_ context.Context, x int64, _ connector.ElementContext) error {
			sum += x
			return nil
		}),
		"writer of runs": Writer(typ, adder{&sum}),
	} {
		kit.AllocatesNothing(t, name, op, kit.Run(t, kit.Numbers(512), kit.Numbers(512)...))
	}
}
