package frame

import (
	"reflect"
	"unsafe"

	"github.com/flott-dev/flott/serde"
)

// Type is the handle of an element type: what serde knows of it and the few column operations that must be compiled for
// the type. It is made when a stream is made and kept there; immutable, shared by all goroutines.
type Type struct {
	*serde.Handle
	alloc  func(n int) unsafe.Pointer
	gather func(dst, src unsafe.Pointer, at []uint16)
	move   func(dst, src unsafe.Pointer, n int)
	zero   func(p unsafe.Pointer, n int)
	box    func(p unsafe.Pointer) any
}

// TypeOf compiles the handle of T. The error names the field that can't be encoded; the handle that comes with it can do
// everything but encode, so that building a graph can go on and report all mistakes together.
func TypeOf[T any](opts ...serde.Option) (*Type, error) {
	h, err := handleOf(reflect.TypeFor[T](), opts)
	return newType(h, Type{
		alloc:  func(n int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(make([]T, n))) },
		gather: gather[T],
		move: func(dst, src unsafe.Pointer, n int) {
			copy(unsafe.Slice((*T)(dst), n), unsafe.Slice((*T)(src), n))
		},
		zero: func(p unsafe.Pointer, n int) { clear(unsafe.Slice((*T)(p), n)) },
		box:  func(p unsafe.Pointer) any { return *(*T)(p) },
	}), err
}

// handleOf is serde's handle, or one that can't encode with the reason.
func handleOf(t reflect.Type, opts []serde.Option) (*serde.Handle, error) {
	h, err := serde.OfType(t, opts...)
	if err != nil {
		h = &serde.Handle{Type: t, Name: t.String(), Size: t.Size(), Layout: serde.Encoded, Pointers: true}
	}
	return h, err
}

// newType is out of line: TypeOf is compiled for every element type.
//
//go:noinline
func newType(h *serde.Handle, ops Type) *Type {
	ops.Handle = h
	return &ops
}

func gather[T any](dst, src unsafe.Pointer, at []uint16) {
	d := unsafe.Slice((*T)(dst), len(at))
	for i, j := range at {
		d[i] = *(*T)(unsafe.Add(src, uintptr(j)*unsafe.Sizeof(d[0])))
	}
}

// Box is the value at p as an interface, for printing and tests: it allocates.
func (t *Type) Box(p unsafe.Pointer) any { return t.box(p) }

// Same reports whether two handles are of one Go type.
func (t *Type) Same(u *Type) bool { return t == u || t.Handle.Type == u.Handle.Type }

const (
	// DefaultLen and MaxLen bound the elements of a frame, Bytes its memory; an element larger than that travels alone.
	DefaultLen = 1024
	MaxLen     = 1024
	Bytes      = 32 << 10
)

// FrameLen is the number of elements of a frame of this type when a frame may take budget bytes.
func (t *Type) FrameLen(budget int) int {
	size := int(t.Size) + 8
	if t.Pointers {
		size += 32 // memory behind the element, a guess that keeps large records in small frames
	}
	return max(1, min(DefaultLen, budget/size))
}
