package watermarks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/watermark"
)

func TestPeriodicWatermarkComesWithoutElements(t *testing.T) {
	g := eventRig(t, bounded1s(), 200)
	g.push(5000, 4000)
	g.expect("5000@5000, 4000@4000")
	g.clock(199)
	g.expect("")
	g.clock(200)
	g.expect("watermark 3999")
	g.clock(400)
	g.expect("")
	g.push(9000)
	g.clock(650)
	g.expect("9000@9000, watermark 7999")
	g.clock(849)
	g.push(10000)
	g.expect("10000@10000")
	g.clock(850)
	g.expect("watermark 8999")
}

func TestNoPeriodicWatermarkAtIntervalZero(t *testing.T) {
	g := eventRig(t, bounded1s(), 0)
	g.push(5000)
	g.clock(1_000_000)
	g.expect("5000@5000")
}

func TestPunctuatedWatermarkCutsTheRun(t *testing.T) {
	s := watermark.Punctuated(func(x event, ms int64) (int64, bool) { return ms - 1, x.Flag }).
		WithMillis(func(x event) int64 { return x.At })
	g := eventRig(t, s, 0)
	xs := []event{{At: 1}, {At: 2, Flag: true}, {At: 2, Flag: true}, {At: 3}, {At: 5, Flag: true}}
	r := column(g.typ, xs...).Run()
	if err := g.op.Push(&r); err != nil {
		t.Fatal(err)
	}
	g.expect("1@1, 2@2, watermark 1, 2@2, 3@3, 5@5, watermark 4")
	if g.sink.runs != 2 {
		t.Errorf("%d runs, want 2: a watermark that does not grow cuts nothing", g.sink.runs)
	}
}

// chatty emits after each third element and says that it is idle at the name "bye".
type chatty struct{ n int }

func (c *chatty) OnEvent(x *event, ms int64, out *watermark.Emitter) {
	if c.n++; c.n%3 == 0 {
		out.Watermark(ms)
	}
	if x.Name == "bye" {
		out.Idle()
	}
}

func (c *chatty) OnPeriodic(out *watermark.Emitter) {
	if c.n == 5 {
		out.Watermark(100)
	}
}

func TestGeneratorEmitsBetweenElementsAndSaysIdle(t *testing.T) {
	s := watermark.Periodic(func() watermark.Generator[event] { return &chatty{} }).WithMillis(func(x event) int64 { return x.At })
	g := eventRig(t, s, 10)
	g.push(1, 2, 3, 4)
	g.expect("1@1, 2@2, 3@3, watermark 3, 4@4")
	r := column(g.typ, event{At: 5, Name: "bye"}).Run()
	if err := g.op.Push(&r); err != nil {
		t.Fatal(err)
	}
	g.expect("5@5, idle")
	g.clock(10)
	g.expect("active, watermark 100")
	g.push(6)
	g.expect("6@6")
}

func TestUpstreamMarksAreSwallowedExceptTheLast(t *testing.T) {
	g := eventRig(t, bounded1s(), 200)
	g.mark(frame.Watermark, 77)
	g.mark(frame.Idle, 0)
	g.mark(frame.Active, 0)
	g.mark(frame.Barrier, 3)
	g.expect("barrier 3")
	g.mark(frame.Watermark, frame.MaxWatermark)
	g.mark(frame.Watermark, frame.MaxWatermark)
	g.clock(200)
	g.mark(frame.End, 0)
	g.expect(fmt.Sprintf("watermark %d, end", int64(math.MaxInt64)))
}

// rule/finite_source_max_watermark and rule/max_watermark_after_close_output, as far as they are this operator's: what
// comes from a finite source that emitted nothing, or one element at its end, is that and the largest watermark, last.
func TestLargestWatermarkIsLastAndAlone(t *testing.T) {
	g := eventRig(t, bounded1s(), 200)
	g.mark(frame.Watermark, frame.MaxWatermark)
	g.expect(fmt.Sprintf("watermark %d", int64(math.MaxInt64)))

	g = eventRig(t, watermark.NoWatermarks[event](), 200)
	g.push(7)
	g.mark(frame.Watermark, frame.MaxWatermark)
	g.expect(fmt.Sprintf("7, watermark %d", int64(math.MaxInt64)))
}

// rule/no_max_watermark_on_immediate_cancel, rule/no_max_watermark_on_async_cancel: Close emits nothing and leaves no
// callback behind.
func TestCancelEmitsNothing(t *testing.T) {
	g := eventRig(t, bounded1s().WithIdleness(time.Second), 200)
	if err := g.op.Close(); err != nil {
		t.Fatal(err)
	}
	g.expect("")
	if at, ok := g.rt.Timers.Next(); ok {
		t.Errorf("a callback at %d is left", at)
	}
}

func TestStrategyWithoutAssignerKeepsTimestamps(t *testing.T) {
	g := eventRig(t, watermark.ForMonotonousTimestamps[event](), 100)
	c := frame.NewColumn(g.typ, 4)
	for i, x := range events(1, 2, 3) {
		frame.Add(c, x, int64(10*(i+1)))
	}
	r := c.Run()
	if err := g.op.Push(&r); err != nil {
		t.Fatal(err)
	}
	g.clock(100)
	g.expect("1@10, 2@20, 3@30, watermark 29")
	g.push(4)
	g.clock(200)
	g.expect("4")
}

func TestAssignerSeesTheEarlierTimestamp(t *testing.T) {
	byValue := watermark.NoWatermarks[event]().WithTimestampAssigner(func(x event, before int64) int64 { return before + x.At })
	byPointer := watermark.NoWatermarks[event]().WithTimestampAssignerPtr(func(x *event, before int64) int64 { return before + x.At })
	for _, s := range []watermark.Strategy[event]{byValue, byPointer} {
		g := eventRig(t, s, 0)
		c := frame.NewColumn(g.typ, 4)
		frame.Add(c, event{At: 1}, 100)
		frame.Add(c, event{At: 2}, frame.NoTime)
		r := c.Run()
		if err := g.op.Push(&r); err != nil {
			t.Fatal(err)
		}
		g.expect(fmt.Sprintf("1@101, 2@%d", int64(frame.NoTime)+2))
	}
}

// Others see the same memory: neither elements nor timestamps of a shared run are written.
func TestSharedRunKeepsItsTimestamps(t *testing.T) {
	g := eventRig(t, bounded1s(), 0)
	c := frame.NewColumn(g.typ, 4)
	frame.Add(c, event{At: 1}, 100)
	r := c.Run()
	r.Shared = true
	if err := g.op.Push(&r); err != nil {
		t.Fatal(err)
	}
	g.expect("1@1")
	if r.Time(0) != 100 {
		t.Errorf("timestamp of the shared run is now %d", r.Time(0))
	}
}

func TestIdleAfterTheTimeoutAndActiveWithTheNextElement(t *testing.T) {
	g := eventRig(t, bounded1s().WithIdleness(500*time.Millisecond), 200)
	g.push(5000)
	g.clock(200)
	g.expect("5000@5000, watermark 3999")
	g.clock(300)
	g.push(6000)
	g.clock(500)
	g.expect("6000@6000, watermark 4999")
	g.clock(799)
	g.expect("")
	g.clock(800)
	g.expect("idle")
	g.clock(2000)
	g.expect("")
	g.push(7000)
	g.expect("active, 7000@7000")
	g.clock(2200)
	g.expect("watermark 5999")
}

func TestSubtaskWithoutAnyElementBecomesIdle(t *testing.T) {
	g := eventRig(t, bounded1s().WithIdleness(500*time.Millisecond), 200)
	g.clock(499)
	g.expect("")
	g.clock(500)
	g.expect("idle")
	g.mark(frame.Watermark, frame.MaxWatermark)
	g.expect(fmt.Sprintf("active, watermark %d", int64(math.MaxInt64)))
}

// The latest watermark is not lost because the timeout is shorter than the watermark interval.
func TestIdleSubtaskGivesItsWatermarkFirst(t *testing.T) {
	g := eventRig(t, bounded1s().WithIdleness(50*time.Millisecond), 200)
	g.push(5000)
	g.clock(50)
	g.clock(100)
	g.expect("5000@5000, watermark 3999, idle")
}

// FLINK-35886: the task was held up downstream for longer than the timeout; it is not idle, its next element is waiting.
func TestHeldUpTaskIsNotIdle(t *testing.T) {
	g := eventRig(t, bounded1s().WithIdleness(500*time.Millisecond), 0)
	g.push(1000)
	g.clock(3000) // the push lasted till now
	g.push(2000)
	g.clock(3400)
	g.expect("1000@1000, 2000@2000")
	g.clock(3500)
	g.clock(3501)
	g.expect("watermark 999, idle")
}

func TestPausedSourceIsNotIdle(t *testing.T) {
	s := bounded1s().WithIdleness(500*time.Millisecond).WithAlignment("g", 10*time.Second, 100*time.Millisecond)
	group := NewGroup(s.Spec().Alignment)
	other := group.Join()
	typ := typeOf[event](t)
	g := &rig{t: t, typ: typ, op: New(typ, s, group.Join()), sink: &sink{t: typ, format: formatEvent}}
	g.open(100)
	other.Report(0)
	g.push(50_000)
	g.clock(100)
	g.expect("50000@50000, watermark 48999")
	if !g.op.(*Operator).member.Paused(200) {
		t.Fatal("49 s ahead of a drift of 10 s and not paused")
	}
	g.clock(1000)
	g.clock(2000)
	g.expect("")
	other.Report(45_000)
	g.clock(2500)
	g.clock(3000)
	g.expect("idle")
}

func TestFallingTimestampsOfAnAscendingStream(t *testing.T) {
	at := func(x *event) int64 { return x.At }
	fail := watermark.ForMonotonousTimestamps[event]().WithMillisPtr(at).OnViolation(watermark.FailOnViolation)
	g := eventRig(t, fail, 100)
	r := column(g.typ, events(1, 5, 3, 9)...).Run()
	err := g.op.Push(&r)
	if err == nil || !strings.Contains(err.Error(), "timestamp 3 after 5") {
		t.Fatalf("error %v, want one that names 3 and 5", err)
	}
	g.expect("1@1, 5@5")

	for _, v := range []watermark.Violation{watermark.IgnoreViolations, watermark.LogViolations} {
		g = eventRig(t, watermark.ForMonotonousTimestamps[event]().WithMillisPtr(at).OnViolation(v), 100)
		g.push(1, 5, 3, 9, 2, 1)
		g.clock(100)
		g.expect("1@1, 5@5, 3@3, 9@9, 2@2, 1@1, watermark 8")
	}
}

// B012: an absurd timestamp makes the others late; nothing wraps, and the stream does not end.
func TestAbsurdTimestampsDoNotWrap(t *testing.T) {
	g := eventRig(t, watermark.ForBoundedOutOfOrderness[event](5*time.Second).WithMillis(func(x event) int64 { return x.At }), 100)
	g.push(1000)
	g.clock(100)
	g.expect("1000@1000, watermark -4001")
	g.push(math.MaxInt64)
	g.clock(200)
	g.expect(fmt.Sprintf("%d@%d, watermark %d", int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64-5001)))
	g.push(2000)
	g.clock(300)
	g.expect("2000@2000")

	low := eventRig(t, watermark.ForBoundedOutOfOrderness[event](5*time.Second).WithMillis(func(x event) int64 { return x.At }), 100)
	low.push(math.MinInt64 + 3)
	low.clock(100)
	low.expect(fmt.Sprintf("%d@%d", int64(math.MinInt64+3), int64(math.MinInt64+3)))

	end := eventRig(t, watermark.BoundedOutOfOrdernessTimestampExtractor(0, func(x event) time.Time { return time.UnixMilli(x.At) }), 100)
	end.push(math.MaxInt64 - 1000)
	end.op.(*Operator).bounded.highest = math.MaxInt64
	end.sink.take()
	end.clock(100)
	end.expect(fmt.Sprintf("watermark %d", int64(math.MaxInt64-1)))
}

// One by one or in runs of any length, with any strategy, elements and punctuated watermarks come out alike.
func TestCutsOfRunsDoNotMatter(t *testing.T) {
	strategies := map[string]func() watermark.Strategy[event]{
		"bounded": bounded1s,
		"punctuated": func() watermark.Strategy[event] {
			return watermark.PunctuatedPtr(func(x *event, _ int64) (int64, bool) { return x.At, x.At%7 == 0 })
		},
		"generator": func() watermark.Strategy[event] {
			return watermark.Periodic(func() watermark.Generator[event] { return &chatty{} })
		},
	}
	for name, fresh := range strategies {
		for seed := range uint64(20) {
			rnd := rand.New(rand.NewPCG(seed, 9))
			var at []int64
			for range 300 {
				at = append(at, rnd.Int64N(1000))
			}
			whole, cut := newRig(t, fresh(), 100, formatEvent), newRig(t, fresh(), 100, formatEvent)
			whole.push(at...)
			for from := 0; from < len(at); {
				to := min(len(at), from+1+rnd.IntN(40))
				cut.push(at[from:to]...)
				from = to
			}
			whole.clock(100)
			cut.clock(100)
			if a, b := whole.sink.take(), cut.sink.take(); a != b {
				t.Fatalf("%s, seed %d:\n%s\n%s", name, seed, a, b)
			}
		}
	}
}

func TestAlignmentPausesTheFastest(t *testing.T) {
	g := NewGroup(watermark.Alignment{Group: "g", MaxDrift: 10, Interval: 100})
	a, b := g.Join(), g.Join()
	if a.Paused(0) {
		t.Error("paused before its first watermark")
	}
	a.Report(100)
	if !a.Paused(50) {
		t.Error("not paused although the other has not reported")
	}
	b.Report(100)
	if !a.Paused(99) {
		t.Error("the group looked again before its interval was over")
	}
	if a.Paused(100) {
		t.Error("paused beside an equal")
	}
	b.Report(89)
	if !a.Paused(200) || b.Paused(200) {
		t.Error("a is 11 ahead of a drift of 10")
	}
	b.Report(90)
	if a.Paused(300) {
		t.Error("a is within the drift")
	}
	b.SetIdle(true)
	a.Report(500)
	if a.Paused(400) {
		t.Error("waits for an idle member")
	}
	g.Limit(300)
	if !a.Paused(500) {
		t.Error("does not wait for another process")
	}
	g.Limit(frame.MaxWatermark)
	b.SetIdle(false)
	b.Leave()
	if a.Paused(600) || g.Least() != 500 {
		t.Error("waits for a member that has left")
	}
}

func TestIngestionTimeEndsWithTheLargestWatermark(t *testing.T) {
	c := NewIngestion(0, 10, -1)
	e := c.Emit(5, frame.MaxWatermark)
	if len(e.Marks()) != 1 || e.Marks()[0].Value != frame.MaxWatermark {
		t.Fatalf("marks %v", e.Marks())
	}
	if at, ok := c.Next(); ok {
		t.Errorf("still due at %d", at)
	}
	if _, _, after := c.Element(100, 0); len(after.Marks()) != 0 {
		t.Errorf("marks %v after the last watermark", after.Marks())
	}
}

func TestSourceMayCallItselfIdle(t *testing.T) {
	c := NewManual(0, -1)
	e := c.Idle()
	if len(e.Marks()) != 1 || e.Marks()[0].Kind != frame.Idle || !c.IsIdle() {
		t.Fatalf("marks %v", e.Marks())
	}
	if e = c.Idle(); len(e.Marks()) != 0 {
		t.Errorf("idle twice: %v", e.Marks())
	}
	if e = c.Emit(3, 9); len(e.Marks()) != 2 || e.Marks()[0].Kind != frame.Active || e.Marks()[1].Value != 9 {
		t.Errorf("marks %v, want active and watermark 9", e.Marks())
	}
	if e = c.Emit(4, 9); len(e.Marks()) != 0 {
		t.Errorf("marks %v for a watermark that does not grow", e.Marks())
	}
}

// drop takes everything without looking.
type drop struct{ t *frame.Type }

func (d drop) Type() *frame.Type     { return d.t }
func (drop) Push(*frame.Run) error   { return nil }
func (drop) Mark(m frame.Mark) error { return nil }

func loaded(tb testing.TB, s watermark.Strategy[event]) (*Operator, *frame.Column) {
	typ := typeOf[event](tb)
	op := New(typ, s, nil)
	if err := op.Output("").Connect(drop{typ}, nil); err != nil {
		tb.Fatal(err)
	}
	if err := op.Open(&operator.Runtime{Scope: &operator.Scope{Timers: &operator.Callbacks{}}}); err != nil {
		tb.Fatal(err)
	}
	c := frame.NewColumn(typ, 512)
	for i := range int64(512) {
		frame.Add(c, event{At: i * 37 % 512}, frame.NoTime)
	}
	return op, c
}

func TestPushDoesNotAllocate(t *testing.T) {
	for _, s := range []watermark.Strategy[event]{
		bounded1s(),
		watermark.PunctuatedPtr(func(x *event, _ int64) (int64, bool) { return x.At, true }),
	} {
		op, c := loaded(t, s)
		r := c.Run()
		n := testing.AllocsPerRun(100, func() {
			run := &r
			if err := op.Push(run); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%v allocations a run, want none", n)
		}
	}
}

func BenchmarkPush(b *testing.B) {
	at := func(x *event) int64 { return x.At }
	for _, c := range []struct {
		name string
		s    watermark.Strategy[event]
	}{
		{"bounded, pointer", bounded1s()},
		{"bounded, value", watermark.ForBoundedOutOfOrderness[event](time.Second).WithMillis(func(x event) int64 { return x.At })},
		{"bounded, time", watermark.BoundedOutOfOrderness(time.Second, func(x event) time.Time { return time.UnixMilli(x.At) })},
		{"ascending", watermark.ForMonotonousTimestamps[event]().WithMillisPtr(func(x *event) int64 { return x.At >> 62 })},
		{"punctuated, none", watermark.PunctuatedPtr(func(*event, int64) (int64, bool) { return 0, false }).WithMillisPtr(at)},
	} {
		b.Run(c.name, func(b *testing.B) {
			op, col := loaded(b, c.s)
			r := col.Run()
			b.ReportAllocs()
			for i := 0; i < b.N; i += r.N {
				if err := op.Push(&r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
