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
	unit uint8
	off  uintptr // in Go memory
	n    uintptr // keyBytes: how many
	sub  codec   // keyUser
}

type keyOp uint8

const (
	keyBytes   keyOp = iota // n bytes that hold numbers of unit bytes
	keyBool                 // 1 byte
	keyFloat32              // 4 bytes, -0 as 0
	keyFloat64              // 8 bytes, -0 as 0
	keyWord                 // an int or uint of less than 8 bytes, 8 bytes in the key
	keyString               // the bytes, with their length in front unless alone
	keyUser                 // the bytes of a user's codec, likewise
)

const errNaN = decodeError("NaN in a key")

// width is the number of canonical bytes, 0 if it varies.
func (p *keyPart) width() uintptr {
	switch p.op {
	case keyBytes:
		return p.n
	case keyBool:
		return 1
	case keyFloat32:
		return 4
	case keyFloat64, keyWord:
		return 8
	}
	return 0
}

// keyParts appends the parts of a key of type t at offset off.
func (c *compiler) keyParts(list []keyPart, t reflect.Type, off uintptr, path string) ([]keyPart, error) {
	if len(list) > maxKeyParts {
		return nil, c.refuse(path, "a key has at most %d fields", maxKeyParts)
	}
	size := t.Size()
	switch t.Kind() {
	case reflect.Bool:
		return addKeyPart(list, keyPart{op: keyBool, unit: 1, off: off, n: 1}), nil
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32,
		reflect.Uint64:
		return addKeyPart(list, keyPart{op: keyBytes, unit: uint8(size), off: off, n: size}), nil
	case reflect.Int, reflect.Uint:
		if size < 8 {
			return append(list, keyPart{op: keyWord, off: off}), nil
		}
		return addKeyPart(list, keyPart{op: keyBytes, unit: 8, off: off, n: 8}), nil
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
	return nil, c.refuse(path, "%s cannot be part of a key: its identity is not its value", t)
}

// addKeyPart makes the last part longer where both are plain memory side by side.
func addKeyPart(list []keyPart, p keyPart) []keyPart {
	if len(list) > 0 && p.op == keyBytes {
		last := &list[len(list)-1]
		if last.op == p.op && last.off+last.n == p.off && (!bigEndian || last.unit == p.unit) {
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
		at := joinPath(path, f.Name)
		if !f.IsExported() {
			return nil, c.refuse(at, "the field is unexported: export it, or give %s MarshalBinary and UnmarshalBinary", t)
		}
		if list, err = c.keyParts(list, f.Type, off+f.Offset, at); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// pack writes the part of n keys, toStride apart, and reports the first NaN, or -1.
func (p *keyPart) pack(to unsafe.Pointer, toStride uintptr, from unsafe.Pointer, fromStride uintptr, n int) int {
	nan := -1
	for i := range n {
		dst := unsafe.Add(to, uintptr(i)*toStride)
		src := unsafe.Add(from, uintptr(i)*fromStride)
		switch p.op {
		case keyFloat64:
			f := *(*float64)(src)
			if f != f && nan < 0 {
				nan = i
			}
			binary.LittleEndian.PutUint64((*[8]byte)(dst)[:], math.Float64bits(f+0))
		case keyFloat32:
			f := *(*float32)(src)
			if f != f && nan < 0 {
				nan = i
			}
			binary.LittleEndian.PutUint32((*[4]byte)(dst)[:], math.Float32bits(f+0))
		case keyWord:
			binary.LittleEndian.PutUint64((*[8]byte)(dst)[:], uint64(*(*int)(src)))
		default:
			copyBytes(dst, src, p.n)
			if bigEndian && p.unit > 1 {
				swapUnits(bytesAt(dst, p.n), uintptr(p.unit))
			}
		}
	}
	return nan
}

// appendTo appends the part of the key at v. Alone says that it is the whole key, so that it needs no length.
func (p *keyPart) appendTo(dst []byte, v unsafe.Pointer, alone bool) ([]byte, error) {
	src := unsafe.Add(v, p.off)
	if p.op == keyString {
		s := *(*string)(src)
		if !alone {
			dst = appendUvarint(dst, uint64(len(s)))
		}
		return append(dst, s...), nil
	}
	at := len(dst)
	w := p.width()
	for range w {
		dst = append(dst, 0)
	}
	if p.pack(unsafe.Pointer(unsafe.SliceData(dst[at:])), w, src, 0, 1) >= 0 {
		return dst, errNaN
	}
	return dst, nil
}

// read is the inverse of appendTo.
func (p *keyPart) read(src []byte, to unsafe.Pointer, alone bool) (int, error) {
	if p.op == keyString {
		if alone {
			*(*string)(to) = string(src)
			return len(src), nil
		}
		s, n, err := readString(src)
		if err == nil {
			*(*string)(to) = s
		}
		return n, err
	}
	w := int(p.width())
	if len(src) < w {
		return 0, errTruncated
	}
	switch p.op {
	case keyBool:
		if src[0] > 1 {
			return 0, errBool
		}
		*(*byte)(to) = src[0]
	case keyFloat64:
		*(*float64)(to) = math.Float64frombits(binary.LittleEndian.Uint64(src))
	case keyFloat32:
		*(*float32)(to) = math.Float32frombits(binary.LittleEndian.Uint32(src))
	case keyWord:
		*(*int)(to) = int(binary.LittleEndian.Uint64(src))
	default:
		dst := bytesAt(to, p.n)
		copy(dst, src)
		if bigEndian && p.unit > 1 {
			swapUnits(dst, uintptr(p.unit))
		}
	}
	return w, nil
}
