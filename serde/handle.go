// Package serde knows Go types: it compiles a type once, when a stream or a state is declared, into a handle (layout,
// copy, equality, codec) and, for key types, into a canonical encoding with a run-wise hash kernel. Except for maps,
// into which Go has no other way, nothing here uses reflection per element. It owns no stream, state or file; stream, state and connectors call it at graph time, the
// engine calls the compiled handles at run time.
package serde

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Layout says how a value of a type lies in a state table.
type Layout uint8

const (
	// Fixed: the Go memory of the type has no pointers; a table keeps it in place and hands out its address.
	Fixed Layout = iota
	// Text: fixed fields and strings only; a table keeps the fixed part in place and the strings' bytes in its arena.
	Text
	// Encoded: anything else; a table keeps the bytes of the type's codec.
	Encoded
)

// String gives the word that plans and error messages use.
func (l Layout) String() string {
	switch l {
	case Fixed:
		return "fixed"
	case Text:
		return "text"
	}
	return "encoded"
}

// Segment is one step of packing a value of Text layout: Len fixed bytes, or one string header, at offset From in Go
// memory and at offset To in the packed slot. A packed string takes StringRefSize bytes and To is then a multiple of 8.
// A fixed run may hold padding, never a pointer.
type Segment struct {
	From, To uintptr
	Len      uintptr // bytes of the fixed run; 0 for a string
	IsString bool    // a string header, not a fixed run
}

// StringRefSize is the number of bytes that a string takes in a packed slot (an arena reference and a length, chosen
// by the table).
const StringRefSize = 16

// Handle is what the engine knows of a type. It is immutable and may be shared by all goroutines.
type Handle struct {
	Type     reflect.Type // the Go type
	Name     string       // the type as users write it, for plans and errors
	Size     uintptr      // bytes of a value in Go memory
	Layout   Layout       // how a state table keeps it
	Pointers bool         // Go memory holds pointers (frames clear it before reuse)
	SlotSize uintptr      // bytes of a table slot: Fixed: Size; Text: packed part; Encoded: StringRefSize; all rounded up to 8
	Segments []Segment    // Text only: how to pack
	codec    codec
	schema   *Schema
	settings *settings
}

// codec encodes and decodes the value at an address. Depth counts down at every pointer, slice, map and interface, so
// that cyclic values and hostile bytes end in an error and not in an endless stack.
type codec interface {
	append(dst []byte, v unsafe.Pointer, depth int) ([]byte, error)
	read(src []byte, v unsafe.Pointer, depth int) (int, error)
	equal(a, b unsafe.Pointer, depth int) bool
	clone(dst, src unsafe.Pointer, depth int) error
	// least is the number of bytes that every encoding has at least; decoders check counts against it before they
	// allocate.
	least() int
}

// EncodingVersion is the version of the value and key encodings, which docs/formats/value-encoding.md and
// docs/formats/key-encoding.md describe. Snapshots record it.
const EncodingVersion = 1

// maxDepth bounds how deep pointers, slices, maps and interfaces nest in one value.
const maxDepth = 10_000

// Of compiles the type T. The error names the path of the field that cannot be encoded.
func Of[T any](opts ...Option) (*Handle, error) { return OfType(reflect.TypeFor[T](), opts...) }

// OfType compiles the type t. The error names the path of the field that cannot be encoded.
func OfType(t reflect.Type, opts ...Option) (*Handle, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	return compileHandle(t, s)
}

// Append appends the encoding of the value at v to dst. After an error what was appended is undefined, the bytes that
// dst held before are untouched.
func (h *Handle) Append(dst []byte, v unsafe.Pointer) ([]byte, error) {
	out, err := h.codec.append(dst, v, maxDepth)
	if err != nil {
		return out, fmt.Errorf("serde: encode %s: %w", h.Name, err)
	}
	return out, nil
}

// AppendColumn appends the encodings of all values of a column, one after the other.
func (h *Handle) AppendColumn(dst []byte, c Column) ([]byte, error) {
	if n := h.plainWidth(); n > 0 && c.Stride == n {
		return append(dst, bytesAt(c.P, n*uintptr(c.N))...), nil
	}
	for i := range c.N {
		var err error
		if dst, err = h.codec.append(dst, c.At(i), maxDepth); err != nil {
			return dst, fmt.Errorf("serde: encode %s, value %d of %d: %w", h.Name, i, c.N, err)
		}
	}
	return dst, nil
}

// ReadColumn decodes as many values as the column has from the front of src and reports how many bytes they took. It
// holds to the contract of Read.
func (h *Handle) ReadColumn(src []byte, c Column) (int, error) {
	if n := h.plainWidth(); n > 0 && c.Stride == n && uintptr(len(src))/n >= uintptr(c.N) {
		return copy(bytesAt(c.P, n*uintptr(c.N)), src), nil
	}
	pos := 0
	for i := range c.N {
		n, err := h.codec.read(src[pos:], c.At(i), maxDepth)
		pos += n
		if err != nil {
			return pos, fmt.Errorf("serde: decode %s, value %d of %d: %w", h.Name, i, c.N, err)
		}
	}
	return pos, nil
}

// plainWidth is the size of a value whose Go memory is its encoding; 0 for others.
func (h *Handle) plainWidth() uintptr {
	if isPlain(h.codec, h.Size) {
		return h.Size
	}
	return 0
}

// Plain reports whether Append and Read only copy: an encoding is the Go memory of its value.
func (h *Handle) Plain() bool { return h.plainWidth() > 0 }

// isPlain says whether the encoding of a value of a size is its Go memory.
func isPlain(c codec, size uintptr) bool {
	p, ok := c.(*program)
	return ok && !bigEndian && len(p.enc) == 1 && p.enc[0].op <= opRaw8 && p.enc[0].n == size
}

// Read decodes one value from the front of src into the memory at v and reports how many bytes it took. The value
// shares no memory with src. After an error the memory at v holds a valid but arbitrary value.
func (h *Handle) Read(src []byte, v unsafe.Pointer) (int, error) {
	n, err := h.codec.read(src, v, maxDepth)
	if err != nil {
		return n, fmt.Errorf("serde: decode %s: %w", h.Name, err)
	}
	return n, nil
}

// AppendChecked is Append followed by a trial Read of the bytes: it fails if the codec reads another number of bytes
// than it wrote, and names the type and both lengths. It is meant for tests and for the first elements of a job with a
// user's codec; it costs an allocation.
func (h *Handle) AppendChecked(dst []byte, v unsafe.Pointer) ([]byte, error) {
	out, err := h.Append(dst, v)
	if err != nil {
		return out, err
	}
	written := len(out) - len(dst)
	read, err := h.Read(out[len(dst):], h.New())
	if err != nil {
		return out, fmt.Errorf("serde: read back %d bytes written for %s: %w", written, h.Name, err)
	}
	if read != written {
		return out, fmt.Errorf("serde: codec of %s wrote %d bytes and read %d", h.Name, written, read)
	}
	return out, nil
}

// Equal reports whether two values are equal: as Go's == where the type has it, by what they hold for slices, maps and
// pointers, by instant for times, by encoding for types with a codec of their own. A NaN equals nothing. Values nested
// deeper than any codec allows are unequal.
func (h *Handle) Equal(a, b unsafe.Pointer) bool { return h.codec.equal(a, b, maxDepth) }

// Clone makes the memory at dst a deep copy of the value at src. Strings are shared, since they never change.
func (h *Handle) Clone(dst, src unsafe.Pointer) error {
	if h.Layout == Fixed {
		copyBytes(dst, src, h.Size)
		return nil
	}
	if err := h.codec.clone(dst, src, maxDepth); err != nil {
		return fmt.Errorf("serde: copy %s: %w", h.Name, err)
	}
	return nil
}

// Format gives the value as fmt.Sprint does. It allocates; it is for sinks that print, logs and errors.
func (h *Handle) Format(v unsafe.Pointer) string {
	return fmt.Sprint(reflect.NewAt(h.Type, v).Elem().Interface())
}

// Schema describes the encoding by names and kinds. It is shared and must not be changed.
func (h *Handle) Schema() *Schema { return h.schema }

// New allocates a zero value of the type.
func (h *Handle) New() unsafe.Pointer { return reflect.New(h.Type).UnsafePointer() }
