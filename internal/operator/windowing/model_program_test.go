package windowing

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/window"
)

// program is a windowed operator of the model tests.
type program struct {
	assigner    window.Assigner[window.Time]
	domain      process.Domain
	brain       brain
	evictor     window.Evictor // nil: none
	lateness    int64
	incremental bool // an aggregate, else a process function
	lateSide    bool
	order       func(a, b window.Time) int // of windows that are merged
}

func (p *program) merges() bool {
	_, ok := p.assigner.(window.Merger[window.Time])
	return ok
}

func newProgram(rng *rand.Rand) program {
	ms := func(n int64) time.Duration { return time.Duration(1+rng.Int64N(n)) * time.Millisecond }
	p := program{brain: newBrain(rng), lateness: rng.Int64N(3) * rng.Int64N(30), incremental: rng.IntN(2) == 0, lateSide: rng.IntN(2) == 0}
	p.assigner = []window.Assigner[window.Time]{
		window.Tumbling(ms(20)), window.TumblingProcessingTime(ms(20)),
		window.Sliding(ms(30), ms(15)), window.SlidingProcessingTime(ms(30), ms(15)),
		window.Session(ms(12)), window.SessionProcessingTime(ms(12)), window.Session(ms(12)),
		touchless{process.EventTime, 1 + rng.Int64N(20)},
	}[rng.IntN(8)]
	p.domain = p.assigner.Domain()
	switch rng.IntN(6) {
	case 0:
		p.evictor = window.CountEvictor(1 + rng.Int64N(4))
	case 1:
		p.evictor = window.TimeEvictor(ms(20)).After()
	case 2:
		p.evictor = oddEvictor{rng.Uint64()}
	}
	return p
}

// touchless assigns two windows to each element and merges windows that overlap, two at a time.
type touchless struct {
	domain process.Domain
	size   int64
}

func (a touchless) Assign(dst []window.Time, ts, now int64) ([]window.Time, error) {
	start := ts - ((ts%a.size)+a.size)%a.size
	return append(dst, window.Time{Start: ts, End: ts + 1 + a.size/2}, window.Time{Start: start + 500, End: start + 501 + a.size}), nil
}
func (a touchless) Domain() process.Domain       { return a.domain }
func (touchless) DefaultTrigger() window.Trigger { return window.EventTimeTrigger() }

func (touchless) Merge(ws []window.Time, merged func(window.Time, []window.Time)) {
	ws = slices.Clone(ws)
	slices.SortFunc(ws, func(a, b window.Time) int { return int(a.Start-b.Start)*1000 + int(a.End-b.End) })
	for i := 0; i+1 < len(ws); i++ {
		if ws[i].End > ws[i+1].Start {
			merged(ws[i].Cover(ws[i+1]), ws[i:i+2])
			return
		}
	}
}

// oddEvictor evicts elements as their number, time and a seed have it.
type oddEvictor struct{ seed uint64 }

func (o oddEvictor) EvictBefore(e *window.Eviction) { o.evict(e, 3) }
func (o oddEvictor) EvictAfter(e *window.Eviction)  { o.evict(e, 5) }

func (o oddEvictor) evict(e *window.Eviction, of uint64) {
	for i, t := range e.Times {
		if (uint64(t)*7+uint64(i)+o.seed)%of == 0 {
			e.Evict(i)
		}
	}
}

// text is what is emitted for a window: the elements in order, and for process functions how often it has fired.
func (p *program) text(w instance, xs []item, fired int64) string {
	ids := []string{}
	for _, x := range xs {
		ids = append(ids, fmt.Sprint(x.id))
	}
	text := fmt.Sprintf("%d %v %s", w.key, w.span, strings.Join(ids, ","))
	if !p.incremental && !p.merges() {
		text += fmt.Sprint(" firing ", fired)
	}
	return text
}

// realControl shows a brain what the engine has.
type realControl struct {
	ctx   *window.TriggerContext
	merge *window.MergeContext
	state *state.Value[int64]
}

func (c *realControl) watermark() int64 { return c.ctx.Watermark() }
func (c *realControl) now() int64       { return c.ctx.ProcessingTime() }
func (c *realControl) end() int64       { return c.ctx.MaxTimestamp() }
func (c *realControl) count() int64     { return c.state.Get() }
func (c *realControl) setCount(n int64) { c.state.Set(n) }
func (c *realControl) clearCount()      { c.state.Clear() }

func (c *realControl) register(d process.Domain, at int64) {
	if d == process.EventTime {
		c.ctx.RegisterEventTimeTimer(at)
	} else {
		c.ctx.RegisterProcessingTimeTimer(at)
	}
}

func (c *realControl) remove(d process.Domain, at int64) {
	if d == process.EventTime {
		c.ctx.DeleteEventTimeTimer(at)
	} else {
		c.ctx.DeleteProcessingTimeTimer(at)
	}
}

func (c *realControl) eachMerged(f func(int64)) { c.merge.EachMerged(func() { f(c.state.Get()) }) }

// brainTrigger is a brain as a trigger.
type brainTrigger struct{ brain }

func (b brainTrigger) New(rt *process.Runtime) window.TriggerFunction {
	return &brainFunction{b.brain, realControl{state: state.NewValue[int64](rt, "count")}}
}
func (brainTrigger) CanMerge() bool { return true }

type brainFunction struct {
	brain
	c realControl
}

func (b *brainFunction) at(ctx *window.TriggerContext) control {
	b.c.ctx = ctx
	return &b.c
}

func (b *brainFunction) OnElement(ctx *window.TriggerContext, ts int64) (window.TriggerResult, error) {
	return b.element(b.at(ctx), ts), nil
}

func (b *brainFunction) OnEventTime(ctx *window.TriggerContext, at int64) (window.TriggerResult, error) {
	return b.time(b.at(ctx), process.EventTime, at), nil
}

func (b *brainFunction) OnProcessingTime(ctx *window.TriggerContext, at int64) (window.TriggerResult, error) {
	return b.time(b.at(ctx), process.ProcessingTime, at), nil
}

func (b *brainFunction) OnMerge(ctx *window.MergeContext) error {
	b.c.merge = ctx
	b.merge(b.at(&ctx.TriggerContext))
	return nil
}

func (b *brainFunction) Clear(ctx *window.TriggerContext) error {
	b.clear(b.at(ctx))
	return nil
}

// named is a window whose canonical form varies in length.
type named struct {
	Name       string
	Start, End int64
}

func (w named) MaxTimestamp() int64 { return window.Time{Start: w.Start, End: w.End}.MaxTimestamp() }

// windowKind is a way to make windows of type W of those of the model.
type windowKind[W window.Window] struct {
	of func(window.Time) W
	to func(W) window.Time
	// order is that in which contents are merged: by start for window.Time, by max timestamp for other types.
	order func(a, b window.Time) int
}

func timeWindows() windowKind[window.Time] {
	same := func(w window.Time) window.Time { return w }
	return windowKind[window.Time]{same, same, func(a, b window.Time) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	}}
}

func namedWindows() windowKind[named] {
	return windowKind[named]{
		of:    func(w window.Time) named { return named{strings.Repeat("x", int(uint64(w.Start)%7)), w.Start, w.End} },
		to:    func(w named) window.Time { return window.Time{Start: w.Start, End: w.End} },
		order: func(a, b window.Time) int { return cmp.Compare(a.End, b.End) },
	}
}

// kindAssigner assigns windows of type W.
type kindAssigner[W window.Window] struct {
	window.Assigner[window.Time]
	kind windowKind[W]
}

func (a kindAssigner[W]) Assign(dst []W, ts, now int64) ([]W, error) {
	spans, err := a.Assigner.Assign(nil, ts, now)
	for _, s := range spans {
		dst = append(dst, a.kind.of(s))
	}
	return dst, err
}

type kindMerger[W window.Window] struct{ kindAssigner[W] }

func (a kindMerger[W]) Merge(ws []W, merged func(W, []W)) {
	spans := []window.Time{}
	for _, w := range ws {
		spans = append(spans, a.kind.to(w))
	}
	a.Assigner.(window.Merger[window.Time]).Merge(spans, func(result window.Time, sources []window.Time) {
		from := []W{}
		for _, s := range sources {
			from = append(from, a.kind.of(s))
		}
		merged(a.kind.of(result), from)
	})
}

// elementKind is a way to make elements of type T of items, and accumulators of type A of their numbers.
type elementKind[T, A any] struct {
	of    func(item) T
	to    func(T) item
	add   func(acc *A, id int64)
	merge func(acc, other *A)
	ids   func(acc *A) []int64
}

type fixedItem struct{ Key, ID, At int64 }

// few are numbers in an accumulator without pointers.
type few struct {
	N   int64
	IDs [400]int16
}

func fixedItems() elementKind[fixedItem, few] {
	add := func(acc *few, id int64) {
		acc.IDs[acc.N] = int16(id)
		acc.N++
	}
	ids := func(acc *few) (out []int64) {
		for _, id := range acc.IDs[:acc.N] {
			out = append(out, int64(id))
		}
		return out
	}
	return elementKind[fixedItem, few]{
		of: func(x item) fixedItem { return fixedItem{x.key, x.id, x.at} },
		to: func(x fixedItem) item { return item{x.Key, x.ID, x.At} }, add: add, ids: ids,
		merge: func(acc, other *few) {
			for _, id := range ids(other) {
				add(acc, id)
			}
			*other = few{N: 7}
		},
	}
}

type textItem struct {
	Key, ID, At int64
	Text        string
}

func textItems() elementKind[textItem, string] {
	return elementKind[textItem, string]{
		of:    func(x item) textItem { return textItem{x.key, x.id, x.at, fmt.Sprint("text ", x.id)} },
		to:    func(x textItem) item { return item{x.Key, x.ID, x.At} },
		add:   func(acc *string, id int64) { *acc += string(rune(1 + id)) },
		merge: func(acc, other *string) { *acc, *other = *acc+*other, "spoiled" },
		ids: func(acc *string) (out []int64) {
			for _, r := range *acc {
				out = append(out, int64(r)-1)
			}
			return out
		},
	}
}

type sliceItem struct{ Fields []int64 }

func sliceItems() elementKind[sliceItem, []int64] {
	return elementKind[sliceItem, []int64]{
		of:  func(x item) sliceItem { return sliceItem{[]int64{x.key, x.id, x.at}} },
		to:  func(x sliceItem) item { return item{x.Fields[0], x.Fields[1], x.Fields[2]} },
		add: func(acc *[]int64, id int64) { *acc = append(*acc, id) },
		merge: func(acc, other *[]int64) {
			*acc = append(*acc, *other...)
			clear(*other)
		},
		ids: func(acc *[]int64) []int64 { return slices.Clone(*acc) },
	}
}

// subject is an operator under test.
type subject struct {
	op              operator.Operator
	rt              *operator.Runtime
	out, late, gone *kit.Recorder
	push            func(items []item) error
	text            func(item) string // of a late element
}

func newSubject[T, A any, W window.Window](t *testing.T, p program, e elementKind[T, A], kind windowKind[W]) *subject {
	t.Helper()
	spec := windows.Spec{
		In: kit.TypeOf[T](t), Out: kit.TypeOf[string](t), Key: kit.KeyOf(t, func(x T) int64 { return e.to(x).key }),
		Lateness: p.lateness, Place: "model_test.go:1", Sides: map[string]*frame.Type{"gone": kit.TypeOf[string](t)},
	}
	if p.lateSide {
		spec.Late, spec.Sides["late"] = "late", spec.In
	}
	d := Definition[T, W]{Assigner: kindAssigner[W]{p.assigner, kind}, Trigger: brainTrigger{p.brain}, Evictor: p.evictor}
	if p.merges() {
		d.Assigner = kindMerger[W]{kindAssigner[W]{p.assigner, kind}}
	}
	s := &subject{op: modelOperator(t, p, spec, d, e, kind)}
	s.text = func(x item) string { return fmt.Sprintf("%v@%d", e.of(x), x.at) }
	s.rt = kit.Runtime()
	s.gone = kit.Record(t, s.op.Output("gone"), s.rt)
	if p.lateSide {
		s.late = kit.Record(t, s.op.Output("late"), s.rt)
	}
	s.out = kit.OpenAt(t, s.op, s.rt)
	s.push = func(items []item) error {
		xs, times := []T{}, []int64{}
		for _, x := range items {
			xs, times = append(xs, e.of(x)), append(times, x.at)
		}
		return s.op.Inputs()[0].Push(kit.Run(t, times, xs...))
	}
	return s
}

// modelOperator makes an operator whose results are program's text.
func modelOperator[T, A any, W window.Window](t *testing.T, p program, spec windows.Spec, d Definition[T, W], e elementKind[T, A], kind windowKind[W]) operator.Operator {
	if !p.incremental {
		return Process(spec, d, func(rt *window.Runtime) window.Function[int64, T, W, string] {
			f := &firingFunction[T, W]{p: &p, item: e.to, span: kind.to, total: state.NewValue[int64](rt, "count")}
			if !p.merges() {
				f.fired = state.NewValue[int64](rt.PerWindow(), "count")
			}
			return f
		})
	}
	h, err := serde.Of[A]()
	kit.Must(t, err)
	return Aggregate(spec, d, windows.Program[T, int64, W, A, A, string]{
		Aggregate: listingAggregate[T, A]{e},
		Emit: func(x *string, info *window.Info[int64, W], acc A) {
			xs := []item{}
			for _, id := range e.ids(&acc) {
				xs = append(xs, item{id: id})
			}
			*x = p.text(instance{info.Key, kind.to(info.Window)}, xs, 0)
		},
	}.Incremental(h))
}

// listingAggregate keeps the numbers of elements in order.
type listingAggregate[T, A any] struct{ e elementKind[T, A] }

func (listingAggregate[T, A]) Create() (a A)         { return a }
func (l listingAggregate[T, A]) Add(acc *A, x T)     { l.e.add(acc, l.e.to(x).id) }
func (l listingAggregate[T, A]) Merge(acc, other *A) { l.e.merge(acc, other) }
func (listingAggregate[T, A]) Result(acc *A) A       { return *acc }

// firingFunction emits program's text, and counts firings per window and per key.
type firingFunction[T any, W window.Window] struct {
	p            *program
	item         func(T) item
	span         func(W) window.Time
	fired, total *state.Value[int64]
}

func (f *firingFunction[T, W]) Process(ctx *window.Context[int64, W], xs []T, out *process.Collector[string]) error {
	f.total.Set(f.total.Get() + 1)
	n := int64(0)
	if f.fired != nil {
		n = f.fired.Get() + 1
		f.fired.Set(n)
	}
	items := []item{}
	for _, x := range xs {
		items = append(items, f.item(x))
	}
	out.Collect(f.p.text(instance{ctx.Key(), f.span(ctx.Window())}, items, n))
	slices.Reverse(xs) // a function may do so
	return nil
}

func (f *firingFunction[T, W]) Clear(ctx *window.Context[int64, W]) error {
	if f.fired != nil {
		ctx.Emit(process.NewOutputTag[string]("gone"), fmt.Sprintf("%d %v after %d", ctx.Key(), f.span(ctx.Window()), f.fired.Get()))
		f.fired.Clear()
	}
	return nil
}

// checkProgram runs random elements and times through a random program, and compares with the model after each step.
func checkProgram[T, A any, W window.Window](t *testing.T, seed uint64, e elementKind[T, A], kind windowKind[W]) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	p := newProgram(rng)
	p.order = kind.order
	m, s := newModel(p), newSubject(t, p, e, kind)
	center, id := rng.Int64N(100)-50, int64(0)
	for step := range 60 {
		var items []item
		for range 1 + rng.IntN(6) {
			id++
			items = append(items, item{key: rng.Int64N(3), id: id, at: center + rng.Int64N(60) - 30})
		}
		var refused error
		for i := 0; i < len(items) && refused == nil; i++ {
			refused = m.element(items[i])
		}
		if err := s.push(items); (err != nil) != (refused != nil) {
			t.Fatalf("seed %d, step %d, %+v: error %v, want %v", seed, step, p, err, refused)
		} else if err != nil {
			return // a trigger that had taken the cleanup timer back has let windows become late
		}
		s.compare(t, m, seed, step)
		switch rng.IntN(3) {
		case 0:
			center += rng.Int64N(20)
			w := max(m.watermark, center+rng.Int64N(40)-40)
			m.advance(process.EventTime, w)
			kit.Must(t, s.op.Inputs()[0].Mark(kit.Watermark(w)))
		case 1:
			m.advance(process.ProcessingTime, m.now+rng.Int64N(20))
			s.rt.Now = m.now
			kit.Must(t, s.rt.Timers.Run(m.now))
		}
		s.compare(t, m, seed, step)
	}
}

func (s *subject) compare(t *testing.T, m *model, seed uint64, step int) {
	t.Helper()
	same := func(what string, r *kit.Recorder, want []string) {
		t.Helper()
		got := slices.DeleteFunc(r.Got, func(s string) bool { return strings.HasPrefix(s, "watermark") })
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, step %d, %+v\n%s at watermark %d, clock %d:\n got %q\nwant %q", seed, step, m.program, what, m.watermark, m.now, got, want)
		}
		r.Got = nil
	}
	same("results", s.out, m.out)
	if m.lateSide {
		texts := []string{}
		for _, x := range m.late {
			texts = append(texts, s.text(x))
		}
		same("late elements", s.late, texts)
	} else if got := s.rt.Host.(*kit.Host).Metrics[windows.LateDropped].Read(); got != m.dropped {
		t.Fatalf("seed %d, step %d: %v late elements dropped, want %d", seed, step, got, m.dropped)
	}
	if !m.incremental && !m.merges() {
		same("windows that are gone", s.gone, m.gone)
	}
	m.out, m.gone, m.late = nil, nil, nil
	for d := range process.ProcessingTime + 1 {
		n := 0
		for f := range m.timers {
			if f.domain == d {
				n++
			}
		}
		if got := s.op.(interface{ Timers(process.Domain) int }).Timers(d); got != n {
			t.Fatalf("seed %d, step %d, %+v: %d timers of %v, want %d", seed, step, m.program, got, d, n)
		}
	}
}

// checkSeed runs the program of a seed with elements and windows of types that the seed chooses.
func checkSeed(t *testing.T, seed uint64) {
	t.Helper()
	switch seed % 4 {
	case 0:
		checkProgram(t, seed, fixedItems(), timeWindows())
	case 1:
		checkProgram(t, seed, textItems(), timeWindows())
	case 2:
		checkProgram(t, seed, sliceItems(), namedWindows())
	case 3:
		checkProgram(t, seed, fixedItems(), namedWindows())
	}
}

func TestDriverIsFlinksForRandomPrograms(t *testing.T) {
	for seed := range uint64(400) {
		checkSeed(t, seed)
	}
}

func FuzzDriverIsFlinks(f *testing.F) {
	f.Add(uint64(1 << 40))
	f.Fuzz(checkSeed)
}
