package serde

import (
	"math/bits"
	"reflect"
	"unsafe"
)

// slice is the codec of []T: 0 for nil, or 1 + the length, and the elements. Elements that would take no bytes take one
// byte each, so that a length can always be checked against what follows.
type slice struct {
	typ   reflect.Type
	size  uintptr // of an element
	plain bool    // an element has no pointers
	codec codec
}

type sliceHeader struct {
	p        unsafe.Pointer
	len, cap int
}

const errFiller = decodeError("an element without bytes is not 0")

// expansion is how many bytes of Go memory a decoder allocates at once for each byte that is left to decode.
const expansion = 64

func (s *slice) least() int { return 1 }

// whole gives the program of the elements if they are one run of plain bytes without gaps.
func (s *slice) whole(steps func(*program) []step) *step {
	p, ok := s.codec.(*program)
	if !ok {
		return nil
	}
	list := steps(p)
	if len(list) == 1 && list[0].op <= opBool && list[0].n == s.size && list[0].op != opFloat32 && list[0].op != opFloat64 {
		return &list[0]
	}
	return nil
}

func encSteps(p *program) []step { return p.enc }
func cmpSteps(p *program) []step { return p.cmp }

func (s *slice) append(dst []byte, v unsafe.Pointer, depth int) ([]byte, error) {
	h := (*sliceHeader)(v)
	if h.p == nil {
		return append(dst, 0), nil
	}
	if depth == 0 {
		return dst, errDepth
	}
	dst = appendUvarint(dst, uint64(h.len)+1)
	if w := s.whole(encSteps); w != nil && !bigEndian {
		return append(dst, bytesAt(h.p, uintptr(h.len)*s.size)...), nil
	}
	filler := s.codec.least() == 0
	for i := range h.len {
		if filler {
			dst = append(dst, 0)
		}
		var err error
		if dst, err = s.codec.append(dst, unsafe.Add(h.p, uintptr(i)*s.size), depth-1); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (s *slice) read(src []byte, v unsafe.Pointer, depth int) (int, error) {
	h := (*sliceHeader)(v)
	count, pos, err := readUvarint(src)
	if err != nil {
		return pos, err
	}
	if count == 0 {
		*h = sliceHeader{}
		return pos, nil
	}
	if depth == 0 {
		return pos, errDepth
	}
	filler := s.codec.least() == 0
	n, err := checkCount(count-1, max(s.codec.least(), 1), len(src)-pos)
	if err != nil {
		return pos, err
	}
	if w := s.whole(encSteps); w != nil && !bigEndian {
		*h = s.make(n)
		all := *w
		all.n *= uintptr(n)
		return pos + int(all.n), readRaw(src[pos:], &all, h.p)
	}
	*h = s.make(s.firstCap(n, len(src)-pos))
	room := h.len
	h.len = 0
	for h.len < n {
		if h.len == room {
			*h, room = s.grow(*h, n)
		}
		if filler {
			if src[pos:][0] != 0 {
				return pos, errFiller
			}
			pos++
		}
		used, err := s.codec.read(src[pos:], unsafe.Add(h.p, uintptr(h.len)*s.size), depth-1)
		pos += used
		h.len++
		if err != nil {
			return pos, err
		}
	}
	h.cap = h.len
	return pos, nil
}

func checkCount(n uint64, least, rest int) (int, error) {
	if n > 1<<(bits.UintSize-2) || least > 0 && n > uint64(rest)/uint64(least) {
		return 0, errCount
	}
	return int(n), nil
}

// firstCap bounds the memory that a few hostile bytes can claim: elements may be much larger in memory than encoded.
func (s *slice) firstCap(n, rest int) int {
	if s.size == 0 {
		return n
	}
	most := (rest*expansion)/int(s.size) + 1
	return min(n, most)
}

// make allocates a slice of n zero elements.
func (s *slice) make(n int) sliceHeader {
	if s.plain {
		words := make([]uint64, (uintptr(n)*s.size+7)/8)
		return sliceHeader{unsafe.Pointer(unsafe.SliceData(words)), n, n}
	}
	return sliceHeader{reflect.MakeSlice(s.typ, n, n).UnsafePointer(), n, n}
}

// grow doubles a slice whose elements were read so far.
func (s *slice) grow(h sliceHeader, n int) (sliceHeader, int) {
	room := min(2*h.len+1, n)
	more := s.make(room)
	old := reflect.NewAt(s.typ, unsafe.Pointer(&sliceHeader{h.p, h.len, h.len})).Elem()
	reflect.Copy(reflect.NewAt(s.typ, unsafe.Pointer(&more)).Elem(), old)
	more.len = h.len
	return more, room
}

func (s *slice) equal(a, b unsafe.Pointer, depth int) bool {
	x, y := (*sliceHeader)(a), (*sliceHeader)(b)
	if (x.p == nil) != (y.p == nil) || x.len != y.len {
		return false
	}
	if x.p == nil || x.p == y.p && s.whole(cmpSteps) != nil {
		return true
	}
	if s.whole(cmpSteps) != nil {
		n := uintptr(x.len) * s.size
		return string(bytesAt(x.p, n)) == string(bytesAt(y.p, n))
	}
	if depth == 0 {
		return false
	}
	for i := range x.len {
		at := uintptr(i) * s.size
		if !s.codec.equal(unsafe.Add(x.p, at), unsafe.Add(y.p, at), depth-1) {
			return false
		}
	}
	return true
}

func (s *slice) clone(dst, src unsafe.Pointer, depth int) error {
	from, to := *(*sliceHeader)(src), (*sliceHeader)(dst)
	if from.p == nil {
		*to = sliceHeader{}
		return nil
	}
	if depth == 0 {
		return errDepth
	}
	*to = s.make(from.len)
	if s.plain {
		copyBytes(to.p, from.p, uintptr(from.len)*s.size)
		return nil
	}
	for i := range from.len {
		at := uintptr(i) * s.size
		if err := s.codec.clone(unsafe.Add(to.p, at), unsafe.Add(from.p, at), depth-1); err != nil {
			return err
		}
	}
	return nil
}

// array is the codec of an array that is too long to be spread out in a program.
type array struct {
	n     int
	size  uintptr
	codec codec
}

func (a *array) least() int { return a.n * a.codec.least() }

func (a *array) append(dst []byte, v unsafe.Pointer, depth int) ([]byte, error) {
	var err error
	for i := range a.n {
		if dst, err = a.codec.append(dst, unsafe.Add(v, uintptr(i)*a.size), depth); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (a *array) read(src []byte, v unsafe.Pointer, depth int) (int, error) {
	pos := 0
	for i := range a.n {
		n, err := a.codec.read(src[pos:], unsafe.Add(v, uintptr(i)*a.size), depth)
		pos += n
		if err != nil {
			return pos, err
		}
	}
	return pos, nil
}

func (a *array) equal(x, y unsafe.Pointer, depth int) bool {
	for i := range a.n {
		at := uintptr(i) * a.size
		if !a.codec.equal(unsafe.Add(x, at), unsafe.Add(y, at), depth) {
			return false
		}
	}
	return true
}

func (a *array) clone(dst, src unsafe.Pointer, depth int) error {
	for i := range a.n {
		at := uintptr(i) * a.size
		if err := a.codec.clone(unsafe.Add(dst, at), unsafe.Add(src, at), depth); err != nil {
			return err
		}
	}
	return nil
}
