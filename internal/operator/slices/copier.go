package slices

import (
	"fmt"
	"unsafe"

	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/serde"
)

// copier copies accumulators that are needed again: merging may spoil what is merged.
type copier struct {
	acc *serde.Handle
	mem *windows.Memory
}

// one copies an accumulator to memory that has none.
func (c *copier) one(dst, src unsafe.Pointer) error {
	if c.acc.Layout != serde.Encoded { // texts never change
		c.mem.Move(dst, src, 1)
		return nil
	}
	if err := c.acc.Clone(dst, src); err != nil {
		return fmt.Errorf("merge the slices of a window: %w", err)
	}
	return nil
}

// move moves accumulators from[i] of src to into[i] of dst, over what is there; src must not be used as such any more.
func (c *copier) move(dst unsafe.Pointer, into []uint32, src unsafe.Pointer, from []uint32) {
	if !c.acc.Pointers {
		_ = c.column(dst, into, src, from) // copies of memory don't fail
		return
	}
	for i, to := range into {
		c.mem.Move(c.mem.At(dst, int(to)), c.mem.At(src, int(from[i])), 1)
	}
}

// column copies accumulators from[i] of src to into[i] of dst.
func (c *copier) column(dst unsafe.Pointer, into []uint32, src unsafe.Pointer, from []uint32) error {
	from = from[:len(into)]
	size := c.mem.Size
	switch {
	case c.acc.Pointers:
		for i, to := range into {
			if err := c.one(c.mem.At(dst, int(to)), c.mem.At(src, int(from[i]))); err != nil {
				return err
			}
		}
	case size == 8:
		for i, to := range into {
			*(*uint64)(unsafe.Add(dst, uintptr(to)*8)) = *(*uint64)(unsafe.Add(src, uintptr(from[i])*8))
		}
	case size == 16:
		for i, to := range into {
			*(*[2]uint64)(unsafe.Add(dst, uintptr(to)*16)) = *(*[2]uint64)(unsafe.Add(src, uintptr(from[i])*16))
		}
	default:
		for i, to := range into {
			copy(unsafe.Slice((*byte)(unsafe.Add(dst, uintptr(to)*size)), size),
				unsafe.Slice((*byte)(unsafe.Add(src, uintptr(from[i])*size)), size))
		}
	}
	return nil
}
