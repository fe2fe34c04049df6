package watermarks

import (
	"errors"
	"testing"
	"time"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/watermark"
)

var errFull = errors.New("full")

// breaking fails at its call number at.
type breaking struct {
	t     *frame.Type
	calls int
	at    int
}

func (b *breaking) Type() *frame.Type       { return b.t }
func (b *breaking) Push(*frame.Run) error   { return b.call() }
func (b *breaking) Mark(m frame.Mark) error { return b.call() }

func (b *breaking) call() error {
	if b.calls++; b.calls == b.at {
		return errFull
	}
	return nil
}

// Wherever downstream fails, the step at hand returns the error.
func TestEveryFailureDownstreamIsReturned(t *testing.T) {
	at := func(x *event) int64 { return x.At }
	for name, s := range map[string]watermark.Strategy[event]{
		"bounded":    bounded1s(),
		"failing":    watermark.ForMonotonousTimestamps[event]().WithMillisPtr(at).OnViolation(watermark.FailOnViolation),
		"punctuated": watermark.PunctuatedPtr(func(x *event, _ int64) (int64, bool) { return x.At, true }).WithMillisPtr(at),
		"generator": watermark.Periodic(func() watermark.Generator[event] {
			return &behindOne{}
		}).WithMillisPtr(at),
	} {
		reached := false
		for n := 1; ; n++ {
			typ := typeOf[event](t)
			op := New(typ, s.WithIdleness(50*time.Millisecond), nil)
			down := &breaking{t: typ, at: n}
			if err := op.Output("").Connect(down, nil); err != nil {
				t.Fatal(err)
			}
			rt := &operator.Runtime{Scope: &operator.Scope{Timers: &operator.Callbacks{}, AutoWatermarkInterval: 20}}
			if err := op.Open(rt); err != nil {
				t.Fatal(err)
			}
			err := drive(op, rt)
			if down.calls < n {
				break
			}
			reached = true
			if !errors.Is(err, errFull) {
				t.Errorf("%s: call %d failed, the operator returned %v", name, n, err)
			}
		}
		if !reached {
			t.Errorf("%s: nothing was called", name)
		}
	}
}

// drive takes the operator through elements, periodic watermarks, idleness and the end, up to the first error.
func drive(op *Operator, rt *operator.Runtime) error {
	push := func(at ...int64) error {
		r := column(op.Type(), events(at...)...).Run()
		return op.Push(&r)
	}
	clock := func(ms int64) error {
		rt.Now = ms
		return rt.Timers.Run(ms)
	}
	in := op.Inputs()[0]
	for _, step := range []func() error{
		func() error { return push(100, 200, 300) },
		func() error { return clock(20) },
		func() error { return push(400) },
		func() error { return clock(60) },
		func() error { return clock(200) },
		func() error { return clock(300) },
		func() error { return push(500, 450) },
		func() error { return clock(500) },
		func() error { return clock(600) },
		func() error { return in.Mark(frame.Mark{Kind: frame.Watermark, Value: frame.MaxWatermark}) },
		func() error { return in.Mark(frame.Mark{Kind: frame.End}) },
		op.Close,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func TestOnlyTheMainOutputExists(t *testing.T) {
	if New(typeOf[event](t), bounded1s(), nil).Output("late") != nil {
		t.Error("there is a side output")
	}
}

func TestStoppedContextIsNeverDue(t *testing.T) {
	for _, c := range []*SourceContext{NewManual(0, 10), NewIngestion(0, 10, 10)} {
		if _, ok := c.Next(); !ok {
			t.Error("nothing due before Stop")
		}
		c.Stop()
		if at, ok := c.Next(); ok {
			t.Errorf("due at %d after Stop", at)
		}
	}
}

// Idleness and a watermark due at once: the earlier goes first, whatever the clock jumped over.
func TestClockThatJumpsKeepsTheOrder(t *testing.T) {
	c := NewIngestion(0, 100, 150)
	c.Element(90, 0)
	e := c.Advance(1000)
	if len(e.Marks()) != 1 || e.Marks()[0].Kind != frame.Idle {
		t.Errorf("marks %v, want idle alone: the last element is 910 ms old", e.Marks())
	}
	c = NewIngestion(0, 100, 50)
	e = c.Advance(100)
	if len(e.Marks()) != 1 || e.Marks()[0].Kind != frame.Idle || c.Watermark() != frame.MinWatermark {
		t.Errorf("marks %v, want idle alone: it was due first", e.Marks())
	}
	c = NewIngestion(0, 100, 100)
	e = c.Advance(170)
	if m := e.Marks(); len(m) != 2 || m[0].Value != 100 || m[1].Kind != frame.Idle {
		t.Errorf("marks %v, want watermark 100 and idle", m)
	}
}
