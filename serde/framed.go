package serde

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"reflect"
	"unsafe"
)

// framed is the codec of a type that user code encodes: its bytes with their length in front, so that a reader that
// takes another number of bytes than were written is found out at the very value.
type framed struct {
	name   string
	put    func(dst []byte, v unsafe.Pointer) ([]byte, error)
	take   func(src []byte, v unsafe.Pointer) (int, error)
	assign func(dst, src unsafe.Pointer) // nil: a copy goes through the encoding
}

func (f *framed) least() int { return 1 }

// body appends the user's bytes without their length. User code sees an empty slice, so it can't touch what dst holds.
func (f *framed) body(dst []byte, v unsafe.Pointer) ([]byte, error) {
	at := len(dst)
	b, err := f.put(dst[at:], v)
	if err != nil {
		return dst, fmt.Errorf("type %s: %w", f.name, err)
	}
	if len(b) == 0 {
		return dst, nil
	}
	if at+len(b) <= cap(dst) && unsafe.SliceData(b) == unsafe.SliceData(dst[at:cap(dst)]) {
		return dst[:at+len(b)], nil
	}
	return append(dst, b...), nil
}

func (f *framed) append(dst []byte, v unsafe.Pointer, _ int) ([]byte, error) {
	at := len(dst)
	dst, err := f.body(append(dst, 0), v)
	if err != nil {
		return dst, err
	}
	n := len(dst) - at - 1
	if n < 0x80 {
		dst[at] = byte(n)
		return dst, nil
	}
	var length [binary.MaxVarintLen64]byte
	w := binary.PutUvarint(length[:], uint64(n))
	dst = append(dst, length[:w-1]...)
	copy(dst[at+w:], dst[at+1:at+1+n])
	copy(dst[at:], length[:w])
	return dst, nil
}

func (f *framed) read(src []byte, v unsafe.Pointer, _ int) (int, error) {
	n, used, err := readLen(src, 1)
	if err != nil {
		return used, err
	}
	return used + n, f.readBody(src[used:used+n:used+n], v)
}

// readBody decodes a value that must take all of src.
func (f *framed) readBody(src []byte, v unsafe.Pointer) error {
	n, err := f.take(src, v)
	if err != nil {
		return fmt.Errorf("type %s: %w", f.name, err)
	}
	if n != len(src) {
		return fmt.Errorf("type %s: its codec wrote %d bytes and read %d", f.name, len(src), n)
	}
	return nil
}

func (f *framed) equal(a, b unsafe.Pointer, _ int) bool {
	x, err := f.body(nil, a)
	if err != nil {
		return false
	}
	y, err := f.body(nil, b)
	return err == nil && string(x) == string(y)
}

func (f *framed) clone(dst, src unsafe.Pointer, _ int) error {
	if f.assign != nil {
		f.assign(dst, src)
		return nil
	}
	b, err := f.body(nil, src)
	if err != nil {
		return err
	}
	return f.readBody(b, dst)
}

// marshalers reports which of MarshalBinary (or AppendBinary) and UnmarshalBinary a pointer to t has.
func marshalers(t reflect.Type) (out, in bool) {
	p := reflect.PointerTo(t)
	out = p.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()) ||
		p.Implements(reflect.TypeFor[encoding.BinaryAppender]())
	return out, p.Implements(reflect.TypeFor[encoding.BinaryUnmarshaler]())
}

// marshaler makes the codec of a type with both methods.
func marshaler(t reflect.Type) *framed {
	p := reflect.PointerTo(t)
	ptr := typeWord(reflect.Zero(p).Interface())
	f := &framed{
		name: t.String(),
		put: func(dst []byte, v unsafe.Pointer) ([]byte, error) {
			b, err := iface{ptr, v}.value().(encoding.BinaryMarshaler).MarshalBinary()
			return append(dst, b...), err
		},
		take: func(src []byte, v unsafe.Pointer) (int, error) {
			reflect.NewAt(t, v).Elem().SetZero()
			return len(src), iface{ptr, v}.value().(encoding.BinaryUnmarshaler).UnmarshalBinary(src)
		},
		assign: assignOf(t, func(dst, src unsafe.Pointer) { reflect.NewAt(t, dst).Elem().Set(reflect.NewAt(t, src).Elem()) }),
	}
	if p.Implements(reflect.TypeFor[encoding.BinaryAppender]()) {
		f.put = func(dst []byte, v unsafe.Pointer) ([]byte, error) {
			return iface{ptr, v}.value().(encoding.BinaryAppender).AppendBinary(dst)
		}
	}
	return f
}
