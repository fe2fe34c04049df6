package window_test

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
	"github.com/flott-dev/flott/window"
)

// player is to a trigger what the engine is, for one key: it keeps the trigger's state, per window, and its timers, which
// it fires as time advances.
type player struct {
	process.Host
	t      testing.TB
	f      window.TimeTrigger
	ctx    *window.TriggerContext
	merges *window.MergeContext

	key, namespace *serde.Key
	store          statebackend.Store
	run            state.CurrentRun
	tables         []*state.Cell
	names          []string

	timers         [2][]timer
	watermark, now int64
	at             window.Time
	merged         []window.Time
}

type timer struct {
	at int64
	w  window.Time
}

// storm is more calls than any test makes in one step.
const storm = 1000

func newPlayer(t testing.TB) *player {
	t.Helper()
	p := &player{t: t, watermark: math.MinInt64, key: keyOf[int64](t), namespace: keyOf[window.Time](t)}
	p.ctx, p.merges = window.NewTriggerContext(services{p}), window.NewMergeContext(services{p})
	var err error
	p.store, err = heap.Backend{}.Open(statebackend.Options{Key: p.key, Seed: 3, MaxParallelism: 128, LastGroup: 127, Operator: "test"})
	if err != nil {
		t.Fatal(err)
	}
	canon, hashes := canonical(t, p.key, int64(7)), []uint64{0}
	p.key.Hash(&canon, 3, hashes)
	p.store.BeginRun(&canon, hashes)
	return p
}

func keyOf[K any](t testing.TB) *serde.Key {
	t.Helper()
	k, err := serde.KeyOf[K]()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func canonical[K any](t testing.TB, key *serde.Key, k K) serde.Canon {
	t.Helper()
	c, err := key.Canon(serde.Column{P: unsafe.Pointer(&k), N: 1, Stride: unsafe.Sizeof(k)}, new(serde.KeyScratch))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checked fails the test if a trigger finds something wrong with itself.
func checked(t testing.TB, trigger any) {
	t.Helper()
	if c, ok := trigger.(interface{ Check() error }); ok && c.Check() != nil {
		t.Fatal(c.Check())
	}
}

// play plays a trigger; the function is what is told of elements.
func play(t testing.TB, trigger window.Trigger) (p *player, element func(w window.Time, ts int64) window.TriggerResult) {
	t.Helper()
	checked(t, trigger)
	p = newPlayer(t)
	f := trigger.New(process.NewRuntime(p))
	p.f = f
	return p, func(w window.Time, ts int64) window.TriggerResult {
		t.Helper()
		p.enter(w)
		return p.answer(f.OnElement(p.ctx, ts))
	}
}

// playBy is play for a trigger that looks at elements.
func playBy[T any](t testing.TB, trigger window.ElementTrigger[T]) (p *player, element func(w window.Time, x T) window.TriggerResult) {
	t.Helper()
	checked(t, trigger)
	p = newPlayer(t)
	f := trigger.New(process.NewRuntime(p))
	p.f = f
	return p, func(w window.Time, x T) window.TriggerResult {
		t.Helper()
		p.enter(w)
		return p.answer(f.OnElement(p.ctx, &x, 0))
	}
}

// BindTable implements state.Binder as the engine does for triggers: the state belongs to the key and the window.
func (p *player) BindTable(spec statebackend.TableSpec) *state.Cell {
	spec.Namespace = p.namespace
	if slices.Contains(p.names, spec.Name) {
		p.t.Fatalf("state %q is declared twice", spec.Name)
	}
	cell, err := state.OpenCell(p.store, spec, &p.run)
	if err != nil {
		p.t.Fatal(err)
	}
	p.names, p.tables = append(p.names, spec.Name), append(p.tables, cell)
	return cell
}

// Report implements state.Binder.
func (p *player) Report(err error) { p.t.Fatal(err) }

// enter puts a window at hand.
func (p *player) enter(w window.Time) {
	p.at = w
	c := canonical(p.t, p.namespace, w)
	for _, table := range p.tables {
		table.Table.SetNamespace(c.Bytes(0))
	}
}

func (p *player) answer(r window.TriggerResult, err error) window.TriggerResult {
	p.t.Helper()
	if err == nil {
		err = p.run.Take()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// services is the engine's side of the trigger's context.
type services struct{ *player }

func (s services) ProcessingTime() int64 { return s.now }
func (s services) Watermark() int64      { return s.watermark }
func (s services) MaxTimestamp() int64   { return s.at.MaxTimestamp() }

func (s services) Window() (unsafe.Pointer, reflect.Type) {
	return unsafe.Pointer(&s.at), reflect.TypeFor[window.Time]()
}

func (s services) Register(d process.Domain, at int64) {
	if n := (timer{at, s.at}); !slices.Contains(s.timers[d], n) {
		s.timers[d] = append(s.timers[d], n)
	}
}

func (s services) Delete(d process.Domain, at int64) {
	s.timers[d] = slices.DeleteFunc(s.timers[d], func(n timer) bool { return n == timer{at, s.at} })
}

func (s services) EachMerged(f func()) {
	target := s.at
	for _, w := range s.merged {
		s.enter(w)
		f()
	}
	s.enter(target)
}

// fire fires timers of a domain in time order as long as one is due, those that are registered meanwhile as well. It gives
// what was answered, without CONTINUE.
func (p *player) fire(d process.Domain, due func(at int64) bool) string {
	p.t.Helper()
	var out []string
	for calls := 0; ; calls++ {
		slices.SortFunc(p.timers[d], func(a, b timer) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.w.Start, b.w.Start))
		})
		if len(p.timers[d]) == 0 || !due(p.timers[d][0].at) {
			return strings.Join(out, ", ")
		}
		if calls == storm {
			p.t.Fatalf("%d timers fired in one step, the last of them %v", calls, out[len(out)-3:])
		}
		n := p.timers[d][0]
		p.timers[d] = p.timers[d][1:]
		if r := p.call(d, n.w, n.at); r != window.Continue {
			out = append(out, fmt.Sprintf("%v %v at %d", r, n.w, n.at))
		}
	}
}

// call calls the trigger for a timer, whether there is one or not.
func (p *player) call(d process.Domain, w window.Time, at int64) window.TriggerResult {
	p.t.Helper()
	p.enter(w)
	if d == process.EventTime {
		return p.answer(p.f.OnEventTime(p.ctx, at))
	}
	return p.answer(p.f.OnProcessingTime(p.ctx, at))
}

// advance sets the watermark and fires what it has reached.
func (p *player) advance(watermark int64) string {
	p.t.Helper()
	p.watermark = watermark
	return p.fire(process.EventTime, func(at int64) bool { return at <= watermark })
}

// pass sets the clock and fires what it is past.
func (p *player) pass(now int64) string {
	p.t.Helper()
	p.now = now
	return p.fire(process.ProcessingTime, func(at int64) bool { return at < now })
}

// merge merges windows into one, as the engine does.
func (p *player) merge(target window.Time, sources ...window.Time) {
	p.t.Helper()
	p.merged = sources
	p.enter(target)
	m, ok := p.f.(window.Merging)
	if !ok {
		p.t.Fatalf("%T has no OnMerge", p.f)
	}
	p.answer(window.Continue, m.OnMerge(p.merges))
	for _, w := range sources {
		p.clear(w)
	}
}

func (p *player) clear(w window.Time) {
	p.t.Helper()
	p.enter(w)
	p.answer(window.Continue, p.f.Clear(p.ctx))
}

// keeps is what the trigger keeps of a window: the number of state entries and its timers.
func (p *player) keeps(w window.Time) string {
	p.t.Helper()
	c := canonical(p.t, p.namespace, w)
	entries := 0
	for _, table := range p.tables {
		err := table.Table.Range(func(e *statebackend.Entry) bool {
			if string(e.Namespace) == string(c.Bytes(0)) {
				entries++
			}
			return true
		})
		if err != nil {
			p.t.Fatal(err)
		}
	}
	times := [2][]int64{}
	for d, timers := range p.timers {
		for _, n := range timers {
			if n.w == w {
				times[d] = append(times[d], n.at)
			}
		}
		slices.Sort(times[d])
	}
	return fmt.Sprintf("state %d, event %v, processing %v", entries, times[process.EventTime], times[process.ProcessingTime])
}

// expect compares what a step gave.
func expect[V comparable](t testing.TB, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
