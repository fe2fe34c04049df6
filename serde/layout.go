package serde

import (
	"reflect"
)

// maxSegments bounds the packing steps of Text layout; a type with more of them (long arrays of strings) is Encoded.
const maxSegments = 64

const slotAlign = 8

func roundUp(n, align uintptr) uintptr { return (n + align - 1) &^ (align - 1) }

// holdsPointers reports whether the Go memory of t has a word that the garbage collector follows.
func holdsPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && holdsPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.String, reflect.Pointer, reflect.UnsafePointer, reflect.Slice, reflect.Map, reflect.Interface,
		reflect.Chan, reflect.Func:
		return true
	}
	return false
}

// stringOffsets appends the offsets of all strings in the memory of t; ok is false if it holds other pointers or more
// strings than a packing program may have.
func stringOffsets(t reflect.Type, at uintptr, list []uintptr) (_ []uintptr, ok bool) {
	switch t.Kind() {
	case reflect.String:
		return append(list, at), len(list) < maxSegments/2
	case reflect.Array:
		if !holdsPointers(t) {
			return list, true
		}
		for i := range t.Len() {
			if list, ok = stringOffsets(t.Elem(), at+uintptr(i)*t.Elem().Size(), list); !ok {
				return list, false
			}
		}
		return list, true
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if list, ok = stringOffsets(f.Type, at+f.Offset, list); !ok {
				return list, false
			}
		}
		return list, true
	}
	return list, !holdsPointers(t)
}

// place fills in what follows from the Go memory of the type: layout, slot size and packing steps.
func (h *Handle) place() {
	t := h.Type
	h.Size = t.Size()
	h.Pointers = holdsPointers(t)
	if !h.Pointers {
		h.Layout, h.SlotSize = Fixed, roundUp(h.Size, slotAlign)
		return
	}
	offsets, ok := stringOffsets(t, 0, nil)
	if !ok {
		h.Layout, h.SlotSize = Encoded, StringRefSize
		return
	}
	h.Layout = Text
	var from, to uintptr
	gap := func(end uintptr) {
		if end > from {
			h.Segments = append(h.Segments, Segment{From: from, To: to, Len: end - from})
			to += end - from
		}
	}
	header := reflect.TypeFor[string]().Size()
	for _, at := range offsets {
		gap(at)
		to = roundUp(to, slotAlign)
		h.Segments = append(h.Segments, Segment{From: at, To: to, IsString: true})
		from, to = at+header, to+StringRefSize
	}
	gap(h.Size)
	h.SlotSize = roundUp(to, slotAlign)
}
