package window

import "github.com/flott-dev/flott/process"

// NeverTrigger never fires. It is the default trigger of GlobalWindows, whose programs set another one. It keeps neither
// state nor timers, so that merging has nothing to do.
func NeverTrigger() Trigger { return neverTrigger{} }

type neverTrigger struct{}

func (neverTrigger) New(*process.Runtime) TriggerFunction { return never{} }
func (neverTrigger) CanMerge() bool                       { return true }
func (neverTrigger) String() string                       { return "NeverTrigger" }

type never struct{}

func (never) OnElement(*TriggerContext, int64) (TriggerResult, error) { return Continue, nil }

func (never) OnEventTime(*TriggerContext, int64) (TriggerResult, error) { return Continue, nil }

func (never) OnProcessingTime(*TriggerContext, int64) (TriggerResult, error) { return Continue, nil }
func (never) OnMerge(*MergeContext) error                                    { return nil }
func (never) Clear(*TriggerContext) error                                    { return nil }
