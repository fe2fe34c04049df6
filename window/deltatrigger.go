package window

import (
	"errors"
	"fmt"
	"math"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// DeltaTrigger fires a window with each element whose distance from the last one that fired is greater than the threshold;
// the first element of a window is compared with, and does not fire. distance may be negative or NaN, which does not fire.
// It must not keep or change the elements. Time does not matter, and contents stay after a firing unless the trigger is
// wrapped in PurgingTriggerBy. It keeps the element that later ones are compared with (which must be of a type that can be
// encoded) and no timers. It can't be used with windows that merge.
func DeltaTrigger[T any](threshold float64, distance func(old, new T) float64) ElementTrigger[T] {
	return deltaTrigger[T]{threshold, distance}
}

type deltaTrigger[T any] struct {
	threshold float64
	distance  func(old, new T) float64
}

func (t deltaTrigger[T]) New(rt *process.Runtime) ElementTriggerFunction[T] {
	return &delta[T]{t.threshold, t.distance, state.NewValue[T](rt, "last-element")}
}

func (deltaTrigger[T]) CanMerge() bool { return false }

func (t deltaTrigger[T]) String() string { return fmt.Sprintf("DeltaTrigger(%v)", t.threshold) }

// Check says what is wrong with threshold and distance.
func (t deltaTrigger[T]) Check() error {
	return checkDelta("a delta trigger", t.threshold, t.distance == nil)
}

// checkDelta says what is wrong with a threshold and a distance.
func checkDelta(what string, threshold float64, missing bool) error {
	switch {
	case missing:
		return errors.New("make " + what + ": there is no distance function")
	case math.IsNaN(threshold):
		return errors.New("make " + what + ": the threshold is not a number")
	}
	return nil
}

type delta[T any] struct {
	threshold float64
	distance  func(old, new T) float64
	last      *state.Value[T] // element that fired, or the first one
}

func (d *delta[T]) OnElement(_ *TriggerContext, x *T, _ int64) (TriggerResult, error) {
	last, ok := d.last.Lookup()
	if !ok {
		d.last.Set(*x)
		return Continue, nil
	}
	if d.distance(last, *x) > d.threshold {
		d.last.Set(*x)
		return Fire, nil
	}
	return Continue, nil
}

func (*delta[T]) OnEventTime(*TriggerContext, int64) (TriggerResult, error) { return Continue, nil }

func (*delta[T]) OnProcessingTime(*TriggerContext, int64) (TriggerResult, error) {
	return Continue, nil
}

func (d *delta[T]) Clear(*TriggerContext) error {
	d.last.Clear()
	return nil
}
