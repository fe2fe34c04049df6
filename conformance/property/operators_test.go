package property

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/internal/env"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/watermark"
)

// ruledAll reads rules that come by broadcast, and has no keys.
type ruledAll struct {
	*batch
	rules *state.BroadcastDescriptor[int64, record]
}

func newRuledAll(rt *process.Runtime) *ruledAll { return &ruledAll{newBatch(rt), rules()} }

func (f *ruledAll) ProcessElement(ctx *process.ReadOnlyContext, r record, out *process.Collector[string]) error {
	rule := ctx.BroadcastState(f.rules).Get(r.K)
	return f.batch.ProcessElement(nil, concat(rule, r), out)
}

func (f *ruledAll) ProcessBroadcastElement(ctx *process.BroadcastContext, r record, _ *process.Collector[string]) error {
	ctx.BroadcastState(f.rules).Put(r.K, r)
	return nil
}

// batchBoth is batch for two inputs.
type batchBoth struct{ *batch }

func newBatchBoth(rt *process.Runtime) *batchBoth { return &batchBoth{newBatch(rt)} }

func (f *batchBoth) ProcessElement1(_ *process.Context, r record, out *process.Collector[string]) error {
	return f.ProcessElement(nil, r, out)
}

func (f *batchBoth) ProcessElement2(_ *process.Context, r record, out *process.Collector[string]) error {
	return f.ProcessElement(nil, negated(r), out)
}

// plainSurvivors are operators without keys, many of which keep nothing.
func plainSurvivors() []survivor {
	one := func(name string, f func(in records) *stream.Stream[string]) survivor {
		return survivor{name: name, build: func(a, b records) *stream.Stream[string] { return f(a.Union(b)) }}
	}
	text := func(r record) string { return fmt.Sprint(r) }
	return []survivor{
		one("map", func(in records) *stream.Stream[string] { return in.Map(text) }),
		one("filter", func(in records) *stream.Stream[string] {
			return in.Filter(func(r record) bool { return r.V%2 == 0 }).Map(text)
		}),
		one("flat map", func(in records) *stream.Stream[string] {
			return in.FlatMap(func(r record, emit func(string)) {
				emit(r.S)
				emit(text(r))
			})
		}),
		one("watermarks", func(in records) *stream.Stream[string] {
			timed := watermark.BoundedOutOfOrderness(time.Millisecond, func(r record) time.Time { return time.UnixMilli(r.V) })
			return in.AssignTimestampsAndWatermarks(timed.WithIdleness(20 * time.Millisecond)).Process(newBatch)
		}),
		{name: "co-map", build: func(a, b records) *stream.Stream[string] { return a.Connect(b).Map(text, text) }},
		{name: "co-process without keys", build: func(a, b records) *stream.Stream[string] {
			return a.Connect(b).Process(newBatchBoth)
		}},
		{name: "broadcast without keys", second: toAll, build: func(a, b records) *stream.Stream[string] {
			return a.ConnectBroadcast(b.BroadcastState(rules())).Process(newRuledAll)
		}},
	}
}

// TestAsyncCallsSurviveSnapshots: calls that are under way when an asynchronous operator is taken down are made again, and each
// element has its results once, in order where that was promised.
func TestAsyncCallsSurviveSnapshots(t *testing.T) {
	for name, ordered := range map[string]bool{"ordered": true, "unordered": false} {
		t.Run(name, func(t *testing.T) {
			gate := make(chan struct{})
			open := func(opts ...flotttest.Option) *flotttest.Harness[int64, string] {
				return flotttest.NewHarness(t, func(in *stream.Stream[int64]) *stream.Stream[string] { return asyncCalls(in, ordered, &gate) }, opts...)
			}
			h := open()
			for i := range int64(6) {
				h.ProcessElement(i, i)
			}
			h.ProcessWatermark(5)
			taken := h.Snapshot() // six calls wait behind the gate
			h.ProcessElement(6, 6)
			h.Cancel()
			h.Close()
			h = open(flotttest.Restore(taken))
			h.ProcessElement(6, 6)
			again := h.Snapshot() // the same six calls, and one more
			h.Cancel()
			h.Close()
			close(gate)
			h = open(flotttest.Restore(again))
			h.ProcessElement(7, 7)
			h.Await(func() bool {
				h.Advance(time.Millisecond) // the pause before a call is made again
				return len(h.Elements()) == 8
			})
			want := []string{"0", "1", "2", "3", "4", "5", "6", "7"}
			if ordered {
				flotttest.Equal(t, h.Values(), want)
			}
			flotttest.Same(t, h.Values(), want)
		})
	}
}

// asyncCalls is an asynchronous operator whose calls wait until the gate is closed; every third call fails at first.
func asyncCalls(in *stream.Stream[int64], ordered bool, gate *chan struct{}) *stream.Stream[string] {
	at, tries := *gate, make([]int, 8)
	call := func(ctx context.Context, x int64) ([]string, error) {
		select {
		case <-at:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if tries[x]++; x%3 == 0 && tries[x] == 1 { // calls for one element follow each other
			return nil, errors.New("not yet")
		}
		return []string{fmt.Sprint(x)}, nil
	}
	o := stream.AsyncOptions[int64, string]{Retry: stream.AsyncRetry[string]{MaxAttempts: 3, Delay: time.Millisecond}}
	if ordered {
		return in.AsyncOrdered(call, o)
	}
	return in.AsyncUnordered(call, o)
}

// TestEveryOperatorIsTakenDown: each type of the product's operators that takes part in snapshots is driven by a test of this
// package. A new one fails it until it is in one of the tables.
func TestEveryOperatorIsTakenDown(t *testing.T) {
	driven := map[string]bool{}
	note := func(build func(e *stream.Env)) {
		e := stream.NewEnv(func(s *env.Settings) {
			s.Launch = func(p *plan.JobGraph) error {
				for _, v := range p.Vertices {
					for _, n := range v.Nodes {
						noteTypes(reflect.TypeOf(n.Node.New()), driven)
					}
				}
				return fs.ErrClosed
			}
		})
		build(e)
		if _, err := e.Execute(t.Context(), "captured"); !errors.Is(err, fs.ErrClosed) {
			t.Fatal(err)
		}
	}
	for _, s := range append(survivors(), plainSurvivors()...) {
		note(func(e *stream.Env) {
			timed := watermark.BoundedOutOfOrderness(0, func(r record) time.Time { return time.UnixMilli(r.V) })
			in := func() records { return e.FromElements(newRecord(1, 2)).AssignTimestampsAndWatermarks(timed) }
			s.build(in(), in()).Discard()
		})
	}
	for _, b := range beginnings() {
		note(func(e *stream.Env) { b.build(e, vfs.NewMem()).Discard() })
	}
	for _, s := range endings() {
		note(func(e *stream.Env) { s.build(e.FromElements("x"), vfs.NewMem()) })
	}
	gate := make(chan struct{})
	note(func(e *stream.Env) { asyncCalls(e.FromElements[int64](1), true, &gate).Discard() })
	note(func(e *stream.Env) { circle(e, nil).Discard() })
	all := snapshotters(t)
	if len(all) < 20 {
		t.Fatalf("found %q only", all)
	}
	for _, name := range all {
		if !driven[name] {
			t.Errorf("%s takes part in snapshots, and no test of this package takes it down: put it into a table", name)
		}
	}
}

// noteTypes notes the type of an operator and those of which it consists, as package/type.
func noteTypes(typ reflect.Type, driven map[string]bool) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	name, _, _ := strings.Cut(typ.Name(), "[")
	name = path.Base(typ.PkgPath()) + "/" + name
	if driven[name] || !strings.Contains(typ.PkgPath(), "/internal/operator/") {
		return
	}
	if driven[name] = true; typ.Kind() == reflect.Struct {
		for i := range typ.NumField() {
			noteTypes(typ.Field(i).Type, driven)
		}
	}
}

// snapshotters are the types below internal/operator with a Snapshot method of an operator.
func snapshotters(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir("../../internal/operator", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "operatortest") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "Snapshot" && takesSnapshot(f) {
				names = append(names, file.Name.Name+"/"+receiver(f.Recv.List[0].Type))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// takesSnapshot says whether a method's only parameter is an *operator.Snapshot.
func takesSnapshot(f *ast.FuncDecl) bool {
	if len(f.Type.Params.List) != 1 {
		return false
	}
	p, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	s, ok := p.X.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Snapshot"
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return fmt.Sprintf("%T", e)
}

// circle is a loop: numbers go round until they are 1.
func circle(e *stream.Env, fail func() error) *stream.Stream[int64] {
	loop := stream.Iterate(e.FromGenerator(60, func(i int64) int64 { return i + 1 }, 2000).UID("numbers"))
	stepped := loop.TryMap(func(_ context.Context, x int64) (int64, error) {
		if x%2 == 0 {
			x /= 2
		} else if x > 1 {
			x = 3*x + 1
		}
		if fail != nil {
			return x, fail()
		}
		return x, nil
	})
	loop.CloseWith(stepped.Filter(func(x int64) bool { return x != 1 }))
	return stepped.Filter(func(x int64) bool { return x == 1 })
}

// TestLoopsSurviveSnapshots: a loop, which needs a whole job, goes on from its checkpoints when any of its steps fails: each number
// comes out once. The harness can't drive it.
func TestLoopsSurviveSnapshots(t *testing.T) {
	for at := 5; at < 600; at += 29 {
		steps, failed := 0, false
		e := stream.NewEnv().SetParallelism(2).EnableCheckpointing(10 * time.Millisecond).SetRestartStrategy(stream.FixedDelayRestart(1, time.Millisecond))
		ones := transactions()
		ones.build(circle(e, func() error {
			if steps++; steps >= at && !failed {
				failed = true
				return errors.New("a bad step")
			}
			return nil
		}).Map(func(x int64) string { return fmt.Sprint(x) }), nil)
		if _, err := e.Simulate(t.Context(), "circle", uint64(at)); err != nil {
			t.Fatal(err)
		}
		if got := ones.read(); len(got) != 60 || !failed {
			t.Errorf("after a failure at step %d: %d numbers came out, want 60", at, len(got))
		}
	}
}
