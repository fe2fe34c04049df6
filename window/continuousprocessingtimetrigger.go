package window

import (
	"time"

	"github.com/flott-dev/flott/process"
)

// ContinuousProcessingTimeTrigger fires a window again and again as the wall clock of the task advances: once it is past a
// multiple of the interval, counted from 1970, the first of them after the window's first element; also if nothing has come
// since the last firing. A clock that has passed several multiples makes one firing. A window of processing time fires a
// last time at its end. In a window of event time nothing fires at the end: OnTime().Early(ContinuousProcessingTimeTrigger(d))
// does. Contents stay after a firing, unless the trigger is wrapped in PurgingTrigger. The interval is truncated to ms and
// must be positive.
//
// It keeps the time of the next firing and one processing-time timer for it. Windows that merge fire next when the first of
// them would have.
func ContinuousProcessingTimeTrigger(interval time.Duration) Trigger {
	return continuousProcessingTimeTrigger{millis(interval)}
}

type continuousProcessingTimeTrigger struct{ interval int64 }

func (t continuousProcessingTimeTrigger) New(rt *process.Runtime) TriggerFunction {
	return &continuousProcessingTime{newNextFiring(rt, t.interval, false)}
}

func (continuousProcessingTimeTrigger) CanMerge() bool { return true }

func (t continuousProcessingTimeTrigger) String() string {
	return "ContinuousProcessingTimeTrigger(" + said(t.interval) + ")"
}

// Check says what is wrong with the interval.
func (t continuousProcessingTimeTrigger) Check() error {
	return checkLength("a continuous processing-time trigger", "interval", t.interval)
}

type continuousProcessingTime struct{ next *nextFiring }

func (c *continuousProcessingTime) OnElement(ctx *TriggerContext, _ int64) (TriggerResult, error) {
	if !c.next.at.Exists() {
		c.schedule(ctx)
	}
	return Continue, nil
}

// schedule sets the next firing by the clock, never by the last firing: a timer in the past would fire at once, and so
// would the next one, as long as the clock is ahead.
func (c *continuousProcessingTime) schedule(ctx *TriggerContext) {
	at, ok := c.next.boundary(ctx.ProcessingTime())
	if !ok {
		c.next.at.Clear()
		return
	}
	c.next.at.Set(at)
	ctx.RegisterProcessingTimeTimer(at)
}

func (*continuousProcessingTime) OnEventTime(*TriggerContext, int64) (TriggerResult, error) {
	return Continue, nil
}

func (c *continuousProcessingTime) OnProcessingTime(ctx *TriggerContext, at int64) (TriggerResult, error) {
	if next, ok := c.next.at.Lookup(); ok && next == at {
		c.schedule(ctx)
		return Fire, nil
	}
	return fireIf(at == ctx.MaxTimestamp()), nil
}

func (c *continuousProcessingTime) OnMerge(ctx *MergeContext) error {
	if at, ok := c.next.merge(ctx); ok {
		ctx.RegisterProcessingTimeTimer(at)
	}
	return nil
}

func (c *continuousProcessingTime) Clear(ctx *TriggerContext) error {
	if at, ok := c.next.at.Lookup(); ok {
		ctx.DeleteProcessingTimeTimer(at)
		c.next.at.Clear()
	}
	return nil
}
