package windowing

import (
	"fmt"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/statebackend"
)

// spaced is a table with a namespace, whatever its kind.
type spaced interface{ SetNamespace(canonical []byte) }

// space is the state of a trigger, or of a window function per window: tables whose values belong to the key and window at
// hand.
type space struct {
	prefix string // of the names of tables
	typ    *serde.Key
	tables []spaced
	at     []byte // the window that they are at
	chosen bool
	hand   *view // the window at hand; without an address before the first
}

// choose puts a window at hand.
func (s *space) choose(w *view) {
	if len(s.tables) != 0 && (!s.chosen || string(s.at) != string(w.b)) {
		s.change(w.b)
	}
}

func (s *space) change(window []byte) {
	s.at, s.chosen = append(s.at[:0], window...), true
	for _, t := range s.tables {
		t.SetNamespace(s.at)
	}
}

// bind opens a table of the space through a binder of the store.
func (s *space) bind(b state.Binder, spec statebackend.TableSpec) *state.Cell {
	spec.Name, spec.Namespace = s.prefix+spec.Name, s.typ
	cell := b.BindTable(spec)
	if s.typ == nil {
		return cell // there is only one window
	}
	var t spaced
	switch {
	case cell.Table != nil:
		t = cell.Table
	case cell.List != nil:
		t = cell.List
	case cell.Map != nil:
		t = cell.Map
	default:
		return cell
	}
	s.tables = append(s.tables, t)
	switch { // a table that is declared late
	case s.chosen:
		t.SetNamespace(s.at)
	case s.hand.p != nil:
		s.change(s.hand.b)
	}
	return cell
}

// spacedHost is a process.Host whose state lies in a space.
type spacedHost struct {
	process.Host
	space *space
}

// BindTable implements state.Binder.
func (h *spacedHost) BindTable(spec statebackend.TableSpec) *state.Cell {
	return h.space.bind(h.Host, spec)
}

// perWindow binds state of a window function that belongs to the window.
type perWindow struct {
	state.Binder
	space   *space
	run     *state.CurrentRun
	merging bool
}

// BindTable implements state.Binder.
func (b *perWindow) BindTable(spec statebackend.TableSpec) *state.Cell {
	if b.merging {
		b.Report(fmt.Errorf("state %q per window: windows that merge can't have it (Flink: per-window state is not allowed when using merging windows): keep it per key, or in a trigger", spec.Name))
		return state.NewUnkeyedCell(spec.Name, b.run)
	}
	return b.space.bind(b.Binder, spec)
}
