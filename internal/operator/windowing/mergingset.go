package windowing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/flott-dev/flott/window"
)

// InFlight is a window of a key and its state window: the one that names its contents. A window that is merged into another
// one leaves its contents where they are as long as it can, so that a growing window moves nothing.
type InFlight[W window.Window] struct {
	Window, State W
}

// Merge is what an Add has merged: Sources became Result, the contents of which are those of State, followed by those of
// States. The new window is not among Sources, as it has no contents. Sources and States are in the order of time and valid
// until the next Add. A Merge without Sources only moves the contents of Result from States to State, because the window
// that named them has come again: a merger that does not merge at once all that it could may let that happen.
type Merge[W window.Window] struct {
	Result  W
	Sources []W
	State   W
	States  []W
}

// MergingSet holds the windows in flight of one key, as an assigner merges them. It does the bookkeeping only: whoever
// calls it moves contents, trigger state and timers, and keeps the set in state between uses.
//
// The order of time is that of starts for window.Time and that of max timestamps for other types. The first merged window
// in this order gives the result its state window.
type MergingSet[W window.Window] struct {
	merger   window.Merger[W]
	pairs    []InFlight[W]
	restored []InFlight[W]
	touched  bool

	// scratch of Add
	windows []W
	groups  []group[W]
	sources []W
	states  []InFlight[W]
	merges  []Merge[W]
	parts   []W
	note    func(result W, sources []W)
}

// group is a merge as the assigner reports it; its sources are those of the set up to to.
type group[W window.Window] struct {
	result W
	to     int
}

// ErrNotInFlight says that a window is not in the set.
var ErrNotInFlight = errors.New("the window is not in flight")

// NewMergingSet returns an empty set whose windows merge as m says.
func NewMergingSet[W window.Window](m window.Merger[W]) *MergingSet[W] {
	s := &MergingSet[W]{merger: m}
	s.note = s.noteMerge
	return s
}

// Restore makes pairs, which are copied, the contents of the set.
func (s *MergingSet[W]) Restore(pairs ...InFlight[W]) {
	s.pairs, s.restored, s.touched = append(s.pairs[:0], pairs...), append(s.restored[:0], pairs...), false
}

// Pairs are the windows in flight, in no particular order. They are valid until the next call.
func (s *MergingSet[W]) Pairs() []InFlight[W] { return s.pairs }

// Changed says whether the set differs from what was restored.
func (s *MergingSet[W]) Changed() bool {
	if !s.touched || len(s.pairs) != len(s.restored) {
		return s.touched
	}
	for _, p := range s.pairs {
		if !slices.Contains(s.restored, p) {
			return true
		}
	}
	return false
}

// StateOf is the state window of a window in flight; ok is false if it is not.
func (s *MergingSet[W]) StateOf(w W) (state W, ok bool) {
	if i := s.find(w); i >= 0 {
		return s.pairs[i].State, true
	}
	return state, false
}

// Retire takes a window out of the set.
func (s *MergingSet[W]) Retire(w W) error {
	i := s.find(w)
	if i < 0 {
		return fmt.Errorf("retire window %v: %w", w, ErrNotInFlight)
	}
	s.pairs = slices.Delete(s.pairs, i, i+1)
	s.touched = true
	return nil
}

func (s *MergingSet[W]) find(w W) int {
	for i := range s.pairs {
		if s.pairs[i].Window == w {
			return i
		}
	}
	return -1
}

// Add adds a window. result is the window in flight that it has become, which may be one that was there before, and merges
// are the merges that this took: none if the window stays alone or lies in one that was there. They are valid until the
// next Add. An error says that the assigner merges what it was not given.
func (s *MergingSet[W]) Add(w W) (result W, merges []Merge[W], err error) {
	s.windows, s.groups, s.sources = s.windows[:0], s.groups[:0], s.sources[:0]
	known := false
	for i := range s.pairs {
		s.windows = append(s.windows, s.pairs[i].Window)
		known = known || s.pairs[i].Window == w
	}
	if !known {
		s.windows = append(s.windows, w)
	}
	s.merger.Merge(s.windows, s.note)
	s.merges, s.parts = s.merges[:0], s.parts[:0]
	result = w
	merged := false
	from := 0
	for i := range s.groups {
		g := &s.groups[i]
		has, err := s.merge(g.result, s.sources[from:g.to], w, known)
		if err != nil {
			return w, nil, err
		}
		if has {
			result, merged = g.result, true
		}
		from = g.to
	}
	if !known && !merged {
		s.free(w)
		s.pairs = append(s.pairs, InFlight[W]{Window: w, State: w})
		s.touched = true
	}
	return result, s.merges, nil
}

// free sees to it that no window has w as its state window: one that does gets itself.
func (s *MergingSet[W]) free(w W) {
	for i := range s.pairs {
		if p := s.pairs[i]; p.State == w {
			s.free(p.Window)
			from := len(s.parts)
			s.parts = append(s.parts, w)
			s.merges = append(s.merges, Merge[W]{Result: p.Window, State: p.Window, States: s.parts[from : from+1 : from+1]})
			s.pairs[i].State = p.Window
			return
		}
	}
}

func (s *MergingSet[W]) noteMerge(result W, sources []W) {
	s.sources = append(s.sources, sources...)
	s.groups = append(s.groups, group[W]{result, len(s.sources)})
}

// merge makes one window of sources; has says that the new window w is one of them.
func (s *MergingSet[W]) merge(result W, sources []W, w W, known bool) (has bool, err error) {
	s.states = s.states[:0]
	for _, source := range sources {
		if source == w {
			has = true
			if !known {
				continue
			}
		}
		i := s.find(source)
		if i < 0 {
			return false, fmt.Errorf("merge windows into %v: %v is not one of those to be merged", result, source)
		}
		s.states = append(s.states, s.pairs[i])
	}
	if len(s.states) == 0 {
		return false, fmt.Errorf("merge windows into %v: no window to merge with", result)
	}
	if len(s.states) == 1 && s.states[0].Window == result {
		return has, nil // the new window lies in it
	}
	slices.SortStableFunc(s.states, earlier[W])
	s.record(result)
	for i := range s.states {
		at := s.find(s.states[i].Window)
		s.pairs = slices.Delete(s.pairs, at, at+1)
	}
	if s.find(result) >= 0 {
		return false, fmt.Errorf("merge windows into %v: it is in flight and not one of those to be merged", result)
	}
	s.pairs = append(s.pairs, InFlight[W]{Window: result, State: s.states[0].State})
	s.touched = true
	return has, nil
}

// record notes the merge of the windows in states for the caller.
func (s *MergingSet[W]) record(result W) {
	from := len(s.parts)
	for i := range s.states {
		s.parts = append(s.parts, s.states[i].Window)
	}
	sources := s.parts[from:len(s.parts):len(s.parts)]
	from = len(s.parts)
	for i := range s.states[1:] {
		s.parts = append(s.parts, s.states[1+i].State)
	}
	s.merges = append(s.merges, Merge[W]{
		Result: result, Sources: sources, State: s.states[0].State, States: s.parts[from:len(s.parts):len(s.parts)],
	})
}

// earlier is the order of time.
func earlier[W window.Window](a, b InFlight[W]) int {
	return cmp.Or(cmp.Compare(startOf(a.Window), startOf(b.Window)), cmp.Compare(a.Window.MaxTimestamp(), b.Window.MaxTimestamp()))
}

func startOf[W window.Window](w W) int64 {
	if t, ok := any(w).(window.Time); ok {
		return t.Start
	}
	return w.MaxTimestamp()
}
