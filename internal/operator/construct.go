package operator

import (
	"errors"
	"fmt"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
)

// constructorHost is the process.Host that a user's constructor sees: it binds state to the operator's store and
// collects mistakes.
type constructorHost struct {
	process.Host
	rt       *Runtime
	store    statebackend.Store
	run      *state.CurrentRun
	mistakes []error
	built    bool // the constructor has returned
}

func (h *constructorHost) BindTable(spec statebackend.TableSpec) *state.Cell {
	if h.store == nil {
		return state.NewUnkeyedCell(spec.Name, h.run)
	}
	cell, err := state.OpenCell(h.store, spec, h.run)
	if err != nil {
		h.Report(err)
	}
	return cell
}

func (h *constructorHost) Report(err error) {
	if h.built {
		h.Host.Report(err)
		return
	}
	h.mistakes = append(h.mistakes, err)
}

// BindState implements process.OperatorStateHost.
func (h *constructorHost) BindState(s process.BoundState) {
	if h.built {
		h.Report(fmt.Errorf("operator state %q: it is declared after the constructor has returned", s.Name))
		return
	}
	if err := h.rt.bindState(s); err != nil {
		h.Report(err)
	}
}

// Failed implements process.OperatorStateHost.
func (h *constructorHost) Failed(err error) { h.run.Fail(err) }

// IsRestored implements process.OperatorStateHost.
func (h *constructorHost) IsRestored() bool { return h.rt.Restored != nil }

// Construct calls a user's constructor with a runtime whose state lies in store (nil: not keyed) and follows run. The
// constructor's mistakes come back together. What it makes takes part in the operator's snapshots
// (Runtime.SnapshotFunctions).
func Construct[P any](rt *Runtime, store statebackend.Store, run *state.CurrentRun, constructor func(*process.Runtime) P) (P, error) {
	h := &constructorHost{Host: rt.Host, rt: rt, store: store, run: run}
	p := constructor(process.NewRuntime(h))
	h.built = true
	if len(h.mistakes) != 0 {
		return p, fmt.Errorf("construct the function: %w", errors.Join(h.mistakes...))
	}
	rt.functions.all = append(rt.functions.all, function{fn: p, run: run})
	return p, nil
}
