package slices

import "sort"

// slice is a slice that elements have come to. With the shared structures of sliding windows it may be empty: what was in
// it lies in a tangle.
type slice struct {
	stretch
	column
	// rest, of a slice in the older half of two stacks, has for each accumulator at the same place that of the younger slices
	// of the half, if more says so.
	rest column
}

// shelf are slices in the order of time.
type shelf struct {
	list  []*slice
	whole []*slice // the memory that list lies in
	spare []*slice

	wholes []*whole // in order; they are few, or none
}

// from is the place of the first slice that starts at t or later.
func (h *shelf) from(t int64) int {
	if n := len(h.list); n == 0 || h.list[n-1].lo < t { // the usual case
		return n
	}
	return sort.Search(len(h.list), func(i int) bool { return h.list[i].lo >= t })
}

// at is the slice that starts at lo; nil if there is none.
func (h *shelf) at(lo int64) *slice {
	if i := h.from(lo); i < len(h.list) && h.list[i].lo == lo {
		return h.list[i]
	}
	return nil
}

// with is the slice that has an instant; nil if there is none.
func (h *shelf) with(ts int64) *slice {
	n := len(h.list)
	for i := n - 1; i >= max(0, n-4); i-- { // what is out of order usually is so by little
		if s := h.list[i]; s.lo <= ts {
			if s.contains(ts) {
				return s
			}
			return nil
		}
	}
	i := h.from(ts)
	if i < n && h.list[i].contains(ts) {
		return h.list[i]
	}
	if i > 0 && h.list[i-1].contains(ts) {
		return h.list[i-1]
	}
	return nil
}

// put puts a new slice in its place.
func (h *shelf) put(t stretch) *slice {
	var s *slice
	if n := len(h.spare); n > 0 {
		s, h.spare = h.spare[n-1], h.spare[:n-1]
	} else {
		s = &slice{}
	}
	s.stretch = t
	if n := len(h.list); n == cap(h.list) && cap(h.whole) > 2*n { // use what shift left behind
		copy(h.whole[:n], h.list)
		clear(h.whole[n:])
		h.list = h.whole[:n]
	}
	i := h.from(t.lo)
	h.list = append(h.list, nil)
	if cap(h.list) > cap(h.whole) {
		h.whole = h.list[:cap(h.list)]
	}
	copy(h.list[i+1:], h.list[i:])
	h.list[i] = s
	return s
}

// shift takes away the first n slices, whose columns are gone.
func (h *shelf) shift(n int) {
	for i, s := range h.list[:n] {
		*s = slice{}
		if len(h.spare) < maxSpare {
			h.spare = append(h.spare, s)
		}
		h.list[i] = nil
	}
	h.list = h.list[n:]
}
