package window

import (
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// OnTimeTrigger is what OnTime makes. It is immutable: Early and Late return a changed copy.
type OnTimeTrigger struct {
	early, late       Trigger
	earlySet, lateSet bool
}

// OnTime fires an event-time window once the watermark has reached its last ms, and lets other triggers decide for the time
// before (Early) and after (Late). Alone it is EventTimeTrigger: it does not fire early, and fires with each late element.
//
//	window.OnTime().Early(window.ContinuousProcessingTimeTrigger(5*time.Second)).Late(window.CountTrigger(100))
//
// shows every 5 s what a window has so far, then its result, then corrections for every 100 late elements. Contents stay
// after firings; PurgingTrigger around the whole gives what has come since the last firing each time, around a part it purges
// with the firings of that part.
//
// The early trigger sees the elements and timers of a window until the watermark has reached the window's last ms; it does
// not fire once the watermark is there, even if its timers lie before. Then comes the one firing on time, and the early
// trigger is cleared. The late trigger sees the elements that come after that, and timers once there was such an element. A
// window whose first element is late has no firing on time.
//
// It keeps a byte that says in which of these times a window is, one event-time timer at the window's last ms, and the state
// and timers of the two triggers, apart from each other. It can merge if both can. Windows that merge into one whose end the
// watermark has not reached are early together, and will be on time again, whatever they were; late ones are late together.
func OnTime() OnTimeTrigger { return OnTimeTrigger{early: NeverTrigger(), late: lateTrigger{}} }

// Early lets t fire windows until the watermark has reached their end. Default: nothing does.
func (o OnTimeTrigger) Early(t Trigger) OnTimeTrigger {
	o.early, o.earlySet = t, true
	return o
}

// Late lets t fire windows after they were fired on time, within the allowed lateness. Default: each late element does.
func (o OnTimeTrigger) Late(t Trigger) OnTimeTrigger {
	o.late, o.lateSet = t, true
	return o
}

// New implements Trigger.
func (o OnTimeTrigger) New(rt *process.Runtime) TriggerFunction {
	return &onTime{
		stage: state.NewValue[stage](rt, "stage"),
		early: newNested(o.early, rt, "early"),
		late:  newNested(o.late, rt, "late"),
	}
}

// CanMerge implements Trigger.
func (o OnTimeTrigger) CanMerge() bool { return mergeable(o.early) && mergeable(o.late) }

// Check says what is wrong with the early and the late trigger.
func (o OnTimeTrigger) Check() error {
	if err := checkNested("an early trigger", o.early); err != nil {
		return err
	}
	return checkNested("a late trigger", o.late)
}

// String is the trigger as it was written.
func (o OnTimeTrigger) String() string {
	s := "OnTime()"
	if o.earlySet {
		s += ".Early(" + called(o.early) + ")"
	}
	if o.lateSet {
		s += ".Late(" + called(o.late) + ")"
	}
	return s
}

// stage is the time in which a window is.
type stage uint8

const (
	_       stage = iota // no timer at the end is set and nothing late has come
	isEarly              // the timer at the end is set
	isLate               // something late has come
)

type onTime struct {
	stage       *state.Value[stage]
	early, late TriggerFunction
}

func (o *onTime) OnElement(ctx *TriggerContext, ts int64) (TriggerResult, error) {
	passed := ctx.MaxTimestamp() <= ctx.Watermark()
	switch now := o.stage.Get(); {
	case passed && now == isEarly:
		return Continue, nil // the firing on time is about to come
	case passed:
		if now != isLate {
			o.stage.Set(isLate)
		}
		return o.late.OnElement(ctx, ts)
	case now != isEarly:
		o.begin(ctx)
	}
	return o.early.OnElement(ctx, ts)
}

func (o *onTime) begin(ctx *TriggerContext) {
	o.stage.Set(isEarly)
	ctx.RegisterEventTimeTimer(ctx.MaxTimestamp())
}

func (o *onTime) OnEventTime(ctx *TriggerContext, at int64) (TriggerResult, error) {
	switch o.stage.Get() {
	case isEarly:
		if at == ctx.MaxTimestamp() {
			o.stage.Clear()
			return Fire, o.early.Clear(ctx)
		}
		if ctx.MaxTimestamp() <= ctx.Watermark() {
			return Continue, nil
		}
		return o.early.OnEventTime(ctx, at)
	case isLate:
		return o.late.OnEventTime(ctx, at)
	}
	return Continue, nil
}

func (o *onTime) OnProcessingTime(ctx *TriggerContext, at int64) (TriggerResult, error) {
	switch o.stage.Get() {
	case isEarly:
		if ctx.MaxTimestamp() <= ctx.Watermark() {
			return Continue, nil
		}
		return o.early.OnProcessingTime(ctx, at)
	case isLate:
		return o.late.OnProcessingTime(ctx, at)
	}
	return Continue, nil
}

// OnMerge leaves the stage of a late window to the late element that follows.
func (o *onTime) OnMerge(ctx *MergeContext) error {
	if ctx.MaxTimestamp() <= ctx.Watermark() {
		return mergeNested(o.late, ctx)
	}
	o.begin(&ctx.TriggerContext)
	return mergeNested(o.early, ctx)
}

func (o *onTime) Clear(ctx *TriggerContext) error {
	o.stage.Clear()
	ctx.DeleteEventTimeTimer(ctx.MaxTimestamp())
	if err := o.early.Clear(ctx); err != nil {
		return err
	}
	return o.late.Clear(ctx)
}

// lateTrigger fires with each element.
type lateTrigger struct{}

func (lateTrigger) New(*process.Runtime) TriggerFunction { return eachElement{} }
func (lateTrigger) CanMerge() bool                       { return true }

type eachElement struct{ never }

func (eachElement) OnElement(*TriggerContext, int64) (TriggerResult, error) { return Fire, nil }
