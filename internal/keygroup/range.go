package keygroup

import "fmt"

// Range is a set of consecutive key groups, First ... Last, both inclusive. The zero Range holds group 0; an empty range
// is not a Range.
type Range struct{ First, Last int }

// NewRange makes a range of key groups.
func NewRange(first, last int) (Range, error) {
	if first < 0 || last < first || last >= MaxParallelismLimit {
		return Range{}, fmt.Errorf("keygroup: %d ... %d is no range of key groups", first, last)
	}
	return Range{First: first, Last: last}, nil
}

// RangeOfSubtask is RangeOf as a checked Range.
func RangeOfSubtask(maxParallelism, parallelism, subtask int) (Range, error) {
	if err := Validate(maxParallelism, parallelism); err != nil {
		return Range{}, err
	}
	if subtask < 0 || subtask >= parallelism {
		return Range{}, fmt.Errorf("keygroup: subtask %d is outside 0 ... %d", subtask, parallelism-1)
	}
	first, last := RangeOf(maxParallelism, parallelism, subtask)
	return Range{First: first, Last: last}, nil
}

// Size is the number of key groups.
func (r Range) Size() int { return r.Last - r.First + 1 }

// Contains reports whether the group is in the range.
func (r Range) Contains(group int) bool { return r.First <= group && group <= r.Last }

// Intersect gives the groups that are in both ranges; ok is false if there are none.
func (r Range) Intersect(o Range) (both Range, ok bool) {
	both = Range{First: max(r.First, o.First), Last: min(r.Last, o.Last)}
	return both, both.First <= both.Last
}

// String gives the range as "first-last".
func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }
