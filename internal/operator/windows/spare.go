package windows

import (
	"sync/atomic"
	"unsafe"
	"weak"
)

// Spare has the memory of a snapshot that was released, for the copies of the next one: memory that is new costs more than the
// copying, as the system has to give each page of it. Nobody holds it: it is gone with the next garbage collection. Its zero
// value is ready. One goroutine takes from it and any may put something in.
type Spare struct {
	last atomic.Pointer[weak.Pointer[copies]]
}

// copies are arrays of a snapshot.
type copies struct {
	arrays []array
}

// array is memory for values of one type.
type array struct {
	of   *Memory
	p    unsafe.Pointer
	room int
}

// take gives what is there, and empties it.
func (s *Spare) take() *copies {
	if w := s.last.Swap(nil); w != nil {
		if c := w.Value(); c != nil {
			return c
		}
	}
	return &copies{}
}

// put makes the arrays of a snapshot those of the next one.
func (s *Spare) put(c *copies) {
	w := weak.Make(c)
	s.last.Store(&w)
}

// array takes an array with room for n values out of these, nil if there is none that is not much too large.
func (c *copies) array(of *Memory, n int) (a array) {
	for i, old := range c.arrays {
		if old.of == of && old.room >= n && old.room <= 2*n+least {
			c.arrays[i] = c.arrays[len(c.arrays)-1]
			c.arrays = c.arrays[:len(c.arrays)-1]
			return old
		}
	}
	return array{of: of, p: of.New(n), room: n}
}

// least is how much larger than what is asked for a small array may be.
const least = 64
