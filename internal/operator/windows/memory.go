package windows

import "unsafe"

// Memory makes and moves arrays of one type, for those who hold them by address.
type Memory struct {
	Size uintptr
	// New makes n zero values.
	New func(n int) unsafe.Pointer
	// Move copies n values.
	Move func(dst, src unsafe.Pointer, n int)
	// Zero clears n values.
	Zero func(p unsafe.Pointer, n int)
}

// MemoryOf is the memory of values of type V.
func MemoryOf[V any]() Memory {
	var v V
	return Memory{
		Size: unsafe.Sizeof(v),
		New:  func(n int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(make([]V, n))) },
		Move: func(dst, src unsafe.Pointer, n int) { copy(unsafe.Slice((*V)(dst), n), unsafe.Slice((*V)(src), n)) },
		Zero: func(p unsafe.Pointer, n int) { clear(unsafe.Slice((*V)(p), n)) },
	}
}

// At is the address of value i of the array at p.
func (m *Memory) At(p unsafe.Pointer, i int) unsafe.Pointer { return unsafe.Add(p, uintptr(i)*m.Size) }
