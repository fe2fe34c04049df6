package window

import "github.com/flott-dev/flott/process"

// PurgingTrigger drops the contents of a window after each firing of t: each firing gives what has come since the last one.
// All else is as t does it; it has no state or timers of its own and can merge if t can.
func PurgingTrigger(t Trigger) Trigger { return purgingTrigger{t} }

// PurgingTriggerBy is PurgingTrigger for a trigger that looks at elements.
func PurgingTriggerBy[T any](t ElementTrigger[T]) ElementTrigger[T] {
	return purgingElementTrigger[T]{t}
}

type purgingTrigger struct{ nested Trigger }

func (t purgingTrigger) New(rt *process.Runtime) TriggerFunction {
	f := t.nested.New(rt)
	return purging{purgingTime{f}, f}
}

func (t purgingTrigger) CanMerge() bool { return mergeable(t.nested) }

func (t purgingTrigger) String() string { return "PurgingTrigger(" + called(t.nested) + ")" }

// Check says what is wrong with the nested trigger.
func (t purgingTrigger) Check() error { return checkNested("a purging trigger", t.nested) }

type purgingElementTrigger[T any] struct{ nested ElementTrigger[T] }

func (t purgingElementTrigger[T]) New(rt *process.Runtime) ElementTriggerFunction[T] {
	f := t.nested.New(rt)
	return purgingElement[T]{purgingTime{f}, f}
}

func (t purgingElementTrigger[T]) CanMerge() bool { return mergeable(t.nested) }

func (t purgingElementTrigger[T]) String() string {
	return "PurgingTrigger(" + called(t.nested) + ")"
}

// Check says what is wrong with the nested trigger.
func (t purgingElementTrigger[T]) Check() error { return checkNested("a purging trigger", t.nested) }

type purging struct {
	purgingTime
	nested TriggerFunction
}

func (p purging) OnElement(ctx *TriggerContext, ts int64) (TriggerResult, error) {
	r, err := p.nested.OnElement(ctx, ts)
	return purge(r), err
}

type purgingElement[T any] struct {
	purgingTime
	nested ElementTriggerFunction[T]
}

func (p purgingElement[T]) OnElement(ctx *TriggerContext, x *T, ts int64) (TriggerResult, error) {
	r, err := p.nested.OnElement(ctx, x, ts)
	return purge(r), err
}

// purgingTime is what both do alike.
type purgingTime struct{ nested TimeTrigger }

// purge adds Purge to an answer that fires.
func purge(r TriggerResult) TriggerResult {
	if r.Fires() {
		return FireAndPurge
	}
	return r
}

func (p purgingTime) OnEventTime(ctx *TriggerContext, at int64) (TriggerResult, error) {
	r, err := p.nested.OnEventTime(ctx, at)
	return purge(r), err
}

func (p purgingTime) OnProcessingTime(ctx *TriggerContext, at int64) (TriggerResult, error) {
	r, err := p.nested.OnProcessingTime(ctx, at)
	return purge(r), err
}

func (p purgingTime) OnMerge(ctx *MergeContext) error { return mergeNested(p.nested, ctx) }
func (p purgingTime) Clear(ctx *TriggerContext) error { return p.nested.Clear(ctx) }
