package window

import "github.com/flott-dev/flott/process"

// GlobalAssigner is what GlobalWindows makes. It is immutable.
type GlobalAssigner struct{}

// GlobalWindows puts all elements of a key into one window that never ends, whether they have timestamps or not. The
// default trigger is NeverTrigger, so that nothing comes out unless the program sets another one; what fires without
// purging keeps its contents for ever. No element is late. Flink: GlobalWindows.
func GlobalWindows() GlobalAssigner { return GlobalAssigner{} }

// Assign implements Assigner.
func (GlobalAssigner) Assign(dst []Global, _, _ int64) ([]Global, error) {
	return append(dst, Global{}), nil
}

// Domain implements Assigner: nothing depends on event time.
func (GlobalAssigner) Domain() process.Domain { return process.ProcessingTime }

// DefaultTrigger implements Assigner.
func (GlobalAssigner) DefaultTrigger() Trigger { return NeverTrigger() }

// String is the assigner as it was written.
func (GlobalAssigner) String() string { return "GlobalWindows()" }
