package serde

import (
	"reflect"
	"unsafe"
)

// pointer is the codec of *T: 0 for nil, or 1 and the value. Two pointers to one value become two values.
type pointer struct {
	elem  reflect.Type
	codec codec
}

const errPointer = decodeError("a pointer is neither 0 nor 1")

func (p *pointer) least() int { return 1 }

func (p *pointer) append(dst []byte, v unsafe.Pointer, depth int) ([]byte, error) {
	at := *(*unsafe.Pointer)(v)
	if at == nil {
		return append(dst, 0), nil
	}
	if depth == 0 {
		return dst, errDepth
	}
	return p.codec.append(append(dst, 1), at, depth-1)
}

func (p *pointer) read(src []byte, v unsafe.Pointer, depth int) (int, error) {
	switch {
	case len(src) == 0:
		return 0, errTruncated
	case src[0] == 0:
		*(*unsafe.Pointer)(v) = nil
		return 1, nil
	case src[0] > 1:
		return 0, errPointer
	case depth == 0:
		return 0, errDepth
	case len(src)-1 < p.codec.least():
		return 1, errTruncated
	}
	at := reflect.New(p.elem).UnsafePointer()
	*(*unsafe.Pointer)(v) = at
	n, err := p.codec.read(src[1:], at, depth-1)
	return 1 + n, err
}

func (p *pointer) equal(a, b unsafe.Pointer, depth int) bool {
	x, y := *(*unsafe.Pointer)(a), *(*unsafe.Pointer)(b)
	if x == y {
		return true
	}
	return x != nil && y != nil && depth > 0 && p.codec.equal(x, y, depth-1)
}

func (p *pointer) clone(dst, src unsafe.Pointer, depth int) error {
	from := *(*unsafe.Pointer)(src)
	if from == nil {
		*(*unsafe.Pointer)(dst) = nil
		return nil
	}
	if depth == 0 {
		return errDepth
	}
	at := reflect.New(p.elem).UnsafePointer()
	err := p.codec.clone(at, from, depth-1)
	*(*unsafe.Pointer)(dst) = at
	return err
}

// later stands for the codec of a pointer, slice, map or interface type that contains itself, until that codec is
// compiled.
type later struct{ codec }

// least holds for all four kinds, and is asked before the codec is there.
func (l *later) least() int { return 1 }
