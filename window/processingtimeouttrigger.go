package window

import (
	"fmt"
	"math"
	"time"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/watermark"
)

// ProcessingTimeoutTrigger fires a window when the nested trigger does, or when the wall clock of the task is past a timeout
// that runs from the first element since the last firing: ProcessingTimeoutTrigger(CountTrigger(100), time.Second, false,
// true) fires with 100 elements or after a second. With resetOnNewElement it runs from the last element. A firing by an
// element starts afresh: the timeout is off until the next element, and the nested trigger is cleared. A timeout does so
// with clearOnTimeout; without, the nested trigger goes on counting and the timeout is spent until the nested trigger fires
// (or, with resetOnNewElement, until the next element). Any other timer of the window fires it as well, whatever the nested
// trigger says to it, the one that cleans it up too: nothing is left behind. All this is as in Flink. It purges when the
// nested trigger does; wrap it in PurgingTrigger to purge with the timeout. timeout is truncated to ms and must be positive.
//
// It keeps the time of the timeout and one processing-time timer, beside the nested trigger's. It can merge if the nested
// trigger can: the earliest timeout that is not spent goes on.
func ProcessingTimeoutTrigger(nested Trigger, timeout time.Duration, resetOnNewElement, clearOnTimeout bool) Trigger {
	return processingTimeoutTrigger{nested, millis(timeout), resetOnNewElement, clearOnTimeout}
}

type processingTimeoutTrigger struct {
	nested       Trigger
	timeout      int64
	reset, clear bool
}

func (t processingTimeoutTrigger) New(rt *process.Runtime) TriggerFunction {
	p := &processingTimeout{
		nested: newNested(t.nested, rt, "nested"), timeout: t.timeout, reset: t.reset, clear: t.clear,
		at: state.NewValue[int64](rt, "timeout"),
	}
	p.take = func() {
		if at, ok := p.at.Lookup(); ok && (p.earliest == spent || at != spent && at < p.earliest) {
			p.earliest, p.found = at, true
		}
	}
	p.startAfresh = NewTriggerContext(&p.goesOn)
	return p
}

func (t processingTimeoutTrigger) CanMerge() bool { return mergeable(t.nested) }

func (t processingTimeoutTrigger) String() string {
	return fmt.Sprintf("ProcessingTimeoutTrigger(%s, %s, %v, %v)", called(t.nested), said(t.timeout), t.reset, t.clear)
}

// Check says what is wrong with the timeout and the nested trigger.
func (t processingTimeoutTrigger) Check() error {
	if err := checkLength("a processing-timeout trigger", "timeout", t.timeout); err != nil {
		return err
	}
	return checkNested("a processing-timeout trigger", t.nested)
}

// spent is the time of a timeout that has fired and was not cleared. There is no timer at that time.
const spent = math.MinInt64

type processingTimeout struct {
	nested       TriggerFunction
	timeout      int64
	reset, clear bool
	at           *state.Value[int64] // when the window times out, or spent

	startAfresh *TriggerContext // for Clear of a window that goes on
	goesOn      keepsEnd

	earliest int64 // of the windows that merge
	found    bool  // any of them had one
	take     func()
}

// keepsEnd is the services of a window that goes on although its trigger is cleared. A trigger that clears deletes the
// timer at the window's end, which may be the one that removes the window.
type keepsEnd struct{ TriggerServices }

// Delete implements TriggerServices.
func (k *keepsEnd) Delete(d process.Domain, at int64) {
	if at != k.MaxTimestamp() {
		k.TriggerServices.Delete(d, at)
	}
}

func (p *processingTimeout) OnElement(ctx *TriggerContext, ts int64) (TriggerResult, error) {
	r, err := p.nested.OnElement(ctx, ts)
	if err != nil {
		return r, err
	}
	if r.Fires() {
		return r, p.restart(ctx)
	}
	old, set := p.at.Lookup()
	if set && !p.reset {
		return r, nil
	}
	if set {
		ctx.DeleteProcessingTimeTimer(old)
	}
	p.schedule(ctx, watermark.Add(ctx.ProcessingTime(), p.timeout))
	return r, nil
}

func (p *processingTimeout) schedule(ctx *TriggerContext, at int64) {
	p.at.Set(at)
	ctx.RegisterProcessingTimeTimer(at)
}

func (p *processingTimeout) OnEventTime(ctx *TriggerContext, at int64) (TriggerResult, error) {
	r, err := p.nested.OnEventTime(ctx, at)
	if err != nil {
		return r, err
	}
	return p.fire(ctx, r)
}

func (p *processingTimeout) OnProcessingTime(ctx *TriggerContext, at int64) (TriggerResult, error) {
	r, err := p.nested.OnProcessingTime(ctx, at)
	if err != nil {
		return r, err
	}
	if due, ok := p.at.Lookup(); ok && due == at {
		p.at.Set(spent)
	}
	return p.fire(ctx, r)
}

// fire answers to a timer to which the nested trigger has answered r.
func (p *processingTimeout) fire(ctx *TriggerContext, r TriggerResult) (TriggerResult, error) {
	if p.clear {
		return r | Fire, p.restart(ctx)
	}
	return r | Fire, nil
}

func (p *processingTimeout) restart(ctx *TriggerContext) error {
	p.goesOn.TriggerServices = ctx.services
	return p.Clear(p.startAfresh)
}

func (p *processingTimeout) OnMerge(ctx *MergeContext) error {
	p.earliest, p.found = spent, false
	ctx.EachMerged(p.take)
	switch {
	case p.found && p.earliest == spent:
		p.at.Set(spent)
	case p.found:
		p.schedule(&ctx.TriggerContext, p.earliest)
	}
	return mergeNested(p.nested, ctx)
}

func (p *processingTimeout) Clear(ctx *TriggerContext) error {
	if at, ok := p.at.Lookup(); ok {
		ctx.DeleteProcessingTimeTimer(at)
		p.at.Clear()
	}
	return p.nested.Clear(ctx)
}
