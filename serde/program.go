package serde

import (
	"encoding/binary"
	"unsafe"
)

// program is the codec of scalars, strings, arrays and structs: the leaves of the type in order, neighbours in memory
// merged, run by one loop without a call per field.
type program struct {
	enc  []step // for append, read and clone: floats are plain bytes
	cmp  []step // for equal: floats apart, bools are plain bytes
	size int    // least
}

type op uint8

const (
	opRaw     op = iota // n bytes that hold numbers of unit bytes
	opRaw8              // 8 bytes
	opFloat32           // n bytes of float32; in cmp only
	opFloat64           // n bytes of float64; in cmp only
	opBool              // n bools
	opString            // a string
	opSub               // a value with a codec of its own
)

type step struct {
	op   op
	unit uint8
	off  uintptr
	n    uintptr
	sub  codec
}

// newProgram builds the two step lists from the leaves of a type.
func newProgram(leaves []step) *program {
	p := &program{}
	for _, l := range leaves {
		p.size += leastOf(l)
		e, c := l, l
		if l.op == opFloat32 || l.op == opFloat64 {
			e.op = opRaw
		}
		if l.op == opBool {
			c.op, c.unit = opRaw, 1
		}
		p.enc = addStep(p.enc, e)
		p.cmp = addStep(p.cmp, c)
	}
	for i := range p.enc {
		if s := &p.enc[i]; s.op == opRaw && s.n == 8 && !bigEndian {
			s.op = opRaw8
		}
	}
	return p
}

func leastOf(s step) int {
	switch s.op {
	case opString:
		return 1
	case opSub:
		return s.sub.least()
	}
	return int(s.n)
}

// addStep appends s, or makes the last step longer where both are plain memory of the same treatment side by side.
func addStep(list []step, s step) []step {
	if len(list) > 0 && s.op < opString {
		last := &list[len(list)-1]
		if last.op == s.op && last.off+last.n == s.off && (!bigEndian || last.unit == s.unit) {
			last.n += s.n
			return list
		}
	}
	return append(list, s)
}

func (p *program) least() int { return p.size }

func (p *program) append(dst []byte, v unsafe.Pointer, depth int) ([]byte, error) {
	for i := range p.enc {
		s := &p.enc[i]
		at := unsafe.Add(v, s.off)
		switch s.op {
		case opRaw8:
			dst = binary.LittleEndian.AppendUint64(dst, *(*uint64)(at))
		case opString:
			str := *(*string)(at)
			dst = append(appendUvarint(dst, uint64(len(str))), str...)
		case opSub:
			var err error
			if dst, err = s.sub.append(dst, at, depth); err != nil {
				return dst, err
			}
		default:
			if bigEndian && s.unit > 1 {
				dst = appendSwapped(dst, at, s.n, uintptr(s.unit))
			} else {
				dst = append(dst, bytesAt(at, s.n)...)
			}
		}
	}
	return dst, nil
}

func (p *program) read(src []byte, v unsafe.Pointer, depth int) (int, error) {
	pos := 0
	for i := range p.enc {
		s := &p.enc[i]
		at := unsafe.Add(v, s.off)
		rest := src[pos:]
		switch s.op {
		case opRaw8:
			if len(rest) < 8 {
				return pos, errTruncated
			}
			*(*uint64)(at) = binary.LittleEndian.Uint64(rest)
			pos += 8
		case opString:
			str, used, err := readString(rest)
			if err != nil {
				return pos, err
			}
			*(*string)(at) = str
			pos += used
		case opSub:
			used, err := s.sub.read(rest, at, depth)
			pos += used
			if err != nil {
				return pos, err
			}
		default:
			if err := readRaw(rest, s, at); err != nil {
				return pos, err
			}
			pos += int(s.n)
		}
	}
	return pos, nil
}

func readString(src []byte) (string, int, error) {
	n, used, err := readLen(src, 1)
	if err != nil {
		return "", used, err
	}
	return string(src[used : used+n]), used + n, nil
}

func readRaw(src []byte, s *step, at unsafe.Pointer) error {
	if uintptr(len(src)) < s.n {
		return errTruncated
	}
	src = src[:s.n]
	if s.op == opBool {
		for _, b := range src {
			if b > 1 {
				return errBool
			}
		}
	}
	dst := bytesAt(at, s.n)
	copy(dst, src)
	if bigEndian && s.unit > 1 {
		swapUnits(dst, uintptr(s.unit))
	}
	return nil
}

func (p *program) equal(a, b unsafe.Pointer, depth int) bool {
	for i := range p.cmp {
		s := &p.cmp[i]
		x, y := unsafe.Add(a, s.off), unsafe.Add(b, s.off)
		switch s.op {
		case opString:
			if *(*string)(x) != *(*string)(y) {
				return false
			}
		case opSub:
			if !s.sub.equal(x, y, depth) {
				return false
			}
		case opFloat64:
			if !equalNumbers[float64](x, y, s.n) {
				return false
			}
		case opFloat32:
			if !equalNumbers[float32](x, y, s.n) {
				return false
			}
		default:
			if string(bytesAt(x, s.n)) != string(bytesAt(y, s.n)) {
				return false
			}
		}
	}
	return true
}

func equalNumbers[F float32 | float64](a, b unsafe.Pointer, n uintptr) bool {
	count := n / unsafe.Sizeof(F(0))
	x, y := unsafe.Slice((*F)(a), count), unsafe.Slice((*F)(b), count)
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}

func (p *program) clone(dst, src unsafe.Pointer, depth int) error {
	for i := range p.enc {
		s := &p.enc[i]
		to, from := unsafe.Add(dst, s.off), unsafe.Add(src, s.off)
		switch s.op {
		case opString:
			*(*string)(to) = *(*string)(from)
		case opSub:
			if err := s.sub.clone(to, from, depth); err != nil {
				return err
			}
		default:
			copyBytes(to, from, s.n)
		}
	}
	return nil
}
