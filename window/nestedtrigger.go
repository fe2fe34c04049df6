package window

import (
	"fmt"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
)

// prefixed is a process.Host that puts a prefix before the names of state: a trigger and the ones inside it may use the
// same names.
type prefixed struct {
	process.Host
	prefix string
}

// BindTable implements state.Binder.
func (p prefixed) BindTable(spec statebackend.TableSpec) *state.Cell {
	spec.Name = p.prefix + spec.Name
	return p.Host.BindTable(spec)
}

// newNested makes the function of a trigger inside another one; its state has a prefix of its own.
func newNested(t Trigger, rt *process.Runtime, prefix string) TriggerFunction {
	return t.New(process.NewRuntime(prefixed{rt.Host, prefix + "."}))
}

// mergeNested passes a merge on to the function of a trigger inside another one.
func mergeNested(f TimeTrigger, ctx *MergeContext) error {
	if m, ok := f.(Merging); ok {
		return m.OnMerge(ctx)
	}
	return fmt.Errorf("merge windows: the trigger's function %T has no OnMerge", f)
}

// mergeable says whether a trigger inside another one, which may be missing, can merge.
func mergeable(t interface{ CanMerge() bool }) bool { return t != nil && t.CanMerge() }

// checkNested reports what is wrong with a trigger inside another one. what says where it is.
func checkNested(what string, t any) error {
	if t == nil {
		return fmt.Errorf("make %s: there is no trigger", what)
	}
	if c, ok := t.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			return fmt.Errorf("make %s: %w", what, err)
		}
	}
	return nil
}

// called is how a trigger is printed: as it says itself, or by its type.
func called(t any) string {
	if s, ok := t.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", t)
}
