package serde

import (
	"encoding/binary"
	"math"
	"reflect"
	"unsafe"
)

// keyPart is one field of a key, after nested structs and arrays were spread out.
type keyPart struct {
	op   keyOp
	unit uint8   // keyBytes: size of the numbers
	off  uintptr // in Go memory
	n    uintptr // keyBytes: how many
	user *framed // keyUser
}

type keyOp uint8

const (
	keyBytes   keyOp = iota // n bytes that hold numbers of unit bytes
	keyBool                 // 1 byte
	keyFloat32              // 4 bytes, -0 as 0
	keyFloat64              // 8 bytes, -0 as 0
	keyWord                 // an int or uint of less than 8 bytes, 8 bytes in the key
	keyUword                // likewise unsigned
	keyTime                 // the instant: seconds in 8 bytes, nanoseconds in 4
	keyString               // the bytes, with their length in front unless alone
	keyUser                 // the bytes of a user's codec, likewise
)

const (
	errNaN       = decodeError("NaN in a key")
	errMinusZero = decodeError("-0 in a key")
)

// width is the number of canonical bytes, 0 if it varies.
func (p *keyPart) width() uintptr {
	switch p.op {
	case keyBytes:
		return p.n
	case keyBool:
		return 1
	case keyFloat32:
		return 4
	case keyFloat64, keyWord, keyUword:
		return 8
	case keyTime:
		return keyTimeWidth
	}
	return 0
}

// keyParts appends the parts of a key of type t at offset off.
func (c *compiler) keyParts(list []keyPart, t reflect.Type, off uintptr, path string) ([]keyPart, error) {
	if len(list) > maxKeyParts {
		return nil, c.refuse(path, "a key has at most %d fields", maxKeyParts)
	}
	how, err := c.keyManner(t, path)
	if err != nil {
		return nil, err
	}
	switch how {
	case byUser, byMarshaler:
		return append(list, keyPart{op: keyUser, off: off, user: c.framedOf(t, how)}), nil
	case byTime:
		return append(list, keyPart{op: keyTime, off: off}), nil
	}
	size := t.Size()
	switch t.Kind() {
	case reflect.Bool:
		return append(list, keyPart{op: keyBool, unit: 1, off: off}), nil
	case reflect.Int:
		if size < 8 {
			return append(list, keyPart{op: keyWord, off: off}), nil
		}
	case reflect.Uint:
		if size < 8 {
			return append(list, keyPart{op: keyUword, off: off}), nil
		}
	case reflect.Float32:
		return append(list, keyPart{op: keyFloat32, off: off}), nil
	case reflect.Float64:
		return append(list, keyPart{op: keyFloat64, off: off}), nil
	case reflect.Complex64:
		return append(list, keyPart{op: keyFloat32, off: off}, keyPart{op: keyFloat32, off: off + 4}), nil
	case reflect.Complex128:
		return append(list, keyPart{op: keyFloat64, off: off}, keyPart{op: keyFloat64, off: off + 8}), nil
	case reflect.String:
		return append(list, keyPart{op: keyString, off: off}), nil
	case reflect.Array:
		return c.arrayKeyParts(list, t, off, path)
	case reflect.Struct:
		return c.structKeyParts(list, t, off, path)
	}
	return addKeyBytes(list, keyPart{op: keyBytes, unit: uint8(size), off: off, n: size}), nil
}

// keyManner is manner without the types whose value is not an identity.
func (c *compiler) keyManner(t reflect.Type, path string) (manner, error) {
	if _, ok := c.user[t]; ok {
		return byUser, nil
	}
	switch t.Kind() {
	case reflect.Interface:
		return 0, c.refuse(path, "%s is an interface and can't be part of a key", t)
	case reflect.Pointer, reflect.UnsafePointer, reflect.Uintptr:
		return 0, c.refuse(path, "%s is an address and can't be part of a key: it differs between processes", t)
	}
	how, err := c.manner(t, path)
	if err != nil {
		return 0, err
	}
	switch how {
	case byReference:
		return 0, c.refuse(path, "%s can't be part of a key without MarshalBinary and UnmarshalBinary", t)
	case byProto:
		return 0, c.refuse(path, "%s can't be part of a key: messages have no canonical encoding", t)
	}
	return how, nil
}

// addKeyBytes makes the last part longer where both are plain memory side by side.
func addKeyBytes(list []keyPart, p keyPart) []keyPart {
	if len(list) > 0 {
		last := &list[len(list)-1]
		if last.op == keyBytes && last.off+last.n == p.off && (!bigEndian || last.unit == p.unit) {
			last.n += p.n
			return list
		}
	}
	return append(list, p)
}

func (c *compiler) arrayKeyParts(list []keyPart, t reflect.Type, off uintptr, path string) ([]keyPart, error) {
	var err error
	for i := range t.Len() {
		at := off + uintptr(i)*t.Elem().Size()
		if list, err = c.keyParts(list, t.Elem(), at, path+"[]"); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (c *compiler) structKeyParts(list []keyPart, t reflect.Type, off uintptr, path string) ([]keyPart, error) {
	var err error
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue
		}
		if list, err = c.keyParts(list, f.Type, off+f.Offset, joinPath(path, f.Name)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// pack writes this fixed-width part of n keys to memory whose keys are width bytes apart, and gives the position of the
// first NaN, or -1.
func (p *keyPart) pack(to unsafe.Pointer, width uintptr, from unsafe.Pointer, stride uintptr, n int) int {
	switch {
	case p.op == keyFloat64:
		return packFloats(to, width, from, stride, n)
	case p.op == keyBytes && p.n >= 8 && p.n <= 16 && !bigEndian:
		packPairs[[8]byte](to, width, from, stride, n, p.n-8)
		return -1
	case p.op == keyBytes && p.n >= 4 && p.n < 8 && !bigEndian:
		packPairs[[4]byte](to, width, from, stride, n, p.n-4)
		return -1
	}
	w := p.width()
	for i := range n {
		dst := bytesAt(unsafe.Add(to, uintptr(i)*width), w)
		if _, err := p.appendTo(dst[:0], unsafe.Add(from, uintptr(i)*stride), true); err != nil {
			return i
		}
	}
	return -1
}

// packPairs copies parts of one to two words each: the first word, and the one that ends with the part, last bytes
// further on.
func packPairs[W [4]byte | [8]byte](to unsafe.Pointer, width uintptr, from unsafe.Pointer, stride uintptr, n int, last uintptr) {
	for i := range n {
		dst, src := unsafe.Add(to, uintptr(i)*width), unsafe.Add(from, uintptr(i)*stride)
		*(*W)(dst) = *(*W)(src)
		*(*W)(unsafe.Add(dst, last)) = *(*W)(unsafe.Add(src, last))
	}
}

// packFloats has no branch per key: a NaN is found at the end, which is almost never.
func packFloats(to unsafe.Pointer, width uintptr, from unsafe.Pointer, stride uintptr, n int) int {
	sum := uint64(0)
	for i := range n {
		f := *(*float64)(unsafe.Add(from, uintptr(i)*stride)) + 0 // makes -0 to 0
		u := math.Float64bits(f)
		sum |= 0x7ff0_0000_0000_0000 - u&(1<<63-1) // the sign bit is set for a NaN only
		binary.LittleEndian.PutUint64((*[8]byte)(unsafe.Add(to, uintptr(i)*width))[:], u)
	}
	if sum>>63 == 0 {
		return -1
	}
	for i := range n {
		if f := *(*float64)(unsafe.Add(from, uintptr(i)*stride)); f != f {
			return i
		}
	}
	return -1
}

// appendTo appends the canonical bytes of the part that lies at src. Alone says that it is the whole key, so that a text
// needs no length.
func (p *keyPart) appendTo(dst []byte, src unsafe.Pointer, alone bool) ([]byte, error) {
	switch p.op {
	case keyString:
		s := *(*string)(src)
		if !alone {
			dst = appendUvarint(dst, uint64(len(s)))
		}
		return append(dst, s...), nil
	case keyUser:
		if alone {
			return p.user.body(dst, src)
		}
		return p.user.append(dst, src, 0)
	case keyFloat64:
		f := *(*float64)(src)
		if f != f {
			return dst, errNaN
		}
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f+0)), nil
	case keyFloat32:
		f := *(*float32)(src)
		if f != f {
			return dst, errNaN
		}
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(f+0)), nil
	case keyWord:
		return binary.LittleEndian.AppendUint64(dst, uint64(*(*int)(src))), nil
	case keyUword:
		return binary.LittleEndian.AppendUint64(dst, uint64(*(*uint)(src))), nil
	case keyTime:
		return appendKeyTime(dst, src), nil
	case keyBool:
		return append(dst, *(*byte)(src)), nil
	}
	if bigEndian {
		return appendSwapped(dst, src, p.n, uintptr(p.unit)), nil
	}
	if p.n == 8 {
		return binary.LittleEndian.AppendUint64(dst, *(*uint64)(src)), nil
	}
	return append(dst, bytesAt(src, p.n)...), nil
}

// read is the inverse of appendTo.
func (p *keyPart) read(src []byte, to unsafe.Pointer, alone bool) (int, error) {
	switch {
	case p.op == keyString && alone:
		*(*string)(to) = string(src)
		return len(src), nil
	case p.op == keyUser && alone:
		return len(src), p.user.readBody(src, to)
	case p.op == keyString || p.op == keyUser:
		return p.readText(src, to)
	case uintptr(len(src)) < p.width():
		return 0, errTruncated
	}
	return p.readFixed(src, to)
}

// readText reads a part with its length in front.
func (p *keyPart) readText(src []byte, to unsafe.Pointer) (int, error) {
	n, used, err := readLen(src, 1)
	if err != nil {
		return used, err
	}
	if used > 1 && src[used-1] == 0 {
		return used, errVarint
	}
	part := src[used : used+n : used+n]
	if p.op == keyUser {
		return used + n, p.user.readBody(part, to)
	}
	*(*string)(to) = string(part)
	return used + n, nil
}

// readFixed refuses what is no canonical form, so that two keys never decode to one.
func (p *keyPart) readFixed(src []byte, to unsafe.Pointer) (int, error) {
	switch p.op {
	case keyBool:
		if src[0] > 1 {
			return 0, errBool
		}
		*(*byte)(to) = src[0]
		return 1, nil
	case keyFloat64:
		f := math.Float64frombits(binary.LittleEndian.Uint64(src))
		*(*float64)(to) = f
		return 8, checkKeyFloat(f)
	case keyFloat32:
		f := math.Float32frombits(binary.LittleEndian.Uint32(src))
		*(*float32)(to) = f
		return 4, checkKeyFloat(float64(f))
	case keyWord, keyUword:
		return word{signed: p.op == keyWord}.read(src, to, 0)
	case keyTime:
		return readKeyTime(src, to)
	}
	return int(p.n), readRaw(src, &step{op: opRaw, unit: p.unit, n: p.n}, to)
}

func checkKeyFloat(f float64) error {
	if f != f {
		return errNaN
	}
	if f == 0 && math.Signbit(f) {
		return errMinusZero
	}
	return nil
}
