package operator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
)

// functions are what users made for an operator, with the operator state that they declared.
type functions struct {
	all    []function
	states []process.BoundState
}

// function is one that Construct has made.
type function struct {
	fn  any
	run *state.CurrentRun // collects accesses that fail
}

// ownName says whether a name of operator state is the engine's.
func ownName(name string) bool { return name == "channels" || strings.Contains(name, "/") }

// bindState adds operator state and fills it from the snapshot.
func (rt *Runtime) bindState(s process.BoundState) error {
	same := func(o process.BoundState) bool { return o.Name == s.Name }
	switch {
	case s.Name == "" || ownName(s.Name):
		return fmt.Errorf("operator state %q: the name is not free: it is neither empty nor \"channels\" and has no slash", s.Name)
	case slices.ContainsFunc(rt.functions.states, same):
		return fmt.Errorf("operator state %q: it is declared twice", s.Name)
	}
	rt.functions.states = append(rt.functions.states, s)
	if l := rt.Restored.List(s.Name); l != nil {
		return s.State.RestoreItems(l.Items, l.Schema)
	}
	return nil
}

// SnapshotFunctions lets the user's functions bring their state together and adds the operator state that they declared.
func (rt *Runtime) SnapshotFunctions(s *Snapshot) error {
	for _, f := range rt.functions.all {
		if c, ok := f.fn.(process.Checkpointed); ok {
			if err := c.SnapshotState(process.SnapshotContext{CheckpointID: s.ID, Savepoint: s.Savepoint}); err != nil {
				return fmt.Errorf("snapshot the function: %w", err)
			}
		}
		if err := f.run.Take(); err != nil {
			return err
		}
	}
	for _, o := range rt.functions.states {
		items, err := o.State.AppendItems(nil)
		if err != nil {
			return err
		}
		l := checkpoint.List{Name: o.Name, Schema: o.Schema, Items: items}
		if o.Mode == state.Union {
			l.Mode = checkpoint.Union
		}
		s.Lists = append(s.Lists, l)
	}
	return nil
}

// FunctionsCompleted tells the user's functions that a checkpoint is complete.
func (rt *Runtime) FunctionsCompleted(id int64) error {
	return rt.tell("complete", id, func(fn any) error {
		if l, ok := fn.(process.CheckpointListener); ok {
			return l.CheckpointCompleted(id)
		}
		return nil
	})
}

// FunctionsAborted tells the user's functions that a checkpoint was given up.
func (rt *Runtime) FunctionsAborted(id int64) error {
	return rt.tell("aborted", id, func(fn any) error {
		if l, ok := fn.(process.CheckpointAbortListener); ok {
			return l.CheckpointAborted(id)
		}
		return nil
	})
}

func (rt *Runtime) tell(what string, id int64, call func(fn any) error) error {
	for _, f := range rt.functions.all {
		if err := call(f.fn); err != nil {
			return fmt.Errorf("tell the function that checkpoint %d is %s: %w", id, what, err)
		}
		if err := f.run.Take(); err != nil {
			return err
		}
	}
	return nil
}
