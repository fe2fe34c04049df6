package windows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/flott-dev/flott/internal/frame"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

// fromGeneral reads what the general driver (package windowing) has written of windows, the tables of a key group side by side.
type fromGeneral struct {
	*Moved
	in    *frame.Type
	visit func(*Kept) error
	acc   unsafe.Pointer
	read  func([]byte, unsafe.Pointer) error // accumulators
	side  sideBySide

	merges  bool
	folded  bool              // elements may wait for being folded
	windows map[string]string // by key and state window: the window; if they merge
	due     map[string]bool   // key and window: it has not fired
	accs    map[string][]byte // by key and state window, if folded
	pending map[string][][]byte
	cell    serdeOf[mergingCell]
	pair    serdeOf[inFlight]
	one     *frame.Column // of a pending element
	element func([]byte, unsafe.Pointer) error
}

// serdeOf decodes values of one type.
type serdeOf[V any] struct {
	v    V
	read func([]byte, unsafe.Pointer) error
}

func (s *serdeOf[V]) open(t *statebackend.FrozenTable) error {
	h, err := serde.Of[V]()
	if err == nil {
		s.read, err = operator.Decoder(h, t.Value)
	}
	return err
}

func (s *serdeOf[V]) take(b []byte) (*V, error) {
	var zero V
	s.v = zero
	return &s.v, s.read(b, unsafe.Pointer(&s.v))
}

// inFlight is a window of a key and the one that names its contents.
type inFlight struct{ Window, State window.Time }

// mergingCell is how the general driver keeps the windows of a key that merge: few in place, or how many are in a list.
type mergingCell struct {
	N     int64
	Pairs [2]inFlight
}

// FromGeneral visits the windows that a snapshot has of the general driver, if it has some. merges says that they are sessions;
// in is the type of elements, which may wait in the snapshot.
func (m *Moved) FromGeneral(merges bool, in *frame.Type, visit func(*Kept) error) error {
	if err := m.onlyWindows(); err != nil {
		return err
	}
	if !Has(m.Restored, ContentsTable) {
		return nil
	}
	g := &fromGeneral{
		Moved: m, in: in, visit: visit, acc: m.K.Accs.New(1), merges: merges, windows: map[string]string{}, due: map[string]bool{},
		accs: map[string][]byte{}, pending: map[string][][]byte{},
	}
	for _, open := range []func() error{g.openTimers, g.openMerging, g.openFolded, g.openContents} { // in this order they are read
		if err := open(); err != nil {
			return err
		}
	}
	return g.side.each(func() error {
		clear(g.windows)
		clear(g.due)
		clear(g.accs)
		clear(g.pending)
		return nil
	})
}

// onlyWindows makes sure that the snapshot has nothing that would be lost: state of triggers, of window functions, elements.
func (m *Moved) onlyWindows() error {
	r := m.Restored
	if r == nil || r.Store == nil {
		return nil
	}
	if f, ok := r.Store.(statebackend.RestoredFiles); ok {
		if sets := f.Files(); len(sets) > 0 {
			return errKeep("the snapshot has windows in files of a state backend (%s), which only windows that are kept there can "+
				"read: begin with a savepoint, or", sets[0].Format)
		}
	}
	other := timerTable(process.EventTime + process.ProcessingTime - m.Domain)
	for _, name := range r.Store.Tables() {
		switch {
		case name == other:
			return errKeep("the snapshot has %s, those of a trigger", name)
		case strings.HasPrefix(name, "trigger "):
			return errKeep("the snapshot has the state %q of a trigger", name)
		case name == "window arrivals", name == "second "+ContentsTable:
			return errKeep("the snapshot has %q: all elements of the windows", name)
		}
		switch name {
		case SlicesTable, TangledTable, WholeTable, SessionsTable, ContentsTable, AccumulatorsTable, PendingTable, MergingTable,
			ManyMergingTable, timerTable(m.Domain):
		default:
			return errKeep("the snapshot has the state %q, which is not of the windows", name)
		}
	}
	if l := r.List(ForgetsList); l != nil && len(l.Items) > 0 {
		return errKeep("the snapshot has windows whose trigger has taken timers back")
	}
	return nil
}

func timerTable(d process.Domain) string {
	if d == process.EventTime {
		return "timers/event"
	}
	return "timers/processing"
}

// windowName names a window of the row's key.
func windowName(row *statebackend.Row, w []byte) string { return string(row.Key) + string(w) }

func (g *fromGeneral) openTimers() error {
	at, err := serde.KeyOf[int64]()
	if err != nil {
		return err
	}
	t, err := g.table(timerTable(g.Domain), statebackend.TimerKind, true, at.Schema())
	g.side.add(t, func(row *statebackend.Row) error {
		if len(row.Namespace) != 16 || len(row.MapKey) != 8 {
			return errMalformed
		}
		w, at := spanOf(row.Namespace), int64(binary.LittleEndian.Uint64(row.MapKey))
		switch last := w.MaxTimestamp(); {
		case at < last:
			return errKeep("the snapshot has a timer of a trigger for %d in the window %v", at, w)
		case at == last:
			g.due[windowName(row, row.Namespace)] = true
		}
		return nil
	})
	return err
}

func (g *fromGeneral) openMerging() error {
	cells, err := g.table(MergingTable, "value", false, nil)
	if err != nil {
		return err
	}
	many, err := g.table(ManyMergingTable, "list", false, nil)
	if err != nil {
		return err
	}
	if !g.merges {
		if cells != nil || many != nil {
			return errKeep("the snapshot has windows that merge")
		}
		return nil
	}
	note := func(row *statebackend.Row, p *inFlight) {
		g.windows[windowName(row, appendSpan(nil, p.State))] = string(appendSpan(nil, p.Window))
	}
	if cells != nil {
		if err := g.cell.open(cells); err != nil {
			return err
		}
	}
	if many != nil {
		if err := g.pair.open(many); err != nil {
			return err
		}
	}
	g.side.add(cells, func(row *statebackend.Row) error {
		c, err := g.cell.take(row.Value)
		if err == nil && c.N <= int64(len(c.Pairs)) {
			for i := range c.Pairs[:max(0, c.N)] {
				note(row, &c.Pairs[i])
			}
		}
		return err
	})
	g.side.add(many, func(row *statebackend.Row) error {
		p, err := g.pair.take(row.Value)
		if err == nil {
			note(row, p)
		}
		return err
	})
	return nil
}

// appendSpan appends the canonical form of a window.
func appendSpan(b []byte, w window.Time) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(w.Start)), uint64(w.End))
}

func (g *fromGeneral) openFolded() error {
	accs, err := g.table(AccumulatorsTable, "value", true, nil)
	if err != nil {
		return err
	}
	pending, err := g.table(PendingTable, "list", true, nil)
	if err != nil {
		return err
	}
	if g.folded = accs != nil || pending != nil; !g.folded {
		return nil
	}
	if accs != nil {
		if g.read, err = g.decoder(accs.Value); err != nil {
			return err
		}
	}
	if pending != nil {
		g.one = frame.NewColumn(g.in, 1)
		if g.element, err = operator.Decoder(g.in.Handle, pending.Value); err != nil {
			return fmt.Errorf("elements that wait for their windows: %w", err)
		}
	}
	g.side.add(accs, func(row *statebackend.Row) error {
		g.accs[windowName(row, row.Namespace)] = bytes.Clone(row.Value)
		return nil
	})
	g.side.add(pending, func(row *statebackend.Row) error {
		n := windowName(row, row.Namespace)
		g.pending[n] = append(g.pending[n], bytes.Clone(row.Value))
		return nil
	})
	return nil
}

func (g *fromGeneral) openContents() error {
	t, err := g.table(ContentsTable, "value", true, nil)
	if err != nil {
		return err
	}
	if !g.folded {
		if g.read, err = g.decoder(t.Value); err != nil {
			return err
		}
	}
	g.side.add(t, g.contents)
	return nil
}

// contents visits a window by the row of its contents.
func (g *fromGeneral) contents(row *statebackend.Row) error {
	if len(row.Namespace) != 16 {
		return errMalformed
	}
	w := string(row.Namespace)
	state := windowName(row, row.Namespace)
	if g.merges {
		var ok bool
		if w, ok = g.windows[state]; !ok {
			return errors.New("the snapshot has contents of a window that is not there")
		}
	}
	defer g.K.Accs.Zero(g.acc, 1)
	var err error
	if g.folded {
		err = g.fold(state)
	} else {
		err = g.read(row.Value, g.acc)
	}
	if err != nil {
		return err
	}
	return g.visit(&Kept{Key: row.Key, Hash: row.Hash, Window: spanOf([]byte(w)), Fired: !g.due[string(row.Key)+w], Acc: g.acc})
}

// fold makes the accumulator of a window of what was folded and what waits.
func (g *fromGeneral) fold(state string) error {
	fresh := true
	if acc, ok := g.accs[state]; ok {
		if err := g.read(acc, g.acc); err != nil {
			return err
		}
		fresh = false
	}
	for _, b := range g.pending[state] {
		g.one.Reset()
		run := g.one.Fill(1)
		if err := g.element(b, unsafe.Pointer(run.P)); err != nil {
			return fmt.Errorf("an element that waits for its window: %w", err)
		}
		g.K.Add(g.acc, fresh, &run, 0)
		fresh = false
	}
	if fresh {
		return errMalformed
	}
	return nil
}
