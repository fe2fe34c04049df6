package frame

import "unsafe"

// Column is an owned, growing column of elements with timestamps: the memory of frames and of operators' output.
type Column struct {
	Type  *Type
	p     unsafe.Pointer
	n     int
	cap   int
	times []int64 // len n, or empty while no element has a timestamp; capacity cap
}

// NewColumn returns an empty column with room for capacity elements.
func NewColumn(t *Type, capacity int) *Column {
	c := &Column{}
	c.init(t, capacity)
	return c
}

func (c *Column) init(t *Type, capacity int) {
	c.Type, c.p, c.cap = t, t.alloc(capacity), capacity
	c.times = make([]int64, 0, capacity)
}

// Len is the number of elements, Room how many more fit.
func (c *Column) Len() int { return c.n }

// Room is the number of elements that still fit.
func (c *Column) Room() int { return c.cap - c.n }

// Cap is the number of elements that fit into the empty column.
func (c *Column) Cap() int { return c.cap }

// Run lends the column's elements.
func (c *Column) Run() Run {
	r := Run{Type: c.Type, P: c.p, N: c.n}
	if len(c.times) != 0 {
		r.Times = c.times[:c.n]
	}
	return r
}

// Reset empties the column; memory that holds pointers is cleared so that nothing stays alive.
func (c *Column) Reset() {
	if c.Type.Pointers {
		c.Type.zero(c.p, c.n)
	}
	c.n, c.times = 0, c.times[:0]
}

// Append copies the elements [from, to) of r; they must fit.
func (c *Column) Append(r *Run, from, to int) {
	n := to - from
	c.appendTimes(r, n, func(dst []int64) { copy(dst, r.Times[from:to]) })
	c.Type.move(unsafe.Add(c.p, uintptr(c.n)*c.Type.Size), r.At(from), n)
	c.n += n
}

// Gather copies the elements of r at the given positions; they must fit.
func (c *Column) Gather(r *Run, at []uint16) {
	if r.Times != nil || len(c.times) != 0 {
		c.appendTimes(r, len(at), func(dst []int64) {
			for i, j := range at {
				dst[i] = r.Times[j]
			}
		})
	}
	c.Type.gather(unsafe.Add(c.p, uintptr(c.n)*c.Type.Size), r.P, at)
	c.n += len(at)
}

// appendTimes extends the timestamps by n, which fill sets if the run has any.
func (c *Column) appendTimes(r *Run, n int, fill func([]int64)) {
	if r.Times == nil && len(c.times) == 0 {
		return
	}
	c.padTimes()
	c.times = c.times[:c.n+n]
	tail := c.times[c.n:]
	if r.Times == nil {
		for i := range tail {
			tail[i] = NoTime
		}
		return
	}
	fill(tail)
}

// padTimes gives the elements so far the timestamp "none", when the first timestamp comes.
func (c *Column) padTimes() {
	if len(c.times) == c.n {
		return
	}
	c.times = c.times[:c.n]
	for i := range c.times {
		c.times[i] = NoTime
	}
}

// Fill makes the column n elements long without timestamps and lends them, for operators that write every element
// themselves without knowing its type. n must fit.
func (c *Column) Fill(n int) Run {
	c.n, c.times = n, c.times[:0]
	return c.Run()
}

// Cut shortens the column to n elements.
func (c *Column) Cut(n int) {
	if c.Type.Pointers {
		c.Type.zero(unsafe.Add(c.p, uintptr(n)*c.Type.Size), c.n-n)
	}
	c.n = n
	if len(c.times) > n {
		c.times = c.times[:n]
	}
}

// Add appends one element; it must fit. ts is NoTime for none.
func Add[T any](c *Column, v T, ts int64) {
	checkView[T](c.Type)
	if ts != NoTime || len(c.times) != 0 {
		c.padTimes()
		c.times = append(c.times, ts)
	}
	*(*T)(unsafe.Add(c.p, uintptr(c.n)*unsafe.Sizeof(v))) = v
	c.n++
}

// Fill makes the column n elements long without timestamps and returns the typed view, for operators that write every
// element themselves. n must fit.
func Fill[T any](c *Column, n int) []T {
	checkView[T](c.Type)
	c.n, c.times = n, c.times[:0]
	return unsafe.Slice((*T)(c.p), n)
}

// Whole is the memory of an empty column for writers of their own; Filled says how much of it they have written.
func Whole[T any](c *Column) (values []T, times []int64) {
	checkView[T](c.Type)
	return unsafe.Slice((*T)(c.p), c.cap), c.times[:c.cap]
}

// Filled makes the column n elements long whose memory was written through Whole; timed says whether the timestamps were,
// and are to be kept.
func (c *Column) Filled(n int, timed bool) {
	c.n, c.times = n, c.times[:0]
	if timed {
		c.times = c.times[:n]
	}
}
