package watermarks

import (
	"fmt"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/watermark"
)

// splitRig is a rig whose operator keeps splits apart.
type splitRig struct {
	*rig
	p *PerSplit
}

func newSplitRig(t *testing.T, s watermark.Strategy[event], interval int64, member *Member) splitRig {
	t.Helper()
	typ := typeOf[event](t)
	p := NewPerSplit(typ, s, member)
	g := splitRig{&rig{t: t, typ: typ, op: p, sink: &sink{t: typ, format: formatEvent}}, p}
	g.open(interval)
	return g
}

// read pushes elements of a split.
func (g splitRig) read(split string, at ...int64) {
	g.t.Helper()
	g.split(split, false)
	if len(at) > 0 {
		g.push(at...)
	}
}

func (g splitRig) split(name string, over bool) {
	g.t.Helper()
	if err := g.p.Split(name, over); err != nil {
		g.t.Fatal(err)
	}
}

// each makes the watermark of each element its timestamp.
func each() watermark.Strategy[event] {
	return watermark.PunctuatedPtr(func(_ *event, ms int64) (int64, bool) { return ms, true }).WithMillisPtr(func(x *event) int64 { return x.At })
}

func TestSourceThatNamesNoSplitHasOneWatermark(t *testing.T) {
	g := newSplitRig(t, bounded1s().WithIdleness(500*time.Millisecond), 200, nil)
	g.push(5000, 4000)
	g.clock(200)
	g.expect("5000@5000, 4000@4000, watermark 3999")
	g.clock(1000)
	g.clock(1001)
	g.expect("idle")
	g.push(5000)
	g.expect("active, 5000@5000")
	if g.p.HeldSplit() != "" {
		t.Errorf("held by split %q", g.p.HeldSplit())
	}
}

func TestWatermarkIsThatOfTheSplitFurthestBehind(t *testing.T) {
	g := newSplitRig(t, each(), 0, nil)
	g.read("a", 10)
	g.expect("10@10, watermark 10")
	g.read("b", 3)
	g.expect("3@3") // b is behind what came out: it is waited for
	if got := g.p.HeldSplit(); got != "b" {
		t.Errorf("held by %q, want b", got)
	}
	g.read("a", 20)
	g.read("b", 12, 15)
	g.expect("20@20, 12@12, watermark 12, 15@15, watermark 15")
	g.split("b", true)
	g.expect("watermark 20")
	if got := g.p.HeldSplit(); got != "a" {
		t.Errorf("held by %q, want a", got)
	}
	g.split("b", true) // again: nothing
	g.read("a", 21)
	g.expect("21@21, watermark 21")
}

// B006 on the level of splits: once all are idle the greatest watermark comes out, whoever fell silent first.
func TestSilentSplitsAreFlushedInEveryOrder(t *testing.T) {
	for _, first := range []string{"a", "b"} {
		g := newSplitRig(t, each().WithIdleness(10*time.Millisecond), 0, nil)
		at := map[string]int64{"a": 5, "b": 4}
		second := map[string]string{"a": "b", "b": "a"}[first]
		g.read(first, at[first])
		g.clock(4)
		g.read(second, at[second])
		g.clock(10)
		g.clock(14)
		g.clock(24)
		got := g.sink.take()
		want := map[string]string{
			"a": "5@5, watermark 5, 4@4, idle", // b came later and never caught up
			"b": "4@4, watermark 4, 5@5, watermark 5, idle",
		}[first]
		if got != want {
			t.Errorf("%s first: got %s, want %s", first, got, want)
		}
		g.read("b", 4)
		g.clock(40)
		g.clock(60)
		g.expect("active, 4@4, idle") // it resumed and caught up in part: nobody is stalled
		g.read("a", 9)
		g.expect("active, 9@9, watermark 9")
	}
}

func TestPeriodicWatermarksOfSplitsAreCombined(t *testing.T) {
	g := newSplitRig(t, bounded1s(), 200, nil)
	g.read("a", 5000)
	g.read("b", 3000)
	g.expect("5000@5000, 3000@3000")
	g.clock(200)
	g.expect("watermark 1999")
	g.read("b", 9000)
	g.clock(400)
	g.expect("9000@9000, watermark 3999")
	g.split("a", true)
	g.split("b", true)
	g.clock(10_000)
	g.expect("watermark 7999") // and no more: nobody knows whether there will be another split
	if err := g.op.Close(); err != nil {
		t.Fatal(err)
	}
	if at, ok := g.rt.Timers.Next(); ok {
		t.Errorf("a clock is set to %d after the end", at)
	}
}

func TestSourceWithoutSplitsForLongIsIdle(t *testing.T) {
	g := newSplitRig(t, each().WithIdleness(100*time.Millisecond), 0, nil)
	g.clock(100)
	g.expect("idle") // none was ever named
	g.read("a", 1)
	g.expect("active, 1@1, watermark 1")
	g.split("a", true)
	g.clock(150)
	g.read("b")
	g.clock(199)
	g.expect("")
	g.split("b", true)
	g.clock(299)
	g.expect("idle")
	g.read("c", 7)
	g.expect("active, 7@7, watermark 7")
}

func TestElementsOfNoSplitAreAnError(t *testing.T) {
	g := newSplitRig(t, each(), 0, nil)
	g.read("a", 1)
	g.split("a", true)
	r := column(g.typ, event{}).Run()
	if err := g.p.Push(&r); err == nil {
		t.Error("elements between two splits were taken")
	}
	if err := g.p.Mark(frame.Mark{Kind: frame.Watermark, Value: 3}); err != nil {
		t.Error(err)
	}
	g.expect("1@1, watermark 1")
}

// finishing says that nothing follows its first element.
type finishing struct{}

func (finishing) OnEvent(_ *event, _ int64, out *watermark.Emitter) {
	out.Watermark(frame.MaxWatermark)
}
func (finishing) OnPeriodic(*watermark.Emitter) {}

// A generator may say that its split is over; that is not the end of the source.
func TestLastWatermarkOfASplitIsNotTheSources(t *testing.T) {
	s := watermark.Periodic(func() watermark.Generator[event] { return finishing{} }).WithMillisPtr(func(x *event) int64 { return x.At })
	g := newSplitRig(t, s, 0, nil)
	g.read("a", 1)
	g.read("b")
	g.read("a", 2)
	g.split("a", true)
	g.read("b", 3)
	g.expect("1@1, 2@2, 3@3")
}

func TestBarriersAndLatencyMarkersPassSplits(t *testing.T) {
	g := newSplitRig(t, each(), 0, nil)
	g.mark(frame.Barrier, 1)
	g.read("a", 1)
	g.mark(frame.Barrier, 2)
	g.mark(frame.Watermark, 5) // the source's own end here
	g.mark(frame.Idle, 0)
	g.expect("barrier 1, 1@1, watermark 1, barrier 2")
}

func TestAlignmentSeesTheWholeSource(t *testing.T) {
	group := NewGroup(watermark.Alignment{Group: "g", MaxDrift: 10, Interval: 1})
	g := newSplitRig(t, each().WithIdleness(100*time.Millisecond), 0, group.Join())
	g.read("a", 50)
	g.read("b", 40)
	if got := group.Least(); got != 50 {
		t.Errorf("the group is at %d, want what came out before b was there: 50", got)
	}
	g.read("a", 70)
	g.read("b", 60)
	if got := group.Least(); got != 60 {
		t.Errorf("the group is at %d, want 60", got)
	}
	other := group.Join() // it has said nothing: the source is paused, and no silent split is idle meanwhile
	g.clock(200)
	g.clock(400)
	g.expect("50@50, watermark 50, 40@40, 70@70, 60@60, watermark 60")
	other.Report(60)
	g.clock(600)
	g.clock(800)
	g.expect("watermark 70, idle")
	if got := group.Least(); got != 60 {
		t.Errorf("the group is at %d: an idle source is not waited for, the other one is at 60", got)
	}
	if err := g.op.Close(); err != nil {
		t.Fatal(err)
	}
	other.Leave()
	if got := fmt.Sprint(group.Least()); got != fmt.Sprint(int64(frame.MaxWatermark)) {
		t.Errorf("somebody is left in the group: %s", got)
	}
}
