package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/plan"
)

var errBoom = errors.New("boom")

// lives is a chain of n echoes that note when they are opened and closed.
func lives(t *testing.T, n int) (*bench, []*echo) {
	b, es := chain(t, n)
	for _, e := range es {
		name := e.name
		e.name = ""
		e.open = func() error { b.note("open %s", name); return nil }
		e.close = func() error { b.note("close %s", name); return nil }
	}
	return b, es
}

func TestOperatorsOpenFromTheLastAndCloseFromTheFirst(t *testing.T) {
	b, _ := lives(t, 3)
	b.send(0, mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wants("open c", "open b", "open a", "close a", "close b", "close c")
}

// What was opened is closed, once, whatever the end: the operator whose Open failed, too.
func TestWhatWasOpenedIsClosedAfterAFailure(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(b *bench, es []*echo)
		want string
	}{
		{"opening the last", func(_ *bench, es []*echo) { es[2].open = func() error { return errBoom } }, "close c"},
		{"opening the middle", func(_ *bench, es []*echo) { es[1].open = func() error { panic(errBoom) } }, "open c, close b, close c"},
		{"opening the first", func(_ *bench, es []*echo) { es[0].open = func() error { return errBoom } }, "open c, open b, close a, close b, close c"},
		{"an element", func(b *bench, es []*echo) { b.send(0, 1); es[1].push = func(*frame.Run) error { return errBoom } }, "open c, open b, open a, close a, close b, close c"},
		{"a panic", func(b *bench, es []*echo) { b.send(0, 1); es[2].push = func(*frame.Run) error { panic(errBoom) } }, "open c, open b, open a, close a, close b, close c"},
		{"closing the first", func(b *bench, es []*echo) {
			b.send(0, mark(frame.End))
			es[0].close = func() error { return errBoom }
		}, "open c, open b, open a, close b, close c"},
		{"a panic while closing", func(b *bench, es []*echo) {
			b.send(0, mark(frame.End))
			es[1].close = func() error { panic(errBoom) }
		}, "open c, open b, open a, close a, close c"},
	} {
		b, es := lives(t, 3)
		c.fail(b, es)
		if err := b.run(); !errors.Is(err, errBoom) {
			t.Errorf("%s: got %v", c.name, err)
		}
		if got := strings.Join(b.log, ", "); got != c.want {
			t.Errorf("%s: got  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// None of several failures hides another.
func TestFailuresOfClosingComeTogether(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	for name, before := range map[string]error{"after a good end": nil, "after a failure": errBoom} {
		b, es := lives(t, 3)
		es[0].close = func() error { return first }
		es[2].close = func() error { return second }
		es[1].push = func(*frame.Run) error { return before }
		b.send(0, 1, mark(frame.End))
		err := b.run()
		if !errors.Is(err, first) || !errors.Is(err, second) || before != nil && !errors.Is(err, before) {
			t.Errorf("%s: got %v, want all of them", name, err)
		}
		for _, want := range []string{`operator "op0"`, `operator "op2"`, "close the operator"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", name, err, want)
			}
		}
	}
}

func TestGoodEndIsNoError(t *testing.T) {
	b, _ := chain(t, 1)
	b.send(0, mark(frame.End))
	if err := b.run(); err != nil {
		t.Errorf("got %v", err)
	}
}

// A failure is named by the operator at work, wherever it happens.
func TestFailureNamesTheOperatorAtWork(t *testing.T) {
	places := map[string]func(b *bench, e *echo, fail func() error){
		"open":    func(_ *bench, e *echo, fail func() error) { e.open = fail },
		"element": func(_ *bench, e *echo, fail func() error) { e.push = func(*frame.Run) error { return fail() } },
		"watermark": func(_ *bench, e *echo, fail func() error) {
			e.mark = func(m frame.Mark) error {
				if m.Kind == frame.Watermark {
					return fail()
				}
				return nil
			}
		},
		"barrier": func(_ *bench, e *echo, fail func() error) {
			e.mark = func(m frame.Mark) error {
				if m.Kind == frame.Barrier {
					return fail()
				}
				return nil
			}
		},
		"finish": func(_ *bench, e *echo, fail func() error) { e.finish = fail },
		"close":  func(_ *bench, e *echo, fail func() error) { e.close = fail },
		"timer": func(b *bench, e *echo, fail func() error) {
			e.open = func() error {
				e.rt.Timers.Schedule(1000, func(int64) error { return fail() })
				return nil
			}
			e.push = func(*frame.Run) error { b.clock.Set(1001); return nil }
		},
		"timer of a timer": func(b *bench, e *echo, fail func() error) {
			e.push = func(*frame.Run) error {
				e.rt.Timers.Schedule(1000, func(int64) error {
					e.rt.Timers.Schedule(1000, func(int64) error { return fail() })
					return nil
				})
				b.clock.Set(1001)
				return nil
			}
		},
		"event": func(b *bench, e *echo, fail func() error) {
			e.event = func([]byte) error { return fail() }
			b.mailbox.Post(func() error { return b.task.Event(e.index, []byte("x"))() })
		},
		"element after a timer of another": func(b *bench, e *echo, fail func() error) {
			n := 0
			e.open = func() error {
				b.task.rts[0].Timers.Schedule(1000, func(int64) error { return nil })
				return nil
			}
			e.push = func(*frame.Run) error {
				b.clock.Set(1001)
				if n++; n == 2 {
					return fail()
				}
				return nil
			}
		},
	}
	for place, plant := range places {
		for at := range 3 {
			for _, how := range []string{"error", "panic", "panic with text"} {
				b, es := chain(t, 3)
				fail := func() error { return errBoom }
				switch how {
				case "panic":
					fail = func() error { panic(errBoom) }
				case "panic with text":
					fail = func() error { panic("boom") }
				}
				plant(b, es[at], fail)
				b.build().scope.RunLen = 1
				b.send(0, 1, 2, watermark(5), frame.Mark{Kind: frame.Barrier}, 3, mark(frame.End))
				checkFailure(t, fmt.Sprint(how, " in ", place, " of operator ", at), b.run(), fmt.Sprint("op", at), how)
			}
		}
	}
}

// checkFailure checks all that is said about a failure.
func checkFailure(t *testing.T, what string, err error, op, how string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("%s: got %v", what, err)
		return
	}
	if e.Operator != op || e.UID != "uid of "+op || e.Subtask != 2 || e.Attempt != 3 {
		t.Errorf("%s: named as %q (%s), subtask %d, attempt %d", what, e.Operator, e.UID, e.Subtask, e.Attempt)
	}
	record := ""
	if e.Record != "" {
		record = ", " + e.Record
	}
	if want := fmt.Sprintf("operator %q (uid of %s), subtask 3%s: ", op, op, record); !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "boom") {
		t.Errorf("%s: %q does not begin with %q, or hides the cause", what, err, want)
	}
	if how != "panic with text" && !errors.Is(err, errBoom) {
		t.Errorf("%s: the cause is not wrapped", what)
	}
	var p *operator.Panic
	if panicked := errors.As(err, &p); panicked != (how != "error") {
		t.Errorf("%s: is a panic: %v", what, panicked)
	} else if panicked && !strings.Contains(string(p.Stack), "life_test.go") {
		t.Errorf("%s: the stack does not show where", what)
	}
}

// A consumer may fail while its producer's user code emits; the code learns nothing and goes on emitting elsewhere, and
// the driver finds the error later. It is still the consumer's.
func TestFailureOfAConsumerIsFoundLater(t *testing.T) {
	for _, first := range []string{"side", "main"} {
		head, side, main := newEcho(t, "", 1), newEcho(t, "", 1), newEcho(t, "", 1)
		b := newBench(t, []int{1}, head, side, main)
		b.vertex.Nodes[0].Links = []plan.Link{{Tag: "side", To: 1}, {To: 2}}
		b.vertex.Nodes[1].Links = nil
		fail := func(*frame.Run) error { return errBoom }
		outputs := []*operator.Output{&head.side, &head.out}
		want := "op1"
		side.push = fail
		if first == "main" {
			side.push, main.push = nil, fail
			slices.Reverse(outputs)
			want = "op2"
		}
		head.push = func(r *frame.Run) error {
			kept := outputs[0].Push(r)
			if err := outputs[1].Push(r); err != nil {
				t.Error(err)
			}
			return fmt.Errorf("flush: %w", kept)
		}
		b.send(0, 1)
		checkFailure(t, first+" output", b.run(), want, "error")
	}
}

// An error of the user's own, after a failure of a consumer that the user did not hear of, is the user's.
func TestLaterFailureIsNotTheEarlierOnes(t *testing.T) {
	b, es := chain(t, 2)
	es[1].push = func(*frame.Run) error { return errors.New("unheard") }
	es[0].push = func(r *frame.Run) error {
		if err := es[0].out.Push(r); err == nil {
			t.Error("the consumer did not fail")
		}
		b.task.scope.At = es[0].rt // as an emission to another output leaves it
		return errBoom
	}
	b.send(0, 1)
	checkFailure(t, "user's own", b.run(), "op0", "error")
}

func TestFailureOfAnExchangeIsItsProducers(t *testing.T) {
	b, _ := chain(t, 2)
	b.edge(1, "", graph.Custom, 0, 2)
	b.vertex.Outputs[0].Partitioner.Select = func() func(*frame.Run, int, []uint16) error {
		return func(*frame.Run, int, []uint16) error { return errBoom }
	}
	b.send(0, 1)
	checkFailure(t, "partitioner", b.run(), "op1", "error")
}

func TestEventForAnOperatorWithoutEarsIsAFailure(t *testing.T) {
	b := newBench(t, []int{1}, plain{newEcho(t, "", 1)})
	b.build()
	b.mailbox.Post(b.task.Event(0, []byte("x")))
	if err := b.run(); err == nil || !strings.Contains(err.Error(), `operator "op0"`) || !strings.Contains(err.Error(), "takes none") {
		t.Errorf("got %v", err)
	}
}

func TestEventsReachTheirOperator(t *testing.T) {
	b, _ := chain(t, 2)
	b.build()
	for i := range 3 {
		b.mailbox.Post(b.task.Event(i%2, fmt.Append(nil, i)))
	}
	b.send(0, mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wants("a event 0", "b event 1", "a event 2", "a end", "b end")
}

// A failure that has a name already keeps it: a task that fails by another's failure does not take the blame.
func TestNamedFailureKeepsItsName(t *testing.T) {
	named := &Error{Operator: "elsewhere", Cause: errBoom}
	b, es := chain(t, 1)
	es[0].push = func(*frame.Run) error { return fmt.Errorf("wrapped: %w", named) }
	b.send(0, 1)
	var e *Error
	if err := b.run(); !errors.As(err, &e) || e != named {
		t.Errorf("got %v", err)
	}
}

func TestCancelEndsTheTask(t *testing.T) {
	for name, plant := range map[string]func(b *bench, es []*echo) []func(){
		"before it starts": func(b *bench, _ []*echo) []func() {
			b.build().Cancel()
			return nil
		},
		"while it waits for input": func(b *bench, _ []*echo) []func() {
			return []func(){func() { b.task.Cancel() }}
		},
		"between two runs": func(b *bench, es []*echo) []func() {
			b.build().scope.RunLen = 1
			es[1].push = func(*frame.Run) error { b.task.Cancel(); return nil }
			b.send(0, 1, 2, 3)
			return nil
		},
		"while it waits for room": func(b *bench, _ []*echo) []func() {
			b.edge(1, "", graph.Forward, 0, 1)
			for range exchange.Depth {
				b.out[0][0].Offer(b.frame(1))
			}
			b.send(0, 1)
			return []func(){func() {}, func() { b.task.Cancel() }}
		},
		"while it waits for room at a mark": func(b *bench, _ []*echo) []func() {
			b.edge(1, "", graph.Forward, -1, 1)
			for range exchange.Depth {
				b.out[0][0].Offer(b.frame(1))
			}
			b.send(0, mark(frame.End))
			return []func(){func() { b.task.Cancel() }}
		},
		"while it flushes": func(b *bench, _ []*echo) []func() {
			b.edge(1, "", graph.Forward, 100, 1)
			for range exchange.Depth {
				b.out[0][0].Offer(b.frame(1))
			}
			b.send(0, 1)
			return []func(){func() { b.task.Cancel() }}
		},
	} {
		b, es := lives(t, 2)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b.dep.Ctx = ctx
		steps := plant(b, es)
		if err := b.run(steps...); err != exchange.ErrCancelled {
			t.Errorf("%s: got %v, want ErrCancelled itself", name, err)
		}
		if want := []string{"open b", "open a", "close a", "close b"}; !slices.Equal(b.log, want) {
			t.Errorf("%s: %q, want %q", name, b.log, want)
		}
		if len(es[1].rt.Name) == 0 || es[1].rt.In.Load() > 1 {
			t.Errorf("%s: %d elements were worked on after the cancellation", name, es[1].rt.In.Load())
		}
	}
}

func TestCancelWakesTheTask(t *testing.T) {
	b, _ := chain(t, 1)
	b.build()
	if b.task.Waiter() != b || b.wakes != 0 {
		t.Error("the task waits elsewhere")
	}
	if b.task.Cancel(); b.wakes != 1 {
		t.Errorf("woken %d times", b.wakes)
	}
}

// Close must not hide that the task was cancelled, and a failure while closing is still told.
func TestCloseFailureAfterACancellation(t *testing.T) {
	b, es := chain(t, 1)
	es[0].close = func() error { return errBoom }
	err := b.run(func() { b.task.Cancel() })
	if !errors.Is(err, exchange.ErrCancelled) || !errors.Is(err, errBoom) {
		t.Errorf("got %v, want both", err)
	}
}

func TestFramesMemoryIsGivenBackAtTheEnd(t *testing.T) {
	for name, end := range map[string]any{"good": mark(frame.End), "failure": 13} {
		b, es := chain(t, 1)
		es[0].push = func(r *frame.Run) error {
			if frame.Values[int64](r)[0] == 13 {
				return errBoom
			}
			return nil
		}
		b.edge(0, "", graph.Rebalance, 0, 3)
		b.send(0, 1)
		b.send(0, 2)
		b.send(0, end)
		used := int64(0)
		es[0].close = func() error { return nil }
		es[0].mark = func(frame.Mark) error { used = b.dep.Memory.Used(); return nil }
		if err := b.run(); (err != nil) != (name == "failure") {
			t.Errorf("%s: %v", name, err)
		}
		if name == "good" && used == 0 || b.dep.Memory.Used() != 0 {
			t.Errorf("%s end: %d bytes were used, %d still are", name, used, b.dep.Memory.Used())
		}
	}
}

// What a letter emits may wait for room, and the wake-up that this wait uses up may have been meant for another letter, or
// for the end of the task: the task looks again before it waits for input.
func TestWaitInALetterHidesNothing(t *testing.T) {
	for name, during := range map[string]func(b *bench){
		"a letter": func(b *bench) { b.mailbox.Post(func() error { return errBoom }) },
		"the end":  func(b *bench) { b.task.Cancel() },
	} {
		b, _ := chain(t, 1)
		b.build()
		b.mailbox.Post(func() error {
			b.task.scope.Waiter.Wait(host.Backpressured, host.Forever)
			return nil
		})
		if err := b.run(func() { during(b) }); !errors.Is(err, errBoom) && !errors.Is(err, exchange.ErrCancelled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// An operator that emits for long in one call, as at a watermark with many keys, ends with the next frame after a cancel.
func TestCancelEndsLongCallsWithTheNextFrame(t *testing.T) {
	b, es := chain(t, 1)
	out := b.edge(0, "", graph.Forward, -1, 1)[0]
	pushed := 0
	es[0].mark = func(m frame.Mark) error {
		full := frame.New(typeOf[int64](t), frame.DefaultLen)
		for i := range int64(frame.DefaultLen) {
			frame.Add(&full.Column, i, i)
		}
		for range 100 {
			r := full.Run()
			if err := es[0].out.Push(&r); err != nil {
				return err
			}
			received(out)
			if pushed++; pushed == 3 {
				b.task.Cancel()
			}
		}
		return nil
	}
	b.send(0, watermark(7))
	if err := b.run(); err != exchange.ErrCancelled {
		t.Error(err)
	}
	if pushed != 3 {
		t.Errorf("%d frames were emitted", pushed)
	}
}
