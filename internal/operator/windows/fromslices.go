package windows

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/watermark"
	"github.com/flott-dev/flott/window"
)

// place is the map key of rows that have an order among those of their key.
type place struct {
	Passed int64
	Number int64
}

// SliceTables describes the tables that hold slices. A row is the accumulator of a key in a slice, which is the namespace. The
// map key says how far windows had fired, and, of keys whose elements came out of order, which row of the key it is. Whole
// windows are those that were taken over from the general driver.
func SliceTables(key, acc *serde.Schema) (plain, tangled, whole statebackend.TableInfo, err error) {
	span, err := spanSchema()
	if err != nil {
		return plain, tangled, whole, err
	}
	passed, err := serde.KeyOf[int64]()
	if err != nil {
		return plain, tangled, whole, err
	}
	at, err := serde.KeyOf[place]()
	if err != nil {
		return plain, tangled, whole, err
	}
	plain = statebackend.TableInfo{Name: SlicesTable, Kind: SlicesTable, Key: key, Namespace: span, MapKey: passed.Schema(), Value: acc}
	tangled, whole = plain, plain
	tangled.Name, tangled.MapKey = TangledTable, at.Schema()
	whole.Name = WholeTable
	return plain, tangled, whole, nil
}

// piece is a row of a key: a slice, or a whole window.
type piece struct {
	key, acc      []byte
	hash          uint64
	span          window.Time
	whole         bool
	passed, order int64
}

// fromSlices puts windows together from slices, the pieces of a key group at a time.
type fromSlices struct {
	*Moved
	assigner window.Assigner[window.Time]
	single   bool // a slice is in one window at most
	visit    func(*Kept) error
	read     func([]byte, unsafe.Pointer) error
	pieces   []piece
	known    map[window.Time][]window.Time
	uses     []use
	accs     unsafe.Pointer // two
}

// use is a piece of a window.
type use struct {
	window window.Time
	piece  int
}

// FromSlices visits the windows that a snapshot has as slices, if it has some. assigner, whose windows lie on the grid, is that
// of the program: its slices must be those of the snapshot.
func (m *Moved) FromSlices(assigner window.Assigner[window.Time], grid window.Grid, visit func(*Kept) error) error {
	plain, tangled, whole, err := SliceTables(m.Key.Schema(), m.K.Acc.Schema())
	if err != nil {
		return err
	}
	f := &fromSlices{Moved: m, assigner: assigner, visit: visit, known: map[window.Time][]window.Time{}, accs: m.K.Accs.New(2)}
	f.single = grid.Period != nil || grid.Size <= grid.Slide
	var s sideBySide
	for _, want := range []*statebackend.TableInfo{&whole, &plain, &tangled} {
		t, err := m.Restored.Table(want)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		if f.read, err = m.decoder(t.Value); err != nil {
			return err
		}
		s.add(t, func(row *statebackend.Row) error { return f.add(row, want.Name) })
	}
	return s.each(f.group)
}

// add takes a row.
func (f *fromSlices) add(row *statebackend.Row, table string) error {
	if len(row.Namespace) != 16 || len(row.MapKey) != 8 && table != TangledTable || len(row.MapKey) != 16 && table == TangledTable {
		return errMalformed
	}
	p := piece{hash: row.Hash, span: spanOf(row.Namespace), whole: table == WholeTable, passed: int64(binary.LittleEndian.Uint64(row.MapKey))}
	switch {
	case table == TangledTable:
		p.order = int64(binary.LittleEndian.Uint64(row.MapKey[8:]))
	case p.whole:
		p.order = -2 // it has what came first
	default:
		p.order = -1
	}
	p.key, p.acc = bytes.Clone(row.Key), bytes.Clone(row.Value)
	f.pieces = append(f.pieces, p)
	return nil
}

func spanOf(namespace []byte) window.Time {
	return window.Time{
		Start: int64(binary.LittleEndian.Uint64(namespace)), End: int64(binary.LittleEndian.Uint64(namespace[8:])),
	}
}

// group makes the windows of the keys of a group.
func (f *fromSlices) group() error {
	// In order of arrival, as far as that can be told: what came before a clock went back had fired further.
	slices.SortStableFunc(f.pieces, func(a, b piece) int {
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(b.passed, a.passed), cmp.Compare(a.order, b.order), cmp.Compare(a.span.Start, b.span.Start))
	})
	for from := 0; from < len(f.pieces); {
		to := from + 1
		for to < len(f.pieces) && bytes.Equal(f.pieces[from].key, f.pieces[to].key) {
			to++
		}
		if err := f.oneKey(from, to); err != nil {
			return err
		}
		from = to
	}
	f.pieces = f.pieces[:0]
	return nil
}

// oneKey makes the windows of pieces [from, to), which are those of a key.
func (f *fromSlices) oneKey(from, to int) error {
	f.uses = f.uses[:0]
	for i := from; i < to; i++ {
		p := &f.pieces[i]
		ws, err := f.windowsOf(p)
		if err != nil {
			return err
		}
		for _, w := range ws {
			if f.keeps(w, p) {
				f.uses = append(f.uses, use{w, i})
			}
		}
	}
	slices.SortStableFunc(f.uses, func(a, b use) int {
		return cmp.Or(cmp.Compare(a.window.Start, b.window.Start), cmp.Compare(a.window.End, b.window.End))
	})
	for i := 0; i < len(f.uses); {
		n := 1
		for i+n < len(f.uses) && f.uses[i+n].window == f.uses[i].window {
			n++
		}
		if err := f.oneWindow(f.uses[i : i+n]); err != nil {
			return err
		}
		i += n
	}
	return nil
}

// fired says whether a window that a piece is in has fired. Where a clock fires windows that are one slice, what has fired is
// not there: it may have gone back behind others.
func (f *fromSlices) fired(w window.Time, p *piece) bool {
	return w.MaxTimestamp() <= p.passed && !(f.single && f.Domain == process.ProcessingTime)
}

// keeps says whether a window that a piece is in is there.
func (f *fromSlices) keeps(w window.Time, p *piece) bool {
	return !f.fired(w, p) || f.Domain == process.EventTime && watermark.Add(w.MaxTimestamp(), f.Lateness) > p.passed
}

// oneWindow folds the pieces of a window.
func (f *fromSlices) oneWindow(uses []use) error {
	m := &f.K.Accs
	acc, other := f.accs, m.At(f.accs, 1)
	defer m.Zero(f.accs, 2)
	for i, u := range uses {
		into := acc
		if i > 0 {
			into = other
		}
		if err := f.read(f.pieces[u.piece].acc, into); err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		if f.K.Merge == nil {
			return errKeep("make a window of its slices: the window function can't merge")
		}
		f.K.Merge(acc, other)
		m.Zero(other, 1)
	}
	p := &f.pieces[uses[0].piece]
	return f.visit(&Kept{Key: p.key, Hash: p.hash, Window: uses[0].window, Fired: f.fired(uses[0].window, p), Acc: acc})
}

// windowsOf are the windows that a slice is in; it must be one of the program's.
func (f *fromSlices) windowsOf(p *piece) ([]window.Time, error) {
	if ws, ok := f.known[p.span]; ok && !p.whole {
		return ws, nil
	}
	ws, err := f.at(max(p.span.Start, math.MinInt64+1))
	if err != nil {
		return nil, err
	}
	if p.whole {
		if !slices.Contains(ws, p.span) {
			return nil, errSpan("window", p.span)
		}
		return []window.Time{p.span}, nil
	}
	first, last := p.span.Start, p.span.End-1
	end, err := f.at(last)
	if err != nil {
		return nil, err
	}
	if len(ws) == 0 || first > last || !slices.Equal(ws, end) {
		return nil, errSpan("slice", p.span)
	}
	for _, t := range [2]int64{first - 1, last + 1} { // a slice ends where a window begins or ends, or time does
		if beyond, err := f.at(t); err == nil && t != math.MaxInt64 && slices.Equal(ws, beyond) {
			return nil, errSpan("slice", p.span)
		}
	}
	f.known[p.span] = ws
	return ws, nil
}

// at are the windows that the program has for a time, in order.
func (f *fromSlices) at(t int64) ([]window.Time, error) {
	ws, err := f.assigner.Assign(nil, t, t)
	slices.SortFunc(ws, func(a, b window.Time) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	return ws, err
}

func errSpan(what string, span window.Time) error {
	return fmt.Errorf("the snapshot has a %s from %d to %d, which the program's windows don't have: keep the windows, or give the operator another UID",
		what, span.Start, span.End)
}
