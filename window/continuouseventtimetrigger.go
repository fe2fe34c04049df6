package window

import (
	"math"
	"time"

	"github.com/flott-dev/flott/process"
)

// ContinuousEventTimeTrigger fires a window again and again as the watermark advances: at multiples of the interval, counted
// from 1970, the first of them after the timestamp of the window's first element, and at the window's last ms. A watermark
// that passes several multiples makes a firing for each of them, all with the same contents. Within the allowed lateness
// each late element fires, and so do further multiples. Contents stay after a firing, unless the trigger is wrapped in
// PurgingTrigger. The interval is truncated to ms and must be positive.
//
// It keeps the time of the next firing and one event-time timer for it, beside the one at the window's end. Windows that
// merge fire next when the first of them would have. As in Flink, that takes the state over from them and leaves their
// timers, which run out without effect.
//
// In windows that never end (GlobalWindows) the end of the input fires once, and an element without a timestamp makes the
// first watermark fire, then multiples from there.
func ContinuousEventTimeTrigger(interval time.Duration) Trigger {
	return continuousEventTimeTrigger{millis(interval)}
}

type continuousEventTimeTrigger struct{ interval int64 }

func (t continuousEventTimeTrigger) New(rt *process.Runtime) TriggerFunction {
	return &continuousEventTime{newNextFiring(rt, t.interval, true)}
}

func (continuousEventTimeTrigger) CanMerge() bool { return true }

func (t continuousEventTimeTrigger) String() string {
	return "ContinuousEventTimeTrigger(" + said(t.interval) + ")"
}

// Check says what is wrong with the interval.
func (t continuousEventTimeTrigger) Check() error {
	return checkLength("a continuous event-time trigger", "interval", t.interval)
}

type continuousEventTime struct{ next *nextFiring }

func (c *continuousEventTime) OnElement(ctx *TriggerContext, ts int64) (TriggerResult, error) {
	end := ctx.MaxTimestamp()
	if end <= ctx.Watermark() {
		return Fire, nil
	}
	ctx.RegisterEventTimeTimer(end)
	if !c.next.at.Exists() {
		c.scheduleAfter(ctx, ts)
	}
	return Continue, nil
}

// scheduleAfter makes the first multiple after ts the next firing.
func (c *continuousEventTime) scheduleAfter(ctx *TriggerContext, ts int64) {
	at, ok := c.next.boundary(ts)
	if !ok {
		c.next.at.Clear()
		return
	}
	c.next.at.Set(at)
	ctx.RegisterEventTimeTimer(at)
}

func (c *continuousEventTime) OnEventTime(ctx *TriggerContext, at int64) (TriggerResult, error) {
	if at == ctx.MaxTimestamp() {
		return Fire, nil
	}
	if next, ok := c.next.at.Lookup(); !ok || next != at {
		return Continue, nil
	}
	if ctx.Watermark() == math.MaxInt64 && ctx.MaxTimestamp() >= math.MaxInt64-1 {
		c.next.at.Clear() // there are multiples without end; the timer at the end of time fires instead
		return Continue, nil
	}
	if dawn, _ := c.next.boundary(math.MinInt64); at == dawn {
		at = ctx.Watermark() // the element had no timestamp: nothing lies between
	}
	c.scheduleAfter(ctx, at)
	return Fire, nil
}

func (*continuousEventTime) OnProcessingTime(*TriggerContext, int64) (TriggerResult, error) {
	return Continue, nil
}

func (c *continuousEventTime) OnMerge(ctx *MergeContext) error {
	if at, ok := c.next.merge(ctx); ok {
		ctx.RegisterEventTimeTimer(at)
	}
	return nil
}

// Clear leaves the timer at the window's end: unless there is lateness it is the one that cleans the window up, and not
// the trigger's to delete.
func (c *continuousEventTime) Clear(ctx *TriggerContext) error {
	if at, ok := c.next.at.Lookup(); ok {
		ctx.DeleteEventTimeTimer(at)
		c.next.at.Clear()
	}
	return nil
}
