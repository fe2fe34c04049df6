package window

import "github.com/flott-dev/flott/process"

// EventTimeTrigger fires a window once the watermark has reached its last ms; after that, within the allowed lateness, once
// for each late element. It is the default trigger of event-time windows. It keeps no state and one event-time timer a
// window, at the window's last ms. A window that windows are merged into gets a timer for its own end, unless the watermark
// is there already: then the element that caused the merge fires it.
func EventTimeTrigger() Trigger { return eventTimeTrigger{} }

type eventTimeTrigger struct{}

func (eventTimeTrigger) New(*process.Runtime) TriggerFunction { return eventTime{} }
func (eventTimeTrigger) CanMerge() bool                       { return true }
func (eventTimeTrigger) String() string                       { return "EventTimeTrigger" }

type eventTime struct{}

func (eventTime) OnElement(ctx *TriggerContext, _ int64) (TriggerResult, error) {
	end := ctx.MaxTimestamp()
	if end <= ctx.Watermark() {
		return Fire, nil
	}
	ctx.RegisterEventTimeTimer(end)
	return Continue, nil
}

func (eventTime) OnEventTime(ctx *TriggerContext, at int64) (TriggerResult, error) {
	return fireIf(at == ctx.MaxTimestamp()), nil
}

func (eventTime) OnProcessingTime(*TriggerContext, int64) (TriggerResult, error) {
	return Continue, nil
}

func (eventTime) OnMerge(ctx *MergeContext) error {
	if end := ctx.MaxTimestamp(); end > ctx.Watermark() {
		ctx.RegisterEventTimeTimer(end)
	}
	return nil
}

func (eventTime) Clear(ctx *TriggerContext) error {
	ctx.DeleteEventTimeTimer(ctx.MaxTimestamp())
	return nil
}

// fireIf is the answer of a trigger that fires under a condition.
func fireIf(yes bool) TriggerResult {
	if yes {
		return Fire
	}
	return Continue
}
