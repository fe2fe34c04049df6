package operator

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
)

// Callbacks run in the order of their times, then of their registration, once, and not after they were cancelled.
func TestCallbacksRunInOrder(t *testing.T) {
	type entry struct {
		at int64
		id int
	}
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var c Callbacks
		var model, ran []entry
		byID := map[int]*Callback{}
		for id := range 200 {
			at := rng.Int64N(50)
			model = append(model, entry{at, id})
			byID[id] = c.Schedule(at, func(got int64) error {
				ran = append(ran, entry{got, id})
				return nil
			})
			if rng.IntN(3) == 0 {
				drop := rng.IntN(len(model))
				c.Cancel(byID[model[drop].id])
				c.Cancel(byID[model[drop].id]) // once more does nothing
				model = slices.Delete(model, drop, drop+1)
			}
		}
		slices.SortStableFunc(model, func(a, b entry) int { return int(a.at - b.at) })
		for _, upTo := range []int64{-1, 10, 10, 37, 49} {
			if err := c.Run(upTo); err != nil {
				t.Fatal(err)
			}
			n := slices.IndexFunc(model, func(e entry) bool { return e.at > upTo })
			if n < 0 {
				n = len(model)
			}
			if !slices.Equal(ran, model[:n]) {
				t.Fatalf("seed %d: up to %d ran %v, want %v", seed, upTo, ran, model[:n])
			}
			at, ok := c.Next()
			if ok != (n < len(model)) || ok && at != model[n].at {
				t.Errorf("seed %d: after %d the next is %d, %v", seed, upTo, at, ok)
			}
		}
		for _, cb := range byID {
			c.Cancel(cb) // those that have run are left alone
		}
		if _, ok := c.Next(); ok {
			t.Error("something is left")
		}
	}
}

func TestCallbackMayScheduleAndFail(t *testing.T) {
	var c Callbacks
	var ran []int64
	cause := errors.New("cause")
	c.Schedule(1, func(at int64) error {
		ran = append(ran, at)
		c.Schedule(1, func(int64) error { ran = append(ran, 10); return nil })
		c.Schedule(2, func(int64) error { ran = append(ran, 20); return cause })
		c.Schedule(2, func(int64) error { ran = append(ran, 21); return nil })
		return nil
	})
	if err := c.Run(2); err != cause || !slices.Equal(ran, []int64{1, 10, 20}) {
		t.Errorf("ran %v, %v", ran, err)
	}
	if err := c.Run(2); err != nil || !slices.Equal(ran, []int64{1, 10, 20, 21}) {
		t.Errorf("ran %v, %v: a failure took others with it", ran, err)
	}
}

func TestWritableCopiesOnlySharedRuns(t *testing.T) {
	var w Writable
	cause := errors.New("cause")
	var got []int64
	push := func(r *frame.Run) error {
		if r.Shared {
			t.Error("memory that others read was handed out to be written")
		}
		xs := frame.Values[int64](r)
		got = append(got, xs...)
		for i := range xs {
			if r.Times != nil && r.Times[i] != 10*xs[i] {
				t.Errorf("element %d has the time %d", xs[i], r.Times[i])
			}
			xs[i] = -1
		}
		if len(got) > 5000 {
			return cause
		}
		return nil
	}
	own := int64Run(t, true, 1, 2, 3)
	if err := w.Each(own, push); err != nil || w.own != nil || frame.Values[int64](own)[0] != -1 {
		t.Errorf("a run of one's own was copied: %v", err)
	}
	var want []int64
	xs := make([]int64, 2500)
	for i := range xs {
		xs[i] = int64(i)
	}
	shared := int64Run(t, true, xs...)
	shared.Shared = true
	got = nil
	for range 2 {
		want = append(want, xs...)
		if err := w.Each(shared, push); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, want) || !slices.Equal(frame.Values[int64](shared), xs) {
		t.Errorf("%d elements came out of %d, or what others read was written", len(got), len(want))
	}
	if err := w.Each(shared, push); err != cause || len(got) > 5000+frame.DefaultLen {
		t.Errorf("after a failure it went on: %v", err)
	}
}

func TestLendTimesCopiesWhatOthersRead(t *testing.T) {
	in := int64Run(t, true, 0, 1, 2, 3)
	for _, shared := range []bool{false, true} {
		in.Shared = shared
		out := frame.Run{N: 2}
		scratch := LendTimes(&out, in, 1, nil)
		if !slices.Equal(out.Times, []int64{10, 20}) {
			t.Errorf("shared %v: times %v", shared, out.Times)
		}
		if lent := &out.Times[0] == &in.Times[1]; lent == shared {
			t.Errorf("shared %v: the same memory was lent: %v", shared, lent)
		}
		if shared != (scratch != nil) {
			t.Errorf("shared %v: scratch %v", shared, scratch)
		}
	}
	out := frame.Run{N: 2, Times: []int64{1, 2}}
	if kept := LendTimes(&out, int64Run(t, false, 0, 1), 0, []int64{7}); out.Times != nil || len(kept) != 1 {
		t.Errorf("elements without timestamps got %v", out.Times)
	}
}

func TestEmitterPushesInRuns(t *testing.T) {
	o, _, _, ks := tee(t, 1)
	var e Emitter
	e.Open(o)
	if err := e.Flush(); err != nil || len(ks[0].runs) != 0 {
		t.Errorf("an empty emitter pushed %v, %v", ks[0].runs, err)
	}
	frame.Add(e.Column, int64(5), 1)
	frame.Add(e.Column, int64(6), 2)
	if err := e.Flush(); err != nil || !slices.Equal(ks[0].runs[0], []int64{5, 6}) || e.Column.Len() != 0 {
		t.Errorf("pushed %v, %d left, %v", ks[0].runs, e.Column.Len(), err)
	}
	ks[0].err = errors.New("cause")
	frame.Add(e.Column, int64(7), 1)
	if err := e.Flush(); err != ks[0].err || e.Column.Len() != 0 {
		t.Errorf("after a failure %d elements are kept, %v", e.Column.Len(), err)
	}
}

// side makes sides with the outputs a and b, each with one consumer.
func side(t *testing.T) (*Sides, map[string]*taker) {
	s := NewSides(map[string]*frame.Type{"a": typeOf[int64](t), "b": typeOf[int64](t)})
	scope := &Scope{}
	ks := map[string]*taker{}
	for _, tag := range []string{"a", "b"} {
		ks[tag] = &taker{scope: scope}
		if err := s.Output(tag).Connect(ks[tag], &Runtime{Scope: scope}); err != nil {
			t.Fatal(err)
		}
	}
	s.Open(&Runtime{Scope: scope})
	return s, ks
}

func TestSidesKeepTagsApart(t *testing.T) {
	s, ks := side(t)
	if s.Output("c") != nil || s.Buffer("c") != nil || s.Output("") != nil {
		t.Error("a tag that nobody reads has an output")
	}
	tagA, tagB := process.NewOutputTag[int64]("a"), process.NewOutputTag[int64]("b")
	services := NewServices(&Runtime{Scope: &Scope{Now: 77}}, s)
	ctx := process.NewContext(services)
	for i := range int64(3) {
		ctx.Emit(tagA, i)
	}
	ctx.Emit(tagB, int64(9))
	ctx.Emit(process.NewOutputTag[int64]("c"), int64(10))
	if len(ks["a"].runs)+len(ks["b"].runs) != 0 {
		t.Error("pushed before the flush")
	}
	for range 2 {
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := ks["a"].runs, ks["b"].runs; len(a) != 1 || len(b) != 1 || !slices.Equal(a[0], []int64{0, 1, 2}) || !slices.Equal(b[0], []int64{9}) {
		t.Errorf("a got %v, b got %v", a, b)
	}
	if err := s.Mark(frame.Mark{Kind: frame.End}); err != nil || len(ks["a"].marks) != 1 || len(ks["b"].marks) != 1 {
		t.Errorf("marks %v and %v, %v", ks["a"].marks, ks["b"].marks, err)
	}
	if services.ProcessingTime() != 77 || services.Watermark() != frame.MinWatermark {
		t.Errorf("now is %d, the watermark %d", services.ProcessingTime(), services.Watermark())
	}
}

func TestFailureOfASideOutputIsKept(t *testing.T) {
	cause := errors.New("cause")
	for name, full := range map[string]bool{"at the flush": false, "when the buffer is full": true} {
		s, ks := side(t)
		ks["a"].err = cause
		ctx := process.NewContext(NewServices(&Runtime{Scope: &Scope{}}, s))
		n := 1
		if full {
			n = frame.DefaultLen + 1
		}
		for i := range n {
			ctx.Emit(process.NewOutputTag[int64]("a"), int64(i))
		}
		for range 2 { // it does not heal
			if err := s.Flush(); err != cause {
				t.Errorf("%s: got %v, want the consumer's error", name, err)
			}
		}
		if err := s.Mark(frame.Mark{Kind: frame.Idle}); err != cause {
			t.Errorf("%s: the mark's failure was %v", name, err)
		}
	}
}

func TestTimersNeedAKey(t *testing.T) {
	s := NewServices(&Runtime{Scope: &Scope{}}, NewSides(nil))
	for name, act := range map[string]func(){
		"register": func() { s.Register(process.EventTime, 5) },
		"delete":   func() { s.Delete(process.ProcessingTime, 5) },
	} {
		func() {
			defer func() {
				if msg, _ := recover().(string); !strings.Contains(msg, name) || !strings.Contains(msg, "keyed streams") {
					t.Errorf("%s: panic %q", name, msg)
				}
			}()
			act()
			t.Errorf("%s: a stream without keys has timers", name)
		}()
	}
}

// metricHost is what operators see of a task manager.
type metricHost struct {
	process.Host
	metrics map[string]process.Metric
}

func (h *metricHost) Metric(name string, fresh func() process.Metric) process.Metric {
	if h.metrics[name] == nil {
		h.metrics[name] = fresh()
	}
	return h.metrics[name]
}

type text string

func (x text) Read() any { return string(x) }

func TestCountAddsToTheMetricOfThatName(t *testing.T) {
	h := &metricHost{metrics: map[string]process.Metric{"taken": text("by the user")}}
	rt := &Runtime{Host: h}
	for range 3 {
		Count(rt, "rows", 2)
		Count(rt, "taken", 1) // somebody else's metric of that name is left alone
	}
	if h.metrics["rows"].Read() != int64(6) || h.metrics["taken"].Read() != "by the user" {
		t.Errorf("rows %v, taken %v", h.metrics["rows"].Read(), h.metrics["taken"].Read())
	}
}

func TestConstructCollectsTheConstructorsMistakes(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	run := state.CurrentRun{Index: state.None}
	var inner *process.Runtime
	p, err := Construct(&Runtime{Host: &metricHost{}}, nil, &run, func(rt *process.Runtime) int {
		inner = rt
		rt.Report(first)
		rt.Report(second)
		return 5
	})
	if p != 5 || !errors.Is(err, first) || !errors.Is(err, second) || !strings.Contains(err.Error(), "construct the function") {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := Construct(&Runtime{Host: &metricHost{}}, nil, &run, func(*process.Runtime) int { return 1 }); err != nil {
		t.Errorf("a constructor without mistakes: %v", err)
	}
	if cell := inner.BindTable(statebackend.TableSpec{Name: "n"}); cell == nil {
		t.Error("without a store there is no cell that says so")
	}
}

// refusing is a store without tables.
type refusing struct {
	statebackend.Store
	err error
}

func (r refusing) Table(statebackend.TableSpec) (statebackend.Table, error) { return nil, r.err }

func TestStateThatCannotBeOpenedIsAMistakeOfTheConstructor(t *testing.T) {
	cause := errors.New("no such table")
	run := state.CurrentRun{Index: state.None}
	_, err := Construct(&Runtime{Host: &metricHost{}}, refusing{err: cause}, &run, func(rt *process.Runtime) int {
		rt.BindTable(statebackend.TableSpec{Name: "n", Value: typeOf[int64](t).Handle})
		return 1
	})
	if !errors.Is(err, cause) {
		t.Errorf("got %v, want the store's error", err)
	}
}

// Who registered a callback is at work while it runs: failures are named by that.
func TestCallbackRunsInTheNameOfItsOperator(t *testing.T) {
	scope := &Scope{}
	c := Callbacks{Scope: scope}
	a, b := &Runtime{Scope: scope}, &Runtime{Scope: scope}
	var at []*Runtime
	note := func(int64) error { at = append(at, scope.At); return nil }
	scope.At = a
	c.Schedule(2, note)
	scope.At = b
	c.Schedule(1, func(int64) error {
		c.Schedule(3, note)
		return note(0)
	})
	scope.At = nil
	if err := c.Run(3); err != nil || !slices.Equal(at, []*Runtime{b, a, b}) {
		t.Errorf("at work: %v, %v", at, err)
	}
}

func TestFlushWithoutFramesDoesNothing(t *testing.T) {
	cause := errors.New("cause")
	s := &Scope{}
	if err := s.Flush(); err != nil {
		t.Error(err)
	}
	s.FlushFrames = func() error { return cause }
	if err := s.Flush(); err != cause {
		t.Errorf("got %v", err)
	}
}

func TestUnaryPassesOn(t *testing.T) {
	u := &Unary{In: typeOf[int64](t), Out: NewOutput(typeOf[int64](t))}
	if u.Output("") != &u.Out || u.Output("side") != nil || u.Type() != u.In {
		t.Error("another output than the main one")
	}
	scope := &Scope{}
	k, rt := &taker{scope: scope}, &Runtime{Scope: scope}
	if err := errors.Join(u.Out.Connect(k, rt), u.Open(rt), u.Mark(frame.Mark{Kind: frame.Idle}), u.Close()); err != nil {
		t.Fatal(err)
	}
	if u.RT != rt || len(k.marks) != 1 || k.marks[0].Kind != frame.Idle {
		t.Errorf("the consumer got %v", k.marks)
	}
}
