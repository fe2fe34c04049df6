package property

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// remember has keyed state of every kind and timers of both domains.
type remember[K comparable] struct {
	fixed  *state.Value[int64]
	text   *state.Value[record]
	list   *state.List[[]int64]
	counts *state.Map[string, int64]
	brief  *state.Value[int64] // lives for a while
}

func remembering[K comparable](rt *process.Runtime) remember[K] {
	return remember[K]{
		fixed: state.NewValue[int64](rt, "fixed"), text: state.NewValue[record](rt, "text"), list: state.NewList[[]int64](rt, "list"),
		counts: state.NewMap[string, int64](rt, "counts"),
		brief:  state.NewValue[int64](rt, "brief", state.TTL(state.TTLConfig{After: 40 * time.Millisecond})),
	}
}

func newRemember(rt *process.Runtime) *remember[int64] {
	f := remembering[int64](rt)
	return &f
}

func newRememberText(rt *process.Runtime) *remember[string] {
	f := remembering[string](rt)
	return &f
}

func (f *remember[K]) ProcessElement(ctx *process.KeyedContext[K], r record, out *process.Collector[string]) error {
	f.take(ctx, r)
	out.Collect(f.all("element", ctx.Key()))
	return nil
}

func (f *remember[K]) take(ctx *process.KeyedContext[K], r record) {
	f.fixed.Update(func(n *int64) { *n = *n*3 + r.V })
	f.brief.Update(func(n *int64) { *n++ })
	f.text.Set(concat(f.text.Get(), record{S: r.S[:1]}))
	switch r.V % 5 {
	case 0:
		f.list.Add([]int64{r.V, ctx.TimestampMillis()})
	case 1:
		f.counts.Update(r.S, func(n *int64) { *n++ })
	case 2:
		ctx.RegisterTimer(process.EventTime, ctx.TimestampMillis()+r.V)
	case 3:
		ctx.RegisterTimer(process.ProcessingTime, ctx.ProcessingTime()+r.V)
	case 4:
		ctx.DeleteTimer(process.EventTime, ctx.TimestampMillis()+r.V-2)
		f.list.Clear()
	}
}

func (f *remember[K]) all(what string, key K) string {
	text := fmt.Sprint(what, " ", key, " ", f.fixed.Get(), " ", f.text.Get(), " ", f.list.Get(), " ", f.brief.Get())
	for k, n := range f.counts.All() {
		text += fmt.Sprint(" ", k, "=", n)
	}
	return text
}

func (f *remember[K]) OnTimer(ctx *process.KeyedContext[K], t process.Timer, out *process.Collector[string]) error {
	f.fixed.Update(func(n *int64) { *n += t.Millis })
	out.Collect(f.all(fmt.Sprint(t.Domain, t.Millis), ctx.Key()))
	if t.Millis%3 == 0 {
		f.counts.Clear()
	}
	return nil
}

// rememberBoth is remember for two inputs.
type rememberBoth struct{ *remember[int64] }

func newRememberBoth(rt *process.Runtime) *rememberBoth { return &rememberBoth{newRemember(rt)} }

func (f *rememberBoth) ProcessElement1(ctx context64, r record, out *process.Collector[string]) error {
	return f.ProcessElement(ctx, r, out)
}

func (f *rememberBoth) ProcessElement2(ctx context64, r record, _ *process.Collector[string]) error {
	f.take(ctx, negated(newRecord(r.K, r.V)))
	return nil
}

// batch hands elements on five by five; those that wait are in a field, which it saves.
type batch struct {
	waiting []string
	saved   *state.OperatorList[string]
}

func newBatch(rt *process.Runtime) *batch {
	f := &batch{saved: rt.OperatorList(state.NewOperatorList[string]("waiting", state.Split))}
	if rt.IsRestored() {
		for x := range f.saved.All() {
			f.waiting = append(f.waiting, x)
		}
	}
	return f
}

func (f *batch) SnapshotState(process.SnapshotContext) error {
	f.saved.Set(f.waiting)
	return nil
}

func (f *batch) ProcessElement(_ *process.Context, r record, out *process.Collector[string]) error {
	if f.waiting = append(f.waiting, r.S); len(f.waiting) == 5 {
		out.Collect(fmt.Sprint(f.waiting))
		f.waiting = nil
	}
	return nil
}

// batchRuns is batch as an operator of the user's own.
type batchRuns struct{ *batch }

func newBatchRuns(rt *process.Runtime) *batchRuns { return &batchRuns{newBatch(rt)} }

func (f *batchRuns) ProcessRun(_ *process.OperatorContext, xs []record, _ []int64, out *process.Collector[string]) error {
	for _, x := range xs {
		if err := f.ProcessElement(nil, x, out); err != nil {
			return err
		}
	}
	return nil
}

func rules() *state.BroadcastDescriptor[int64, record] {
	return state.NewBroadcast[int64, record]("rules")
}

// ruled reads rules that come by broadcast.
type ruled struct{ *remember[int64] }

func newRuled(rt *process.Runtime) *ruled { return &ruled{newRemember(rt)} }

func (f *ruled) ProcessElement(ctx *process.KeyedReadOnlyContext[int64], r record, out *process.Collector[string]) error {
	f.take(&ctx.KeyedContext, r)
	text := f.all("element", ctx.Key())
	for k, rule := range ctx.BroadcastState(rules()).All() {
		text += fmt.Sprint(" ", k, ":", rule)
	}
	out.Collect(text)
	return nil
}

func (f *ruled) ProcessBroadcastElement(ctx *process.KeyedBroadcastContext[int64], r record, _ *process.Collector[string]) error {
	b := ctx.BroadcastState(rules())
	if r.V%4 == 0 {
		b.Remove(r.K)
		return nil
	}
	b.Put(r.K, concat(b.Get(r.K), r))
	return nil
}

func (f *ruled) OnTimer(ctx *process.KeyedReadOnlyContext[int64], t process.Timer, out *process.Collector[string]) error {
	return f.remember.OnTimer(&ctx.KeyedContext, t, out)
}

func joined(a, b records) *stream.Stream[string] {
	return a.Join(b).Where(record.key).EqualTo(record.key).Window(window.Tumbling(25 * time.Millisecond)).
		Apply(func(l, r record) string { return fmt.Sprint(l, r) })
}
