package task

import (
	"testing"

	"github.com/flott-dev/flott/internal/frame"
)

func probeMark(loop, round int64) frame.Mark {
	return frame.Mark{Kind: frame.Probe, Value: loop<<loopBits | round}
}

// A probe goes on once it has come on every channel that is still open; that of the slowest channel counts.
func TestProbePassesWhenAllOpenChannelsHaveSentIt(t *testing.T) {
	e := newEcho(t, "op", 1)
	b := newBench(t, []int{3}, e)
	e.b = b
	e.mark = func(m frame.Mark) error {
		if m.Kind == frame.Probe {
			b.note("loop %d, round %d", m.Value>>loopBits, m.Value&(1<<loopBits-1))
		}
		return nil
	}
	e.name = ""
	err := b.run(
		func() { b.send(0, probeMark(1, 1)); b.send(1, probeMark(1, 1)) },
		func() { b.note("-"); b.send(2, 5, probeMark(1, 1)) }, // the last one
		func() { b.note("-"); b.send(0, probeMark(1, 3)); b.send(1, probeMark(1, 2)) },
		func() { b.note("-"); b.send(2, probeMark(1, 2)) }, // round 2 is complete, 3 is not
		func() { b.note("-"); b.send(2, probeMark(1, 2)) }, // nothing new
		func() { b.note("-"); b.send(1, mark(frame.End)) }, // 0 is at 3, 2 is at 2
		func() { b.note("-"); b.send(2, mark(frame.End)) }, // now the least is 3
		func() { b.note("-"); b.send(0, probeMark(1, 2)) }, // never back
		func() { b.note("-"); b.send(0, probeMark(1, 4)) },
		func() { b.note("-"); b.send(0, mark(frame.End)) },
	)
	if err != nil {
		t.Fatal(err)
	}
	b.wants("-", "loop 1, round 1", "-", "-", "loop 1, round 2", "-", "-", "-", "loop 1, round 3", "-", "-", "loop 1, round 4", "-")
}

func TestProbesOfLoopsAreKeptApart(t *testing.T) {
	e := newEcho(t, "", 2)
	b := newBench(t, []int{1, 1}, e)
	e.b = b
	e.mark = func(m frame.Mark) error {
		if m.Kind == frame.Probe {
			b.note("loop %d, round %d", m.Value>>loopBits, m.Value&(1<<loopBits-1))
		}
		return nil
	}
	b.send(0, probeMark(1, 0))
	err := b.run(
		func() { b.note("-"); b.send(1, probeMark(2, 0)) },
		func() { b.note("-"); b.send(0, probeMark(2, 0)) },
		func() { b.note("-"); b.send(1, probeMark(1, 0)) },
		func() { b.send(0, mark(frame.End)); b.send(1, mark(frame.End)) },
	)
	if err != nil {
		t.Fatal(err)
	}
	b.wants("-", "-", "loop 2, round 0", "-", "loop 1, round 0")
}

func TestFailureAtAProbeIsTheHeads(t *testing.T) {
	for name, last := range map[string]frame.Mark{"the probe itself": probeMark(1, 1), "the end that completes it": mark(frame.End)} {
		e := newEcho(t, "", 1)
		b := newBench(t, []int{2}, e, newEcho(t, "", 1))
		e.mark = func(m frame.Mark) error {
			if m.Kind == frame.Probe {
				return errBoom
			}
			return nil
		}
		b.send(0, probeMark(1, 1))
		checkFailure(t, name, b.run(func() { b.send(1, last) }), "op0", "error")
	}
}
