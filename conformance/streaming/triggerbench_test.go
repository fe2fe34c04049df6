package streaming_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/heap"
	"github.com/flott-dev/flott/window"
)

// triggerBench drives a trigger as the vectors of triggers do: state and timers are kept per window, and timers that fire
// are all removed before the trigger is called, so that what it registers then waits for the next step.
type triggerBench struct {
	process.Host
	t      *testing.T
	f      window.TimeTrigger
	ctx    *window.TriggerContext
	merges *window.MergeContext

	store     statebackend.Store
	namespace *serde.Key
	run       state.CurrentRun
	cells     []*state.Cell

	timers  [2][]windowTimer
	times   [2]int64 // the watermark and the clock
	at      window.Time
	sources []window.Time // of the merge at hand
}

type windowTimer struct {
	at int64
	w  window.Time
}

// triggerFiring is the answer to a timer.
type triggerFiring struct {
	w      window.Time
	result window.TriggerResult
}

func newTriggerBench(t *testing.T) *triggerBench {
	t.Helper()
	key, err := serde.KeyOf[int64]()
	noError(t, err)
	b := &triggerBench{t: t, times: [2]int64{math.MinInt64, math.MinInt64}}
	b.namespace, err = serde.KeyOf[window.Time]()
	noError(t, err)
	b.store, err = heap.Backend{}.Open(statebackend.Options{Key: key, MaxParallelism: 1, Operator: "trigger"})
	noError(t, err)
	one := canonOf(t, key, int64(1))
	hashes := make([]uint64, 1)
	key.Hash(&one, 0, hashes)
	b.store.BeginRun(&one, hashes)
	b.ctx, b.merges = window.NewTriggerContext(triggerServices{b}), window.NewMergeContext(triggerServices{b})
	return b
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func canonOf[K any](t *testing.T, key *serde.Key, k K) serde.Canon {
	t.Helper()
	c, err := key.Canon(serde.Column{P: unsafe.Pointer(&k), N: 1, Stride: unsafe.Sizeof(k)}, new(serde.KeyScratch))
	noError(t, err)
	return c
}

// BindTable implements state.Binder: the state belongs to the window as well.
func (b *triggerBench) BindTable(spec statebackend.TableSpec) *state.Cell {
	spec.Namespace = b.namespace
	c, err := state.OpenCell(b.store, spec, &b.run)
	noError(b.t, err)
	b.cells = append(b.cells, c)
	return c
}

// Report implements state.Binder.
func (b *triggerBench) Report(err error) { b.t.Fatal(err) }

// enter puts a window at hand.
func (b *triggerBench) enter(w window.Time) {
	b.at = w
	c := canonOf(b.t, b.namespace, w)
	for _, cell := range b.cells {
		cell.Table.SetNamespace(c.Bytes(0))
	}
}

// ended fails the test if a call into the trigger, or an access to state during it, has failed.
func (b *triggerBench) ended(err error) {
	b.t.Helper()
	noError(b.t, err)
	noError(b.t, b.run.Take())
}

func (b *triggerBench) advance(d process.Domain, to int64) []triggerFiring {
	b.t.Helper()
	b.times[d] = to
	var due []windowTimer
	b.timers[d] = slices.DeleteFunc(b.timers[d], func(n windowTimer) bool {
		if n.at <= to {
			due = append(due, n)
		}
		return n.at <= to
	})
	var out []triggerFiring
	for _, n := range due {
		out = append(out, triggerFiring{n.w, b.fire(d, n)})
	}
	return out
}

func (b *triggerBench) fire(d process.Domain, n windowTimer) window.TriggerResult {
	b.t.Helper()
	b.enter(n.w)
	call := b.f.OnEventTime
	if d == process.ProcessingTime {
		call = b.f.OnProcessingTime
	}
	r, err := call(b.ctx, n.at)
	b.ended(err)
	return r
}

func (b *triggerBench) merge(target window.Time, sources []window.Time) {
	b.t.Helper()
	b.enter(target)
	b.sources = sources
	b.ended(b.f.(window.Merging).OnMerge(b.merges))
	for _, w := range sources {
		b.clear(w)
	}
}

func (b *triggerBench) clear(w window.Time) {
	b.t.Helper()
	b.enter(w)
	b.ended(b.f.Clear(b.ctx))
}

// entries counts the state of windows, timerCount their timers.
func (b *triggerBench) entries(of func(window.Time) bool) (n int) {
	b.t.Helper()
	for _, cell := range b.cells {
		noError(b.t, cell.Table.Range(func(e *statebackend.Entry) bool {
			var w window.Time
			_, err := b.namespace.Read(e.Namespace, unsafe.Pointer(&w))
			noError(b.t, err)
			if of(w) {
				n++
			}
			return true
		}))
	}
	return n
}

func (b *triggerBench) timerCount(d process.Domain, of func(window.Time) bool) (n int) {
	for _, timer := range b.timers[d] {
		if of(timer.w) {
			n++
		}
	}
	return n
}

// triggerServices is the engine's side of the trigger's context.
type triggerServices struct{ *triggerBench }

func (s triggerServices) ProcessingTime() int64 { return s.times[process.ProcessingTime] }
func (s triggerServices) Watermark() int64      { return s.times[process.EventTime] }
func (s triggerServices) MaxTimestamp() int64   { return s.at.MaxTimestamp() }

func (s triggerServices) Window() (unsafe.Pointer, reflect.Type) {
	return unsafe.Pointer(&s.at), reflect.TypeFor[window.Time]()
}

func (s triggerServices) Register(d process.Domain, at int64) {
	if n := (windowTimer{at, s.at}); !slices.Contains(s.timers[d], n) {
		s.timers[d] = append(s.timers[d], n)
	}
}

func (s triggerServices) Delete(d process.Domain, at int64) {
	s.timers[d] = slices.DeleteFunc(s.timers[d], func(n windowTimer) bool { return n == windowTimer{at, s.at} })
}

func (s triggerServices) EachMerged(f func()) {
	target := s.at
	for _, w := range s.sources {
		s.enter(w)
		f()
	}
	s.enter(target)
}
