// Package state is what user code holds of its state: typed handles for values, lists, maps and accumulators of the key
// at hand, and the containers of broadcast and operator state. Handles have value semantics: Get gives a value that is
// the caller's, Set copies one in, Update changes it in place during the call. The package casts addresses and values;
// where state lies, when it expires and how it is written to snapshots is the backend's (package statebackend). Processors
// declare handles in their constructors through a Binder; the engine implements Binder and moves the CurrentRun.
//
// Handles belong to one subtask and are used on its goroutine. An access that fails (no key at hand, memory exhausted, a
// value that can't be encoded) returns the zero value and fails the task after the call into user code.
package state

import (
	"unsafe"

	"github.com/flott-dev/flott/statebackend"
)

// Binder is what a runtime offers to declarations of state.
type Binder interface {
	// BindTable opens the table that spec declares and gives the cell through which a handle uses it. It never returns
	// nil: errors are kept by the runtime and fail the task before the first element. On a stream that is not keyed the
	// cell is one without a table (NewUnkeyedCell).
	BindTable(spec statebackend.TableSpec) *Cell
	// Report records a mistake in a declaration; the task fails with it before the first element.
	Report(err error)
}

// CurrentRun says which key the state handles of one subtask mean. The engine owns it and keeps it beside the store's
// BeginRun: all cells of a store share one. The zero CurrentRun means the first key; see None.
type CurrentRun struct {
	// Index is the position of the key at hand in the store's current run; negative means that no key is at hand.
	Index int

	err error
}

// None is the Index outside of a keyed context: Open, Close, elements of a broadcast side.
const None = -1

// Fail records the failure of an access; only the first one is kept.
func (r *CurrentRun) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Err is the first failure since the last Take, or nil. The engine looks at it after each call into user code, or after
// each run.
func (r *CurrentRun) Err() error { return r.err }

// Take returns the first failure and forgets it.
func (r *CurrentRun) Take() error {
	err := r.err
	r.err = nil
	return err
}

// Cell gives a handle its table and the key at hand. Exactly one of Table, List and Map is set, by the kind of the spec;
// none on a stream that is not keyed.
type Cell struct {
	Table statebackend.Table     // of a value
	List  statebackend.ListTable // of a list
	Map   statebackend.MapTable  // of a map
	Run   *CurrentRun            // says which key is at hand

	name  string
	ahead *statebackend.Lookahead
	slot  [1]unsafe.Pointer
	fresh [1]bool
}

// OpenCell opens the table that spec declares and puts it into a cell of run.
func OpenCell(store statebackend.Store, spec statebackend.TableSpec, run *CurrentRun) (*Cell, error) {
	c := NewUnkeyedCell(spec.Name, run)
	var err error
	switch {
	case spec.List:
		c.List, err = store.List(spec)
	case spec.MapKey != nil:
		c.Map, err = store.Map(spec)
	default:
		c.Table, err = store.Table(spec)
		if err == nil {
			c.ahead = c.Table.Lookahead()
		}
	}
	if err != nil {
		return NewUnkeyedCell(spec.Name, run), err
	}
	return c, nil
}

// NewUnkeyedCell makes the cell of a state declared on a stream that is not keyed: each access fails with a
// NotKeyedError that names the state.
func NewUnkeyedCell(name string, run *CurrentRun) *Cell {
	return &Cell{Run: run, name: name, ahead: new(statebackend.Lookahead)}
}

// Name is the name of the state, for errors.
func (c *Cell) Name() string { return c.name }

// Index is the position of the key at hand in the current run.
func (c *Cell) Index() int { return c.Run.Index }

// Err reports a failure of the current access; nil is ignored.
func (c *Cell) Err(err error) {
	if err != nil {
		c.Run.Fail(err)
	}
}

// ready says whether a key is at hand, and reports the failure if not.
func (c *Cell) ready() bool {
	if c.Table == nil && c.List == nil && c.Map == nil {
		c.Run.Fail(&NotKeyedError{State: c.name})
		return false
	}
	if c.Run.Index < 0 {
		c.Run.Fail(&NoKeyContextError{State: c.name})
		return false
	}
	return true
}

// insert finds or inserts the slot of the key at hand; nil after a failure.
func (c *Cell) insert() (p unsafe.Pointer, fresh bool) {
	if !c.ready() {
		return nil, false
	}
	i := c.Run.Index
	if err := c.Table.Slots(i, i+1, c.slot[:], c.fresh[:]); err != nil {
		c.Run.Fail(err)
		return nil, false
	}
	return c.slot[0], c.fresh[0]
}
