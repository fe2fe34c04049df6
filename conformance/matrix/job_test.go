package matrix

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// Event is what the job reads.
type Event struct {
	Key  string
	N    int64
	Rule bool // for the control stream
	// Late is set for elements out of order. What is late for an operator with two inputs depends on which is ahead, and a
	// timer in the past fires at the next watermark, which the one of a restore may be: joins and timers don't get them.
	Late bool
}

func (e Event) key() string { return e.Key }
func (e Event) n() int64    { return e.N }

// build makes the job. Up to where streams are keyed there is one subtask of each operator, so that the elements of a key
// keep their order and there is one answer. It reads in and gives its results, each with the name of its part of the job.
// inMemory keeps windows in memory whatever the state backend.
func build(in *stream.Stream[Event], inMemory bool) *stream.Stream[string] {
	data := in.Filter(func(e Event) bool { return !e.Rule }).Name("data").Parallelism(1)
	rules := in.Filter(func(e Event) bool { return e.Rule }).Name("rules").Parallelism(1)
	keyed := data.KeyBy(Event.key)
	parts := append(states(data, keyed, rules), windows(data, keyed, inMemory)...)
	return parts[0].Union(parts[1:]...)
}

// labelled puts the name of the part before each result.
func labelled[T any](name string, s *stream.Stream[T]) *stream.Stream[string] {
	return s.UID(name).Map(func(x T) string { return fmt.Sprint(name, ": ", x) }).Name("label " + name)
}

// states are the parts with state that functions declare.
func states(data *stream.Stream[Event], keyed *stream.KeyedStream[Event, string], rules *stream.Stream[Event]) []*stream.Stream[string] {
	limits := state.NewBroadcast[string, int64]("limits")
	timely := data.Filter(func(e Event) bool { return !e.Late }).Name("timely").Parallelism(1)
	tens := timely.Map(func(e Event) Event { return Event{Key: e.Key, N: 10 * e.N} }).Name("tens").Parallelism(1)
	return []*stream.Stream[string]{
		labelled("keyed", keyed.Process(newKinds)),
		labelled("timers", timely.KeyBy(Event.key).Process(newSilence)),
		labelled("operator list", data.Process(newBuffer)),
		labelled("rolling", keyed.Sum(Event.n)),
		labelled("broadcast", keyed.ConnectBroadcast(rules.BroadcastState(limits)).
			Process(func(rt *process.Runtime) *limited {
				return &limited{limits: limits, held: state.NewList[int64](rt, "held")}
			})),
		labelled("connected", keyed.Connect(tens.KeyBy(Event.key)).Process(newPairing)),
		labelled("interval join", timely.KeyBy(Event.key).IntervalJoin(tens.KeyBy(Event.key)).Between(-5*time.Millisecond, 5*time.Millisecond).
			Join(func(a, b Event) string { return fmt.Sprint(a.Key, a.N, b.N) })),
		labelled("async", data.AsyncUnordered(func(_ context.Context, e Event) ([]string, error) {
			return []string{fmt.Sprint(e.Key, -e.N)}, nil
		}, stream.AsyncOptions[Event, string]{})),
	}
}

// windows are the parts with windows: slices, sessions, the general way.
func windows(data *stream.Stream[Event], keyed *stream.KeyedStream[Event, string], inMemory bool) []*stream.Stream[string] {
	in := func(s *stream.WindowedStream[Event, string, window.Time]) *stream.WindowedStream[Event, string, window.Time] {
		if inMemory {
			s = s.KeepInMemory()
		}
		return s
	}
	w := func(r window.Result[string, window.Time, int64]) string { return fmt.Sprint(r.Key, r.Window, r.Value) }
	timely := data.Filter(func(e Event) bool { return !e.Late }).Name("timely").Parallelism(1)
	other := timely.Filter(func(e Event) bool { return e.N%3 == 0 }).Name("thirds").Parallelism(1)
	return []*stream.Stream[string]{
		labelled("tumbling", in(keyed.Window(window.Tumbling(10*time.Millisecond))).Sum(Event.n).Map(w)),
		labelled("sliding", in(keyed.Window(window.Sliding(20*time.Millisecond, 5*time.Millisecond))).AllowedLateness(10*time.Millisecond).Sum(Event.n).Map(w)),
		labelled("sessions", in(keyed.Window(window.Session(4*time.Millisecond))).Sum(Event.n).Map(w)),
		labelled("general", keyed.Window(window.Tumbling(10*time.Millisecond)).Evictor(window.CountEvictor(3)).
			Apply(func(info window.Info[string, window.Time], xs []Event, emit func(string)) {
				emit(fmt.Sprint(info.Key, info.Window, xs))
			})),
		labelled("count windows", keyed.CountWindow(4).Sum(Event.n).
			Map(func(r window.Result[string, window.Global, int64]) string { return fmt.Sprint(r.Key, r.Value) })),
		labelled("window join", timely.Join(other).Where(Event.key).EqualTo(Event.key).Window(window.Tumbling(10*time.Millisecond)).
			Apply(func(a, b Event) string { return fmt.Sprint(a.Key, a.N, b.N) })),
	}
}

// kinds keeps each kind of keyed state and tells of all of it at every third element of a key.
type kinds struct {
	process.NoTimers[string, string]
	value      *state.Value[Event]
	list       *state.List[int64]
	entries    *state.Map[int64, string]
	least      *state.Reducing[int64]
	mean       *state.Aggregating[int64, agg.Average, float64]
	longLived  *state.Value[int64]
	longListed *state.List[string]
}

func newKinds(rt *process.Runtime) *kinds {
	ttl := state.TTL(state.TTLConfig{After: 100 * time.Hour})
	return &kinds{
		value: state.NewValue[Event](rt, "value"), list: state.NewList[int64](rt, "list"),
		entries:   state.NewMap[int64, string](rt, "map"),
		least:     state.NewReducing(rt, "reducing", func(a, b int64) int64 { return min(a, b) }),
		mean:      state.NewAggregating(rt, "aggregating", agg.Avg(func(x int64) int64 { return x })),
		longLived: state.NewValue[int64](rt, "ttl", ttl), longListed: state.NewList[string](rt, "ttl list", ttl),
	}
}

func (k *kinds) ProcessElement(ctx *process.KeyedContext[string], e Event, out *process.Collector[string]) error {
	k.value.Set(e)
	k.list.Add(e.N)
	if k.list.Len() > 7 {
		k.list.Clear()
	}
	k.entries.Put(e.N%4, fmt.Sprint(e.N))
	if e.N%5 == 0 {
		k.entries.Remove((e.N + 1) % 4)
	}
	k.least.Add(e.N)
	k.mean.Add(e.N)
	k.longLived.Set(k.longLived.Get() + 1)
	k.longListed.Add(e.Key)
	if k.longLived.Get()%3 != 0 {
		return nil
	}
	var entries []string
	for key, v := range k.entries.All() {
		entries = append(entries, fmt.Sprint(key, "=", v))
	}
	slices.Sort(entries)
	out.Collect(fmt.Sprint(ctx.Key(), k.value.Get(), k.list.Get(), entries, k.least.Get(), " ", k.mean.Get(), " ", k.longLived.Get(), k.longListed.Len()))
	return nil
}

// silence tells how often a key was seen once it has been silent for 3 ms.
type silence struct {
	seen, until *state.Value[int64]
}

func newSilence(rt *process.Runtime) *silence {
	return &silence{state.NewValue[int64](rt, "seen"), state.NewValue[int64](rt, "until")}
}

func (s *silence) ProcessElement(ctx *process.KeyedContext[string], _ Event, _ *process.Collector[string]) error {
	s.seen.Set(s.seen.Get() + 1)
	if until, ok := s.until.Lookup(); ok {
		ctx.DeleteTimer(process.EventTime, until)
	}
	s.until.Set(ctx.TimestampMillis() + 3)
	ctx.RegisterTimer(process.EventTime, s.until.Get())
	return nil
}

func (s *silence) OnTimer(ctx *process.KeyedContext[string], t process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprint(ctx.Key(), " at ", t.Time().UnixMilli(), ": ", s.seen.Get()))
	s.until.Clear()
	return nil
}

// buffer holds elements back, in a field that is brought into operator state, until the end.
type buffer struct {
	held []Event
	kept *state.OperatorList[Event]
}

func newBuffer(rt *process.Runtime) *buffer {
	b := &buffer{kept: rt.OperatorList(state.NewOperatorList[Event]("held", state.Split))}
	b.held = slices.Collect(b.kept.All())
	return b
}

func (b *buffer) ProcessElement(_ *process.Context, e Event, _ *process.Collector[Event]) error {
	b.held = append(b.held, e)
	return nil
}

func (b *buffer) SnapshotState(process.SnapshotContext) error {
	b.kept.Set(b.held)
	return nil
}

func (b *buffer) Finish(out *process.Collector[Event]) error {
	for _, e := range b.held {
		out.Collect(e)
	}
	return nil
}

// limited holds numbers until event time has reached them: by then the rules before them are known.
type limited struct {
	limits *state.BroadcastDescriptor[string, int64]
	held   *state.List[int64]
}

func (l *limited) ProcessElement(ctx *process.KeyedReadOnlyContext[string], e Event, _ *process.Collector[string]) error {
	l.held.Add(e.N)
	ctx.RegisterTimer(process.EventTime, ctx.TimestampMillis()+2)
	return nil
}

func (l *limited) ProcessBroadcastElement(ctx *process.KeyedBroadcastContext[string], e Event, _ *process.Collector[string]) error {
	ctx.BroadcastState(l.limits).Put(e.Key, e.N)
	return nil
}

func (l *limited) OnTimer(ctx *process.KeyedReadOnlyContext[string], _ process.Timer, out *process.Collector[string]) error {
	limit, known := ctx.BroadcastState(l.limits).Lookup(strings.ToLower(ctx.Key()))
	for n := range l.held.All() {
		out.Collect(fmt.Sprint(ctx.Key(), n, limit, known))
	}
	l.held.Clear()
	return nil
}

// pairing sums both inputs by key and tells the sums at the end of time.
type pairing struct{ first, second *state.Value[int64] }

func newPairing(rt *process.Runtime) *pairing {
	return &pairing{state.NewValue[int64](rt, "first"), state.NewValue[int64](rt, "second")}
}

func (p *pairing) ProcessElement1(ctx *process.KeyedContext[string], e Event, _ *process.Collector[string]) error {
	return p.add(ctx, p.first, e)
}

func (p *pairing) ProcessElement2(ctx *process.KeyedContext[string], e Event, _ *process.Collector[string]) error {
	return p.add(ctx, p.second, e)
}

func (p *pairing) add(ctx *process.KeyedContext[string], to *state.Value[int64], e Event) error {
	to.Set(to.Get() + e.N)
	ctx.RegisterTimer(process.EventTime, 1<<40) // the end
	return nil
}

func (p *pairing) OnTimer(ctx *process.KeyedContext[string], _ process.Timer, out *process.Collector[string]) error {
	out.Collect(fmt.Sprint(ctx.Key(), " ", p.first.Get(), " ", p.second.Get()))
	return nil
}
