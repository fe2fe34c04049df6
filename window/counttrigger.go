package window

import (
	"fmt"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// CountTrigger fires a window with each n-th element. n must be positive. Time does not matter: what is left when the window
// ends is not seen, and the contents stay after a firing, so that the next one sees them again unless the trigger is wrapped
// in PurgingTrigger. It keeps the number of elements since the last firing and no timers. Windows that merge add their
// numbers, and the next element fires if they make n together.
func CountTrigger(n int64) Trigger { return countTrigger(n) }

type countTrigger int64

func (t countTrigger) New(rt *process.Runtime) TriggerFunction {
	c := &counting{max: int64(t), seen: state.NewValue[int64](rt, "count")}
	c.addSeen = func() { c.merged += c.seen.Get() }
	return c
}

func (countTrigger) CanMerge() bool { return true }

func (t countTrigger) String() string { return fmt.Sprintf("CountTrigger(%d)", int64(t)) }

// Check says what is wrong with n.
func (t countTrigger) Check() error { return checkCount("a count trigger", int64(t)) }

// checkCount says what is wrong with a number of elements.
func checkCount(what string, n int64) error {
	if n > 0 {
		return nil
	}
	return fmt.Errorf("make %s: the number of elements is %d; it must be positive", what, n)
}

type counting struct {
	max  int64
	seen *state.Value[int64] // elements since the last firing

	merged  int64
	addSeen func() // adds what the window at hand has seen to merged
}

func (c *counting) OnElement(*TriggerContext, int64) (TriggerResult, error) {
	n := c.seen.Get() + 1
	if n >= c.max {
		c.seen.Clear()
		return Fire, nil
	}
	c.seen.Set(n)
	return Continue, nil
}

func (*counting) OnEventTime(*TriggerContext, int64) (TriggerResult, error) { return Continue, nil }

func (*counting) OnProcessingTime(*TriggerContext, int64) (TriggerResult, error) {
	return Continue, nil
}

func (c *counting) OnMerge(ctx *MergeContext) error {
	c.merged = 0
	ctx.EachMerged(c.addSeen)
	if c.merged > 0 {
		c.seen.Set(c.seen.Get() + c.merged)
	}
	return nil
}

func (c *counting) Clear(*TriggerContext) error {
	c.seen.Clear()
	return nil
}
