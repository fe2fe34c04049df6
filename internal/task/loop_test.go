package task

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/exchange"
	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/graph"
	"github.com/flott-dev/flott/internal/host"
	"github.com/flott-dev/flott/internal/operator"
)

func TestFrameIsCutAtItsMarks(t *testing.T) {
	b, _ := chain(t, 2)
	barrier := frame.Mark{Kind: frame.Barrier, Value: 7}
	b.send(0, watermark(1), 1, 2, watermark(15), barrier, 3, mark(frame.LatencyMarker))
	b.send(0, 4, 5)
	b.send(0, 6, mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wants("a watermark 1", "b watermark 1", "a [1 2]", "b [1 2]", "a watermark 15", "b watermark 15", "a barrier 7", "b barrier 7",
		"a [3]", "b [3]", "a latency marker", "b latency marker", "a [4 5]", "b [4 5]", "a [6]", "b [6]", "a end", "b end")
}

// However frames are filled and marked, the operator sees the same elements in runs of at most RunLen, and every mark at
// its place among them.
func TestRunsAreAtMostRunLenLong(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b, es := chain(t, 1)
		e := es[0]
		e.name = ""
		var got, want []string
		e.push = func(r *frame.Run) error {
			if r.N == 0 || r.N > b.task.scope.RunLen {
				t.Errorf("seed %d: a run of %d elements, RunLen is %d", seed, r.N, b.task.scope.RunLen)
			}
			for i, x := range frame.Values[int64](r) {
				got = append(got, fmt.Sprint(x))
				if r.Time(i) != 10*x {
					t.Errorf("element %d has the time %d", x, r.Time(i))
				}
			}
			b.task.scope.RunLen = 1 + rng.IntN(5)
			return nil
		}
		e.mark = func(m frame.Mark) error {
			got = append(got, showMark(m))
			return nil
		}
		for range exchange.Depth {
			var items []any
			for range rng.IntN(40) {
				x := rng.IntN(1000)
				if rng.IntN(4) == 0 {
					m := frame.Mark{Kind: frame.Barrier, Value: int64(x)}
					items, want = append(items, m), append(want, showMark(m))
				} else {
					items, want = append(items, x), append(want, fmt.Sprint(x))
				}
			}
			b.send(0, items...)
		}
		b.build().scope.RunLen = 3
		if err := b.run(); err != errDry {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: the operator saw\n%v\nof\n%v", seed, got, want)
		}
	}
}

func TestSharedFramesAreLentReadOnly(t *testing.T) {
	b, es := chain(t, 1)
	var shared []bool
	es[0].push = func(r *frame.Run) error {
		shared = append(shared, r.Shared)
		return nil
	}
	for _, receivers := range []int{0, 2} {
		f := b.frame(1, 2, mark(frame.Barrier), 3)
		f.Share(receivers)
		b.in[0].Offer(f)
	}
	b.send(0, mark(frame.End))
	if err := b.run(); err != nil || !slices.Equal(shared, []bool{false, false, true, true}) {
		t.Errorf("shared: %v, %v", shared, err)
	}
}

func TestFramesGoBackToTheirSenders(t *testing.T) {
	b := newBench(t, []int{2}, newEcho(t, "", 1))
	b.send(0, 1)
	b.send(1, 2)
	b.send(0, mark(frame.End))
	b.send(1, mark(frame.End))
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	for i, c := range b.in {
		for n := range 2 {
			if f := c.Fresh(); f == nil || !f.Empty() {
				t.Errorf("channel %d: frame %d did not come back empty", i, n+1)
			}
		}
	}
}

// Each input has its own valve over its own channels, in the order of its channels.
func TestEveryInputHasItsOwnValve(t *testing.T) {
	e := newEcho(t, "op", 2)
	b := newBench(t, []int{2, 1}, e)
	e.b = b
	b.send(0, watermark(50))
	b.send(2, watermark(10))
	err := b.run(
		func() { b.note("-"); b.send(1, watermark(20)) },
		func() { b.note("-"); b.send(1, mark(frame.Idle)) },
		func() { b.note("-"); b.send(0, mark(frame.Idle)) },
		func() { b.note("-"); b.send(1, mark(frame.Active), 7) },
		func() { b.note("-"); b.send(2, mark(frame.End)) },
		func() { b.note("-"); b.send(0, mark(frame.End)) },
		func() { b.note("-"); b.send(1, watermark(frame.MaxWatermark), mark(frame.End)) },
	)
	if err != nil {
		t.Fatal(err)
	}
	b.wants("op 1: watermark 10", "-", "op 0: watermark 20", "-", "op 0: watermark 50", "-", "op 0: idle", "-", "op 0: active", "op 0: [7]", "-",
		"op 1: end", "-", "-", "op 0: idle", "op 0: end")
}

func TestTaskEndsWithTheLastChannel(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		b := newBench(t, []int{2, 1}, newEcho(t, "", 2))
		for i, c := range order {
			if i > 0 {
				b.script = append(b.script, func() { b.send(c, mark(frame.End)) })
			}
		}
		b.send(order[0], mark(frame.End))
		if err := b.run(b.script...); err != nil {
			t.Errorf("ends in the order %v: %v", order, err)
		}
		if len(b.reasons) != 2 {
			t.Errorf("ends in the order %v: waited %d times, want until the last", order, len(b.reasons))
		}
	}
}

// runLengths pushes n elements through an operator that takes cost ms for each run of a length.
func runLengths(t *testing.T, start, n int, cost func(run int) int64) (lengths []int) {
	b, es := chain(t, 1)
	es[0].name = ""
	es[0].push = func(r *frame.Run) error {
		lengths = append(lengths, r.N)
		b.clock.Set(b.clock.Millis() + cost(r.N))
		return nil
	}
	for sent := 0; sent < n; {
		items := make([]any, min(n-sent, 20_000))
		for i := range items {
			items[i] = i
		}
		b.send(0, items...)
		sent += len(items)
	}
	b.build().scope.RunLen = start
	if err := b.run(); err != errDry {
		t.Fatal(err)
	}
	return lengths
}

// Slow operators get shorter and shorter runs, down to one element.
func TestRunsOfSlowOperatorsShrink(t *testing.T) {
	got := runLengths(t, frame.DefaultLen, 2*frame.DefaultLen, func(int) int64 { return 3 })
	want := []int{1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1}
	if !slices.Equal(got[:len(want)], want) || got[len(got)-1] != 1 || len(got) != 12 {
		t.Errorf("runs of %v, want %v", got, want)
	}
}

func TestRunsOfFastOperatorsGrow(t *testing.T) {
	got := runLengths(t, 1, 20_000, func(int) int64 { return 0 })
	for i := 1; i < len(got)-1; i++ {
		if want := min(frame.DefaultLen, got[i-1]+got[i-1]/4+1); got[i] != want {
			t.Fatalf("run %d has %d elements after one of %d, want %d", i, got[i], got[i-1], want)
		}
	}
	if slices.Max(got) != frame.DefaultLen {
		t.Errorf("the longest run has %d elements, want %d", slices.Max(got), frame.DefaultLen)
	}
}

func TestRunsOfAMillisecondStayAsTheyAre(t *testing.T) {
	for _, ms := range []int64{1, 2} {
		for i, n := range runLengths(t, 100, 1000, func(int) int64 { return ms }) {
			if n != 100 {
				t.Errorf("run %d of %d ms has %d elements, want 100", i, ms, n)
			}
		}
	}
}

// A cost that grows with the run settles near a millisecond or two.
func TestRunLengthFollowsTheCost(t *testing.T) {
	lengths := runLengths(t, frame.DefaultLen, 30_000, func(run int) int64 { return int64(run / 50) })
	for i, n := range lengths[10:] {
		if n > 150 || n < 30 && i < len(lengths)-11 {
			t.Fatalf("run %d has %d elements, at 50 a millisecond", i+10, n)
		}
	}
}

// The first run is of one element, so that slow ones let nothing wait; cheap ones have full runs soon.
func TestFirstRunsAreShort(t *testing.T) {
	b, _ := chain(t, 1)
	b.dep.Outputs = b.out
	task, err := New(b.dep)
	if err != nil {
		t.Fatal(err)
	}
	if task.scope.RunLen != 1 {
		t.Errorf("the first run may have %d elements", task.scope.RunLen)
	}
	elements := 0
	for task.scope.RunLen < frame.DefaultLen {
		n := task.scope.RunLen
		elements += n
		task.adapt(0, n)
	}
	if elements > 8*frame.DefaultLen {
		t.Errorf("%d cheap elements until runs are full", elements)
	}
	task.scope.RunLen = 1
	for range 3 {
		if task.adapt(1000, 1); task.scope.RunLen != 1 {
			t.Errorf("runs of %d elements after one that took a second", task.scope.RunLen)
		}
	}
}

// What waits for a slow task does not keep it busy for long: a barrier comes behind it.
func TestSlowTasksHoldFewFrames(t *testing.T) {
	for _, c := range []struct{ perMs, channels, want int }{
		{1, 1, exchange.LeastDepth},
		{40, 1, 3},
		{frame.DefaultLen, 1, exchange.Depth},
		{frame.DefaultLen, 10, exchange.Depth},
		{100, 2, 4},
		{100, 100, exchange.LeastDepth},
		{frame.DefaultLen, 0, exchange.Depth},
	} {
		if got := heldFrames(c.perMs, c.channels); got != c.want {
			t.Errorf("%d elements a ms, %d channels: %d frames each, want %d", c.perMs, c.channels, got, c.want)
		}
	}
	b, _ := chain(t, 1)
	task, in := b.build(), b.dep.Inputs[0].Channel
	holds := func(want int) {
		t.Helper()
		for in.Offer(b.frame(0)) {
		}
		if in.Len() != want {
			t.Errorf("with runs of %d elements it holds %d frames, want %d", task.scope.RunLen, in.Len(), want)
		}
		for in.Poll() != nil {
		}
	}
	task.scope.RunLen = firstRun
	holds(exchange.Depth) // nothing is known yet
	task.adapt(1, 1)
	holds(exchange.LeastDepth)
	for task.scope.RunLen < frame.DefaultLen {
		task.adapt(0, task.scope.RunLen)
	}
	holds(exchange.Depth)
	for range 10 {
		task.adapt(1000, 1)
	}
	holds(exchange.LeastDepth)
}

// A run that was cut short by the frame's end says nothing about longer ones.
func TestShortRunsDoNotGrowTheRunLength(t *testing.T) {
	b, _ := chain(t, 1)
	for range exchange.Depth {
		b.send(0, 1, 2, 3)
	}
	b.build().scope.RunLen = 10
	if err := b.run(); err != errDry {
		t.Fatal(err)
	}
	if b.task.scope.RunLen != 10 {
		t.Errorf("RunLen is %d after runs of 3, want 10", b.task.scope.RunLen)
	}
}

// A source is told by RunLen how much to emit: the time of its polls, with all that follows in the chain, decides.
func TestSourcesAreToldHowMuchToEmit(t *testing.T) {
	w := newWell(t)
	b := newBench(t, nil, w)
	var lens []int
	cost := int64(3)
	for i := range 24 {
		w.polls = append(w.polls, func() (operator.Status, error) {
			lens = append(lens, b.task.scope.RunLen)
			if i == 11 {
				cost = 0
			}
			b.clock.Set(b.clock.Millis() + cost)
			return operator.More, nil
		})
	}
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	want := []int{1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1, 2, 3, 4, 6, 8, 11, 14, 18, 23, 29, 37, 47}
	if !slices.Equal(lens, want) {
		t.Errorf("RunLen was\n%v, want\n%v", lens, want)
	}
}

// Waiting for elements is no work: a source that has nothing must not get shorter runs for it.
func TestWaitingDoesNotShortenRuns(t *testing.T) {
	w := newWell(t)
	b := newBench(t, nil, w)
	nothing := func() (operator.Status, error) { return operator.Nothing, nil }
	w.polls = []func() (operator.Status, error){nothing, nothing}
	pause := func() { b.clock.Set(b.clock.Millis() + 10_000) }
	if err := b.run(pause, pause); err != nil || b.task.scope.RunLen != frame.DefaultLen {
		t.Errorf("RunLen is %d after waiting, %v", b.task.scope.RunLen, err)
	}
	c, _ := chain(t, 1)
	c.send(0, 1)
	late := func() {
		c.clock.Set(c.clock.Millis() + 10_000)
		c.send(0, mark(frame.End))
	}
	if err := c.run(late); err != nil || c.task.scope.RunLen != frame.DefaultLen {
		t.Errorf("RunLen is %d after waiting for input, %v", c.task.scope.RunLen, err)
	}
}

// Between two runs letters are opened, timers that are due run, and now is renewed.
func TestLettersAndTimersAreServedBetweenRuns(t *testing.T) {
	b, es := chain(t, 1)
	e := es[0]
	e.open = func() error {
		for _, at := range []int64{1001, 1000, 999, 1002} {
			e.rt.Timers.Schedule(at, func(at int64) error {
				b.note("timer %d, now %d", at, e.rt.Now)
				return nil
			})
		}
		b.mailbox.Post(func() error { b.note("first letter"); return nil })
		return nil
	}
	n := 0
	e.push = func(*frame.Run) error {
		b.clock.Set(b.clock.Millis() + 1)
		n++
		b.mailbox.Post(func() error { b.note("letter %d", n); return nil })
		return nil
	}
	b.send(0, 1, 2, 3)
	b.build().scope.RunLen = 1
	if err := b.run(func() { b.note("wait until %d", b.until[0]); b.clock.Set(1004); b.send(0, mark(frame.End)) }); err != nil {
		t.Fatal(err)
	}
	b.wants("first letter", "timer 999, now 1000", "a [1]", "letter 1", "timer 1000, now 1001", "a [2]", "letter 2", "timer 1001, now 1002",
		"a [3]", "letter 3", "timer 1002, now 1003", "wait until 9223372036854775807", "a end")
}

func TestTaskWaitsForTheNextTimer(t *testing.T) {
	b, es := chain(t, 1)
	es[0].open = func() error {
		es[0].rt.Timers.Schedule(1500, func(int64) error {
			es[0].rt.Timers.Schedule(math.MaxInt64, func(int64) error { return nil })
			return nil
		})
		return nil
	}
	err := b.run(
		func() { b.clock.Set(1500) }, // not past it yet
		func() { b.clock.Set(1501) },
		func() { b.send(0, mark(frame.End)) },
	)
	if err != nil || !slices.Equal(b.until, []int64{1501, 1501, host.Forever}) {
		t.Errorf("waited until %v, %v; want past 1500, then for ever", b.until, err)
	}
	if !slices.Equal(b.reasons, []host.Reason{host.Idle, host.Idle, host.Idle}) {
		t.Errorf("waited as %v", b.reasons)
	}
}

// Decision 5: flushing may wait for room and so use up the wake-up of a letter; the task must look again before it waits.
func TestAfterFlushingTheTaskLooksAgain(t *testing.T) {
	b, es := chain(t, 1)
	out := b.edge(0, "", graph.Forward, 100, 1)[0]
	es[0].name = ""
	b.build()
	for range exchange.Depth {
		out.Offer(b.frame(0))
	}
	b.send(0, 1)
	err := b.run(
		func() { // waits for room
			b.mailbox.Post(func() error { b.note("letter"); return nil })
			received(out)
			b.note("room")
		},
		func() { b.note("wait"); b.send(0, mark(frame.End)) },
	)
	if err != nil || !slices.Equal(b.reasons, []host.Reason{host.Backpressured, host.Idle}) {
		t.Errorf("waited as %v, %v", b.reasons, err)
	}
	b.wants("room", "letter", "wait")
}

func TestSourceEndsItsStream(t *testing.T) {
	sink := newEcho(t, "sink", 1)
	w := newWell(t)
	w.polls = []func() (operator.Status, error){w.emits(operator.More, 1, 2), w.emits(operator.More, 3)}
	b := newBench(t, nil, w, sink)
	sink.b = b
	w.finish = func() error { b.note("finish"); return nil }
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wants("sink [1 2]", "sink [3]", "finish", "sink last watermark", "sink end")
}

func TestSourceWithoutElementsIsAskedAfterAWakeUp(t *testing.T) {
	w := newWell(t)
	w.polls = []func() (operator.Status, error){w.emits(operator.Nothing), w.emits(operator.Nothing), w.emits(operator.More, 5)}
	b := newBench(t, nil, w)
	if err := b.run(func() {}, func() {}); err != nil || len(b.reasons) != 2 {
		t.Errorf("waited %d times, want twice: %v", len(b.reasons), err)
	}
}

// head is the head of a loop: its work goes before the input, and the task ends when it says so.
type head struct {
	*echo
	work []operator.Status
}

func (h *head) Work() (operator.Status, error) {
	if len(h.work) == 0 {
		return operator.Nothing, nil
	}
	s := h.work[0]
	h.work = h.work[1:]
	if s != operator.Nothing {
		h.b.note("work, %v", s)
	}
	if s == operator.More {
		h.b.clock.Set(h.b.clock.Millis() + 3)
	}
	return s, nil
}

func TestLoopHeadWorksBeforeItsInputAndSaysWhenItIsOver(t *testing.T) {
	h := &head{echo: newEcho(t, "head", 1), work: []operator.Status{operator.More, operator.More, operator.Nothing, operator.More, operator.Nothing, operator.Nothing}}
	b := newBench(t, []int{1}, h)
	h.b = b
	b.send(0, 1)
	b.send(0, mark(frame.End))
	err := b.run(func() { b.note("wait"); h.work = []operator.Status{operator.Nothing, operator.More, operator.Done} }, func() { b.note("wait") })
	if err != nil {
		t.Fatal(err)
	}
	b.wants("work, 0", "work, 0", "head [1]", "work, 0", "head end", "wait", "wait", "work, 0", "work, 2")
}

func TestLoopHeadIsToldHowMuchToDo(t *testing.T) {
	h := &head{echo: newEcho(t, "", 1), work: []operator.Status{operator.More, operator.More, operator.More, operator.More, operator.Done}}
	b := newBench(t, []int{1}, h)
	h.b = b
	if err := b.run(); err != nil || b.task.scope.RunLen != frame.DefaultLen>>4 {
		t.Errorf("RunLen is %d after four slow portions, %v, want %d", b.task.scope.RunLen, err, frame.DefaultLen>>4)
	}
}

func TestFailureOfLoopWorkEndsTheTask(t *testing.T) {
	b := newBench(t, []int{1}, failingHead{newEcho(t, "", 1)})
	if err := b.run(); err == nil || !strings.Contains(err.Error(), `operator "op0"`) || !errors.Is(err, errWork) {
		t.Errorf("got %v", err)
	}
}

var errWork = errors.New("no work")

type failingHead struct{ *echo }

func (failingHead) Work() (operator.Status, error) { return operator.Nothing, errWork }

// A run of full length may be followed by service at once; a short one, which took no time, goes with what follows it.
func TestShortRunsAreNotFollowedByService(t *testing.T) {
	for runLen, want := range map[int][]string{
		1: {"a [1]", "letter", "a barrier 0", "a end"},
		2: {"a [1]", "a barrier 0", "a end", "letter"},
	} {
		b, es := chain(t, 1)
		es[0].push = func(*frame.Run) error {
			b.mailbox.Post(func() error { b.note("letter"); return nil })
			return nil
		}
		b.send(0, 1, mark(frame.Barrier), mark(frame.End))
		b.build().scope.RunLen = runLen
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		for _, letter := range b.mailbox.Take() { // the task has ended before it was read
			if err := letter(); err != nil {
				t.Error(err)
			}
		}
		b.wants(want...)
	}
}

// A source that gives up because its task is cancelled has not come to its end: nobody downstream may think so.
func TestCancelledSourceDoesNotEndItsStream(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	sink := newEcho(t, "sink", 1)
	w := newWell(t)
	b := newBench(t, nil, w, sink)
	sink.b, b.dep.Ctx = b, ctx
	w.finish = func() error { b.note("finish"); return nil }
	w.polls = []func() (operator.Status, error){w.emits(operator.More, 1), func() (operator.Status, error) {
		cancel()
		return operator.Done, nil
	}}
	if err := b.run(); err != exchange.ErrCancelled {
		t.Errorf("got %v", err)
	}
	b.wants("sink [1]")
}
