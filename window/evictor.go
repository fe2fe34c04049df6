package window

// Evictor removes elements from a window that fires, by time and position: before the window function is called, which
// does not see them then, or after. What it removes is gone from the window's contents. Windows with an evictor keep all
// their elements. If it also has Check() error, building the job reports what that returns.
type Evictor interface {
	// EvictBefore is called before the window function. e is valid during the call.
	EvictBefore(e *Eviction)
	// EvictAfter is called after it, with the elements that EvictBefore left.
	EvictAfter(e *Eviction)
}

// ElementEvictor is an Evictor that looks at elements: xs are those of e, in order; they must not be kept or changed.
type ElementEvictor[T any] interface {
	// EvictBefore is Evictor's.
	EvictBefore(e *Eviction, xs []T)
	// EvictAfter is Evictor's.
	EvictAfter(e *Eviction, xs []T)
}

// Eviction is the contents of one window that fires: elements in order of arrival, by number.
type Eviction struct {
	// Times are the elements' timestamps in ms, math.MinInt64 for none. Read only.
	Times []int64
	// ProcessingTime and Watermark are the task's.
	ProcessingTime, Watermark int64

	gone    []bool
	evicted int
}

// Reset is for drivers and test harnesses: an eviction of elements with these timestamps.
func (e *Eviction) Reset(times []int64) {
	e.Times, e.evicted = times, 0
	e.gone = append(e.gone[:0], make([]bool, len(times))...)
}

// Len is the number of elements.
func (e *Eviction) Len() int { return len(e.Times) }

// Evict removes element i.
func (e *Eviction) Evict(i int) {
	if !e.gone[i] {
		e.gone[i] = true
		e.evicted++
	}
}

// Evicted says whether element i was removed.
func (e *Eviction) Evicted(i int) bool { return e.gone[i] }

// Left is how many elements are left.
func (e *Eviction) Left() int { return len(e.Times) - e.evicted }
