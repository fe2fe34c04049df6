package streaming_test

import (
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// Functions that note the calls that they get.

// life notes construction, elements and the end.
type life struct{ calls *[]string }

func (l life) note(what string) { *l.calls = append(*l.calls, what) }

func newLife(calls *[]string) life {
	l := life{calls}
	l.note("open")
	return l
}

// Close implements process.Closer.
func (l life) Close() error {
	l.note("close")
	return nil
}

// lifeKeyed sums up per key.
type lifeKeyed struct {
	process.NoTimers[int64, int64]
	life
	sum *state.Reducing[int64]
}

func newLifeKeyed(rt *process.Runtime, calls *[]string) *lifeKeyed {
	return &lifeKeyed{life: newLife(calls), sum: state.NewReducing(rt, "sum", func(a, b int64) int64 { return a + b })}
}

func (f *lifeKeyed) ProcessElement(_ *process.KeyedContext[int64], x int64, out *process.Collector[int64]) error {
	f.note("element")
	f.sum.Add(x)
	out.Collect(f.sum.Get())
	return nil
}

// lifeText keeps a text per key.
type lifeText struct {
	process.NoTimers[string, int64]
	life
	text *state.Value[string]
}

func newLifeText(rt *process.Runtime, calls *[]string) *lifeText {
	return &lifeText{life: newLife(calls), text: state.NewValue[string](rt, "text")}
}

func (f *lifeText) ProcessElement(_ *process.KeyedContext[string], x int64, out *process.Collector[int64]) error {
	f.note("element")
	f.text.Set(f.text.Get() + decimal(x))
	out.Collect(number(f.text.Get()))
	return nil
}

// lifeCo passes on both inputs.
type lifeCo struct{ life }

func (f lifeCo) ProcessElement1(_ *process.Context, x int64, out *process.Collector[int64]) error {
	f.note("element")
	out.Collect(x)
	return nil
}

func (f lifeCo) ProcessElement2(_ *process.Context, x int64, out *process.Collector[int64]) error {
	f.note("element")
	out.Collect(-x)
	return nil
}

func connectedLife(calls *[]string, in *stream.Stream[int64]) *stream.Stream[int64] {
	return in.Connect(in.Map(func(x int64) int64 { return 10 * x })).Process(func(*process.Runtime) lifeCo { return lifeCo{newLife(calls)} })
}
