package windowing

import (
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/window"
)

// mergingSets are the merging sets of all keys, one of which is at hand. Calls with an index mean a key of the store's run.
type mergingSets interface {
	open(store statebackend.Store) error
	// load puts the set of key i at hand.
	load(i int) error
	// add adds a window to the set at hand; what it became and which windows it merged is to be asked for afterwards.
	add(w unsafe.Pointer) error
	// result is the window that was added, state its state window, fresh whether it is new in the set and no others were
	// merged into it.
	result() (w, state *view, fresh bool)
	// merges is the number of merges that the last add made, merge describes one of them.
	merges() int
	merge(k int) (*merge, error)
	// state is the state window of a window in flight, nil if it is not.
	state(w unsafe.Pointer) (*view, error)
	// retire takes a window out of the set at hand.
	retire(w unsafe.Pointer) error
	// store writes the set at hand back as that of key i, if it has changed.
	store(i int) error
}

// merge is a Merge without its type.
type merge struct {
	result, kept    view // kept is the state window of the result
	sources, states row
}

// cell is the merging set of a key in state: few windows in place, or how many there are in the table of the others.
type cell[W window.Window] struct {
	N     int64
	Pairs [2]InFlight[W]
}

// sets keeps a cell per key; a key without windows in flight has none. What does not fit in, or varies in size, is in a
// list.
type sets[W window.Window] struct {
	windows *windowType
	set     *MergingSet[W]
	cells   statebackend.Table // nil: windows vary in size
	many    statebackend.ListTable
	slot    *cell[W] // of the set at hand, if it has one
	pair    InFlight[W]
	found   []InFlight[W]
	collect func() bool

	slots [1]unsafe.Pointer
	news  [1]bool

	added   ends[W] // the result of the last add
	fresh   bool
	records []Merge[W]
	merged  merge
	of      ends[W] // the merge at hand
	looked  ends[W] // what state was asked for
}

// ends are a window and its state window, and their views.
type ends[W window.Window] struct {
	pair  [2]W
	row   row
	views [2]view
}

func (e *ends[W]) set(t *windowType, w, state W) error {
	e.pair = [2]W{w, state}
	if err := e.row.set(t, unsafe.Pointer(&e.pair), 2); err != nil {
		return err
	}
	e.views = [2]view{e.row.view(t, 0), e.row.view(t, 1)}
	return nil
}

func newSets[W window.Window](t windowType, m window.Merger[W]) *sets[W] {
	s := &sets[W]{windows: &t, set: NewMergingSet(m)}
	s.collect = func() bool {
		s.found = append(s.found, s.pair)
		return true
	}
	return s
}

func (s *sets[W]) open(store statebackend.Store) error {
	one, err := serde.Of[cell[W]]()
	if err != nil {
		return fmt.Errorf("keep windows that merge: %w", err)
	}
	if one.Layout == serde.Fixed {
		if s.cells, err = store.Table(statebackend.TableSpec{Name: windows.MergingTable, Value: one}); err != nil {
			return err
		}
	}
	pair, err := serde.Of[InFlight[W]]()
	if err != nil {
		return fmt.Errorf("keep windows that merge: %w", err)
	}
	s.many, err = store.List(statebackend.TableSpec{Name: windows.ManyMergingTable, Value: pair, List: true})
	return err
}

func (s *sets[W]) load(i int) error {
	s.slot = nil
	if s.cells != nil {
		s.slot = (*cell[W])(s.cells.Find(i))
		if s.slot == nil {
			s.set.Restore()
			return nil
		}
		if n := s.slot.N; n <= int64(len(s.slot.Pairs)) {
			s.set.Restore(s.slot.Pairs[:n]...)
			return nil
		}
	}
	s.found = s.found[:0]
	if err := s.many.Each(i, unsafe.Pointer(&s.pair), s.collect); err != nil {
		return err
	}
	s.set.Restore(s.found...)
	return nil
}

func (s *sets[W]) store(i int) error {
	if !s.set.Changed() {
		return nil
	}
	pairs := s.set.Pairs()
	if s.cells != nil {
		few := len(pairs) <= len(cell[W]{}.Pairs)
		listed := s.slot != nil && s.slot.N > int64(len(s.slot.Pairs))
		if err := s.storeCell(i, pairs, few); err != nil || few && !listed {
			return err
		}
		if few {
			return s.many.Delete(i)
		}
	}
	if err := s.many.Delete(i); err != nil {
		return err
	}
	for _, s.pair = range pairs {
		if err := s.many.Append(i, unsafe.Pointer(&s.pair)); err != nil {
			return err
		}
	}
	return nil
}

// storeCell writes the cell of key i: the pairs, if they are few.
func (s *sets[W]) storeCell(i int, pairs []InFlight[W], few bool) error {
	if len(pairs) == 0 {
		s.slot = nil
		return s.cells.Delete(i)
	}
	// What Find gave is for reading: a snapshot may still want what is there.
	if err := s.cells.Slots(i, i+1, s.slots[:], s.news[:]); err != nil {
		return err
	}
	s.slot = (*cell[W])(s.slots[0])
	if s.slot.N = int64(len(pairs)); few {
		copy(s.slot.Pairs[:], pairs)
	}
	return nil
}

func (s *sets[W]) add(p unsafe.Pointer) error {
	w := *(*W)(p)
	_, before := s.set.StateOf(w)
	result, merges, err := s.set.Add(w)
	if err != nil {
		return err
	}
	s.records = merges
	s.fresh = !before && result == w
	for i := range merges {
		s.fresh = s.fresh && merges[i].Result != w
	}
	state, _ := s.set.StateOf(result)
	return s.added.set(s.windows, result, state)
}

func (s *sets[W]) result() (w, state *view, fresh bool) {
	return &s.added.views[0], &s.added.views[1], s.fresh
}

func (s *sets[W]) merges() int { return len(s.records) }

func (s *sets[W]) merge(k int) (*merge, error) {
	r, m, t := &s.records[k], &s.merged, s.windows
	if err := s.of.set(t, r.Result, r.State); err != nil {
		return nil, err
	}
	m.result, m.kept = s.of.views[0], s.of.views[1]
	if err := m.sources.set(t, unsafe.Pointer(unsafe.SliceData(r.Sources)), len(r.Sources)); err != nil {
		return nil, err
	}
	return m, m.states.set(t, unsafe.Pointer(unsafe.SliceData(r.States)), len(r.States))
}

func (s *sets[W]) state(p unsafe.Pointer) (*view, error) {
	w := *(*W)(p)
	state, ok := s.set.StateOf(w)
	if !ok {
		return nil, nil
	}
	return &s.looked.views[1], s.looked.set(s.windows, w, state)
}

func (s *sets[W]) retire(p unsafe.Pointer) error { return s.set.Retire(*(*W)(p)) }
