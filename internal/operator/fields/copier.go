package fields

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Copier copies fields of elements into the fields of another type, column by column. It is immutable.
type Copier struct{ moves []move }

// move copies size bytes without pointers, or one pointer.
type move struct {
	from, to uintptr
	size     uintptr
	pointer  bool
}

const word = unsafe.Sizeof(uintptr(0))

// NewCopier returns the copier of fields to type to: a struct or array with as many fields, in this order, or, for one
// field, its own type. Types must be assignable without being converted.
func NewCopier(from []Field, to reflect.Type) (*Copier, error) {
	c := &Copier{}
	if len(from) == 1 && sameMemory(from[0].Type, to) {
		c.add(from[0].Type, from[0].Offset, 0)
		return c, nil
	}
	n := -1
	switch to.Kind() {
	case reflect.Struct:
		n = to.NumField()
	case reflect.Array:
		n = to.Len()
	}
	switch {
	case n < 0 && len(from) == 1:
		return nil, fmt.Errorf("field %q is of type %s, not %s", from[0].Path, from[0].Type, to)
	case n < 0:
		return nil, fmt.Errorf("%d fields don't go into a %s", len(from), to)
	case n != len(from):
		return nil, fmt.Errorf("%d fields don't go into %s, which has %d", len(from), to, n)
	}
	for i, f := range from {
		offset, typ, err := at(to, i)
		if err != nil {
			return nil, err
		}
		if !sameMemory(f.Type, typ) {
			return nil, fmt.Errorf("field %q is of type %s, field %d of %s is of type %s", f.Path, f.Type, i, to, typ)
		}
		c.add(f.Type, f.Offset, offset)
	}
	return c, nil
}

// sameMemory reports whether a value of type from is one of type to as it lies in memory.
func sameMemory(from, to reflect.Type) bool {
	return from == to || from.Kind() == to.Kind() && from.Kind() != reflect.Interface && from.AssignableTo(to)
}

// add compiles the copy of a value. Pointers are copied one by one, as such: the garbage collector must see them move.
func (c *Copier) add(t reflect.Type, from, to uintptr) {
	switch t.Kind() {
	case reflect.String:
		c.pointers(from, to, 1)
		c.bytes(from+word, to+word, word)
	case reflect.Slice:
		c.pointers(from, to, 1)
		c.bytes(from+word, to+word, 2*word)
	case reflect.Interface:
		c.pointers(from, to, 2)
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		c.pointers(from, to, 1)
	case reflect.Struct:
		for f := range fieldsOf(t) {
			c.add(f.Type, from+f.Offset, to+f.Offset)
		}
	case reflect.Array:
		for i := range uintptr(t.Len()) {
			c.add(t.Elem(), from+i*t.Elem().Size(), to+i*t.Elem().Size())
		}
	default:
		c.bytes(from, to, t.Size())
	}
}

func fieldsOf(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

func (c *Copier) pointers(from, to, n uintptr) {
	for i := range n {
		c.moves = append(c.moves, move{from: from + i*word, to: to + i*word, pointer: true})
	}
}

func (c *Copier) bytes(from, to, n uintptr) {
	if n == 0 {
		return
	}
	if k := len(c.moves) - 1; k >= 0 {
		if m := &c.moves[k]; !m.pointer && m.from+m.size == from && m.to+m.size == to {
			m.size += n
			return
		}
	}
	c.moves = append(c.moves, move{from: from, to: to, size: n})
}

// Copy copies the fields of n elements that lie stride bytes apart from src on to dst.
func (c *Copier) Copy(dst unsafe.Pointer, dstStride uintptr, src unsafe.Pointer, stride uintptr, n int) {
	for i := range c.moves {
		m := &c.moves[i]
		to, from := unsafe.Add(dst, m.to), unsafe.Add(src, m.from)
		unit := m.size
		if all := m.from | m.to | stride | dstStride; all&(min(m.size, 8)-1) != 0 {
			unit = 0 // two neighbours moved as one need not be aligned as one
		}
		switch {
		case m.pointer:
			column[unsafe.Pointer](to, dstStride, from, stride, n)
		case unit == 1:
			column[uint8](to, dstStride, from, stride, n)
		case unit == 2:
			column[uint16](to, dstStride, from, stride, n)
		case unit == 4:
			column[uint32](to, dstStride, from, stride, n)
		case unit == 8:
			column[uint64](to, dstStride, from, stride, n)
		case unit == 16:
			column[[2]uint64](to, dstStride, from, stride, n)
		default:
			blocks(to, dstStride, from, stride, n, m.size)
		}
	}
}

func column[V any](dst unsafe.Pointer, dstStride uintptr, src unsafe.Pointer, stride uintptr, n int) {
	for i := range uintptr(n) {
		*(*V)(unsafe.Add(dst, i*dstStride)) = *(*V)(unsafe.Add(src, i*stride))
	}
}

func blocks(dst unsafe.Pointer, dstStride uintptr, src unsafe.Pointer, stride uintptr, n int, size uintptr) {
	for i := range uintptr(n) {
		copy(unsafe.Slice((*byte)(unsafe.Add(dst, i*dstStride)), size), unsafe.Slice((*byte)(unsafe.Add(src, i*stride)), size))
	}
}
