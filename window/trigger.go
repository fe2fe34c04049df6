package window

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/flott-dev/flott/process"
)

// TriggerResult is a trigger's answer.
type TriggerResult uint8

const (
	// Continue does nothing.
	Continue TriggerResult = 0
	// Fire calls the window function with the window's contents, which stay.
	Fire TriggerResult = 1
	// Purge drops the window's contents. Trigger state, per-window state and the window itself stay.
	Purge TriggerResult = 2
	// FireAndPurge fires, then purges.
	FireAndPurge TriggerResult = 3
)

// Fires says whether the window function is to be called.
func (r TriggerResult) Fires() bool { return r&Fire != 0 }

// Purges says whether contents are to be dropped.
func (r TriggerResult) Purges() bool { return r&Purge != 0 }

// String gives Flink's word.
func (r TriggerResult) String() string {
	return [...]string{"CONTINUE", "FIRE", "PURGE", "FIRE_AND_PURGE"}[r&3]
}

// Trigger describes when windows fire, by time and number of elements. If it also has Check() error, building the job
// reports what that returns.
type Trigger interface {
	// New makes the trigger of one subtask. State that it declares on rt belongs to the key and window at hand.
	New(rt *process.Runtime) TriggerFunction
	// CanMerge says whether the functions have OnMerge, so that the trigger can be used with windows that merge.
	CanMerge() bool
}

// TriggerFunction decides for the windows of one subtask. All calls mean the key and the window of ctx. If windows merge,
// it has OnMerge (Merging) as well. An error fails the task.
type TriggerFunction interface {
	// OnElement is called for each element that was added to the window; ts is its timestamp, math.MinInt64 if it has none.
	OnElement(ctx *TriggerContext, ts int64) (TriggerResult, error)
	TimeTrigger
}

// TimeTrigger is what all trigger functions have, whether they look at elements or not.
type TimeTrigger interface {
	// OnEventTime is called when an event-time timer that was registered through the context fires, and for the timer that
	// cleans the window up: it must expect times that it has not registered.
	OnEventTime(ctx *TriggerContext, at int64) (TriggerResult, error)
	// OnProcessingTime is OnEventTime for processing time.
	OnProcessingTime(ctx *TriggerContext, at int64) (TriggerResult, error)
	// Clear is called when the window is gone for good, or was merged into another one: it deletes timers and clears state.
	Clear(ctx *TriggerContext) error
}

// Merging is implemented by trigger functions of windows that merge.
type Merging interface {
	// OnMerge is called for the merged window after windows were merged into it, before Clear is called for each of those
	// and before OnElement for the element that caused it.
	OnMerge(ctx *MergeContext) error
}

// ElementTrigger is a Trigger that looks at elements.
type ElementTrigger[T any] interface {
	// New is Trigger's.
	New(rt *process.Runtime) ElementTriggerFunction[T]
	// CanMerge is Trigger's.
	CanMerge() bool
}

// ElementTriggerFunction is a TriggerFunction that is shown the element, which it must not keep or change.
type ElementTriggerFunction[T any] interface {
	// OnElement is TriggerFunction's, with the element.
	OnElement(ctx *TriggerContext, x *T, ts int64) (TriggerResult, error)
	TimeTrigger
}

// TriggerServices is the engine's side of a TriggerContext. User code never implements it.
type TriggerServices interface {
	// ProcessingTime and Watermark are the task's times, ms.
	ProcessingTime() int64
	Watermark() int64
	// Register and Delete set and take back a timer of the key and window at hand.
	Register(d process.Domain, at int64)
	Delete(d process.Domain, at int64)
	// Window is the address and type of the window at hand, MaxTimestamp its last ms.
	Window() (unsafe.Pointer, reflect.Type)
	MaxTimestamp() int64
	// EachMerged calls f once for each window that was merged into the one at hand, with its trigger state at hand.
	EachMerged(f func())
}

// TriggerContext is what a trigger sees: the window at hand, time, and the timers of the key and window. Timers are a set:
// one per key, window, domain and time. It is valid during the call that it was passed to.
type TriggerContext struct {
	services TriggerServices
}

// NewTriggerContext is for drivers and test harnesses.
func NewTriggerContext(s TriggerServices) *TriggerContext { return &TriggerContext{s} }

// Watermark is the operator's current event time in ms: math.MinInt64 before the first watermark.
func (c *TriggerContext) Watermark() int64 { return c.services.Watermark() }

// ProcessingTime is the task's wall clock in ms.
func (c *TriggerContext) ProcessingTime() int64 { return c.services.ProcessingTime() }

// MaxTimestamp is the last ms of the window at hand.
func (c *TriggerContext) MaxTimestamp() int64 { return c.services.MaxTimestamp() }

// Window is the window at hand. W must be the type of the stream's windows: any other fails the task.
func (c *TriggerContext) Window[W Window]() W {
	p, t := c.services.Window()
	if t != reflect.TypeFor[W]() {
		panic(fmt.Sprintf("look at the window as a %v: it is a %v", reflect.TypeFor[W](), t))
	}
	return *(*W)(p)
}

// RegisterEventTimeTimer makes OnEventTime be called once the watermark reaches ms: with the next watermark if it is there
// already.
func (c *TriggerContext) RegisterEventTimeTimer(ms int64) { c.services.Register(process.EventTime, ms) }

// RegisterProcessingTimeTimer makes OnProcessingTime be called once the wall clock is past ms.
func (c *TriggerContext) RegisterProcessingTimeTimer(ms int64) {
	c.services.Register(process.ProcessingTime, ms)
}

// DeleteEventTimeTimer takes a timer back; nothing happens if there is none.
func (c *TriggerContext) DeleteEventTimeTimer(ms int64) { c.services.Delete(process.EventTime, ms) }

// DeleteProcessingTimeTimer takes a timer back; nothing happens if there is none.
func (c *TriggerContext) DeleteProcessingTimeTimer(ms int64) {
	c.services.Delete(process.ProcessingTime, ms)
}

// MergeContext is the context of the merged window.
type MergeContext struct{ TriggerContext }

// NewMergeContext is for drivers and test harnesses.
func NewMergeContext(s TriggerServices) *MergeContext {
	return &MergeContext{TriggerContext{s}}
}

// EachMerged calls f once for each window that was merged into the one at hand; during the call the trigger's state is
// that of the merged window, so that f can read it.
func (c *MergeContext) EachMerged(f func()) { c.services.EachMerged(f) }
