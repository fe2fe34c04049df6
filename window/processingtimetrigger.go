package window

import "github.com/flott-dev/flott/process"

// ProcessingTimeTrigger fires a window once the wall clock is past its last ms. It is the default trigger of
// processing-time windows. On a window of event time that lies behind the wall clock it fires after each element. It keeps no
// state and one processing-time timer a window, at the window's last ms. A window that windows are merged into gets a timer
// for its own end.
func ProcessingTimeTrigger() Trigger { return processingTimeTrigger{} }

type processingTimeTrigger struct{}

func (processingTimeTrigger) New(*process.Runtime) TriggerFunction { return processingTime{} }
func (processingTimeTrigger) CanMerge() bool                       { return true }
func (processingTimeTrigger) String() string                       { return "ProcessingTimeTrigger" }

type processingTime struct{}

func (processingTime) OnElement(ctx *TriggerContext, _ int64) (TriggerResult, error) {
	ctx.RegisterProcessingTimeTimer(ctx.MaxTimestamp())
	return Continue, nil
}

func (processingTime) OnEventTime(*TriggerContext, int64) (TriggerResult, error) {
	return Continue, nil
}

func (processingTime) OnProcessingTime(ctx *TriggerContext, at int64) (TriggerResult, error) {
	return fireIf(at == ctx.MaxTimestamp()), nil
}

func (processingTime) OnMerge(ctx *MergeContext) error {
	if end := ctx.MaxTimestamp(); end > ctx.ProcessingTime() {
		ctx.RegisterProcessingTimeTimer(end)
	}
	return nil
}

func (processingTime) Clear(ctx *TriggerContext) error {
	ctx.DeleteProcessingTimeTimer(ctx.MaxTimestamp())
	return nil
}
