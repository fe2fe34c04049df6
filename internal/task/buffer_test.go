package task

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
)

// What is sent when, by buffer timeout: after every run, when the input runs dry, or when a frame is full. Marks that
// must not wait, and the end, are sent in any case.
func TestBufferTimeoutSaysWhenFramesAreSent(t *testing.T) {
	full := make([]int64, frame.DefaultLen)
	for i := range full {
		full[i] = 7
	}
	for _, c := range []struct {
		name    string
		timeout time.Duration
		want    []string // what has come after each step
	}{
		{"zero", 0, []string{"1", "2", "watermark 5", "", "1024 elements", "3 idle", "4 last watermark end"}},
		{"default", 100 * time.Millisecond, []string{"", "", "", "1 2 watermark 5", "1024 elements", "3 idle", "4 last watermark end"}},
		{"only when full", -time.Millisecond, []string{"", "", "", "", "1 2 watermark 5 + 1022 elements", "2 elements 3 idle", "4 last watermark end"}},
	} {
		w := newWell(t)
		b := newBench(t, nil, w)
		out := b.edge(0, "", graph.Forward, c.timeout, 1)[0]
		var got []string
		look := func() { got = append(got, brief(received(out))) }
		step := func(f func() (operator.Status, error)) func() (operator.Status, error) {
			return func() (operator.Status, error) {
				look()
				return f()
			}
		}
		var dry func() (operator.Status, error)
		dry = func() (operator.Status, error) {
			if len(b.reasons) == 1 {
				return operator.More, nil
			}
			w.polls = slices.Insert(w.polls, 0, dry)
			return operator.Nothing, nil
		}
		idle := func() (operator.Status, error) {
			if err := w.emit(3); err != nil {
				return operator.Done, err
			}
			return operator.More, w.out.Mark(mark(frame.Idle))
		}
		w.polls = append(w.polls, w.emits(operator.More, 1),
			step(w.emits(operator.More, 2)),
			step(func() (operator.Status, error) { return operator.More, w.out.Mark(watermark(5)) }),
			step(dry),
			step(w.emits(operator.More, full...)),
			step(idle),
			step(func() (operator.Status, error) { return operator.Done, w.emit(4) }),
		)
		if err := b.run(func() {}); err != nil {
			t.Fatal(c.name, err)
		}
		look()
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: sent\n%q, want\n%q", c.name, got, c.want)
		}
	}
}

// brief writes long stretches of sevens as a count.
func brief(items []string) string {
	var out []string
	sevens := 0
	flush := func() {
		if sevens > 0 {
			if len(out) > 0 {
				out = append(out, "+")
			}
			out = append(out, fmt.Sprint(sevens, " elements"))
		}
		sevens = 0
	}
	for _, x := range items {
		if x == "7" {
			sevens++
			continue
		}
		flush()
		out = append(out, x)
	}
	flush()
	return strings.Join(out, " ")
}

// Each edge has a timeout of its own.
func TestEdgesOfOneTaskHaveTheirOwnTimeouts(t *testing.T) {
	b, _ := chain(t, 1)
	var outs []*exchange.Channel
	for _, timeout := range []time.Duration{0, 100 * time.Millisecond, -time.Millisecond} {
		outs = append(outs, b.edge(0, "", graph.Forward, timeout, 1)...)
	}
	b.send(0, 1)
	err := b.run(func() {
		for i, want := range []int{1, 1, 0} {
			if got := len(received(outs[i])); got != want {
				t.Errorf("edge %d: %d elements were sent when the input ran dry, want %d", i, got, want)
			}
		}
		b.send(0, mark(frame.End))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := received(outs[2]); !slices.Equal(got, []string{"1", "end"}) {
		t.Errorf("at the end the third edge got %v", got)
	}
}

func TestDryInputWithNothingPendingIsNoFlush(t *testing.T) {
	b, _ := chain(t, 1)
	b.edge(0, "", graph.Forward, 100, 1)
	if err := b.run(func() { b.send(0, mark(frame.End)) }); err != nil || len(b.reasons) != 1 {
		t.Errorf("waited %d times, %v", len(b.reasons), err)
	}
}

// An operator that waits in the middle of a run can have everything sent that was emitted so far.
func TestOperatorCanFlushTheTasksFrames(t *testing.T) {
	b, es := chain(t, 1)
	out := b.edge(0, "", graph.Forward, 100, 1)[0]
	never := b.edge(0, "", graph.Forward, -time.Second, 1)[0]
	es[0].push = func(r *frame.Run) error {
		if frame.Values[int64](r)[0] != 2 {
			return nil
		}
		if out.Len() != 0 {
			t.Error("sent too early")
		}
		err := es[0].rt.Flush()
		if got := received(out); !slices.Equal(got, []string{"1", "watermark 1"}) || never.Len() != 0 {
			t.Errorf("Flush sent %v, and %d frames that must be full", got, never.Len())
		}
		return err
	}
	b.send(0, 1, frame.Mark{Kind: frame.Watermark, Value: 1}, 2, mark(frame.End))
	b.build().scope.RunLen = 1
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
}

// A task's waits are counted as idle or backpressured time, by the injected clock.
func TestWaitsAreTimed(t *testing.T) {
	b, _ := chain(t, 1)
	b.dep.Times = &Times{}
	out := b.edge(0, "", graph.Forward, 0, 1)[0]
	for range exchange.Depth {
		out.Offer(b.frame(0))
	}
	b.send(0, 1)
	err := b.run(
		func() { b.clock.Set(b.clock.Millis() + 30) },
		func() { b.clock.Set(b.clock.Millis() + 12); received(out) },
		func() { b.clock.Set(b.clock.Millis() + 500); b.send(0, mark(frame.End)) },
	)
	if err != nil {
		t.Fatal(err)
	}
	ms := int64(time.Millisecond)
	if back, idle := b.dep.Times.Backpressured.Load(), b.dep.Times.Idle.Load(); back != 42*ms || idle != 500*ms {
		t.Errorf("backpressured %d ns, idle %d ns", back, idle)
	}
	if !slices.Equal(b.reasons, []host.Reason{host.Backpressured, host.Backpressured, host.Idle}) {
		t.Errorf("waited as %v", b.reasons)
	}
	if b.task.scope.Waiter != b.task.waiter {
		t.Error("operators wait at another point than the task: their waits are not timed")
	}
}

// A frame that can't be sent is a failure whenever it is sent.
func TestFailureOfAFlushIsToldWheneverItHappens(t *testing.T) {
	typ := typeOf[stuck](t)
	for _, atEnd := range []bool{false, true} {
		pass := &passing{Unary: operator.Unary{In: typ, Out: operator.NewOutput(typ)}}
		b := newBench(t, []int{1}, pass)
		b.dep.Isolated = true
		b.edge(0, "", graph.Forward, 100, 1)
		f := frame.New(typ, 1)
		frame.Add(&f.Column, stuck{Bad: true}, frame.NoTime)
		if atEnd {
			pass.swallow = true // the end reaches the task, not the writer: only the last flush sends the element
			f.AddMark(mark(frame.End))
		}
		b.in[0].Offer(f)
		if err := b.run(); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("at the end %v: got %v", atEnd, err)
		}
	}
}

// passing hands everything on, marks only unless it swallows them.
type passing struct {
	operator.Unary
	swallow bool
}

func (p *passing) Inputs() []operator.Input { return []operator.Input{p} }

func (p *passing) Push(r *frame.Run) error { return p.Out.Push(r) }

func (p *passing) Mark(m frame.Mark) error {
	if p.swallow {
		return nil
	}
	return p.Out.Mark(m)
}
