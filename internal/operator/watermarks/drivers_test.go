package watermarks

import (
	"errors"
	"fmt"
	"testing"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	kit "github.com/flott-dev/flott/internal/operator/operatortest"
)

var _ = []operator.Operator{(*Extracting)(nil), (*Ingesting)(nil)}

// openAt opens an operator that is asked for watermarks every interval ms.
func openAt(t *testing.T, op operator.Operator, interval int64) (*kit.Recorder, *operator.Runtime) {
	t.Helper()
	rt := kit.Runtime()
	rt.AutoWatermarkInterval = interval
	return kit.OpenAt(t, op, rt), rt
}

func clockTo(t *testing.T, rt *operator.Runtime, ms int64) {
	t.Helper()
	rt.Now = ms
	kit.Must(t, rt.Timers.Run(ms))
}

// newExtracting takes an element for its own timestamp; one that ends in 5 says a watermark. asked collects the earlier
// timestamps that the extractor saw.
func newExtracting(t *testing.T, current *int64, asked *[]int64) *Extracting {
	return NewExtracting(kit.TypeOf[int64](t), func() int64 { return *current }, func(r *frame.Run, i int, earlier int64) (ms, watermark int64) {
		*asked = append(*asked, earlier)
		if x := frame.Values[int64](r)[i]; x%10 == 5 {
			return x, x - 1
		} else {
			return x, frame.MinWatermark
		}
	})
}

func TestExtractorsWatermarksCutTheRun(t *testing.T) {
	var current int64
	var asked []int64
	op := newExtracting(t, &current, &asked)
	out, _ := openAt(t, op, 0)
	in := op.Inputs()[0]
	r := kit.Run(t, []int64{9, 8, 7, 6, 5}, int64(1), 15, 12, 5, 25)
	untouched := kit.Share(t, r)
	kit.Must(t, in.Push(r))
	untouched()
	out.Want(t, "1@1", "15@15", "watermark 14", "12@12", "5@5", "25@25", "watermark 24")
	if fmt.Sprint(asked) != "[9 8 7 6 5]" || fmt.Sprint(out.Runs) != "[2 3]" {
		t.Errorf("the extractor saw %v, the runs were %v", asked, out.Runs)
	}
	kit.Must(t, in.Push(kit.Run(t, nil, int64(2), 3)))
	kit.Must(t, in.Mark(kit.Watermark(1000))) // upstream's is replaced
	kit.Must(t, in.Mark(frame.Mark{Kind: frame.Idle}))
	kit.Must(t, in.Mark(kit.Watermark(frame.MaxWatermark)))
	kit.Must(t, in.Mark(kit.End()))
	out.Want(t, "2@2", "3@3", "idle", fmt.Sprint("watermark ", int64(frame.MaxWatermark)), "end")
}

func TestExtractorIsAskedPeriodically(t *testing.T) {
	current, asked := int64(frame.MinWatermark), []int64(nil)
	op := newExtracting(t, &current, &asked)
	out, rt := openAt(t, op, 20)
	clockTo(t, rt, 20)
	out.Want(t)
	current = 7
	clockTo(t, rt, 39)
	out.Want(t)
	clockTo(t, rt, 40)
	out.Want(t, "watermark 7")
	current = 6 // one that is not later is no watermark
	clockTo(t, rt, 60)
	out.Want(t)
	own := errors.New("own")
	out.Fail = own
	if err := op.Push(kit.Run(t, nil, int64(15), 16)); !errors.Is(err, own) || len(out.Runs) != 1 {
		t.Errorf("error %v after %d runs", err, len(out.Runs))
	}
	kit.Must(t, op.Mark(kit.End()))
	if _, ok := rt.Timers.Next(); ok {
		t.Error("it is asked after the end")
	}
}

func TestIngestionTimeReplacesTimestampsAndWatermarks(t *testing.T) {
	op := NewIngesting(kit.TypeOf[int64](t))
	rt := kit.Runtime()
	rt.Now, rt.AutoWatermarkInterval = -25, 10 // before 1970, when there are no watermarks
	out := kit.OpenAt(t, op, rt)
	in := op.Inputs()[0]
	r := kit.Run(t, []int64{1000, 2000}, int64(1), 2)
	untouched := kit.Share(t, r)
	kit.Must(t, in.Push(r))
	untouched()
	out.Want(t, "1@-25", "2@-25")
	clockTo(t, rt, 7)
	kit.Must(t, in.Push(kit.Run(t, nil, int64(3))))
	kit.Must(t, in.Mark(kit.Watermark(500))) // the source's own
	clockTo(t, rt, 17)
	out.Want(t, "watermark 0", "3@7", "watermark 10")
	kit.Must(t, in.Mark(frame.Mark{Kind: frame.Idle}))
	kit.Must(t, in.Mark(frame.Mark{Kind: frame.Active}))
	clockTo(t, rt, 37)
	out.Want(t, "idle")
	kit.Must(t, in.Push(kit.Run(t, nil, int64(4))))
	kit.Must(t, in.Mark(frame.Mark{Kind: frame.Barrier, Value: 2}))
	out.Want(t, "active", "4@37", "watermark 30", "barrier 2")
	kit.Must(t, in.Mark(kit.Watermark(frame.MaxWatermark)))
	kit.Must(t, in.Mark(kit.End()))
	clockTo(t, rt, 1000)
	out.Want(t, fmt.Sprint("watermark ", int64(frame.MaxWatermark)), "end")
}

func TestIngestionTimeWithoutIntervalMakesNoWatermarks(t *testing.T) {
	op := NewIngesting(kit.TypeOf[int64](t))
	out, rt := openAt(t, op, 0)
	clockTo(t, rt, 50)
	kit.Must(t, op.Push(kit.Run(t, nil, int64(1))))
	clockTo(t, rt, 5000)
	out.Want(t, "1@50")
}

// TestManualContextIsIdleAfterTheTimeout: any emission, a watermark as well, counts as life; a check finds a source idle
// only if there was none since the check before.
func TestManualContextIsIdleAfterTheTimeout(t *testing.T) {
	for _, emit := range []func(c *SourceContext, now int64) Emission{
		func(c *SourceContext, now int64) Emission { return c.Emit(now, now) },
		func(c *SourceContext, now int64) Emission {
			stamp, before, after := c.Element(now, now+1)
			if stamp != now+1 || len(after.Marks()) != 0 {
				t.Errorf("stamp %d, then %v", stamp, after.Marks())
			}
			return before
		},
	} {
		c := NewManual(0, 100)
		advance := func(now int64, idle bool) {
			t.Helper()
			if at, ok := c.Next(); ok && at <= now {
				c.Advance(now)
			}
			if c.IsIdle() != idle {
				t.Errorf("at %d idle: %v", now, c.IsIdle())
			}
		}
		advance(99, false)
		advance(100, true)
		advance(300, true)
		if e := emit(c, 310); len(e.Marks()) == 0 || e.Marks()[0].Kind != frame.Active {
			t.Errorf("the emission that ends idleness gives %v", e.Marks())
		}
		advance(320, false)
		emit(c, 320)
		advance(410, false)
		advance(510, true)
	}
}
