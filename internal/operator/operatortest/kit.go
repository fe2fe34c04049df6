// Package operatortest is the kit of the drivers' tests: what a subtask is to its operators, runs to push, and an end of a
// chain that writes down what comes. It owns no assertion of a driver's own and is never linked into a program: only tests
// import it.
package operatortest

import (
	"context"
	"fmt"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/internal/clock"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
)

// Must fails the test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TypeOf is the handle of an element type.
func TypeOf[T any](t testing.TB) *frame.Type {
	t.Helper()
	typ, err := frame.TypeOf[T]()
	Must(t, err)
	return typ
}

// KeyOf is the key that f takes out of elements.
func KeyOf[T, K any](t testing.TB, f func(T) K) *operator.Key {
	t.Helper()
	k, err := serde.KeyOf[K]()
	Must(t, err)
	return &operator.Key{Key: k, Extract: func() func(*frame.Run) serde.Column {
		buf := make([]K, frame.MaxLen)
		return func(r *frame.Run) serde.Column {
			for i, x := range frame.Values[T](r) {
				buf[i] = f(x)
			}
			return serde.Column{P: unsafe.Pointer(unsafe.SliceData(buf)), N: r.N, Stride: unsafe.Sizeof(buf[0])}
		}
	}}
}

// groups is the number of key groups of the kit's runtimes.
const groups = 128

// Runtime is what an operator gets of a subtask that is alone, at time 0. Its keyed state lies on the heap backend.
func Runtime() *operator.Runtime {
	clk := clock.NewManual(0)
	w := host.NewParker(clk)
	rt := &operator.Runtime{
		Scope: &operator.Scope{
			Ctx: context.Background(), Clock: clk, Mailbox: host.NewMailbox(w), Waiter: w, Spawn: &host.Spawner{},
			Timers: &operator.Callbacks{}, Parallelism: 1, RunLen: frame.DefaultLen,
		},
		Name: "op", Seed: 7, MaxParallelism: groups, Host: &Host{Metrics: map[string]process.Metric{}},
	}
	rt.At = rt
	rt.OpenState = func(o statebackend.Options) (statebackend.Store, error) {
		o.MaxParallelism, o.LastGroup = groups, groups-1
		if rt.Restored != nil {
			o.Restored = rt.Restored.Store
		}
		return heap.Backend{}.Open(o)
	}
	return rt
}

// Host is a process.Host that keeps metrics. It has nothing else that user code may ask for.
type Host struct {
	process.Host
	Metrics map[string]process.Metric
}

// Metric implements process.Host.
func (h *Host) Metric(name string, fresh func() process.Metric) process.Metric {
	if h.Metrics[name] == nil {
		h.Metrics[name] = fresh()
	}
	return h.Metrics[name]
}

// Open connects an operator to a recorder and opens it. It is closed at the end of the test.
func Open(t testing.TB, op operator.Operator) (*Recorder, *operator.Runtime) {
	t.Helper()
	rt := Runtime()
	return OpenAt(t, op, rt), rt
}

// OpenAt is Open with a runtime of the test's own.
func OpenAt(t testing.TB, op operator.Operator, rt *operator.Runtime) *Recorder {
	t.Helper()
	out := Record(t, op.Output(""), rt)
	Must(t, op.Open(rt))
	t.Cleanup(func() { Must(t, op.Close()) })
	return out
}

// Run makes a run of elements with timestamps; nil times: none has one.
func Run[T any](t testing.TB, times []int64, xs ...T) *frame.Run {
	t.Helper()
	c := frame.NewColumn(TypeOf[T](t), len(xs))
	for i, x := range xs {
		ts := int64(frame.NoTime)
		if times != nil {
			ts = times[i]
		}
		frame.Add(c, x, ts)
	}
	r := c.Run()
	return &r
}

// Share makes a run read-only for the operator and returns a check that it was left alone.
func Share(t testing.TB, r *frame.Run) (untouched func()) {
	r.Shared = true
	whole := *r
	was := text(&whole)
	return func() {
		t.Helper()
		if now := text(&whole); now != was || r.N != whole.N || len(r.Times) != len(whole.Times) {
			t.Errorf("the shared run %.300s became %.300s", was, now)
		}
	}
}

func text(r *frame.Run) string {
	elements := make([]any, r.N)
	for i := range elements {
		elements[i] = r.Type.Box(r.At(i))
	}
	return fmt.Sprint(elements, " at ", r.Times)
}

// AllocatesNothing opens an operator and pushes a run into each of its inputs, again and again: after the first time that
// must not allocate. The runs should be shared, so that they stay as they are.
func AllocatesNothing(t testing.TB, name string, op operator.Operator, runs ...*frame.Run) {
	t.Helper()
	rt := Runtime()
	if out := op.Output(""); out != nil {
		Must(t, out.Connect(Null{Of: out.Type}, rt))
	}
	Must(t, op.Open(rt))
	inputs := op.Inputs()
	push := func() {
		for i, r := range runs {
			Must(t, inputs[i].Push(r))
		}
	}
	push()
	if got := testing.AllocsPerRun(20, push); got != 0 {
		t.Errorf("%s: %v allocations per push", name, got)
	}
	Must(t, op.Close())
}

// Numbers are 0 ... n-1.
func Numbers(n int) []int64 {
	xs := make([]int64, n)
	for i := range xs {
		xs[i] = int64(i)
	}
	return xs
}

// Watermark is the mark of a watermark.
func Watermark(ms int64) frame.Mark { return frame.Mark{Kind: frame.Watermark, Value: ms} }

// End is the mark of the end of the input.
func End() frame.Mark { return frame.Mark{Kind: frame.End} }
