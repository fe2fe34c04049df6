package windowing

import (
	"fmt"
	"testing"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

// event is the element of these tests.
type event struct {
	Key string
	N   int64
}

func (e event) key() string { return e.Key }

// specOf is an operator from events to X.
func specOf[X any](t testing.TB) windows.Spec {
	return windows.Spec{In: kit.TypeOf[event](t), Out: kit.TypeOf[X](t), Key: kit.KeyOf(t, event.key), Place: "job.go:12"}
}

// sums are the kernels of an aggregate with the accumulator's layout: A is int64, or a type with pointers.
func sums(t testing.TB) *windows.Incremental {
	t.Helper()
	h, err := serde.Of[int64]()
	kit.Must(t, err)
	return windows.Program[event, string, window.Time, int64, int64, string]{
		Aggregate: agg.Sum(func(e event) int64 { return e.N }),
		Emit: func(x *string, info *window.Info[string, window.Time], r int64) {
			*x = fmt.Sprintf("%s %v %d", info.Key, info.Window, r)
		},
	}.Incremental(h)
}

// listing is a window function that prints what it is given.
type listing[E any] struct{}

func (listing[E]) Process(ctx *window.Context[string, window.Time], xs []E, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%s %v %v", ctx.Key(), ctx.Window(), xs))
	return nil
}

func tumbling(ms int64) window.Assigner[window.Time] { return fixed{ms} }

// fixed assigns tumbling windows.
type fixed struct{ size int64 }

func (f fixed) Assign(dst []window.Time, ts, _ int64) ([]window.Time, error) {
	if ts == -1<<63 {
		return dst, window.ErrNoTimestamp
	}
	start := ts - ((ts%f.size)+f.size)%f.size
	return append(dst, window.Time{Start: start, End: start + f.size}), nil
}
func (fixed) Domain() process.Domain         { return process.EventTime }
func (fixed) DefaultTrigger() window.Trigger { return window.EventTimeTrigger() }

func push(t testing.TB, op operator.Operator, times []int64, xs ...event) {
	t.Helper()
	kit.Must(t, op.Inputs()[0].Push(kit.Run(t, times, xs...)))
}

func mark(t testing.TB, op operator.Operator, watermark int64) {
	t.Helper()
	kit.Must(t, op.Inputs()[0].Mark(kit.Watermark(watermark)))
}

// table is what the tests ask of a table of state.
type table interface{ Len() int }

// openSpied opens an operator and shows its tables by name.
func openSpied(t testing.TB, op operator.Operator) (*kit.Recorder, map[string]table) {
	t.Helper()
	rt, tables := kit.Runtime(), map[string]table{}
	open := rt.OpenState
	rt.OpenState = func(o statebackend.Options) (statebackend.Store, error) {
		s, err := open(o)
		return &spiedStore{s, tables}, err
	}
	return kit.OpenAt(t, op, rt), tables
}

type spiedStore struct {
	statebackend.Store
	tables map[string]table
}

func (s *spiedStore) Table(spec statebackend.TableSpec) (statebackend.Table, error) {
	t, err := s.Store.Table(spec)
	s.tables[spec.Name] = t
	return t, err
}

func (s *spiedStore) List(spec statebackend.TableSpec) (statebackend.ListTable, error) {
	t, err := s.Store.List(spec)
	s.tables[spec.Name] = t
	return t, err
}

// numberKernels are those of a sum that emits numbers.
func numberKernels[W window.Window](t testing.TB) *windows.Incremental {
	t.Helper()
	h, err := serde.Of[int64]()
	kit.Must(t, err)
	return windows.Program[number, int64, W, int64, int64, number]{
		Aggregate: agg.Sum(func(n number) int64 { return n.N }),
		Emit:      func(x *number, info *window.Info[int64, W], r int64) { *x = number{info.Key, r} },
	}.Incremental(h)
}

// number is an element without pointers.
type number struct{ Key, N int64 }

func (n number) key() int64 { return n.Key }

// last is a process function that emits the last element.
type last struct{}

func (last) Process(_ *window.Context[int64, window.Time], xs []number, out *process.Collector[number]) error {
	out.Collect(xs[len(xs)-1])
	return nil
}
