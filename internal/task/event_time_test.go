package task

import (
	"fmt"
	"slices"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/valve"
	"github.com/flott-dev/flott/internal/plan"
	"github.com/flott-dev/flott/process"
)

// show is an input as others see it: watermark, idleness, the channel that holds it, and the channels.
func (e *EventTime) show() string {
	s := fmt.Sprintf("%s held by %d:", showMark(watermark(e.Watermark())), e.Held())
	if e.Idle() {
		s = "idle at " + s
	}
	for i := range e.Channels() {
		c := e.Channel(i)
		s += " " + showMark(watermark(c.Watermark))
		if c.Idle {
			s += " idle"
		}
		if c.Behind {
			s += " behind"
		}
	}
	return s
}

func TestOthersSeeWhatHoldsEventTimeBack(t *testing.T) {
	const none = "watermark -9223372036854775808"
	e := newEcho(t, "", 2)
	b := newBench(t, []int{2, 1}, e)
	b.build()
	var got []string
	e.mark = func(m frame.Mark) error {
		if m.Kind != frame.End {
			got = append(got, b.task.EventTime()[0].show())
		}
		return nil
	}
	if s := b.task.EventTime()[0].show(); s != none+" held by 0: "+none+" "+none {
		t.Errorf("before the first element: %s", s)
	}
	idle, active, last := mark(frame.Idle), mark(frame.Active), watermark(frame.MaxWatermark)
	b.send(1, watermark(10))
	b.send(0, watermark(5))
	b.send(1, idle)
	b.send(0, watermark(12))
	b.send(1, active, watermark(11))
	b.send(0, idle)
	b.send(1, watermark(12), idle)
	b.send(0, active, last, mark(frame.End))
	b.send(1, last, mark(frame.End))
	b.send(2, last, mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"watermark 5 held by 0: watermark 5 watermark 10",
		"watermark 5 held by 0: watermark 5 watermark 10", // the other input ends
		"watermark 10 held by 1: watermark 12 watermark 10",
		"watermark 12 held by 0: watermark 12 watermark 10 idle",
		"idle at watermark 12 held by -1: watermark 12 idle watermark 10 idle",
		"watermark 12 held by 1: watermark 12 idle watermark 10 behind",
		"idle at watermark 12 held by -1: last watermark watermark 12 idle",
		"last watermark held by -1: last watermark last watermark", // it is active,
		"last watermark held by -1: last watermark last watermark", // and then over
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Of channels that have resumed behind, and no others, the most advanced holds the watermark: it is the first to release it.
func TestMostAdvancedOfThoseBehindHoldsEventTimeBack(t *testing.T) {
	for _, c := range []struct{ first, second, want int }{{3, 7, 1}, {7, 3, 0}} {
		v := valve.New(3)
		e := newEventTime(3)
		step := func(channel int, m frame.Mark) {
			v.Step(channel, m)
			e.note(v, channel)
		}
		for channel, at := range []int{c.first, c.second, 10} {
			step(channel, watermark(int64(at)))
		}
		for channel := range 3 {
			step(channel, mark(frame.Idle)) // 10 comes out
		}
		step(0, mark(frame.Active))
		step(1, mark(frame.Active))
		if got := e.Held(); got != c.want || e.Watermark() != 10 {
			t.Errorf("behind at %d and %d: held at %d by channel %d, want %d", c.first, c.second, e.Watermark(), got, c.want)
		}
	}
}

// stopwatch is a host that measures latency.
type stopwatch struct {
	process.Host
	name string
	b    *bench
}

func (s stopwatch) RecordLatency(m frame.Mark) {
	s.b.note("%s: %d after %d ms", s.name, m.From, s.b.clock.Millis()-m.Value)
}

// measuring makes all operators of a bench measure latency.
func (b *bench) measuring() {
	made := b.dep.Runtime
	b.dep.Runtime = func(n *plan.ChainNode, scope *operator.Scope) *operator.Runtime {
		rt := made(n, scope)
		rt.Host = stopwatch{name: rt.Name, b: b}
		return rt
	}
}

func TestSourcesSendLatencyMarkersWhenAsked(t *testing.T) {
	for _, interval := range []int64{0, 50} {
		w, e := newWell(t), newEcho(t, "", 1)
		b := newBench(t, nil, w, e)
		b.measuring()
		b.dep.Latency, b.dep.LatencyFrom = interval, 7
		e.mark = func(m frame.Mark) error {
			if m.Kind == frame.LatencyMarker {
				b.note("%d at %d", m.Value, b.clock.Millis())
			}
			return nil
		}
		nothing := func() (operator.Status, error) { return operator.Nothing, nil }
		w.polls = []func() (operator.Status, error){nothing, nothing, nothing, nothing}
		at := func(ms int64) func() { return func() { b.clock.Set(ms) } }
		if err := b.run(at(1049), at(1050), at(1120), at(1169)); err != nil {
			t.Fatal(err)
		}
		if interval == 0 {
			b.wants()
			continue
		}
		b.wants("op1: 7 after 0 ms", "1000 at 1000", "op1: 7 after 0 ms", "1050 at 1050", "op1: 7 after 0 ms", "1120 at 1120")
		if want := []int64{1050, 1050, 1100, 1170}; !slices.Equal(b.until, want) {
			t.Errorf("it waited until %v, want %v", b.until, want)
		}
	}
}

func TestHeadsMeasureLatency(t *testing.T) {
	b, _ := chain(t, 2)
	b.measuring()
	b.send(0, 1, frame.Mark{Kind: frame.LatencyMarker, Value: 990, From: 2}, mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wants("a [1]", "b [1]", "op0: 2 after 10 ms", "a latency marker", "op1: 2 after 10 ms", "b latency marker", "a end", "b end")
}
