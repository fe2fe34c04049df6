package window

import "fmt"

// CountingEvictor is what CountEvictor makes. It is immutable.
type CountingEvictor struct {
	max   int64
	after bool
}

// CountEvictor keeps the last n elements of a window that fires and drops those that came before them. n must be positive.
func CountEvictor(n int64) CountingEvictor { return CountingEvictor{max: n} }

// After lets elements be dropped after the window function was called, instead of before: it sees them once.
func (c CountingEvictor) After() CountingEvictor {
	c.after = true
	return c
}

// EvictBefore implements Evictor.
func (c CountingEvictor) EvictBefore(e *Eviction) {
	if !c.after {
		c.evict(e)
	}
}

// EvictAfter implements Evictor.
func (c CountingEvictor) EvictAfter(e *Eviction) {
	if c.after {
		c.evict(e)
	}
}

func (c CountingEvictor) evict(e *Eviction) {
	excess := int64(e.Left()) - c.max
	for i := 0; excess > 0 && i < e.Len(); i++ {
		if !e.Evicted(i) {
			e.Evict(i)
			excess--
		}
	}
}

// Check says what is wrong with the number of elements.
func (c CountingEvictor) Check() error { return checkCount("a count evictor", c.max) }

// String is the evictor as it was written.
func (c CountingEvictor) String() string {
	return fmt.Sprintf("CountEvictor(%d)%s", c.max, whenEvicted(c.after))
}

// whenEvicted is what a program writes to evict after the window function.
func whenEvicted(after bool) string {
	if after {
		return ".After()"
	}
	return ""
}
